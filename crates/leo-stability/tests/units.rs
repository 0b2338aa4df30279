//! Single units that are hard to get right.

use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Domain, Network, NetworkError, Shape, ValueId};
use leo_stability::{AnalysisOptions, Engine, HAS_SOLVER, Status, Technique, analyze};

type Anything = Result<(), Box<dyn std::error::Error>>;

/// One layer with a row of weights and a bias for each unit.
fn layer(rows: &[Vec<f64>], biases: Vec<f64>) -> Result<Network, NetworkError> {
    let dense = Dense::new(Matrix::new(rows.len(), rows[0].len(), rows.concat())?, Some(biases))?;
    let mut builder = Network::builder(Shape::new([rows[0].len()])?);
    let g = builder.add("fc", dense, &[ValueId::INPUT])?;
    let h = builder.add("relu", Relu, &[g])?;
    builder.finish(vec![h])
}

/// Solvers work to tolerances of about 1e-6. One that the paper used calls this unit always off: its weights are near
/// 1e-7, its bias is near -6e-6, and its maximum is 2.7e-6.
#[test]
fn a_unit_just_above_zero_is_not_taken_for_stable() -> Anything {
    let weights: Vec<f64> =
        (0..784_i32).map(|i| f64::from((f64::from(i * 37 % 101) / 101.0 - 0.7) as f32 * 3e-7)).collect();
    let positive: f64 = weights.iter().filter(|&&weight| weight > 0.0).sum();
    let bias = f64::from((2.7e-6 - positive) as f32);
    assert!((-1e-5..-5e-6).contains(&bias), "{bias}");
    // The same unit once more, but never on.
    let network = layer(&[weights.clone(), weights], vec![bias, bias - 3e-6])?;
    for engine in [Engine::Auto, Engine::Bounds] {
        let options = AnalysisOptions { engine, ..AnalysisOptions::default() };
        let layers = analyze(&network, &Domain::uniform(784, 0.0, 1.0)?, &options)?.layers;
        let statuses: Vec<Status> = layers[0].units.iter().map(|unit| unit.status).collect();
        assert_eq!(statuses, [Status::Unstable, Status::OFF]);
        assert!((layers[0].units[0].upper - 2.7e-6).abs() < 1e-9);
    }
    Ok(())
}

/// `relu(x) - relu(x - 1/2)` is at most 1/2, but no line above it and below the other is less than 3/4 on [-1, 1].
#[test]
fn what_no_line_shows_a_case_distinction_proves() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Network::builder(Shape::new([1])?);
    let first = Dense::new(Matrix::new(2, 1, vec![1.0, 1.0])?, Some(vec![0.0, -0.5]))?;
    let g = builder.add("fc1", first, &[ValueId::INPUT])?;
    let h = builder.add("relu1", Relu, &[g])?;
    let second = Dense::new(Matrix::new(1, 2, vec![1.0, -1.0])?, Some(vec![-0.6]))?;
    let g = builder.add("fc2", second, &[h])?;
    let h = builder.add("relu2", Relu, &[g])?;
    let network = builder.finish(vec![h])?;
    let layers = analyze(&network, &Domain::uniform(1, -1.0, 1.0)?, &AnalysisOptions::default())?.layers;
    let unit = &layers[1].units[0];
    assert_eq!((unit.status, unit.by), (Status::OFF, Some(Technique::SPLIT)), "{unit:?}");
    Ok(())
}
/// One weight is -1, and all others are so small that a solver's tolerance swallows them: it takes the unit for always
/// off. With the first input at 0 and the others at 1 it is on.
#[test]
fn a_solver_alone_is_wrong_where_weights_are_below_its_tolerance() -> Anything {
    let mut weights = vec![1e-8; 784];
    weights[0] = -1.0;
    let network = layer(&[weights], vec![-5e-6])?;
    let domain = Domain::uniform(784, 0.0, 1.0)?;
    let verdict = |options: &AnalysisOptions<'_>| -> Result<_, Box<dyn std::error::Error>> {
        let unit = &analyze(&network, &domain, options)?.layers[0].units[0];
        Ok((unit.status, unit.trusted))
    };
    assert_eq!(verdict(&AnalysisOptions::default())?, (Status::Unstable, false));
    if HAS_SOLVER {
        let milp = AnalysisOptions { engine: Engine::Milp, ..AnalysisOptions::default() };
        assert_eq!(verdict(&milp)?, (Status::Undecided, false), "no proof confirms it");
        let trusting = AnalysisOptions { trust_solver: true, ..milp };
        assert_eq!(verdict(&trusting)?, (Status::OFF, true), "and it is wrong");
    }
    Ok(())
}

/// On one thread and on two: the same verdicts, by the same steps, with the same bounds, bit for bit.
#[test]
fn answers_do_not_depend_on_the_number_of_threads() -> Anything {
    let mut random = fastrand::Rng::with_seed(7);
    let mut builder = Network::builder(Shape::new([12])?);
    let (mut value, mut width) = (ValueId::INPUT, 12);
    for depth in 0..3 {
        let weights = (0..20 * width).map(|_| random.f64() - 0.5).collect();
        let biases = (0..20).map(|_| 2.5 * (random.f64() - 0.5)).collect();
        let dense = Dense::new(Matrix::new(20, width, weights)?, Some(biases))?;
        let g = builder.add(format!("fc{depth}"), dense, &[value])?;
        value = builder.add(format!("relu{depth}"), Relu, &[g])?;
        width = 20;
    }
    let network = builder.finish(vec![value])?;
    let domain = Domain::uniform(12, -0.5, 0.5)?;
    let answers = |threads: usize| -> Result<_, Box<dyn std::error::Error>> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
        let options = AnalysisOptions { report_witnesses: true, nodes: Some(50), ..AnalysisOptions::default() };
        let analysis = pool.install(|| analyze(&network, &domain, &options))?;
        Ok(analysis.layers.into_iter().map(|layer| layer.units).collect::<Vec<_>>())
    };
    let alone = answers(1)?;
    let searched = |by| alone.iter().flatten().filter(|unit| unit.by == Some(by)).count();
    assert!(
        !HAS_SOLVER || searched(Technique::SPLIT) + searched(Technique::LP) > 0,
        "there is something to search for"
    );
    assert_eq!(alone, answers(2)?);
    assert_eq!(alone, answers(5)?);
    Ok(())
}

/// Without biases every pre-activation is 0 at 0, which is a corner of [0, 1]: what is stable is so by nothing at all.
#[test]
fn units_that_are_zero_in_a_corner_are_proved_to_be_stable() -> Anything {
    let (mut stable, mut undecided) = (0, 0);
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut builder = Network::builder(Shape::new([6])?);
        let (mut value, mut width) = (ValueId::INPUT, 6);
        for depth in 0..2 {
            let weights = (0..6 * width).map(|_| f64::from(random.f32()) - 0.4).collect();
            let g = builder.add(format!("fc{depth}"), Dense::new(Matrix::new(6, width, weights)?, None)?, &[value])?;
            value = builder.add(format!("relu{depth}"), Relu, &[g])?;
            width = 6;
        }
        let network = builder.finish(vec![value])?;
        let analysis = analyze(&network, &Domain::uniform(6, 0.0, 1.0)?, &AnalysisOptions::default())?;
        for unit in &analysis.layers[1].units {
            stable += usize::from(unit.status.is_stable());
            undecided += usize::from(unit.status == Status::Undecided);
        }
    }
    if HAS_SOLVER {
        assert!(stable > 20 && undecided == 0, "{stable} stable, {undecided} undecided");
    }
    Ok(())
}
