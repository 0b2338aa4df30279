//! What a link says of two networks unit by unit, written and read.

use leo_formats::Model;
use leo_formats::onnx::{Document, OnnxError};
use leo_network::{Domain, Network, UnitId, ValueId};
use serde::{Deserialize, Serialize};

use super::entries::{ClaimEntry, Point, RoleEntry, WrittenProof, to_hexadecimal};
use crate::correspondence::{Correspondence, Expression};
use crate::proof::{LayerProof, Proof, Status};
use crate::verify::Refusal;

/// Why two networks agree, unit by unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnitLink {
    pub(super) layers: Vec<WrittenLayer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) points: Vec<Point>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) anchors: Vec<(String, String)>,
    pub(super) roles: Vec<Vec<RoleEntry>>,
    /// The second of the two as an ONNX file, in hexadecimal digits; none if it is the certificate's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) network: Option<String>,
}

/// A layer of the first network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenLayer {
    /// A letter a unit.
    units: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    linear: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    facts: Vec<WrittenProof>,
    /// Off and on, for each unstable unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    witnesses: Vec<[usize; 2]>,
    /// Those that do not follow from the letter.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    claims: Vec<(usize, ClaimEntry)>,
}

/// What is said of the layers of a network, and of its units in terms of each other.
pub(super) fn written_layers(network: &Network, proof: &Proof, claims: &[Vec<Expression>]) -> Vec<WrittenLayer> {
    let layers = network.layers().zip(&proof.layers).zip(claims).map(|((layer, proof), claims)| {
        let of = network.activation(layer);
        let units = claims.iter().zip(&proof.units).enumerate();
        let unusual = units.filter(|(_, (claim, status))| **claim != status.expression(of));
        WrittenLayer {
            units: proof.units.iter().map(|status| status.letter(of)).collect(),
            linear: proof.linear,
            facts: proof.bounds.iter().map(WrittenProof::new).collect(),
            witnesses: proof.witnesses.clone(),
            claims: unusual.map(|(unit, (&claim, _))| (unit, claim.into())).collect(),
        }
    });
    layers.collect()
}

/// What units of the second network are expressed by, as a file has it.
pub(super) fn written_roles(pairs: &Correspondence) -> Vec<Vec<RoleEntry>> {
    pairs.roles.iter().map(|roles| roles.iter().map(|&role| role.into()).collect()).collect()
}

/// The same as it is read.
pub(super) fn roles_of(roles: &[Vec<RoleEntry>]) -> Vec<Vec<Expression>> {
    roles.iter().map(|roles| roles.iter().map(|&role| role.into()).collect()).collect()
}

/// What is said of the units of a network, of whose layers this is said.
pub(super) fn layer_proofs(layers: &[WrittenLayer], network: &Network) -> Result<Vec<LayerProof>, Refusal> {
    if !network.is_dense() {
        let what = "something is said of single units of a network that has convolutions, pools or parts of values";
        return Err(Refusal::Network(what.to_owned()));
    }
    let mut proofs = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let refuse = |reason: &str| Refusal::Layer { layer: index, reason: reason.to_owned() };
        let id = network.layer(index).ok_or_else(|| refuse("there is no such layer"))?;
        let status = |letter: char| Status::of_letter(letter, network.activation(id));
        let units = layer.units.chars().map(status).collect::<Option<Vec<Status>>>();
        let bounds = layer.facts.iter().map(|fact| {
            let reason = "its case distinction is not whole, or too deep, or about what is not there";
            fact.bound(network).ok_or_else(|| Refusal::unit(UnitId { layer: id, unit: fact.unit }, reason))
        });
        proofs.push(LayerProof {
            units: units.ok_or_else(|| refuse("a letter that stands for nothing"))?,
            linear: layer.linear,
            bounds: bounds.collect::<Result<_, Refusal>>()?,
            witnesses: layer.witnesses.clone(),
        });
    }
    Ok(proofs)
}

/// What the units of a network are said to be by others, of whose layers this is said.
pub(super) fn claims_of(layers: &[WrittenLayer], network: &Network) -> Result<Vec<Vec<Expression>>, Refusal> {
    let mut claims = Vec::new();
    for (layer, said) in network.layers().zip(layers) {
        let of = network.activation(layer);
        let implied = said.units.chars().filter_map(|letter| Status::of_letter(letter, of));
        let mut implied: Vec<Expression> = implied.map(|status| status.expression(of)).collect();
        for &(unit, claim) in &said.claims {
            let unit = UnitId { layer, unit };
            let missing = || Refusal::unit(unit, "something is claimed of a unit that is not there");
            *implied.get_mut(unit.unit).ok_or_else(missing)? = claim.of_layer(layer);
        }
        claims.push(implied);
    }
    Ok(claims)
}

/// Pairs of values of two networks by their names, given what these stand for in the first and in the second.
pub(super) fn anchors_of(
    anchors: &[(String, String)],
    first: impl Fn(&str) -> Option<ValueId>,
    second: impl Fn(&str) -> Option<ValueId>,
) -> Result<Vec<(ValueId, ValueId)>, Refusal> {
    let pair = |(mine, theirs): &(String, String)| {
        let missing = || Refusal::Network(format!("there is no value {mine:?}, or no {theirs:?} in the other network"));
        first(mine).zip(second(theirs)).ok_or_else(missing)
    };
    anchors.iter().map(pair).collect()
}

impl UnitLink {
    /// Why two networks agree on a domain. If the second is not the certificate's own, the link has to lead to it.
    ///
    /// # Errors
    /// If the second network is to be part of the link, and external data cannot be read any more.
    pub fn new(
        domain: &Domain,
        networks: [&Document; 2],
        proof: &Proof,
        pairs: &Correspondence,
        is_last: bool,
    ) -> Result<Self, OnnxError> {
        let [first, second] = networks;
        let name = |document: &Document, value: ValueId| document.name_of(value).map(str::to_owned);
        let anchors = pairs.anchors.iter().filter_map(|&(a, b)| Some((name(first, a)?, name(second, b)?)));
        Ok(Self {
            layers: written_layers(first.network(), proof, &pairs.claims),
            points: proof.points.iter().map(|point| Point::new(point, domain)).collect(),
            anchors: anchors.collect(),
            roles: written_roles(pairs),
            network: if is_last { None } else { Some(to_hexadecimal(&second.to_bytes()?)) },
        })
    }

    /// What is said of the units of the first network.
    pub(crate) fn proof(&self, first: &Network, domain: &Domain) -> Result<Proof, Refusal> {
        let layers = layer_proofs(&self.layers, first)?;
        let points = self.points.iter().map(|point| point.numbers(domain)).collect::<Option<Vec<_>>>();
        let points = points.ok_or_else(|| Refusal::Network("a point that is no corner of the domain".to_owned()))?;
        Ok(Proof { layers, points })
    }

    /// What is said of both networks.
    pub(crate) fn correspondence(&self, first: &Model, second: &Model) -> Result<Correspondence, Refusal> {
        let claims = claims_of(&self.layers, first.network())?;
        let anchors = anchors_of(&self.anchors, |name| first.value_named(name), |name| second.value_named(name))?;
        Ok(Correspondence { anchors, claims, roles: roles_of(&self.roles) })
    }
}
