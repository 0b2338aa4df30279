//! HiGHS: the relaxed network as a linear program, and the paper's mixed-integer program.
//!
//! Both have two columns for each unit of the reduced network: its output `h`, and how far its pre-activation is below
//! 0, `s` (the paper's h with a bar). One row says that `h - s` is the pre-activation. With bounds `l < 0 < u` of the
//! pre-activation,
//!
//! - the relaxation has the row `h / u + s / -l <= 1`: with `h, s >= 0` the triangle around the ReLU, the triangle
//!   relaxation (Ehlers 2017, arXiv:1705.01320). Where the domain is split, `h` is 0 on one side and `s` on the other,
//!   which changes bounds of columns only;
//! - the mixed-integer program (MILP; equations 2 to 8 of the paper) has `h <= u z` and `s <= -l (1 - z)`, with `z` 0
//!   or 1: the big-M formulation of Tjeng et al. (2019, arXiv:1711.07356), in the columns of Fischetti and Jo (2018,
//!   arXiv:1712.06174).
//!
//! Solvers minimise here, so the objective is the negative of what is to be maximised. Whatever they say is rounded,
//! and no proof.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

use highs::{Col, HighsModelStatus, Model, RowProblem, Sense, SolvedModel};
use highs_sys::{
    HighsCallbackDataIn, HighsCallbackDataOut, kHighsCallbackMipImprovingSolution, kHighsCallbackMipInterrupt,
    kHighsCallbackSimplexInterrupt,
};

use leo_check::Side;

use super::reduced::{Reduced, ReducedFunction, ReducedUnit};
use super::{Claim, Optimum, Split};
use crate::budget::Budget;
use crate::witness::Probe;

/// A solution of a mixed-integer program whose value is above 0 by this part of all that its terms could add up to ends
/// the search: nobody needs a better one.
const TARGET_MARGIN: f64 = 1e-3;

/// What it costs to violate a row of the relaxation, where the objective's terms add up to 1: more if somebody pays.
/// The less it is, the less do the solver's tolerances matter.
const PRICES: [f64; 3] = [1e2, 1e4, 1e6];

/// The finest tolerance that HiGHS takes.
const MIN_TOLERANCE: f64 = 1e-10;

/// The columns that both programs have, all of them from 0 to 1 or so, whatever the network's numbers are: inputs count
/// from their lower bound in multiples of the box's width, and each unit in multiples of the largest that its
/// pre-activation can be.
struct ProgramColumns {
    reduced: Arc<Reduced>,
    inputs: Vec<Col>,
    on: Vec<Col>,
    off: Vec<Col>,
    /// How far rows are violated.
    violations: Vec<Col>,
}

impl ProgramColumns {
    /// Adds columns for the input and the units, and the rows that say what the units' pre-activations are.
    ///
    /// In a relaxation, rows may be violated at a price. Then there is a solution even where cuts contradict each
    /// other, and if it has to pay, the dual values are a proof that there is no such input.
    ///
    /// `None` if numbers have overflowed.
    fn new(problem: &mut RowProblem, reduced: &Arc<Reduced>, relaxed: bool) -> Option<Self> {
        let widths = reduced.lower.iter().zip(&reduced.upper).map(|(lower, upper)| upper - lower);
        let inputs = widths.map(|width| problem.add_column(0.0, 0.0..=if width > 0.0 { 1.0 } else { 0.0 })).collect();
        let mut columns =
            Self { reduced: Arc::clone(reduced), inputs, on: Vec::new(), off: Vec::new(), violations: Vec::new() };
        for unit in &reduced.units {
            let (mut terms, constant) = columns.terms(&unit.pre_activation, size(unit));
            if !terms.iter().map(|(_, c)| c).chain([&constant]).all(|number| number.is_finite()) {
                return None;
            }
            columns.on.push(problem.add_column(0.0, 0.0..));
            columns.off.push(problem.add_column(0.0, 0.0..));
            terms.extend([(columns.on[columns.on.len() - 1], -1.0), (columns.off[columns.off.len() - 1], 1.0)]);
            if relaxed {
                terms.extend([1.0, -1.0].map(|direction| {
                    let violation = problem.add_column(PRICES[0], 0.0..);
                    columns.violations.push(violation);
                    (violation, direction)
                }));
            }
            problem.add_row(-constant..=-constant, terms);
        }
        Some(columns)
    }

