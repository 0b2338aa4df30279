//! HiGHS: the relaxed network as a linear program, and the paper's mixed-integer program.
//!
//! Both have two columns for each unit of the reduced network: its output `h`, and how far its pre-activation is below 0, `s` (the paper's
//! h with a bar). One row says that `h - s` is the pre-activation. With bounds `l < 0 < u` of the pre-activation,
//!
//! - the relaxation has the row `h / u + s / -l <= 1`: with `h, s >= 0` the triangle around the ReLU. Where the domain is
//!   cut, `h` is 0 on one side and `s` on the other, which changes bounds of columns only;
//! - the mixed-integer program (equations 2 to 8 of the paper) has `h <= u z` and `s <= -l (1 - z)`, with `z` 0 or 1.
//!
//! Solvers minimise here, so the objective is the negative of what is to be maximised. Whatever they say is rounded, and no proof.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use highs::{Col, HighsModelStatus, Model, RowProblem, Sense, SolvedModel};
use highs_sys::{HighsCallbackDataIn, HighsCallbackDataOut};

use super::reduced::{Affine, Reduced};
use super::{Claim, Cut, Relaxed};
use crate::budget::Budget;
use crate::witness::Probe;

/// The callbacks of HiGHS that are listened to.
const SIMPLEX_INTERRUPT: c_int = 1;
const MIP_IMPROVING_SOLUTION: c_int = 4;
const MIP_INTERRUPT: c_int = 6;

/// A solution of a mixed-integer program that is so good is not looked at twice.
const CERTAINLY_POSITIVE: f64 = 1e-3;

/// The columns that both programs have.
struct Columns {
    inputs: Vec<Col>,
    on: Vec<Col>,
    off: Vec<Col>,
}

impl Columns {
    /// Adds columns for the input and the units, and the rows that say what the units' pre-activations are.
    fn new(problem: &mut RowProblem, reduced: &Reduced) -> Self {
        let bounds = reduced.lower.iter().zip(&reduced.upper);
        let inputs = bounds.map(|(&lower, &upper)| problem.add_column(0.0, lower..=upper)).collect();
        let mut columns = Self { inputs, on: Vec::new(), off: Vec::new() };
        for unit in &reduced.units {
            let mut terms = columns.terms(&unit.pre_activation);
            columns.on.push(problem.add_column(0.0, 0.0..));
            columns.off.push(problem.add_column(0.0, 0.0..));
            terms.extend([(columns.on[columns.on.len() - 1], -1.0), (columns.off[columns.off.len() - 1], 1.0)]);
            let constant = -unit.pre_activation.constant;
            problem.add_row(constant..=constant, terms);
        }
        columns
    }

    /// The terms of a linear function that are not 0.
    fn terms(&self, affine: &Affine) -> Vec<(Col, f64)> {
        let inputs = self.inputs.iter().copied().zip(affine.inputs.iter().copied());
        let units = self.on.iter().copied().zip(affine.units.iter().copied());
        inputs.chain(units).filter(|&(_, c)| c != 0.0).collect()
    }
}

/// The relaxation, solved again and again from where the last solution was.
pub(crate) struct Program {
    columns: Columns,
    /// Lost when HiGHS fails.
    model: Option<Model>,
    /// The cuts that the bounds of columns are set for.
    cuts: Vec<Cut>,
}

impl Program {
    pub(crate) fn new(reduced: &Reduced) -> Option<Self> {
        let mut problem = RowProblem::default();
        let columns = Columns::new(&mut problem, reduced);
        for ((unit, &on), &off) in reduced.units.iter().zip(&columns.on).zip(&columns.off) {
            let (l, u) = (unit.lower, unit.upper);
            let (below, above) = (-l / (u - l), u / (u - l));
            problem.add_row(..=below * u, [(on, below), (off, above)]);
        }
        let mut model = Model::try_new(problem).ok()?;
        set_common_options(&mut model)?;
        model.try_set_option("presolve", "off").ok()?;
        model.try_set_option("solver", "simplex").ok()?;
        Some(Self { columns, model: Some(model), cuts: Vec::new() })
    }

