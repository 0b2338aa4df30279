//! What would go with more tolerance.

use leo_formats::onnx::Float;

use crate::compress::{CompressError, Method};
use crate::deltas::are_within;
use crate::method::attempts::{Attempts, PARTS, Taken, planned};
use crate::method::full::Style;
use crate::tolerance::{Costs, Tolerance};
use crate::why::{Obstacles, Prospect};

/// The share of all units: where fewer than that go, it is said what would go with more tolerance.
pub(crate) const SMALL_SHARE: f64 = 0.1;

/// With what tolerances more might go.
const LARGER_TOLERANCES: [f64; 3] = [1e-6, 1e-4, 1e-2];

impl<'a> Attempts<'a> {
    /// How many units would go with larger tolerances, if few do.
    pub(crate) fn prospects(&self, taken: Option<&Taken>) -> Result<Vec<Prospect>, CompressError> {
        let all: usize = self.original.facts.network().hidden().iter().sum();
        let left = |taken: &Taken| taken.written.document.network().hidden().iter().sum::<usize>();
        let gone: usize = taken.map_or(0, |taken| all.saturating_sub(left(taken)));
        let mut prospects = Vec::new();
        if self.options.bit_exact || self.options.method == Method::Leo || gone as f64 >= SMALL_SHARE * all as f64 {
            return Ok(prospects);
        }
        for tolerance in LARGER_TOLERANCES {
            let tolerances =
                Tolerance::Relative(tolerance).of_outputs(&self.reference.scales, self.original.document.float());
            if are_within(&tolerances, &self.tolerances) {
                // What is allowed already is no prospect.
                continue;
            }
            let costs = Some(Costs::new(self.original.facts, &tolerances));
            let others = Attempts { costs, tolerances, obstacles: Obstacles::default(), ..*self };
            if self.is_late() {
                break;
            }
            let units = others.affordable()?.unwrap_or(gone);
            prospects.push(Prospect { tolerance, units: units.max(gone) });
        }
        Ok(prospects)
    }

    /// How many units could go with the tolerance, in double precision.
    fn affordable(&self) -> Result<Option<usize>, CompressError> {
        for part in PARTS {
            let sketches = self.sketches(&[], part, &Style::default());
            let pairs = self.regions().iter().zip(&sketches).collect::<Vec<_>>();
            let plans = planned(&pairs, Float::F64);
            if plans.is_empty() {
                return Ok(None);
            }
            let units = plans.iter().map(|(region, plan)| region.units() - plan.units(region)).sum();
            let rewritten = self.rewritten(plans, Float::F64)?;
            if rewritten.is_ok_and(|rewritten| are_within(&rewritten.deviation, &self.tolerances)) {
                return Ok(Some(units));
            }
            if self.is_late() {
                break;
            }
        }
        Ok(None)
    }
}