    /// The terms of a linear function that are not 0, and its constant, in multiples of `unit`.
    fn terms(&self, affine: &ReducedFunction, unit: f64) -> (Vec<(Col, f64)>, f64) {
        let Reduced { units, lower, upper } = &*self.reduced;
        let mut constant = affine.constant;
        let mut terms = Vec::new();
        for (index, (&column, &c)) in self.inputs.iter().zip(&affine.inputs).enumerate() {
            constant += c * lower[index];
            terms.push((column, c * (upper[index] - lower[index]) / unit));
        }
        for ((&column, &c), known) in self.on.iter().zip(&affine.units).zip(units) {
            terms.push((column, c * size(known) / unit));
        }
        terms.retain(|&(_, c)| c != 0.0);
        (terms, constant / unit)
    }

    /// Makes a linear function the objective, unless its numbers have overflowed.
    fn aim(&self, model: &mut Model, target: &ReducedFunction) -> Option<Objective> {
        let (mut terms, _) = self.terms(target, 1.0);
        let unit = terms.iter().map(|(_, c)| c.abs()).sum::<f64>();
        let unit = if unit > 0.0 { unit } else { 1.0 };
        let constant;
        (terms, constant) = self.terms(target, unit);
        if !(unit.is_finite() && constant.is_finite()) {
            return None;
        }
        for &column in self.inputs.iter().chain(&self.on) {
            model.change_column_cost(column, 0.0);
        }
        for (column, c) in terms {
            model.change_column_cost(column, -c);
        }
        Some(Objective { unit, constant })
    }

    /// The input that a solution is.
    fn point(&self, solution: &[f64]) -> Vec<f64> {
        let Reduced { lower, upper, .. } = &*self.reduced;
        lower.iter().zip(upper).zip(solution).map(|((lower, upper), share)| lower + share * (upper - lower)).collect()
    }

    /// The coefficients of the units' pre-activations that dual values stand for.
    fn coefficients(&self, duals: &[f64], unit: f64) -> Vec<f64> {
        self.reduced.units.iter().zip(duals).map(|(known, dual)| dual * unit / size(known)).collect()
    }
}

/// The largest that a unit's pre-activation can be.
fn size(unit: &ReducedUnit) -> f64 {
    unit.upper.max(-unit.lower)
}

/// How an objective, which is minimised, stands for what is to be maximised.
#[derive(Clone, Copy)]
struct Objective {
    unit: f64,
    constant: f64,
}

impl Objective {
    fn value(self, objective: f64) -> f64 {
        self.unit * (self.constant - objective)
    }
}

/// The relaxation, solved again and again from where the last solution was.
pub(crate) struct Program {
    columns: ProgramColumns,
    /// How far units may leave their triangles: not at all, unless they are cut. There the triangle would only say what
    /// the least or the greatest pre-activation is, which proofs on a piece cannot make use of.
    slack: Vec<Col>,
    /// Lost when HiGHS fails.
    model: Option<Model>,
    /// The cuts that the bounds of columns are set for.
    cuts: Vec<Split>,
}

impl Program {
    pub(crate) fn new(reduced: &Arc<Reduced>) -> Option<Self> {
        let mut problem = RowProblem::default();
        let columns = ProgramColumns::new(&mut problem, reduced, true)?;
        let mut slack = Vec::new();
        for ((unit, &on), &off) in reduced.units.iter().zip(&columns.on).zip(&columns.off) {
            let (l, u) = (unit.lower / size(unit), unit.upper / size(unit));
            let (below, above) = (-l / (u - l), u / (u - l));
            slack.push(problem.add_column(0.0, 0.0..=0.0));
            problem.add_row(..=below * u, [(on, below), (off, above), (slack[slack.len() - 1], -1.0)]);
        }
        let mut model = Model::try_new(problem).ok()?;
        set_common_options(&mut model)?;
        model.try_set_option("presolve", "off").ok()?;
        model.try_set_option("solver", "simplex").ok()?;
        model.try_set_option("primal_feasibility_tolerance", MIN_TOLERANCE).ok()?;
        model.try_set_option("dual_feasibility_tolerance", MIN_TOLERANCE).ok()?;
        Some(Self { columns, slack, model: Some(model), cuts: Vec::new() })
    }

