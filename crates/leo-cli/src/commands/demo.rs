//! `leo demo`: the main commands, as one would type them, on a network that is part of the program.

use std::ffi::OsString;
use std::fs::create_dir_all;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Parser;
use leo_formats::write_atomically;

use crate::args::{Arguments, Demo};
use crate::terminal::console::{Console, as_argument, bold, in_shell};

/// A network 784-100-100-10 that reads the digits of MNIST, trained with l1 regularisation of 5e-4.
const MODEL: &[u8] = include_bytes!("../../../../models/mnist/100-100-l1-0.0005-seed-0.onnx");

pub fn run(arguments: &Demo, console: &Console) -> Result<()> {
    let folder = &as_argument(&arguments.to);
    create_dir_all(folder)
        .with_context(|| format!("{}: cannot be made; --to names another folder", folder.display()))?;
    let [model, small, certificate, page] =
        ["model.onnx", "small.onnx", "small.leo", "report.html"].map(|name| folder.join(name));
    write_atomically(&model, MODEL)?;
    let out = &mut console.report();
    writeln!(out, "A network that reads handwritten digits, for images with pixels from 0 to 1:")?;
    let compress = [Path::new("compress"), &model, Path::new("-o"), &small, Path::new("--domain"), Path::new("0,1")];
    let report = [Path::new("--report"), &page, Path::new("--force")];
    show(compress.into_iter().chain(report), console)?;
    writeln!(out, "\nIs that true? Proved again, from the two networks and the certificate alone:")?;
    show([Path::new("check"), &model, &small, &certificate], console)?;
    writeln!(
        out,
        "\nEverything is in {}. {} in a browser.",
        bold(folder.display()),
        bold(format!("Open {}", page.display()))
    )?;
    writeln!(out, "\nNext, your own network, with the inputs that it will see:")?;
    writeln!(out, "  leo compress model.onnx --domain 0,1 --report report.html")?;
    writeln!(out, "How to get one from PyTorch, scikit-learn or Keras: docs/guide.md. All commands: leo --help")?;
    Ok(())
}

/// Shows a command, and what it says.
fn show<'a>(words: impl IntoIterator<Item = &'a Path>, console: &Console) -> Result<()> {
    let words: Vec<OsString> =
        [OsString::from("leo")].into_iter().chain(words.into_iter().map(OsString::from)).collect();
    writeln!(console.report(), "\n$ {}", in_shell(&words[1..]))?;
    let arguments = Arguments::try_parse_from(&words).context("a mistake in Leo, please report it")?;
    crate::perform(&arguments.command, &console.during(&words))
}
