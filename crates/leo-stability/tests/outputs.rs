//! Ranges of outputs, and bounds alone: they hold, and are as narrow as they should be.

use fastrand::Rng;
use leo_check::{Checker, Range, Target};
use leo_network::op::{Dense, Matrix, Relu, Sum};
use leo_network::{Domain, Evaluator, Network, NetworkError, Shape, ValueId, ValueMap};
use leo_stability::{Analysis, AnalysisOptions, Engine, Status, analyze};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

const INPUTS: usize = 3;
/// What rounding may make of numbers like those here.
const ROUNDING: f64 = 1e-9;

fn dense(random: &mut Rng, inputs: usize, outputs: usize) -> Result<Dense, NetworkError> {
    let mut numbers = |count: usize| (0..count).map(|_| 2.0 * random.f64() - 1.0).collect::<Vec<_>>();
    Dense::new(Matrix::new(outputs, inputs, numbers(inputs * outputs))?, Some(numbers(outputs)))
}

/// Three layers of units, with a branch around the second or without. The outputs are the scores, and by the seed the
/// input itself, a layer's units, or pre-activations that a layer after reads.
fn random_network(seed: u64) -> Result<Network, NetworkError> {
    let mut random = Rng::with_seed(seed);
    let mut builder = Network::builder(Shape::new([INPUTS])?);
    let mut value = builder.add("fc1", dense(&mut random, INPUTS, 6)?, &[ValueId::INPUT])?;
    let first = builder.add("relu1", Relu, &[value])?;
    let second = builder.add("fc2", dense(&mut random, 6, 6)?, &[first])?;
    value = builder.add("relu2", Relu, &[second])?;
    if seed.is_multiple_of(2) {
        value = builder.add("sum", Sum, &[value, first])?;
    }
    value = builder.add("fc3", dense(&mut random, 6, 5)?, &[value])?;
    let last = builder.add("relu3", Relu, &[value])?;
    let scores = builder.add("fc4", dense(&mut random, 5, 3)?, &[last])?;
    let others = [vec![], vec![ValueId::INPUT], vec![last], vec![second], vec![first, second]];
    builder.finish([vec![scores], others[seed as usize % others.len()].clone()].concat())
}

fn analysis<'n>(network: &'n Network, domain: &Domain, engine: Engine) -> Anything<Analysis<'n>> {
    Ok(analyze(network, domain, &AnalysisOptions { engine, outputs: true, ..AnalysisOptions::default() })?)
}

/// What intervals say of all values; and what lines with the default slopes do, of layers and outputs.
fn plain(network: &Network, domain: &Domain) -> Anything<[ValueMap<Range>; 2]> {
    let all = |range: &Range| (0..range.lower.len()).flat_map(Target::both).collect::<Vec<_>>();
    let (mut intervals, mut lines) = (Checker::new(network, domain)?, Checker::new(network, domain)?);
    intervals.go_to_end();
    while let Some(layer) = lines.next_layer() {
        lines.prove_linear(&all(lines.range(layer)), &[]);
    }
    lines.go_to_end();
    for &output in network.outputs() {
        lines.prove_linear_at(output, &all(&lines.ranges()[output].clone()), &[]);
    }
    Ok([intervals.ranges().clone(), lines.ranges().clone()])
}

/// That one range lies in another, but for rounding.
fn assert_within(inner: (&[f64], &[f64]), outer: (&[f64], &[f64]), what: &str) {
    for (element, (inner, outer)) in inner.0.iter().zip(outer.0).enumerate() {
        assert!(*inner >= outer - ROUNDING, "{what}: element {element}: {inner} is less than {outer}");
    }
    for (element, (inner, outer)) in inner.1.iter().zip(outer.1).enumerate() {
        assert!(*inner <= outer + ROUNDING, "{what}: element {element}: {inner} is more than {outer}");
    }
}

fn sides(range: &Range) -> (&[f64], &[f64]) {
    (&range.lower, &range.upper)
}

/// That no point of the domain leads out of what is proved: neither a corner nor one inside.
fn assert_holds(network: &Network, domain: &Domain, analysis: &Analysis<'_>, random: &mut Rng) {
    let hull = domain.hull();
    let (evaluator, mut points) = (Evaluator::<f64>::new(network), Vec::new());
    for sample in 0..300 {
        for (lo, hi) in hull.lo().iter().zip(hull.hi()) {
            let share = if sample < 200 { f64::from(random.u8(0..2)) } else { random.f64() };
            points.push(lo + share * (hi - lo));
        }
    }
    let mut workspace = evaluator.workspace();
    for block in points.chunks(evaluator.block_rows() * INPUTS) {
        let values = evaluator.forward(&mut workspace, block);
        let layers = analysis.layers.iter().map(|layer| {
            let units = &layer.units;
            let range = Range {
                lower: units.iter().map(|unit| unit.lower).collect(),
                upper: units.iter().map(|unit| unit.upper).collect(),
            };
            (network.pre_activation(layer.id), range)
        });
        let outputs = network.outputs().iter().copied().zip(analysis.outputs.iter().cloned());
        for (value, range) in layers.chain(outputs) {
            for row in values.get(value).chunks_exact(range.lower.len()) {
                assert_within((row, row), sides(&range), "a point");
            }
        }
    }
}

