//! Bounds every unit and output of a network, within a few seconds, and writes the bounds for another program, as .npz
//! or as .csv: `cargo run --example analyze -- model.onnx 0,1 bounds.npz`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use leo::{Observer, Step};

/// Says what is going on.
struct Teller;

impl Observer for Teller {
    fn begin(&self, step: Step, parts: usize) {
        eprintln!("{step}: {parts}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, domain, bounds] = &arguments[..] else { return Err("usage: analyze MODEL DOMAIN BOUNDS".into()) };

    let options = leo::Options::new().time_limit(Duration::from_secs(10)).observer(Arc::new(Teller));
    let report = leo::open(model)?.analyze_with(leo::Domain::parse(domain)?, &options)?;
    report.save_bounds(bounds)?;

    let leo::Totals { units, inactive, active, undecided, .. } = report.totals;
    println!("{units} units: {inactive} always off, {active} always on, {undecided} undecided");
    for output in &report.outputs {
        println!("output {}: {:?} to {:?}", output.index, output.lower, output.upper);
    }
    Ok(())
}
