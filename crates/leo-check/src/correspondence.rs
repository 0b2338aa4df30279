//! What is said of two networks: which parts of them belong together, and what their units are expressed by.

use std::collections::HashSet;

use leo_network::activation::Piece;
use leo_network::{Network, UnitId, ValueId};

/// What a unit is expressed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expression<U = UnitId> {
    /// A unit of the first network that is in the basis.
    Itself,
    /// Its pre-activation times a slope, plus a constant: what it is as long as it stays on one piece.
    Affine {
        /// 0 for a constant.
        slope: f64,
        /// 0 where it is one of a ReLU's pieces.
        constant: f64,
    },
    /// Another unit of the first network has a pre-activation that is this one's, but for a factor: `relu(c g) = c
    /// relu(g)`, and for a negative factor `relu(-c g) = c relu(g) - c g`. For a unit of the first network it is one of
    /// the same layer that is in the basis; for one of the second, any unit, whatever that is expressed by, and the
    /// factor is more than 0.
    Multiple {
        /// Which unit.
        of: U,
        /// What its pre-activation is to be multiplied by.
        factor: f64,
    },
}

impl<U> Expression<U> {
    /// A constant.
    pub const fn constant(constant: f64) -> Self {
        Self::Affine { slope: 0.0, constant }
    }

    /// The pre-activation, plus a constant.
    pub const fn linear(constant: f64) -> Self {
        Self::Affine { slope: 1.0, constant }
    }

    /// What a unit is that stays on a piece.
    pub fn of_piece(piece: &Piece) -> Self {
        Self::Affine { slope: piece.slope, constant: piece.constant }
    }

    /// A unit of the first network, as it is.
    pub fn copy(of: U) -> Self {
        Self::Multiple { of, factor: 1.0 }
    }

    /// This expression, with units called as `name` says.
    pub fn map<V>(self, name: impl Fn(U) -> V) -> Expression<V> {
        match self {
            Self::Itself => Expression::Itself,
            Self::Affine { slope, constant } => Expression::Affine { slope, constant },
            Self::Multiple { of, factor } => Expression::Multiple { of: name(of), factor },
        }
    }
}

/// Which parts of two networks belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Correspondence {
    /// Values that are about the same in both networks, besides their inputs.
    pub anchors: Vec<(ValueId, ValueId)>,
    /// For each layer of the first network, what its units are expressed by.
    pub claims: Vec<Vec<Expression>>,
    /// For each layer of the second network, what its units are expressed by.
    pub roles: Vec<Vec<Expression>>,
}

/// Why a correspondence makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The networks take other inputs, or give other outputs.
    #[error("the two networks do not have inputs and outputs of the same shapes")]
    Interface,
    /// A layer has another number of units than something is said of.
    #[error("something is said of {said} units of layer {layer}, which has {units}")]
    Layer {
        /// Which of the layers, counted from 0.
        layer: usize,
        /// Its units.
        units: usize,
        /// Those that something is said of.
        said: usize,
    },
    /// Something is said of more layers or fewer than there are.
    #[error("something is said of {said} layers, and there are {layers}")]
    Layers {
        /// How many layers there are.
        layers: usize,
        /// How many something is said of.
        said: usize,
    },
    /// A unit is expressed by one that is not in the basis, or that there is not, or by a factor that makes no sense.
    #[error("unit {unit} of layer {layer} is expressed by what it cannot be expressed by")]
    Expression {
        /// Which layer, counted from 0.
        layer: usize,
        /// Which unit.
        unit: usize,
    },
    /// An anchor is no pair of values of the same size, or a value is in two of them.
    #[error("an anchor that does not fit the networks")]
    Anchor,
    /// Units are said to correspond in networks that are not both dense.
    #[error("something is said of single units of a network that has convolutions, pools or parts of values")]
    NotDense,
    /// One network is said to be another with fewer channels, and has other nodes.
    #[error("the networks do not have the same nodes, so that channels of the one are none of the other")]
    Graph,
    /// The same, and a value does not have the channels that it should have.
    #[error("value {value} does not have the channels that are said to stay")]
    Channels {
        /// Which value, by its place in the order in which they are computed.
        value: usize,
    },
    /// A channel that goes is expressed by what it cannot be expressed by.
    #[error("channels of value {value} are expressed by what they cannot be expressed by")]
    ChannelExpression {
        /// Which value, by its place in the order in which they are computed.
        value: usize,
    },
    /// What comes after a value is no dense part, or is not what is proved to be.
    #[error("what is said to be a dense part is none, or another one, or reads other channels than those that stay")]
    Part,
    /// The expressions take more memory than they may.
    #[error("the networks are too large to be compared")]
    TooLarge,
}

/// Checks that anchors are pairs of values of the same size, that no value is in two different ones, and that the input
/// is in none: what a value of the second network is expressed by must be one thing.
pub(crate) fn check_anchors(first: &Network, second: &Network, anchors: &[(ValueId, ValueId)]) -> Result<(), Mismatch> {
    let made = |network: &Network, value: ValueId| value.node().is_some_and(|node| node < network.nodes().len());
    let (mut mine, mut theirs) = (HashSet::new(), HashSet::new());
    for &(a, b) in anchors.iter().collect::<HashSet<_>>() {
        let fit = made(first, a) && made(second, b) && first.shape(a).elements() == second.shape(b).elements();
        if !fit || !mine.insert(a) || !theirs.insert(b) {
            return Err(Mismatch::Anchor);
        }
    }
    Ok(())
}

/// Checks that something is `said` of as many layers as there are, and of as many units of each as it has.
pub(crate) fn check_widths(network: &Network, said: impl ExactSizeIterator<Item = usize>) -> Result<(), Mismatch> {
    let layers = network.layers().len();
    if layers != said.len() {
        return Err(Mismatch::Layers { layers, said: said.len() });
    }
    for (layer, (units, said)) in network.hidden().into_iter().zip(said).enumerate() {
        if units != said {
            return Err(Mismatch::Layer { layer, units, said });
        }
    }
    Ok(())
}
