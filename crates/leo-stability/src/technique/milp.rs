//! Mixed-integer programs (MILP, Tjeng et al. 2019; Serra et al. 2020): as the last resort, and as the paper has them,
//! instead of everything else.

use std::sync::Arc;

use leo_check::{Range, Side, Status, Target};
use leo_network::ValueMap;
use rayon::prelude::*;

use super::{Cost, Technique, TechniqueStep};
use crate::analysis::{Analyzer, PIECES};
use crate::search::branch_and_bound::BranchAndBound;
use crate::search::reduced::Reduced;
use crate::search::{Claim, SearchOutcome, solver};
use crate::verdict::Verdict;
use crate::witness::Probe;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "milp", in_words: "mixed-integer programs", is_plain: false };

/// Asks a program for each bound, where all else has failed.
pub(super) const ASK: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Share,
    when: |run| run.is_open() && run.reduced().is_some(),
    attempt: |run| run.mixed_integer_programs(),
};

/// The paper's way.
pub(super) const DECIDE: TechniqueStep =
    TechniqueStep { technique: TECHNIQUE, cost: Cost::Little, when: |_| true, attempt: |run| run.decide_by_programs() };

/// How many nodes a program's search tree may have, if nobody says.
const DEFAULT_NODES: usize = 2000;
/// How many times as many pieces a case distinction is worth if a mixed-integer program says that the bound holds.
const CLAIM_FACTOR: usize = 8;

impl Analyzer<'_, '_> {
    /// Looks for a witness, or for a reason to believe that a longer search for a proof pays.
    pub(crate) fn mixed_integer_programs(&mut self) {
        let (open, nodes) = (self.open_bounds(), self.options.nodes.unwrap_or(DEFAULT_NODES));
        let pieces = CLAIM_FACTOR * self.options.nodes.unwrap_or(PIECES);
        self.attempt(TECHNIQUE, &open, 1, |run, _, bound, probe| {
            let start = run.witnesses.nearest(run.stage.layer, bound);
            let reduced = run.reduced();
            let claim =
                reduced.and_then(|reduced| run.claim(bound, run.checker.ranges(), reduced, start, nodes, probe));
            (run.follow_up(bound, reduced, claim.as_ref(), pieces), claim)
        });
    }

    /// What follows from a claim: a witness, or a longer search for a proof.
    fn follow_up(
        &self,
        bound: Target,
        reduced: Option<&Arc<Reduced>>,
        claim: Option<&Claim>,
        pieces: usize,
    ) -> SearchOutcome {
        match claim {
            Some(Claim { point: Some(point), .. }) => SearchOutcome::Refuted(point.clone()),
            Some(claim) if claim.bound <= 0.0 => self.long_search(bound, reduced, pieces),
            _ => SearchOutcome::Open,
        }
    }

    fn long_search(&self, bound: Target, reduced: Option<&Arc<Reduced>>, pieces: usize) -> SearchOutcome {
        let probe = || self.witnesses.probe(self.stage.layer, bound);
        BranchAndBound::new(self.question(bound), reduced).run(pieces, probe)
    }

    /// What a mixed-integer program says about a bound.
    fn claim(
        &self,
        bound: Target,
        ranges: &ValueMap<Range>,
        reduced: &Arc<Reduced>,
        start: &[f64],
        nodes: usize,
        probe: &mut Probe<'_>,
    ) -> Option<Claim> {
        let value = self.network.pre_activation(self.stage.layer);
        let target = reduced.target(self.network, value, ranges, bound);
        solver::claim(reduced, &target, start, nodes, &self.budget, probe)
    }

    /// The paper's way: for every unit first whether it can be on, and if it can, whether it can be off. What the
    /// programs claim is then to be proved.
    pub(crate) fn decide_by_programs(&mut self) {
        // Where it is too late to ask, what earlier programs found may still decide something.
        let by = if self.budget.is_exhausted() { Technique::WITNESS } else { TECHNIQUE };
        self.begin(TECHNIQUE, self.stage.verdicts.len());
        let known = self.believed.len();
        self.believed.extend_from_slice(&self.checker.ranges().as_slice()[known..]);
        let Some(answers) = self.ask_about_all() else { return };
        let value = self.network.pre_activation(self.stage.layer);
        let mut held = Vec::new();
        for (target, claim) in &answers {
            let Target { unit, side } = *target;
            self.witnesses.evaluate_points(claim.point.as_deref().unwrap_or_default());
            let range = &mut self.believed[value];
            match side {
                Side::Upper => range.upper[unit] = range.upper[unit].min(claim.bound),
                Side::Lower => range.lower[unit] = range.lower[unit].max(-claim.bound),
            }
            held.extend((claim.bound <= 0.0).then_some(*target));
        }
        self.settle_unstable(by);
        self.prove_linear(TECHNIQUE, &held);
        if self.options.trust_solver {
            return self.trust(&answers);
        }
        held.retain(|target| self.stage.verdicts[target.unit].is_none());
        let reduced = self.reduced_by(self.checker.ranges());
        let pieces = CLAIM_FACTOR * self.options.nodes.unwrap_or(PIECES);
        self.attempt(TECHNIQUE, &held, 1, |run, _, bound, _| (run.long_search(bound, reduced.as_ref(), pieces), None));
    }

    /// What programs claim about all units of the layer.
    fn ask_about_all(&self) -> Option<Vec<(Target, Claim)>> {
        let reduced = self.reduced_by(&self.believed)?;
        let nodes = self.options.nodes.unwrap_or(usize::MAX);
        let ask = |unit: usize| {
            let mut claims = Vec::new();
            for target in [Side::Upper, Side::Lower].map(|side| Target { unit, side }) {
                let mut probe = self.witnesses.probe(self.stage.layer, target);
                let claim = match self.budget.is_exhausted() {
                    true => None,
                    false => self.claim(target, &self.believed, &reduced, &[], nodes, &mut probe),
                };
                let holds = claim.as_ref().is_some_and(|claim| claim.bound <= 0.0);
                claims.extend(claim.map(|claim| (target, claim)));
                if holds {
                    break;
                }
            }
            self.one_done();
            claims
        };
        Some((0..self.stage.verdicts.len()).into_par_iter().flat_map_iter(ask).collect())
    }

    /// Believes what mixed-integer programs say, where nothing else is known, if the user wants that.
    pub(crate) fn trust(&mut self, claims: &[(Target, Claim)]) {
        if !self.options.trust_solver {
            return;
        }
        for (unit, verdict) in self.stage.verdicts.iter_mut().enumerate().filter(|(_, verdict)| verdict.is_none()) {
            let target = |side: Side| Target { unit, side };
            let claim = |side: Side| claims.iter().find(|(of, _)| *of == target(side)).map(|(_, claim)| claim);
            let may_hold = |side: Side| self.witnesses.may_hold(self.stage.layer, target(side));
            let refuted = |side: Side| claim(side).is_some_and(|claim| claim.value > 0.0) || !may_hold(side);
            let holds = |side: Side| claim(side).is_some_and(|claim| claim.bound <= 0.0) && may_hold(side);
            let status = if holds(Side::Upper) {
                Status::OFF
            } else if holds(Side::Lower) {
                Status::ON
            } else if refuted(Side::Upper) && refuted(Side::Lower) {
                Status::Unstable
            } else {
                continue;
            };
            *verdict = Some(Verdict { status, by: TECHNIQUE, trusted: true });
        }
    }
}
