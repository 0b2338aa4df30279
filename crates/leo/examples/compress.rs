//! Makes a network smaller and writes it, with its certificate beside it:
//! `cargo run --example compress -- model.onnx small.onnx 0,1`

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, small, domain] = &arguments[..] else { return Err("usage: compress MODEL SMALL DOMAIN".into()) };

    let smaller = leo::open(model)?.compress(leo::Domain::parse(domain)?)?;
    smaller.save(small)?;

    let (before, after) = (smaller.before(), smaller.after());
    println!("{} -> {} units, {} -> {} bytes", before.units, after.units, before.bytes, after.bytes);
    println!("no output moves by more than {:e}; {:e} was seen", smaller.delta(), smaller.observed());
    for (rule, units) in &smaller.report().removed {
        println!("{units} {rule}");
    }
    Ok(())
}
