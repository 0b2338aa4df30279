//! From plans to a new file, and what corresponds to what in the old one and the new.

use std::collections::{BTreeMap, HashMap};

use leo_check::{Claim, Correspondence, Facts, Role, deviation};
use leo_network::ValueId;
use leo_network::onnx::{Document, Float, Part};

use crate::CompressError;
use crate::history::Removed;
use crate::narrow::Narrowing;
use crate::plan::Plan;
use crate::region::{Region, Regions};

/// A file with some of its regions rewritten.
pub(crate) struct Rewritten {
    pub(crate) document: Document,
    /// For each element of each output, how far it can be from what it was, anywhere on the domain.
    pub(crate) deviation: Vec<Vec<f64>>,
    /// What corresponds to what.
    pub(crate) pairs: Correspondence,
}

/// The regions to rewrite, each with its plan.
pub(crate) type Plans<'a> = Vec<(&'a Region, Plan)>;

/// Rewrites regions, with numbers of this type, and has it proved what that does.
pub(crate) fn rewrite(
    document: &Document,
    facts: &Facts<'_>,
    regions: &Regions,
    plans: &Plans<'_>,
    float: Float,
) -> Result<Rewritten, CompressError> {
    let network = document.network();
    let names = Names::new(document, plans);
    let mut parts = Vec::new();
    for (region, plan) in plans {
        let to = region.ports.iter().map(|port| port.value).collect();
        let part = plan.network(region, network, float, |node| names.of[&node].clone())?;
        parts.push(Part { from: region.entry, to, network: part });
    }
    let rewritten = document.splice(&parts, (float != document.float()).then_some(float))?;
    let pairs = names.correspondence(document, &rewritten, regions, plans)?;
    let deviation = deviation(facts, rewritten.network(), &pairs)?;
    Ok(Rewritten { document: rewritten, deviation, pairs })
}

/// Leaves out channels that can go without any new number, and has it proved what that does.
pub(crate) fn narrow(
    document: &Document,
    facts: &Facts<'_>,
    regions: &Regions,
    narrowing: &Narrowing,
) -> Result<Rewritten, CompressError> {
    let narrow = document.narrow(&narrowing.kept)?;
    let pairs = narrowing.correspondence(document, &narrow, regions)?;
    let deviation = deviation(facts, narrow.network(), &pairs)?;
    Ok(Rewritten { document: narrow, deviation, pairs })
}

/// The units that go if regions are rewritten.
pub(crate) fn removed(plans: &Plans<'_>) -> Vec<Removed> {
    plans.iter().flat_map(|(region, plan)| plan.removed(region)).collect()
}

/// What the new layers are called: like the old ones, unless that would not tell them apart.
struct Names {
    /// By the nodes of the old layers.
    of: HashMap<usize, String>,
}

impl Names {
    fn new(document: &Document, plans: &Plans<'_>) -> Self {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        for node in document.model().graph.iter().flat_map(|graph| &graph.node) {
            *taken.entry(node.name()).or_default() += 1;
        }
        let mut of: HashMap<usize, String> = HashMap::new();
        for node in plans.iter().flat_map(|(region, _)| &region.layers).map(|layer| layer.node) {
            let own = document.network().nodes()[node].name();
            let own = Some(own.to_owned()).filter(|own| !own.is_empty() && taken.get(own.as_str()) == Some(&1));
            let numbered =
                (node..).map(|number| format!("relu_{number}")).filter(|name| !taken.contains_key(name.as_str()));
            let mut candidates = own.into_iter().chain(numbered);
            of.extend(candidates.find(|name| !of.values().any(|other| other == name)).map(|name| (node, name)));
        }
        Self { of }
    }

    fn correspondence(
        &self,
        old: &Document,
        new: &Document,
        regions: &Regions,
        plans: &Plans<'_>,
    ) -> Result<Correspondence, CompressError> {
        let lost = |what: &str| CompressError::Internal(format!("{what} is not to be found in the rewritten file"));
        let same = |value: ValueId| old.name_of(value).and_then(|name| new.value_named(name));
        // A port is no anchor: its own region may read it, and then what is rewritten does not.
        let unchanged = regions.outside.iter().copied().filter(|&value| value != ValueId::INPUT);
        let anchors = unchanged.filter_map(|value| Some((value, same(value)?))).collect();

        let (mut claims, mut roles) = (BTreeMap::new(), BTreeMap::new());
        for (region, plan) in plans {
            for (index, layer) in region.layers.iter().enumerate() {
                claims.insert(layer.node, plan.claims(region, index));
            }
            for linear in &region.linear {
                let claim = |&on: &bool| if on { Claim::Linear(0.0) } else { Claim::Constant(0.0) };
                claims.insert(linear.node, linear.on.iter().map(claim).collect());
            }
            for (index, planned) in plan.layers.iter().enumerate() {
                let name = &self.of[&region.layers[planned.layer].node];
                let node = new.network().relu_layers().find(|&node| new.network().nodes()[node].name() == name);
                roles.insert(node.ok_or_else(|| lost(name))?, plan.roles(region, index));
            }
        }
        let untouched = old.network().relu_layers().zip(old.network().hidden());
        for (layer, units) in untouched.filter(|(layer, _)| !claims.contains_key(layer)).collect::<Vec<_>>() {
            let node = same(old.network().result_of(layer)).and_then(ValueId::node);
            let node = node.ok_or_else(|| lost(old.network().nodes()[layer].name()))?;
            claims.insert(layer, vec![Claim::Itself; units]);
            roles.insert(node, (0..units).map(|unit| Role::Copy { layer, unit, factor: 1.0 }).collect());
        }
        Ok(Correspondence { anchors, claims: claims.into_values().collect(), roles: roles.into_values().collect() })
    }
}
