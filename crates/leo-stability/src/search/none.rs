//! Leo was built without HiGHS: no linear and no mixed-integer programs.

use std::convert::Infallible;
use std::sync::Arc;

use super::reduced::{Reduced, ReducedFunction};
use super::{Claim, Optimum, Split};
use crate::budget::Budget;
use crate::witness::Probe;

/// There is none.
pub(crate) struct Program(Infallible);

impl Program {
    pub(crate) fn new(_reduced: &Arc<Reduced>) -> Option<Self> {
        None
    }

    pub(crate) fn maximise(
        &mut self,
        _target: &ReducedFunction,
        _cuts: &[Split],
        _budget: &Budget<'_>,
    ) -> Option<Optimum> {
        match self.0 {}
    }
}

/// Nothing is claimed.
pub(crate) fn claim(
    _reduced: &Arc<Reduced>,
    _target: &ReducedFunction,
    _start: &[f64],
    _nodes: usize,
    _budget: &Budget<'_>,
    _probe: &mut Probe<'_>,
) -> Option<Claim> {
    None
}
