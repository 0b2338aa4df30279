//! From plans to a new network, what corresponds to what in the old one and the new, and the file in the end.
//!
//! Most of what is tried is not taken. So plans are tried as networks, and only what is taken becomes a file.

use std::collections::BTreeMap;

use leo_check::{Correspondence, Expression, ProvedBounds, deviation};
use leo_formats::onnx::{Document, Float, MadeUp};
use leo_network::{Network, Part, Spliced, UnitId, ValueId};

use crate::CompressError;
use crate::method::narrow::Narrowing;
use crate::rewriting::history::RemovedUnit;
use crate::rewriting::plan::Plan;
use crate::rewriting::region::{Region, Regions};

/// The regions to rewrite, each with its plan.
pub(crate) type Plans<'a> = Vec<(&'a Region, Plan)>;

/// A file whose regions are to be rewritten.
#[derive(Clone, Copy)]
pub(crate) struct Original<'a> {
    pub(crate) document: &'a Document,
    /// What is proved of its network.
    pub(crate) facts: &'a ProvedBounds<'a>,
    pub(crate) regions: &'a Regions,
}

/// A network with some of its regions rewritten.
pub(crate) struct Rewritten<'a> {
    plans: Plans<'a>,
    /// What stands in each region's place.
    parts: Vec<Part>,
    /// The type of the numbers in it, if not that of the file.
    float: Option<Float>,
    pub(crate) network: Network,
    /// For each element of each output, how far it can be from what it was, anywhere on the domain.
    pub(crate) deviation: Vec<Vec<f64>>,
    /// What corresponds to what.
    pairs: Correspondence,
}

/// A file with fewer units.
pub(crate) struct RewrittenFile {
    pub(crate) document: Document,
    /// The units that are gone.
    pub(crate) removed: Vec<RemovedUnit>,
    /// For each element of each output, how far it can be from what it was, anywhere on the domain.
    pub(crate) deviation: Vec<Vec<f64>>,
    /// What corresponds to what.
    pub(crate) pairs: Correspondence,
}

impl<'a> Original<'a> {
    /// Rewrites regions, with numbers of this type, and has it proved what that does.
    pub(crate) fn rewrite(&self, plans: Plans<'a>, float: Float) -> Result<Rewritten<'a>, CompressError> {
        let layers = plans.iter().flat_map(|(region, _)| &region.layers).map(|layer| layer.id);
        let names = self.document.layer_names(layers);
        let mut parts = Vec::new();
        for (region, plan) in &plans {
            let to = region.ports.iter().map(|port| port.value).collect();
            let network = plan.network(region, self.document.network(), float, |layer| names[&layer].clone())?;
            parts.push(Part { from: region.entry, to, network });
        }
        let float = (float != self.document.float()).then_some(float);
        let new = self.document.preview(&parts, float)?;
        let pairs = self.correspondence(&new, &new.made, &plans, &parts);
        let deviation = deviation(self.facts, &new.made, &pairs)?;
        Ok(Rewritten { plans, parts, float, network: new.made, deviation, pairs })
    }

    /// Writes a file with what was rewritten. If its network is not node by node what was expected, it is proved again
    /// what that does.
    pub(crate) fn write(&self, rewritten: Rewritten<'_>) -> Result<RewrittenFile, CompressError> {
        let Rewritten { plans, parts, float, .. } = rewritten;
        let new = self.document.splice(&parts, float)?;
        let network = new.made.network();
        let pairs = self.correspondence(&new, network, &plans, &parts);
        let is_expected = pairs == rewritten.pairs && network.is_alike(&rewritten.network);
        let deviation = if is_expected { rewritten.deviation } else { deviation(self.facts, network, &pairs)? };
        let removed = plans.iter().flat_map(|(region, plan)| plan.removed(region)).collect();
        Ok(RewrittenFile { document: new.made, removed, deviation, pairs })
    }

    /// Leaves out channels that can go without any new number, and has it proved what that does.
    pub(crate) fn narrow(&self, narrowing: &Narrowing) -> Result<RewrittenFile, CompressError> {
        let narrow = self.document.narrow(&narrowing.kept, &MadeUp::default())?;
        let pairs = narrowing.correspondence(self.document.network(), &narrow, self.regions);
        let deviation = deviation(self.facts, narrow.made.network(), &pairs)?;
        Ok(RewrittenFile { document: narrow.made, removed: narrowing.removed.clone(), deviation, pairs })
    }

    /// What corresponds to what in the network as it was and in the new one.
    fn correspondence<T>(
        &self,
        new: &Spliced<T>,
        network: &Network,
        plans: &Plans<'_>,
        parts: &[Part],
    ) -> Correspondence {
        // A port is no anchor: its own region may read it, and then what is rewritten does not.
        let unchanged = self.regions.outside.iter().filter(|&&value| value != ValueId::INPUT);
        let anchors = unchanged.filter_map(|&value| Some((value, new.values[value]?))).collect();

        let is_layer = |value: Option<ValueId>| value?.node().and_then(|node| network.layer_at(node));
        let (mut claims, mut roles) = (BTreeMap::new(), BTreeMap::new());
        for ((region, plan), (part, values)) in plans.iter().zip(parts.iter().zip(&new.parts)) {
            for (index, layer) in region.layers.iter().enumerate() {
                claims.insert(layer.id, plan.claims(region, index));
            }
            for linear in &region.linear {
                claims.insert(linear.id, linear.pieces.iter().map(Expression::of_piece).collect());
            }
            for (index, layer) in part.network.layers().enumerate() {
                roles.extend(
                    is_layer(values[part.network.output_of(layer)]).map(|layer| (layer, plan.roles(region, index))),
                );
            }
        }
        let old = self.document.network();
        for (layer, units) in old.layers().zip(old.hidden()) {
            claims.entry(layer).or_insert_with(|| vec![Expression::Itself; units]);
            let copies = || (0..units).map(|unit| Expression::copy(UnitId { layer, unit })).collect();
            roles.extend(is_layer(new.values[old.output_of(layer)]).map(|layer| (layer, copies())));
        }
        Correspondence { anchors, claims: claims.into_values().collect(), roles: roles.into_values().collect() }
    }
}