    /// The maximum of a linear function on the piece of the domain that the cuts leave.
    pub(crate) fn maximise(
        &mut self,
        reduced: &Reduced,
        target: &Affine,
        cuts: &[Cut],
        budget: &Budget<'_>,
    ) -> Relaxed {
        let Some(mut model) = self.model.take() else { return Relaxed::Nothing };
        let columns = &self.columns;
        for (&column, &c) in columns.inputs.iter().zip(&target.inputs).chain(columns.on.iter().zip(&target.units)) {
            model.change_column_cost(column, -c);
        }
        let shared = self.cuts.iter().zip(cuts).take_while(|(old, new)| old == new).count();
        let mut bound = |cut: &Cut, most: f64| {
            if let Some(position) = reduced.position(cut.layer, cut.unit) {
                let column = if cut.on { columns.off[position] } else { columns.on[position] };
                model.change_column_bounds(column, 0.0..=most);
            }
        };
        self.cuts[shared..].iter().for_each(|cut| bound(cut, f64::INFINITY));
        cuts[shared..].iter().for_each(|cut| bound(cut, 0.0));
        self.cuts = cuts.to_vec();
        let mut watch = Watch::new(budget, target.constant);
        let Some(solved) = solve(model, &mut watch) else { return Relaxed::Nothing };
        let answer = match solved.status() {
            HighsModelStatus::Optimal => {
                let solution = solved.get_solution();
                let value = |column: &Col| solution.columns()[column.index()];
                let point: Vec<f64> = columns.inputs.iter().map(value).collect();
                // The triangle is left only upward: the output is at least the pre-activation, and at least 0.
                let gaps = columns.on.iter().zip(&columns.off).map(|(on, off)| value(on).min(value(off))).collect();
                let duals = solution.dual_rows()[..reduced.units.len()].to_vec();
                Relaxed::Optimum { point, gaps, duals }
            }
            HighsModelStatus::Infeasible => dual_ray(&solved, reduced).map_or(Relaxed::Nothing, Relaxed::Empty),
            _ => Relaxed::Nothing,
        };
        self.model = Some(solved.into());
        answer
    }
}

/// What multiples of the units' rows show that there is no solution.
fn dual_ray(solved: &SolvedModel, reduced: &Reduced) -> Option<Vec<f64>> {
    let mut ray = vec![0.0; 2 * reduced.units.len()];
    let mut has_ray = 0;
    // SAFETY: HiGHS only reads its model through this pointer, whatever the type says, and writes one number for each row to `ray`: the program
    // has two rows for each unit.
    #[allow(unsafe_code)]
    let status = unsafe { highs_sys::Highs_getDualRay(solved.as_ptr().cast_mut(), &raw mut has_ray, ray.as_mut_ptr()) };
    ray.truncate(reduced.units.len());
    (status == highs_sys::STATUS_OK && has_ray == 1).then_some(ray)
}

/// What the paper's mixed-integer program says about the maximum of a linear function: it stops as soon as the maximum is known to be at most 0,
/// or `probe` says of a solution that it is above. `start` is a point to begin with.
pub(crate) fn claim(
    reduced: &Reduced,
    target: &Affine,
    start: &[f64],
    nodes: usize,
    budget: &Budget<'_>,
    probe: &mut Probe<'_>,
) -> Option<Claim> {
    let mut problem = RowProblem::default();
    let columns = Columns::new(&mut problem, reduced);
    for ((unit, &on), &off) in reduced.units.iter().zip(&columns.on).zip(&columns.off) {
        let switch = problem.add_integer_column(0.0, 0.0..=1.0);
        problem.add_row(..=0.0, [(on, 1.0), (switch, -unit.upper)]);
        problem.add_row(..=-unit.lower, [(off, 1.0), (switch, -unit.lower)]);
    }
    let mut model = Model::try_new(problem).ok()?;
    for (column, c) in columns.terms(target) {
        model.change_column_cost(column, -c);
    }
    set_common_options(&mut model)?;
    model.try_set_option("mip_rel_gap", 0.0).ok()?;
    model.try_set_option("mip_abs_gap", 0.0).ok()?;
    model.try_set_option("mip_max_nodes", i32::try_from(nodes).unwrap_or(i32::MAX)).ok()?;
    model.try_set_option("objective_target", target.constant - CERTAINLY_POSITIVE).ok()?;
    if !start.is_empty() {
        let pre_activations = reduced.evaluate(start);
        let mut solution = start.to_vec();
        solution.extend(pre_activations.iter().flat_map(|&g| [g.max(0.0), (-g).max(0.0)]));
        solution.extend(pre_activations.iter().map(|&g| f64::from(u8::from(g > 0.0))));
        model.try_set_solution(Some(&solution), None, None, None).ok()?;
    }
    let mut watch = Watch::new(budget, target.constant);
    (watch.probe, watch.inputs) = (Some(probe), columns.inputs.len());
    let solved = solve(model, &mut watch)?;
    let (mut bound, mut value) = (watch.bound, watch.value);
    if solved.status() == HighsModelStatus::Optimal {
        value = target.constant - solved.objective_value();
        // Without units it is no mixed-integer program, and has no such bound.
        let dual = if reduced.units.is_empty() { None } else { solved.double_info_value(c"mip_dual_bound").ok() };
        bound = bound.min(target.constant - dual.unwrap_or_else(|| solved.objective_value()));
        watch.look_at(solved.get_solution().columns());
    }
    Some(Claim { bound, value })
}