#[test]
fn ranges_of_outputs_hold_and_are_as_narrow_as_they_should_be() -> Anything {
    let (mut by_lines, mut by_slopes, mut by_all) = (0.0, 0.0, 0.0);
    for seed in 0..60 {
        let (network, domain) = (random_network(seed)?, Domain::uniform(INPUTS, -0.5, 1.0)?);
        let [intervals, lines] = plain(&network, &domain)?;
        let searched = analysis(&network, &domain, Engine::Bounds)?;
        let tightened = analysis(&network, &domain, Engine::Tighten)?;
        for (found, what) in [(&searched, "searched"), (&tightened, "tightened")] {
            assert_holds(&network, &domain, found, &mut Rng::with_seed(seed));
            assert_eq!(found.outputs.len(), network.outputs().len());
            for (&output, range) in network.outputs().iter().zip(&found.outputs) {
                assert_within(sides(range), sides(&intervals[output]), what);
                assert_eq!(found.facts.range(output), range, "what is proved is what is said");
            }
        }
        for (&output, range) in network.outputs().iter().zip(&tightened.outputs) {
            assert_within(sides(range), sides(&lines[output]), "tightened, and lines alone");
        }
        for layer in &tightened.layers {
            let (lower, upper): (Vec<f64>, Vec<f64>) = layer.units.iter().map(|unit| (unit.lower, unit.upper)).unzip();
            assert_within((&lower, &upper), sides(&lines[network.pre_activation(layer.id)]), "a layer");
        }
        let width = |range: &Range| range.upper.iter().zip(&range.lower).map(|(u, l)| u - l).sum::<f64>();
        by_lines += width(&lines[network.outputs()[0]]);
        by_slopes += width(&searched.outputs[0]);
        by_all += width(&tightened.outputs[0]);
    }
    assert!(by_slopes < 0.95 * by_lines && by_all < 0.97 * by_slopes, "{by_lines} {by_slopes} {by_all}");
    Ok(())
}

/// Bounds alone decide units as bounds, never by inputs; and what they decide, the search decides likewise.
#[test]
fn bounds_alone_call_no_unit_unstable() -> Anything {
    let mut stable = 0;
    for seed in 0..30 {
        let (network, domain) = (random_network(seed)?, Domain::uniform(INPUTS, 0.0, 0.5)?);
        let (searched, tightened) =
            (analysis(&network, &domain, Engine::Auto)?, analysis(&network, &domain, Engine::Tighten)?);
        assert_eq!(tightened.stopped, None);
        let units =
            |found: &Analysis<'_>| found.layers.iter().flat_map(|layer| layer.units.clone()).collect::<Vec<_>>();
        for (unit, other) in units(&tightened).iter().zip(units(&searched)) {
            assert_ne!(unit.status, Status::Unstable);
            if unit.status != Status::Undecided {
                assert_eq!(unit.status, other.status);
                stable += 1;
            }
        }
        tightened.proof.check::<f64>(&network, &domain)?;
    }
    assert!(stable > 50, "{stable}");
    Ok(())
}

#[test]
fn the_same_numbers_come_out_on_any_number_of_threads() -> Anything {
    let (network, domain) = (random_network(7)?, Domain::uniform(INPUTS, -1.0, 1.0)?);
    for engine in [Engine::Bounds, Engine::Tighten] {
        let on = |threads: usize| -> Anything<_> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            let found = pool.install(|| analysis(&network, &domain, engine).map_err(|error| error.to_string()))?;
            Ok((found.layers.into_iter().map(|layer| layer.units).collect::<Vec<_>>(), found.outputs))
        };
        assert_eq!(on(1)?, on(2)?, "{engine:?}");
    }
    Ok(())
}

/// `2 x - 1` and `x`: nothing to relax, so nothing is lost.
#[test]
fn outputs_of_networks_without_units_are_bounded() -> Anything {
    let mut builder = Network::builder(Shape::new([1])?);
    let line = Dense::new(Matrix::new(1, 1, vec![2.0])?, Some(vec![-1.0]))?;
    let y = builder.add("fc", line, &[ValueId::INPUT])?;
    let network = builder.finish(vec![y, ValueId::INPUT])?;
    let domain = Domain::uniform(1, 0.0, 1.0)?;
    for engine in [Engine::Auto, Engine::Tighten, Engine::Milp] {
        let outputs = analysis(&network, &domain, engine)?.outputs;
        assert!((outputs[0].lower[0] + 1.0).abs() < ROUNDING && (outputs[0].upper[0] - 1.0).abs() < ROUNDING);
        assert_eq!((outputs[1].lower[0], outputs[1].upper[0]), (0.0, 1.0));
    }
    Ok(())
}

/// Without time, outputs still have more than intervals.
#[test]
fn a_time_limit_leaves_linear_bounds_of_outputs() -> Anything {
    let (network, domain) = (random_network(4)?, Domain::uniform(INPUTS, -0.5, 1.0)?);
    let time_limit = Some(std::time::Duration::ZERO);
    let options = |engine| AnalysisOptions { engine, outputs: true, time_limit, ..AnalysisOptions::default() };
    let [intervals, _] = plain(&network, &domain)?;
    for engine in [Engine::Bounds, Engine::Tighten] {
        let found = analyze(&network, &domain, &options(engine))?;
        assert_eq!(found.stopped, Some(leo_stability::StopReason::OutOfTime));
        let width = |range: &Range| range.upper.iter().zip(&range.lower).map(|(u, l)| u - l).sum::<f64>();
        let (range, interval) = (&found.outputs[0], &intervals[network.outputs()[0]]);
        assert!(width(range) < 0.95 * width(interval), "{range:?} {interval:?}");
    }
    Ok(())
}
