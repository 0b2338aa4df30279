//! Checks the certificate that lies beside a smaller network: `cargo run --example check -- model.onnx small.onnx`

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, small] = &arguments[..] else { return Err("usage: check MODEL SMALL".into()) };
    match leo::check(model, small) {
        Ok(checked) => println!("verified: no output is further apart than {:e}", checked.delta()),
        Err(leo::Error::Refused(why)) => println!("refused: {why}"),
        Err(other) => return Err(other.into()),
    }
    Ok(())
}
