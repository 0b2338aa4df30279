//! Compares two networks, whatever they have to do with each other:
//! `cargo run --example equivalent -- one.onnx other.onnx 0,1`

use std::error::Error;

use leo::EquivalenceVerdict::{Different, Equal, Unknown};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [one, other, domain] = &arguments[..] else { return Err("usage: equivalent ONE OTHER DOMAIN".into()) };
    let found = leo::open(one)?.equivalent(&leo::open(other)?, leo::Domain::parse(domain)?)?;
    match found.verdict {
        Equal => println!("equal: proved to be no more than {:e} apart", found.proved.unwrap_or(0.0)),
        Different => println!("different: {:e} apart at an input", found.seen),
        Unknown => println!("unknown: {:e} seen, {:?} proved", found.seen, found.proved),
    }
    Ok(())
}
