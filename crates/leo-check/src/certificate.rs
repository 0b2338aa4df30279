//! The certificate: a file with all that a stranger needs to be convinced. `docs/certificate.md` describes it for other programs.
//!
//! In the file, layers are counted from 0, and values of a network have the names that its own file gives them. In
//! memory, these are a [`LayerId`] and a [`ValueId`], so that reading what is said of a network needs that network.

use std::sync::Arc;

use leo_formats::Model;
use leo_formats::onnx::{Document, OnnxError};
use leo_network::{Activation, Domain, DomainError, LayerId, Network, Numbers, UnitId, ValueId, WrittenDomain};
use serde::de::Error;
use serde::{Deserialize, Serialize};

use crate::deviation::{Correspondence, Expression};
use crate::plain::is_plain;
use crate::proof::{LayerProof, Proof, Status};
use crate::relaxation::{BoundProof, LowerSlopes, MixedInequality, Relaxation, Side, SplitTree, Target};
use crate::verify::Refusal;

/// What the format is called, and the version that is written here. The one before has a single delta for each output, and is read as well.
const FORMAT: &str = "leo certificate";
const VERSION: u32 = 2;

/// How deep case distinctions may be nested.
const MAX_DEPTH: usize = 512;

/// Two networks, a domain, a number, and why outputs of these networks are nowhere on the domain further apart than that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    format: String,
    version: u32,
    /// The SHA-256 of the first network's file.
    pub first: String,
    /// The SHA-256 of the second network's file.
    pub second: String,
    domain: WrittenDomain,
    /// For each output, how far its elements can move.
    pub delta: Vec<Numbers>,
    /// The same if both networks are evaluated in single precision, in any order of summation, if anything is said of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delta_f32: Option<Vec<Numbers>>,
    /// From the first network to the second, by way of others if there is more than one.
    pub links: Vec<Link>,
}

/// Why a file is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// It does not have the form.
    #[error("is not a certificate")]
    Form(#[from] serde_json::Error),
    /// It is something else, or from another time.
    #[error("is not a certificate of a version that this program knows: {0:?}, version {1}")]
    Version(String, u32),
}

/// Why two networks agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    layers: Vec<WrittenLayer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    points: Vec<Point>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    anchors: Vec<(String, String)>,
    roles: Vec<Vec<RoleEntry>>,
    /// The second of the two as an ONNX file, in hexadecimal digits; none if it is the certificate's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<String>,
}

/// A layer of the first network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLayer {
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

