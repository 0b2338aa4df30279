//! Branch and bound on units (Bunel et al. 2018), with linear bounds and multipliers at the leaves (beta-CROWN, Wang et
//! al. 2021). Every bound gets a few pieces before any gets many.

use leo_check::{BoundProof, Target};
use leo_network::Observer;
use rayon::prelude::*;

use super::{Cost, Technique, TechniqueStep};
use crate::analysis::{Analyzer, PIECES};
use crate::checkpoint::UnfinishedTree;
use crate::proof_log;
use crate::search::SearchOutcome;
use crate::search::branch_and_bound::BranchAndBound;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "split", in_words: "case distinctions", is_plain: false };

/// Splits the domain for bounds that are open.
pub(super) const SPLIT: TechniqueStep =
    TechniqueStep { technique: TECHNIQUE, cost: Cost::Share, when: |run| run.is_open(), attempt: |run| run.split() };

/// How many pieces are looked at for every bound before any gets more.
const FIRST_PIECES: usize = 64;
/// How many times as many pieces a bound gets, after each round that left it open.
const PIECES_FACTOR: usize = 4;

impl Analyzer<'_, '_> {
    fn split(&mut self) {
        let open = self.open_bounds();
        let most = self.options.nodes.unwrap_or(PIECES);
        self.begin(TECHNIQUE, open.len());
        let this = &*self;
        let begin = |&bound: &Target| {
            let mut search = BranchAndBound::new(this.question(bound), this.reduced());
            if let Some(draft) = this.stage.drafts.iter().find(|draft| draft.proof.target == bound) {
                search.go_on(draft.proof.tree.clone(), &draft.open);
            }
            (bound, search, SearchOutcome::Open)
        };
        let mut searches: Vec<(Target, BranchAndBound<'_>, SearchOutcome)> = open.iter().map(begin).collect();
        let mut pieces = FIRST_PIECES;
        loop {
            searches.par_iter_mut().with_max_len(1).for_each(|(bound, search, outcome)| {
                if matches!(outcome, SearchOutcome::Open) {
                    *outcome = search.run(pieces.min(most), || this.witnesses.probe(this.stage.layer, *bound));
                    if !matches!(outcome, SearchOutcome::Open) {
                        this.one_done();
                    }
                }
            });
            let is_open = searches.iter().any(|(_, _, outcome)| matches!(outcome, SearchOutcome::Open));
            if !is_open || pieces >= most || this.budget.is_exhausted() {
                break;
            }
            pieces *= PIECES_FACTOR;
        }
        let goes_on = this.budget.is_exhausted() && !this.limits.whole().is_exhausted();
        let keeps = this.options.observer.is_some_and(Observer::keeps) || goes_on;
        let (mut drafts, mut outcomes) = (Vec::new(), Vec::new());
        for (target, search, outcome) in searches {
            if keeps && matches!(outcome, SearchOutcome::Open) {
                let (mut tree, open) = search.draft();
                proof_log::trim(&mut tree, this.network, this.checker.ranges(), false);
                drafts.push(UnfinishedTree { proof: BoundProof { target, tree }, open });
            }
            outcomes.push((target, outcome, None));
        }
        self.stage.drafts = drafts;
        self.take_over(TECHNIQUE, &open, outcomes);
    }
}
