//! Bounds in plain floating point, as proposals for the checker: the network with lines for ReLUs, and better lines.

pub(crate) mod front;
pub(crate) mod refine;
pub(crate) mod relaxed;
pub(crate) mod slopes;

use std::sync::Arc;

use leo_check::{Range, Target};
use leo_network::{LayerId, Network, ValueMap};

use crate::budget::Budget;
use front::Front;

/// A bound of a layer's unit that is to be found.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) network: &'a Network,
    pub(crate) layer: LayerId,
    pub(crate) target: Target,
    /// What is proved of the values before.
    pub(crate) ranges: &'a ValueMap<Range>,
    /// For tilted lines, if there can be any.
    pub(crate) front: Option<&'a Arc<Front>>,
    pub(crate) budget: &'a Budget<'a>,
}