/// Every program runs on one thread: there are as many programs as threads. HiGHS takes no coefficients for 0 that are larger than this.
fn set_common_options(model: &mut Model) -> Option<()> {
    model.set_sense(Sense::Minimise);
    model.try_set_option("threads", 1).ok()?;
    model.try_set_option("parallel", "off").ok()?;
    model.try_set_option("small_matrix_value", 1e-12).ok()
}

/// What happens while a program is solved.
struct Watch<'a, 'p> {
    budget: &'a Budget<'a>,
    /// What the objective leaves out.
    constant: f64,
    /// Looks at solutions, whose first columns are the inputs.
    probe: Option<&'a mut Probe<'p>>,
    inputs: usize,
    bound: f64,
    value: f64,
    settled: bool,
}

impl<'a> Watch<'a, '_> {
    fn new(budget: &'a Budget<'a>, constant: f64) -> Self {
        Self {
            budget,
            constant,
            probe: None,
            inputs: 0,
            bound: f64::INFINITY,
            value: f64::NEG_INFINITY,
            settled: false,
        }
    }

    /// A solution of a mixed-integer program.
    fn look_at(&mut self, solution: &[f64]) {
        if let Some(probe) = &mut self.probe
            && let Some(point) = solution.get(..self.inputs)
        {
            self.settled |= probe.shows(point);
        }
    }

    /// Whether to stop, given a bound on the objective.
    fn is_over(&mut self, dual_bound: Option<f64>) -> bool {
        if let Some(dual_bound) = dual_bound {
            self.bound = self.bound.min(self.constant - dual_bound);
        }
        self.settled || self.bound <= 0.0 || self.budget.is_exhausted()
    }
}

/// Runs HiGHS, and listens to it. `None` if it failed.
fn solve(mut model: Model, watch: &mut Watch<'_, '_>) -> Option<SolvedModel> {
    let data: *mut Watch<'_, '_> = watch;
    // SAFETY: the pointer is the model's own. HiGHS calls `listen` with `data` only while it runs, below, where `watch` is borrowed
    // mutably and used by nobody else; after that no callback is set any more.
    #[allow(unsafe_code)]
    let listening = unsafe {
        highs_sys::Highs_setCallback(model.as_mut_ptr(), Some(listen), data.cast()) == highs_sys::STATUS_OK
            && [SIMPLEX_INTERRUPT, MIP_IMPROVING_SOLUTION, MIP_INTERRUPT]
                .into_iter()
                .all(|kind| highs_sys::Highs_startCallback(model.as_mut_ptr(), kind) == highs_sys::STATUS_OK)
    };
    if !listening {
        return None;
    }
    let mut solved = model.try_solve().ok()?;
    // SAFETY: as above; without a function, the null pointer is never used.
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
    // SAFETY: HiGHS hands over what `solve` gave it, and data that are valid during this call; each may be null, which is checked.
    let (watch, output, input) = unsafe { (data.cast::<Watch<'_, '_>>().as_mut(), output.as_ref(), input.as_mut()) };
    let (Some(watch), Some(output)) = (watch, output) else { return };
    if kind == MIP_IMPROVING_SOLUTION {
        let length = usize::try_from(output.mip_solution_size).unwrap_or(0);
        if !output.mip_solution.is_null() && length > 0 {
            // SAFETY: HiGHS says how many numbers there are.
            let solution = unsafe { std::slice::from_raw_parts(output.mip_solution, length) };
            watch.value = watch.value.max(watch.constant - output.objective_function_value);
            watch.look_at(solution);
        }
    }
    let dual_bound = (kind == MIP_INTERRUPT).then_some(output.mip_dual_bound);
    if watch.is_over(dual_bound)
        && let Some(input) = input
    {
        input.user_interrupt = 1;
    }
}
