//! Bounds in plain floating point, as proposals for the checker: the network with lines for ReLUs, and better lines.

pub(crate) mod input_layer;
pub(crate) mod refine;
pub(crate) mod relaxed;
pub(crate) mod slopes;

use std::sync::Arc;

use leo_check::{Range, Target};
use leo_network::{Domain, Network, ValueId, ValueMap};

use crate::budget::Budget;
use input_layer::InputLayer;

/// What bounds of a value's elements are found from.
#[derive(Clone, Copy)]
pub(crate) struct KnownRanges<'a> {
    pub(crate) network: &'a Network,
    pub(crate) domain: &'a Domain,
    /// A layer's pre-activations, or an output.
    pub(crate) value: ValueId,
    /// What is proved of the values before, on the domain or on a piece of it.
    pub(crate) ranges: &'a ValueMap<Range>,
}

/// A bound that is to be found.
#[derive(Clone, Copy)]
pub(crate) struct BoundProblem<'a> {
    pub(crate) known: KnownRanges<'a>,
    pub(crate) target: Target,
    /// For tilted lines, if there can be any.
    pub(crate) front: Option<&'a Arc<InputLayer>>,
    pub(crate) budget: &'a Budget<'a>,
}
