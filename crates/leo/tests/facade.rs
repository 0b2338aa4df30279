//! The front door: what comes out is proved, can be kept, and can be stopped; and the examples run.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use leo::{Array, ArrayFile, Domain, EquivalenceVerdict, Observer, Options, Step, Tolerance};

type Anything<T = ()> = Result<T, Box<dyn Error>>;

/// A network that ships with Leo.
fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

const SMALL: &str = "mnist/25-25-l1-0.001-seed-0.onnx";

#[test]
fn what_is_saved_is_verified_by_whoever_reads_it() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("small.onnx");
    let small = leo::open(model(SMALL))?.compress(Domain::uniform(0.0, 1.0))?;
    assert!(small.is_changed() && small.units() < small.before().units());
    small.save(&path)?;
    let checked = leo::check(model(SMALL), &path)?;
    assert_eq!(checked.delta(), small.delta());
    assert!(small.observed() <= small.delta());
    let report = small.report();
    assert_eq!(report.removed.values().sum::<usize>(), small.before().units() - small.units() + report.carriers);

    // Twice is once, and the two networks are as far apart as was said.
    let again = leo::open(&path)?.compress(Domain::uniform(0.0, 1.0))?;
    assert_eq!((again.is_changed(), again.delta()), (false, 0.0));
    let found = leo::open(model(SMALL))?.equivalent(&leo::open(&path)?, Domain::uniform(0.0, 1.0))?;
    assert_eq!(found.verdict, EquivalenceVerdict::Equal);

    // Another network's certificate proves nothing.
    let other = leo::check(model("mnist/25-25-l1-0.0002-seed-0.onnx"), &path);
    assert!(matches!(other, Err(leo::Error::Refused(_))), "{other:?}");
    Ok(())
}

#[test]
fn the_network_that_was_read_is_never_written_over() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("model.onnx");
    std::fs::copy(model(SMALL), &path)?;
    let small =
        leo::open(&path)?.compress_with(Domain::uniform(0.0, 1.0), &Options::new().tolerance(Tolerance::Zero))?;
    let error = small.save(&path).expect_err("the file that was read");
    assert!(error.to_string().ends_with("is the network that was read; give another name"), "{error}");
    small.save(folder.path().join("small.onnx"))?;
    small.save(folder.path().join("small.onnx"))?;
    Ok(())
}

/// Counts what it is told, and stops after a while.
#[derive(Default)]
struct Impatient {
    steps: AtomicUsize,
    kept: AtomicUsize,
    patience: Option<usize>,
}