    /// The maximum of a linear function on the piece of the domain that the cuts leave. `None` if the budget is
    /// exhausted, or HiGHS is in trouble.
    pub(crate) fn maximise(
        &mut self,
        target: &ReducedFunction,
        cuts: &[Split],
        budget: &Budget<'_>,
    ) -> Option<Optimum> {
        let columns = &self.columns;
        let reduced = &columns.reduced;
        let objective = columns.aim(self.model.as_mut()?, target)?;
        let mut model = self.model.take()?;
        let shared = self.cuts.iter().zip(cuts).take_while(|(old, new)| old == new).count();
        let mut bound = |cut: &Split, most: f64, slack: f64| {
            if let Some(position) = reduced.position(cut.unit) {
                let column = match cut.side {
                    Side::Upper => columns.off[position],
                    Side::Lower => columns.on[position],
                };
                model.change_column_bounds(column, 0.0..=most);
                model.change_column_bounds(self.slack[position], 0.0..=slack);
            }
        };
        self.cuts[shared..].iter().for_each(|cut| bound(cut, f64::INFINITY, 0.0));
        cuts[shared..].iter().for_each(|cut| bound(cut, 0.0, f64::INFINITY));
        self.cuts = cuts.to_vec();
        let mut answer = None;
        for price in PRICES {
            for &violation in &columns.violations {
                model.change_column_cost(violation, price);
            }
            let solved = solve(model, &mut Watch::new(budget, objective))?;
            let solution = (solved.status() == HighsModelStatus::Optimal).then(|| solved.get_solution());
            model = solved.into();
            let Some(solution) = solution else { break };
            let value = |column: Col| solution.columns()[column.index()];
            // The triangle is left only upward: the output is at least the pre-activation, and at least 0.
            let units = columns.on.iter().zip(&columns.off).zip(&reduced.units);
            answer = Some(Optimum {
                point: columns.point(solution.columns()),
                gaps: units.map(|((&on, &off), unit)| size(unit) * value(on).min(value(off))).collect(),
                duals: columns.coefficients(solution.dual_rows(), objective.unit),
            });
            if columns.violations.iter().all(|&violation| value(violation) <= MIN_TOLERANCE) {
                break;
            }
        }
        self.model = Some(model);
        answer
    }
}

/// What the paper's mixed-integer program says about the maximum of a linear function: it stops as soon as the maximum
/// is known to be at most 0, or `probe` says of a solution that it is above. `start` is a point to begin with.
pub(crate) fn claim(
    reduced: &Arc<Reduced>,
    target: &ReducedFunction,
    start: &[f64],
    nodes: usize,
    budget: &Budget<'_>,
    probe: &mut Probe<'_>,
) -> Option<Claim> {
    let mut problem = RowProblem::default();
    let columns = ProgramColumns::new(&mut problem, reduced, false)?;
    for ((unit, &on), &off) in reduced.units.iter().zip(&columns.on).zip(&columns.off) {
        let (l, u) = (unit.lower / size(unit), unit.upper / size(unit));
        let switch = problem.add_integer_column(0.0, 0.0..=1.0);
        problem.add_row(..=0.0, [(on, 1.0), (switch, -u)]);
        problem.add_row(..=-l, [(off, 1.0), (switch, -l)]);
    }
    let mut model = Model::try_new(problem).ok()?;
    let objective = columns.aim(&mut model, target)?;
    set_common_options(&mut model)?;
    model.try_set_option("mip_rel_gap", 0.0).ok()?;
    model.try_set_option("mip_abs_gap", 0.0).ok()?;
    model.try_set_option("mip_max_nodes", i32::try_from(nodes).unwrap_or(i32::MAX)).ok()?;
    if let Some(time) = budget.time_left() {
        // For the parts of it that nobody can interrupt.
        model.try_set_option("time_limit", time.as_secs_f64()).ok()?;
    }
    model.try_set_option("objective_target", objective.constant - TARGET_MARGIN).ok()?;
    if !start.is_empty() {
        let bounds = reduced.lower.iter().zip(&reduced.upper);
        let share = |(&x, (lower, upper)): (&f64, (&f64, &f64))| {
            if upper > lower { (x - lower) / (upper - lower) } else { 0.0 }
        };
        let mut solution: Vec<f64> = start.iter().zip(bounds).map(share).collect();
        let pre_activations: Vec<f64> =
            reduced.evaluate(start).into_iter().zip(&reduced.units).map(|(g, unit)| g / size(unit)).collect();
        solution.extend(pre_activations.iter().flat_map(|&g| [g.max(0.0), (-g).max(0.0)]));
        solution.extend(pre_activations.iter().map(|&g| f64::from(u8::from(g > 0.0))));
        model.try_set_solution(Some(&solution), None, None, None).ok()?;
    }
    let mut watch = Watch::new(budget, objective);
    watch.looks = Some((&columns, probe));
    let solved = solve(model, &mut watch)?;
    if solved.status() == HighsModelStatus::Optimal {
        watch.value = objective.value(solved.objective_value());
        // Without units it is no mixed-integer program, and has no such bound.
        let dual = if reduced.units.is_empty() { None } else { solved.double_info_value(c"mip_dual_bound").ok() };
        watch.bound = watch.bound.min(objective.value(dual.unwrap_or_else(|| solved.objective_value())));
        watch.evaluate_points(solved.get_solution().columns());
    }
    Some(Claim { bound: watch.bound, value: watch.value, point: watch.found })
}

