//! The parts of a certificate as its file has them: bounds and what proves them, points, letters, and what units are
//! said to be.

use std::sync::Arc;

use leo_network::{Activation, Domain, LayerId, Network, UnitId};
use serde::{Deserialize, Serialize};

use crate::channel_proof::ChannelBounds;
use crate::correspondence::Expression;
use crate::proof::Status;
use crate::relaxation::{BoundProof, LowerSlopes, MixedInequality, Relaxation, Side, SplitTree, Target};
use crate::verify::Refusal;

/// How deep case distinctions may be nested.
const MAX_DEPTH: usize = 512;

/// A bound of a unit, and its proof, as a file has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenProof {
    pub(super) unit: usize,
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

/// Channels of a layer that are always off or on: the layer, the letter, the first layer that bounds go back through,
/// and a bit for each channel in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LinearEntry(usize, char, usize, String);

impl LinearEntry {
    pub(super) fn new(network: &Network, bounds: &ChannelBounds) -> Self {
        let count = network.channels(network.pre_activation(bounds.layer)).count();
        let bits: Vec<bool> = (0..count).map(|channel| bounds.channels.binary_search(&channel).is_ok()).collect();
        let letter = if bounds.side == Side::Upper { '-' } else { '+' };
        Self(bounds.layer.index(), letter, bounds.first, digits_of(&bits))
    }

    pub(super) fn bounds(&self, network: &Network) -> Result<ChannelBounds, Refusal> {
        let &Self(index, letter, first, ref digits) = self;
        let refuse = |reason: &str| Refusal::Layer { layer: index, reason: reason.to_owned() };
        let layer = network.layer(index).ok_or_else(|| refuse("there is no such layer"))?;
        let side = match letter {
            '-' => Side::Upper,
            '+' => Side::Lower,
            _ => return Err(refuse("a letter that stands for nothing")),
        };
        let count = network.channels(network.pre_activation(layer)).count();
        let bits = bits_of(digits, count).ok_or_else(|| refuse(&format!("it has {count} channels")))?;
        let channels = (0..count).filter(|&channel| bits[channel]).collect();
        Ok(ChannelBounds { layer, side, first, channels })
    }
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
pub(super) enum ClaimEntry {
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
pub(super) enum RoleEntry {
    Copy(usize, usize),
    Multiple(usize, usize, f64),
    Other(OtherRole),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OtherRole {
    Linear,
    Constant(f64),
    /// As for [`TreeNode::Knot`].
    #[serde(skip_deserializing)]
    Affine(f64, f64),
}

impl Status {
    /// A ReLU, or whatever has two pieces, is `-` or `+`; with more of them they are numbered.
    pub(super) fn letter(self, of: &Activation) -> char {
        match self {
            Self::Stable(piece) if of.pieces().len() == 2 => ['-', '+'][piece],
            Self::Stable(piece) => char::from_digit(piece as u32, 36).unwrap_or('?'),
            Self::Unstable => '~',
            Self::Undecided => '?',
        }
    }

    pub(super) fn of_letter(letter: char, of: &Activation) -> Option<Self> {
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
    pub(super) fn of_layer(self, layer: LayerId) -> Expression {
        match self {
            Self::Itself => Expression::Itself,
            Self::Constant(constant) => Expression::constant(constant),
            Self::Linear(constant) => Expression::linear(constant),
            Self::Affine(slope, constant) => Expression::Affine { slope, constant },
            Self::Multiple(unit, factor) => Expression::Multiple { of: UnitId { layer, unit }, factor },
        }
    }
}

impl From<Expression> for RoleEntry {
    fn from(role: Expression) -> Self {
        match role {
            Expression::Multiple { of, factor: 1.0 } => Self::Copy(of.layer.index(), of.unit),
            Expression::Multiple { of, factor } => Self::Multiple(of.layer.index(), of.unit, factor),
            Expression::Affine { slope: 1.0, constant: 0.0 } => Self::Other(OtherRole::Linear),
            Expression::Affine { slope: 0.0, constant } => Self::Other(OtherRole::Constant(constant)),
            Expression::Affine { slope, constant } => Self::Other(OtherRole::Affine(slope, constant)),
            // Which nothing in the second network can be: whoever reads that will say so.
            Expression::Itself => Self::Other(OtherRole::Constant(f64::NAN)),
        }
    }
}

impl From<RoleEntry> for Expression {
    fn from(role: RoleEntry) -> Self {
        // That units of a layer that is not there make no sense is found later.
        let multiple = |layer, unit, factor| Self::Multiple { of: UnitId { layer: LayerId::new(layer), unit }, factor };
        match role {
            RoleEntry::Copy(layer, unit) => multiple(layer, unit, 1.0),
            RoleEntry::Multiple(layer, unit, factor) => multiple(layer, unit, factor),
            RoleEntry::Other(OtherRole::Linear) => Self::linear(0.0),
            RoleEntry::Other(OtherRole::Constant(constant)) => Self::constant(constant),
            RoleEntry::Other(OtherRole::Affine(slope, constant)) => Self::Affine { slope, constant },
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

    /// The bound as one of a unit of `layer`, if the network has all that is named here, and the tree is a whole one,
    /// and not too deep.
    pub fn of_layer(&self, network: &Network, layer: LayerId) -> Option<BoundProof> {
        let bound = self.bound(network)?;
        (bound.target.unit < network.width(layer) && bound.tree.is_about(network, layer)).then_some(bound)
    }

    pub(super) fn bound(&self, network: &Network) -> Option<BoundProof> {
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
        match domain.hull().corner_of(point) {
            None => Self::Inner(point.to_vec()),
            Some(bits) => Self::Corner(digits_of(&bits)),
        }
    }

    /// The input, unless it is for a domain with more inputs or fewer.
    pub fn numbers(&self, domain: &Domain) -> Option<Vec<f64>> {
        let digits = match self {
            Self::Inner(numbers) => return Some(numbers.clone()),
            Self::Corner(digits) => digits,
        };
        Some(domain.hull().corner(bits_of(digits, domain.len())?.into_iter()))
    }
}

/// Bits as hexadecimal digits, the first one highest.
pub(super) fn digits_of(bits: &[bool]) -> String {
    let digit = |bits: &[bool]| {
        let digit = bits.iter().enumerate().map(|(place, &bit)| u32::from(bit) << (3 - place)).sum();
        char::from_digit(digit, 16).unwrap_or_default()
    };
    bits.chunks(4).map(digit).collect()
}

/// So many bits, if there are as many digits as that takes.
pub(super) fn bits_of(digits: &str, count: usize) -> Option<Vec<bool>> {
    let digits = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let is_set = |bit: usize| digits[bit / 4] >> (3 - bit % 4) & 1 == 1;
    (digits.len() == count.div_ceil(4)).then(|| (0..count).map(is_set).collect())
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn from_hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let byte = |pair: &[u32]| Some((pair[0] << 4 | *pair.get(1)?) as u8);
    digits.chunks(2).map(byte).collect()
}