/// A bound of a unit, and its proof, as a file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenProof {
    unit: usize,
    side: SideName,
    /// In the order of a walk: a case distinction, then its off half, then its on half.
    tree: Vec<TreeNode>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SideName {
    Lower,
    Upper,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum TreeNode {
    /// Layer and unit.
    Split(usize, usize),
    /// And which knot of it, if that is not the first: for activations that no file of this version is about.
    #[serde(skip_deserializing)]
    Knot(usize, usize, usize),
    Leaf(Leaf),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Leaf {
    /// Layer, unit and slope, where it is not the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slopes: Vec<(usize, usize, f64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    multipliers: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tilt: Option<Box<TiltEntry>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TiltEntry {
    layer: usize,
    /// Two hexadecimal digits for each.
    position: String,
    on: String,
    softness: f64,
}

/// An input, as a file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Point {
    /// A corner of the domain: a bit for each number.
    Corner(String),
    /// All numbers.
    Inner(Vec<f64>),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ClaimEntry {
    Itself,
    Constant(f64),
    Linear(f64),
    Multiple(usize, f64),
    /// As for [`TreeNode::Knot`].
    #[serde(skip_deserializing)]
    Affine(f64, f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum RoleEntry {
    Copy(usize, usize),
    Multiple(usize, usize, f64),
    Other(OtherRole),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OtherRole {
    Linear,
    Constant(f64),
    /// As for [`TreeNode::Knot`].
    #[serde(skip_deserializing)]
    Affine(f64, f64),
}

impl Certificate {
    /// What links prove of two files on a domain.
    pub fn new(first: String, second: String, domain: &Domain, delta: Vec<Numbers>, links: Vec<Link>) -> Self {
        let (format, version, domain) = (FORMAT.to_owned(), VERSION, domain.written());
        Self { format, version, first, second, domain, delta, delta_f32: None, links }
    }

    /// Reads a certificate.
    ///
    /// # Errors
    /// If it is not one, or one of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertificateError> {
        /// What every version has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            version: u32,
        }
        let Head { format, version } = serde_json::from_slice(bytes)?;
        if format != FORMAT || !(1..=VERSION).contains(&version) {
            return Err(CertificateError::Version(format, version));
        }
        let certificate: Self = serde_json::from_slice(bytes)?;
        let is_plain_delta = |delta: &Numbers| matches!(delta, Numbers::Same(_));
        if version == 1 && !(certificate.delta.iter().all(is_plain_delta) && certificate.delta_f32.is_none()) {
            return Err(CertificateError::Form(Error::custom("version 1 has one delta for each output")));
        }
        if !is_plain(bytes, &certificate)? {
            return Err(CertificateError::Form(Error::custom("a list in place of an object, or null")));
        }
        Ok(certificate)
    }

    /// The certificate as a file. A number that is not finite becomes `null`, and the file no certificate.
    ///
    /// # Errors
    /// If it cannot be written as JSON, which nothing in a certificate leads to.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CertificateError> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// The inputs that it is about, of which the network has so many.
    pub(crate) fn domain(&self, inputs: usize) -> Result<Domain, DomainError> {
        self.domain.domain(inputs)
    }

    /// The networks between the first and the second, unless one is missing, or is no network.
    pub(crate) fn networks(&self) -> Result<Vec<Model>, Refusal> {
        let refuse = |reason: &str| Err(Refusal::Network(reason.to_owned()));
        let Some((last, others)) = self.links.split_last() else { return refuse("there is no link") };
        if last.network.is_some() {
            return refuse("the last link leads to a network of its own");
        }
        let mut networks = Vec::new();
        for link in others {
            let Some(bytes) = link.network.as_deref().and_then(from_hexadecimal) else {
                return refuse("a link leads to no network");
            };
            // Without a folder: what is not in the certificate does not count.
            let document = Document::from_bytes(bytes, None).map_err(|error| Refusal::Network(error.to_string()))?;
            networks.push(Model::from(document));
        }
        Ok(networks)
    }
}

impl Link {
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
        let layers = first.network().layers().zip(&proof.layers).zip(&pairs.claims).map(|((layer, proof), claims)| {
            let of = first.network().activation(layer);
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
        let role = |role: &Expression| match *role {
            Expression::Multiple { of, factor: 1.0 } => RoleEntry::Copy(of.layer.index(), of.unit),
            Expression::Multiple { of, factor } => RoleEntry::Multiple(of.layer.index(), of.unit, factor),
            Expression::Affine { slope: 1.0, constant: 0.0 } => RoleEntry::Other(OtherRole::Linear),
            Expression::Affine { slope: 0.0, constant } => RoleEntry::Other(OtherRole::Constant(constant)),
            Expression::Affine { slope, constant } => RoleEntry::Other(OtherRole::Affine(slope, constant)),
            // Which nothing in the second network can be: whoever reads that will say so.
            Expression::Itself => RoleEntry::Other(OtherRole::Constant(f64::NAN)),
        };
        Ok(Self {
            layers: layers.collect(),
            points: proof.points.iter().map(|point| Point::new(point, domain)).collect(),
            anchors: anchors.collect(),
            roles: pairs.roles.iter().map(|roles| roles.iter().map(role).collect()).collect(),
            network: if is_last { None } else { Some(to_hexadecimal(&second.to_bytes()?)) },
        })
    }

    /// What is said of the units of the first network.
    pub(crate) fn proof(&self, first: &Network, domain: &Domain) -> Result<Proof, Refusal> {
        let mut layers = Vec::new();
        for (index, layer) in self.layers.iter().enumerate() {
            let refuse = |reason: &str| Refusal::Layer { layer: index, reason: reason.to_owned() };
            let id = first.layer(index).ok_or_else(|| refuse("there is no such layer"))?;
            let status = |letter: char| Status::of_letter(letter, first.activation(id));
            let units = layer.units.chars().map(status).collect::<Option<Vec<Status>>>();
            let bounds = layer.facts.iter().map(|fact| {
                let reason = "its case distinction is not whole, or too deep, or about what is not there";
                fact.bound(first).ok_or_else(|| Refusal::unit(UnitId { layer: id, unit: fact.unit }, reason))
            });
            layers.push(LayerProof {
                units: units.ok_or_else(|| refuse("a letter that stands for nothing"))?,
                linear: layer.linear,
                bounds: bounds.collect::<Result<_, Refusal>>()?,
                witnesses: layer.witnesses.clone(),
            });
        }
        let points = self.points.iter().map(|point| point.numbers(domain)).collect::<Option<Vec<_>>>();
        let points = points.ok_or_else(|| Refusal::Network("a point that is no corner of the domain".to_owned()))?;
        Ok(Proof { layers, points })
    }

    /// What is said of both networks.
    pub(crate) fn correspondence(&self, first: &Model, second: &Model) -> Result<Correspondence, Refusal> {
        let network = first.network();
        let mut claims = Vec::new();
        for (layer, said) in network.layers().zip(&self.layers) {
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
        // That units of a layer that is not there make no sense is found later.
        let multiple =
            |layer, unit, factor| Expression::Multiple { of: UnitId { layer: LayerId::new(layer), unit }, factor };
        let role = |role: &RoleEntry| match *role {
            RoleEntry::Copy(layer, unit) => multiple(layer, unit, 1.0),
            RoleEntry::Multiple(layer, unit, factor) => multiple(layer, unit, factor),
            RoleEntry::Other(OtherRole::Linear) => Expression::linear(0.0),
            RoleEntry::Other(OtherRole::Constant(constant)) => Expression::constant(constant),
            RoleEntry::Other(OtherRole::Affine(slope, constant)) => Expression::Affine { slope, constant },
        };
        let roles = self.roles.iter().map(|roles| roles.iter().map(role).collect()).collect();
        let mut anchors = Vec::new();
        for (mine, theirs) in &self.anchors {
            let (Some(mine), Some(theirs)) = (first.value_named(mine), second.value_named(theirs)) else {
                return Err(Refusal::Network(format!(
                    "there is no value {mine:?}, or no {theirs:?} in the other network"
                )));
            };
            anchors.push((mine, theirs));
        }
        Ok(Correspondence { anchors, claims, roles })
    }
}

impl Status {
    /// A ReLU, or whatever has two pieces, is `-` or `+`; with more of them they are numbered.
    fn letter(self, of: &Activation) -> char {
        match self {
            Self::Stable(piece) if of.pieces().len() == 2 => ['-', '+'][piece],
            Self::Stable(piece) => char::from_digit(piece as u32, 36).unwrap_or('?'),
            Self::Unstable => '~',
            Self::Undecided => '?',
        }
    }

    fn of_letter(letter: char, of: &Activation) -> Option<Self> {
        let stable = (0..of.pieces().len()).map(Self::Stable);
        stable.chain([Self::Unstable, Self::Undecided]).find(|status| status.letter(of) == letter)
    }
}

impl From<Expression> for ClaimEntry {
    fn from(claim: Expression) -> Self {
        match claim {
            Expression::Itself => Self::Itself,
            Expression::Affine { slope: 0.0, constant } => Self::Constant(constant),
            Expression::Affine { slope: 1.0, constant } => Self::Linear(constant),
            Expression::Affine { slope, constant } => Self::Affine(slope, constant),
            Expression::Multiple { of, factor } => Self::Multiple(of.unit, factor),
        }
    }
}

impl ClaimEntry {
    fn of_layer(self, layer: LayerId) -> Expression {
        match self {
            Self::Itself => Expression::Itself,
            Self::Constant(constant) => Expression::constant(constant),
            Self::Linear(constant) => Expression::linear(constant),
            Self::Affine(slope, constant) => Expression::Affine { slope, constant },
            Self::Multiple(unit, factor) => Expression::Multiple { of: UnitId { layer, unit }, factor },
        }
    }
}

impl WrittenProof {
    /// A bound of a unit on one side.
    pub fn new(BoundProof { target, tree }: &BoundProof) -> Self {
        let side = if target.side == Side::Lower { SideName::Lower } else { SideName::Upper };
        let mut nodes = Vec::new();
        let mut ahead = vec![tree];
        while let Some(tree) = ahead.pop() {
            nodes.push(match tree {
                SplitTree::Split { unit: UnitId { layer, unit }, knot, halves: [below, above] } => {
                    ahead.extend([&**above, below]);
                    match knot {
                        0 => TreeNode::Split(layer.index(), *unit),
                        _ => TreeNode::Knot(layer.index(), *unit, *knot),
                    }
                }
                SplitTree::Leaf { multipliers, lines } => {
                    let said = lines.slopes.iter().filter(|(_, slope)| !slope.is_nan());
                    let slopes = said.map(|(id, &slope)| (id.layer.index(), id.unit, slope)).collect();
                    let tilt = lines.tilt.as_deref().map(|tilt| {
                        let [place, on] = [&tilt.position, &tilt.on].map(|parts| to_hexadecimal(parts));
                        Box::new(TiltEntry { layer: tilt.layer.index(), position: place, on, softness: tilt.softness })
                    });
                    TreeNode::Leaf(Leaf { slopes, multipliers: multipliers.clone(), tilt })
                }
            });
        }
        Self { unit: target.unit, side, tree: nodes }
    }

    /// The same for a layer of a network, if that has all that is named here, and the tree is a whole one, and not too deep.
    pub fn of_layer(&self, network: &Network, layer: LayerId) -> Option<BoundProof> {
        let bound = self.bound(network)?;
        (bound.target.unit < network.width(layer) && bound.tree.is_about(network, layer)).then_some(bound)
    }

    fn bound(&self, network: &Network) -> Option<BoundProof> {
        let mut nodes = self.tree.iter();
        let tree = subtree(&mut nodes, network, 0)?;
        let side = if self.side == SideName::Lower { Side::Lower } else { Side::Upper };
        nodes.next().is_none().then_some(BoundProof { target: Target { unit: self.unit, side }, tree })
    }
}

fn subtree(nodes: &mut std::slice::Iter<'_, TreeNode>, network: &Network, depth: usize) -> Option<SplitTree> {
    let (layer, unit, knot) = match nodes.next().filter(|_| depth <= MAX_DEPTH)? {
        TreeNode::Split(layer, unit) => (*layer, *unit, 0),
        TreeNode::Knot(layer, unit, knot) => (*layer, *unit, *knot),
        TreeNode::Leaf(leaf) => {
            return leaf
                .lines(network)
                .filter(|_| leaf.multipliers.len() <= depth)
                .map(|lines| SplitTree::Leaf { multipliers: leaf.multipliers.clone(), lines });
        }
    };
    let mut half = || Some(Box::new(subtree(nodes, network, depth + 1)?));
    let halves = [half()?, half()?];
    Some(SplitTree::Split { unit: UnitId { layer: network.layer(layer)?, unit }, knot, halves })
}

impl Leaf {
    /// The lines, if all units are there that they are about.
    fn lines(&self, network: &Network) -> Option<Relaxation> {
        let mut slopes = LowerSlopes::new();
        for &(layer, unit, slope) in &self.slopes {
            let layer = network.layer(layer)?;
            (unit < network.width(layer)).then(|| slopes.insert(UnitId { layer, unit }, slope))?;
        }
        let tilt = match self.tilt.as_deref() {
            None => None,
            Some(TiltEntry { layer, position, on, softness }) => {
                let (position, on) = (from_hexadecimal(position)?, from_hexadecimal(on)?);
                Some(Arc::new(MixedInequality { layer: network.layer(*layer)?, position, on, softness: *softness }))
            }
        };
        Some(Relaxation { slopes, tilt })
    }
}

impl Point {
    /// A point of the domain.
    pub fn new(point: &[f64], domain: &Domain) -> Self {
        let digit = |bits: &[bool]| {
            let digit = bits.iter().enumerate().map(|(place, &bit)| u32::from(bit) << (3 - place)).sum();
            char::from_digit(digit, 16).unwrap_or_default()
        };
        match domain.hull().corner_of(point) {
            None => Self::Inner(point.to_vec()),
            Some(bits) => Self::Corner(bits.chunks(4).map(digit).collect()),
        }
    }

    /// The input, unless it is for a domain with more inputs or fewer.
    pub fn numbers(&self, domain: &Domain) -> Option<Vec<f64>> {
        let digits = match self {
            Self::Inner(numbers) => return Some(numbers.clone()),
            Self::Corner(digits) => digits,
        };
        let digits = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
        let is_high = (0..domain.len()).map(|input| digits[input / 4] >> (3 - input % 4) & 1 == 1);
        (digits.len() == domain.len().div_ceil(4)).then(|| domain.hull().corner(is_high))
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let byte = |pair: &[u32]| Some((pair[0] << 4 | *pair.get(1)?) as u8);
    digits.chunks(2).map(byte).collect()
}