/// Every program runs on one thread: there are as many programs as threads. HiGHS takes no coefficients for 0 that are
/// larger than this.
fn set_common_options(model: &mut Model) -> Option<()> {
    model.set_sense(Sense::Minimise);
    model.try_set_option("threads", 1).ok()?;
    model.try_set_option("parallel", "off").ok()?;
    model.try_set_option("small_matrix_value", 1e-12).ok()
}

/// What happens while a program is solved.
struct Watch<'a, 'p> {
    budget: &'a Budget<'a>,
    objective: Objective,
    /// Looks at solutions of a mixed-integer program.
    looks: Option<(&'a ProgramColumns, &'a mut Probe<'p>)>,
    /// The best bound on what is to be maximised, and the best value.
    bound: f64,
    value: f64,
    /// A solution that the probe is certain of.
    found: Option<Vec<f64>>,
}

impl<'a> Watch<'a, '_> {
    fn new(budget: &'a Budget<'a>, objective: Objective) -> Self {
        Self { budget, objective, looks: None, bound: f64::INFINITY, value: f64::NEG_INFINITY, found: None }
    }

    /// A solution of a mixed-integer program.
    fn evaluate_points(&mut self, solution: &[f64]) {
        if let Some((columns, probe)) = &mut self.looks
            && self.found.is_none()
            && solution.len() >= columns.inputs.len()
        {
            self.found = probe.shows(&columns.point(solution));
        }
    }

    /// Whether to stop, given a bound on the objective.
    fn is_over(&mut self, dual_bound: Option<f64>) -> bool {
        if let Some(dual_bound) = dual_bound {
            self.bound = self.bound.min(self.objective.value(dual_bound));
        }
        self.found.is_some() || self.bound <= 0.0 || self.budget.is_exhausted()
    }
}

/// Runs HiGHS, and listens to it. `None` if it failed.
fn solve(mut model: Model, watch: &mut Watch<'_, '_>) -> Option<SolvedModel> {
    let data: *mut Watch<'_, '_> = watch;
    // SAFETY: the pointer is the model's own. HiGHS calls `listen` with `data` only while it runs, below, where `watch`
    // is borrowed mutably and used by nobody else; after that no callback is set any more.
    #[allow(unsafe_code)]
    let listening = unsafe {
        highs_sys::Highs_setCallback(model.as_mut_ptr(), Some(listen), data.cast()) == highs_sys::STATUS_OK
            && [kHighsCallbackSimplexInterrupt, kHighsCallbackMipImprovingSolution, kHighsCallbackMipInterrupt]
                .into_iter()
                .all(|kind| highs_sys::Highs_startCallback(model.as_mut_ptr(), kind) == highs_sys::STATUS_OK)
    };
    if !listening {
        return None;
    }
    let mut solved = model.try_solve().ok()?;
    // SAFETY: the pointer is the model's own. With another function, even with none, HiGHS makes every kind of callback
    // inactive, until it is started again, so that neither the function nor the data are used.
    #[allow(unsafe_code)]
    unsafe {
        highs_sys::Highs_setCallback(solved.as_mut_ptr(), None, null_mut());
    }
    Some(solved)
}

/// Called by HiGHS.
#[allow(unsafe_code)]
unsafe extern "C" fn listen(
    kind: c_int,
    _message: *const c_char,
    output: *const HighsCallbackDataOut,
    input: *mut HighsCallbackDataIn,
    data: *mut c_void,
) {
    // SAFETY: HiGHS hands over what `solve` gave it, and data that are valid during this call; each may be null, which
    // is checked.
    let (watch, output, input) = unsafe { (data.cast::<Watch<'_, '_>>().as_mut(), output.as_ref(), input.as_mut()) };
    let (Some(watch), Some(output)) = (watch, output) else { return };
    if kind == kHighsCallbackMipImprovingSolution {
        let length = usize::try_from(output.mip_solution_size).unwrap_or(0);
        if !output.mip_solution.is_null() && length > 0 {
            // SAFETY: HiGHS says how many numbers there are.
            let solution = unsafe { std::slice::from_raw_parts(output.mip_solution, length) };
            watch.value = watch.value.max(watch.objective.value(output.objective_function_value));
            watch.evaluate_points(solution);
        }
    }
    let dual_bound = (kind == kHighsCallbackMipInterrupt).then_some(output.mip_dual_bound);
    if watch.is_over(dual_bound)
        && let Some(input) = input
    {
        input.user_interrupt = 1;
    }
}