impl Observer for Impatient {
    fn begin(&self, _: Step, _: usize) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.patience.is_some_and(|patience| self.steps.load(Ordering::Relaxed) > patience)
    }

    fn keeps(&self) -> bool {
        true
    }

    fn keep(&self, checkpoint: &[u8]) {
        assert!(checkpoint.starts_with(b"{"));
        self.kept.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn an_observer_hears_stops_and_keeps() -> Anything {
    let patient = Arc::new(Impatient::default());
    let options = Options::new().observer(Arc::clone(&patient) as _);
    let file = leo::open(model(SMALL))?;
    file.compress_with(Domain::uniform(0.0, 1.0), &options)?;
    assert!(patient.steps.load(Ordering::Relaxed) > 3);
    assert_eq!(patient.kept.load(Ordering::Relaxed), 1, "later rounds are about other networks");

    let impatient = Arc::new(Impatient { patience: Some(0), ..Impatient::default() });
    let options = Options::new().observer(Arc::clone(&impatient) as _);
    let stopped = file.compress_with(Domain::uniform(0.0, 1.0), &options);
    assert!(matches!(stopped, Err(leo::Error::Interrupted)), "{stopped:?}");
    let report = file.analyze_with(Domain::uniform(0.0, 1.0), &options)?;
    assert!(report.is_interrupted && report.stopped == Some("interrupted"));
    Ok(())
}

#[test]
fn results_outlive_what_they_came_from_and_go_to_other_threads() -> Anything {
    let small = {
        let file = leo::open(model(SMALL))?;
        file.compress(Domain::uniform(0.0, 1.0))?
    };
    let samples = Array::new(vec![2, 784], vec![0.5_f32; 2 * 784])?;
    let outputs = thread::spawn(move || small.run(&samples).map(|outputs| outputs.shape().to_vec())).join();
    assert_eq!(outputs.map_err(|_| "the thread failed")??, [2, 10]);
    Ok(())
}

#[test]
fn domains_are_what_people_say() -> Anything {
    let folder = tempfile::tempdir()?;
    let file = leo::open(model("three-units.onnx"))?;
    let inputs = file.network().input().elements();
    let hull = |domain: Domain| file.domain(domain).map(|domain| [domain.hull().lo()[0], domain.hull().hi()[0]]);
    assert_eq!(hull(Domain::parse("[-1, 2]")?)?, [-1.0, 2.0]);
    assert_eq!(hull(Domain::uniform(0.0, 1.0).widened(1.0))?, [-1.0, 2.0]);
    let bound = |value: f64| Array::new(vec![inputs], vec![value; inputs]);
    assert_eq!(hull(Domain::between(bound(0.0)?, bound(3.0)?))?, [0.0, 3.0]);
    for (name, value) in [("lo", 0.25), ("hi", 0.5)] {
        bound(value)?.save(&folder.path().join(name).with_extension("npy"))?;
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(hull(Domain::parse(format!("{},{}", path("lo.npy"), path("hi.npy")))?)?, [0.25, 0.5]);
    for (wrong, why) in
        [("1,0", "above the upper"), ("0,inf", "finite"), ("0,1,2", "should be"), ("none.vnnlib", "cannot be read")]
    {
        let error = Domain::parse(wrong).expect_err(wrong).to_string();
        assert!(error.contains(why), "{wrong:?}: {error}");
    }
    assert!(file.domain(Domain::own()).is_err(), "ONNX files say nothing of it");
    Ok(())
}

#[test]
fn what_makes_no_sense_is_refused() -> Anything {
    let file = leo::open(model("three-units.onnx"))?;
    let inputs = file.network().input().elements();
    let samples = || Array::new(vec![2, inputs], vec![0.5; 2 * inputs]);
    let refusal = |options: Options| {
        let refused = file.compress_with((0.0, 1.0), &options).map(|small| small.units());
        refused.expect_err("must be refused").to_string()
    };
    let mut cases = vec![
        (Options::new().tolerance(Tolerance::Absolute(f64::NAN)), "a tolerance of NaN"),
        (Options::new().tolerance(Tolerance::Relative(-1.0)), "a tolerance of -1"),
        (Options::new().allow_noise(0.5), "1 or a number above 1"),
        (Options::new().labels(vec![1.0]), "there are labels, and no samples"),
        (Options::new().samples(samples()?).labels(vec![1.0]), "1 label for 2 samples"),
        (Options::new().samples(samples()?).labels(vec![1.0, 0.5]), "labels are whole numbers"),
        (Options::new().samples(Array::new(vec![1], vec![f64::NAN])?), "sample"),
        (Options::new().resume(PathBuf::from("none.search")).engine(leo::Engine::Tighten), "gone on with"),
    ];
    if !leo::HAS_SOLVER {
        cases.push((Options::new().engine(leo::Engine::Milp), "HiGHS"));
    }
    for (options, why) in cases {
        let said = refusal(options);
        assert!(said.contains(why) && !said.contains('\n'), "{why}: {said}");
    }
    let small = file.compress((0.0, 1.0))?;
    assert!(small.save("small.txt").is_err_and(|error| error.to_string().contains("should end in .onnx")));
    assert!(file.analyze((0.0, 1.0))?.save_bounds("bounds.txt").is_err());
    Ok(())
}

/// Runs an example as it was built beside this test.
fn example(name: &str, arguments: &[&Path]) -> Anything<String> {
    let built = std::env::current_exe()?;
    let folder = built.ancestors().nth(2).ok_or("tests are built two folders down")?.join("examples");
    let output = Command::new(folder.join(name)).args(arguments).output()?;
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn the_examples_run() -> Anything {
    let folder = tempfile::tempdir()?;
    let (first, small, bounds) = (model(SMALL), folder.path().join("small.onnx"), folder.path().join("bounds.csv"));
    let domain = Path::new("0,1");
    assert!(example("compress", &[&first, &small, domain])?.starts_with("50 -> "));
    assert!(example("check", &[&first, &small])?.starts_with("verified: "));
    assert!(example("equivalent", &[&first, &small, domain])?.starts_with("equal: "));
    assert!(example("analyze", &[&first, domain, &bounds])?.starts_with("50 units: "));
    assert!(std::fs::read_to_string(bounds)?.starts_with("kind,index,name,value,element,lower,upper,status\n"));
    Ok(())
}
