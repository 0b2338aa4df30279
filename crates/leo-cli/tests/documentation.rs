//! The documentation is true: every command on its pages runs and prints what is shown, every option it names exists,
//! its Python runs, and its links lead somewhere.
//!
//! Commands run in a shell, as they stand, in a folder with the files that pages talk about (`documentation/place.rs`),
//! page by page and in order. A command that nobody said how to run ([`plan`]) is an error, so that none can be added
//! without a thought. Python needs LEO_PYTHON, as in `crosscheck.rs`; what uses PyTorch or Keras runs where these are
//! installed.

#![cfg(unix)]

#[path = "documentation/page.rs"]
mod page;
#[path = "documentation/place.rs"]
mod place;
#[path = "documentation/shown.rs"]
mod shown;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leo_compress::Rule;
use leo_formats::Model;
use leo_network::op::Dense;
use page::Piece;
use place::{Place, root};
use support::{Anything, forget_terminal};

/// Modules that a Python environment may lack: they are too large to install for every test run.
const LARGE: [&str; 2] = ["keras", "torch"];

/// Options in the text that are not Leo's.
const OF_OTHERS: [&str; 2] = ["--no-default-features", "--model-check"];

/// All pages, by their paths in the project.
fn pages() -> Anything<Vec<PathBuf>> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/results", "models"] {
        let entries = fs::read_dir(root().join(folder))?.collect::<Result<Vec<_>, _>>()?;
        let files = entries.into_iter().map(|entry| Path::new(folder).join(entry.file_name()));
        pages.extend(files.filter(|path| path.extension().is_some_and(|suffix| suffix == "md")));
    }
    pages.sort();
    Ok(pages)
}

fn text_of(page: &Path) -> Anything<String> {
    Ok(fs::read_to_string(root().join(page))?)
}

/// What to do about a command.
#[derive(Debug, PartialEq)]
enum Plan {
    /// Run it.
    AsItIs,
    /// Run something that takes less time, or nothing from elsewhere.
    Instead(String),
    /// Run nothing, for this reason.
    Not(&'static str),
}

fn plan(command: &str) -> Result<Plan, String> {
    // What comes after a command: a comment, or a file for its output.
    let command = command.split(" #").next().unwrap_or_default().trim();
    let words: Vec<&str> = command.split_whitespace().collect();
    let with = |options: &[(&str, &str)]| {
        let missing = options.iter().filter(|(option, _)| !words.contains(option));
        Plan::Instead(missing.fold(command.to_owned(), |text, (option, value)| format!("{text} {option} {value}")))
    };
    Ok(match words[..] {
        // Somebody else's, and no part of the project: tests/cases.rs has a test for it where it is found.
        ["leo", ..] if words.contains(&"mlperf-tiny-vww.onnx") => Plan::Not("the network is not part of the project"),
        ["leo", "data", ..] => Plan::Not("it fetches MNIST from elsewhere; tests/training.rs has a test for it"),
        ["leo", "train", ..] => with(&[("--epochs", "1")]),
        ["leo", "reproduce", ..] => {
            with(&[("--networks", "1"), ("--widths", "25"), ("--epochs", "1"), ("--out", "try")])
        }
        ["leo", ..] | ["cp", ..] | ["python", ..] => Plan::AsItIs,
        [".venv/bin/python", "models/make_convolutions.py", ..] => {
            Plan::Not("it trains for many minutes, with PyTorch, which the tests do without")
        }
        [".venv/bin/python", ..] => Plan::Instead(command.replacen(".venv/bin/python", "python", 1)),
        ["make", target, ..] => {
            let makefile = fs::read_to_string(root().join("Makefile")).map_err(|error| error.to_string())?;
            let there = makefile.lines().any(|line| line.split(':').next() == Some(target));
            there
                .then_some(Plan::Not("it builds the project"))
                .ok_or_else(|| format!("the Makefile has no {target}"))?
        }
        ["cargo", ..] => Plan::Not("it builds the project"),
        ["onnxslim", from, to] => Plan::Instead(format!("cp {from} {to}")),
        _ => return Err("plan() in tests/documentation.rs does not say how to run this command".to_owned()),
    })
}

fn python() -> Option<String> {
    std::env::var("LEO_PYTHON").ok()
}

fn shell(place: &Place, command: &str) -> Anything<Output> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(place.path("")).envs(place.environment());
    forget_terminal(&mut shell);
    Ok(shell.output()?)
}

fn printed(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command as planned. What went wrong is the answer.
fn run(place: &Place, command: &str, said: Option<&str>, code: i32) -> Result<(), String> {
    let planned = match plan(command)? {
        Plan::Not(reason) => {
            eprintln!("skipped: `{command}`: {reason}");
            return Ok(());
        }
        Plan::Instead(other) => other,
        Plan::AsItIs => command.to_owned(),
    };
    if planned.starts_with("python ") && python().is_none() {
        eprintln!("skipped: `{command}`: LEO_PYTHON names no Python; `make test` makes one");
        return Ok(());
    }
    let output = shell(place, &planned).map_err(|error| error.to_string())?;
    let printed = printed(&output);
    if output.status.code() != Some(code) {
        return Err(format!("exit code {:?}, not {code}\n{printed}", output.status.code()));
    }
    let Some(said) = said else { return Ok(()) };
    if !place.mnist && ["normalised.npy", "t10k"].iter().any(|name| command.contains(name)) {
        eprintln!("skipped: what `{command}` prints, because there is no MNIST here");
        return Ok(());
    }
    shown::compare(said, &printed).map_err(|why| format!("{why}\nit prints:\n{printed}"))
}

/// Runs a block of Python, if its modules are there.
fn run_python(place: &Place, code: &str) -> Result<(), String> {
    let Some(python) = python() else {
        eprintln!("skipped: Python, because LEO_PYTHON names none; `make test` makes one");
        return Ok(());
    };
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&python);
        command.args(arguments).current_dir(place.path("")).envs(place.environment());
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() { Ok(()) } else { Err(printed(&output)) }
    };
    fs::write(place.path("block.py"), code).map_err(|error| error.to_string())?;
    run(&["-m", "py_compile", "block.py"])?;
    let imports = code.lines().filter_map(|line| line.strip_prefix("import ").or_else(|| line.strip_prefix("from ")));
    let modules: BTreeSet<&str> = imports.filter_map(|rest| rest.split([' ', '.', ',']).next()).collect();
    for module in modules {
        let there =
            run(&["-c", &format!("import importlib.util as u, sys; sys.exit(u.find_spec('{module}') is None)")]);
        if LARGE.contains(&module) && there.is_err() {
            eprintln!("skipped: Python that needs {module}, which is not installed");
            return Ok(());
        }
        there.map_err(|_| format!("there is no module {module} in {python}"))?;
    }
    run(&["block.py"])
}

/// What goes wrong on a page.
fn failures(page: &Path) -> Anything<Vec<String>> {
    let pieces = page::pieces(&text_of(page)?)?;
    if pieces.is_empty() {
        return Ok(Vec::new());
    }
    let place = Place::new()?;
    let mut failures = Vec::new();
    for piece in &pieces {
        let (line, what, answer) = match piece {
            Piece::Command { line, text, shown, code } => (line, &**text, run(&place, text, shown.as_deref(), *code)),
            Piece::Python { line, code } => (line, "Python", run_python(&place, code)),
        };
        failures.extend(answer.err().map(|why| format!("{}:{line}: {what}\n{why}", page.display())));
    }
    Ok(failures)
}

#[test]
fn documented_commands_run_and_print_what_is_shown() -> Anything {
    let pages = pages()?;
    let failures = std::thread::scope(|scope| {
        let failures =
            |page: &Path| failures(page).unwrap_or_else(|error| vec![format!("{}: {error}", page.display())]);
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(move || failures(page))).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    Ok(())
}

#[test]
fn unknown_commands_are_not_passed_over() {
    assert!(plan("rm -r folder").is_err() && plan("make nothing").is_err());
    assert_eq!(plan("leo inspect model.onnx  # what is in it"), Ok(Plan::AsItIs));
    assert_eq!(plan("leo train --epochs 3 -o a  # b"), Ok(Plan::Instead("leo train --epochs 3 -o a".to_owned())));
    assert!(page::pieces("    $ rm -r folder\n").is_ok_and(|pieces| pieces.len() == 1));
}

#[test]
fn documented_options_exist() -> Anything {
    let help = |arguments: &[&str]| support::leo(Path::new("."), &[arguments, &["--help"]].concat());
    let words = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let split = text.split(|c: char| c.is_whitespace() || "`,[]<>=/|".contains(c));
        split.map(str::to_owned).collect::<BTreeSet<String>>()
    };
    let all = String::from_utf8(help(&[]).stdout)?;
    let commands =
        all.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).ok_or("a list of commands")?;
    let commands: BTreeSet<&str> =
        commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let commands: BTreeSet<&str> = commands.into_iter().filter(|name| !name.is_empty() && *name != "help").collect();
    let calls = commands.iter().map(std::slice::from_ref).chain([&[][..]]);
    let known: BTreeSet<String> = calls.flat_map(|name| words(&help(name))).collect();
    let mut failures = Vec::new();
    // What was measured, and what has changed, may name options that are gone.
    for page in
        pages()?.iter().filter(|page| !["PERFORMANCE.md", "CHANGELOG.md"].iter().any(|name| page.ends_with(name)))
    {
        let code = page::inline_code(&text_of(page)?);
        for code in code.iter().filter(|code| code.starts_with("leo ") || code.starts_with("--")) {
            let mut parts = code.split(' ');
            let options = code.split([' ', '=', '`']).filter(|word| word.starts_with("--") && word.len() > 2);
            let of =
                (parts.next() == Some("leo")).then(|| parts.next()).flatten().filter(|name| !name.starts_with('-'));
            let words = match of {
                Some(name) if !commands.contains(name) => {
                    failures.push(format!("{}: `{code}`: there is no command {name}", page.display()));
                    continue;
                }
                Some(name) => words(&help(&[name])),
                None => known.clone(),
            };
            let missing =
                options.filter(|option| !words.contains(*option) && !OF_OTHERS.contains(option) && *option != "--help");
            failures.extend(missing.map(|option| format!("{}: `{code}`: there is no option {option}", page.display())));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// The weights that docs/maths.md finds by hand.
#[test]
fn three_units_come_out_as_worked_out_by_hand() -> Anything {
    let folder = tempfile::tempdir()?;
    let shift = 1.0 / 2048.0;
    let removed: [&[f64]; 4] = [&[1.0, 2.0], &[1.0, -1.0], &[1.0, 1.0], &[0.0]];
    let merged: [&[f64]; 4] = [&[1.0, 2.0], &[1.0, -1.0], &[4.0, 1.0], &[-1.0]];
    let carried: [&[f64]; 4] = [&[1.0, -1.0, 1.0, 1.0], &[0.0, shift], &[1.0, 1.0], &[2.0 - shift]];
    let cases = [("three-units", "full", removed), ("three-units-merge", "leo", merged)];
    for (name, method, expected) in cases.into_iter().chain([("three-units-carrier", "full", carried)]) {
        let model = support::models().join(format!("{name}.onnx"));
        let (model, small) = (model.to_string_lossy(), format!("{name}.onnx"));
        let output =
            support::leo(folder.path(), &["compress", &model, "-o", &small, "--domain", "0,1", "--method", method]);
        assert!(output.status.success(), "{}", printed(&output));
        let small = Model::load(&folder.path().join(small))?;
        let numbers = |dense: &Dense| [dense.weight().values().to_vec(), dense.bias().unwrap_or_default().to_vec()];
        let dense = small.network().nodes().iter().filter_map(|node| node.op().as_dense().map(numbers));
        assert_eq!(dense.flatten().collect::<Vec<_>>(), expected, "{name}");
    }
    Ok(())
}

/// What is between two headings of a page, by the second one's name.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("\n### ").skip(1).filter_map(|section| section.split_once('\n'))
}

#[test]
fn every_rule_is_explained_with_an_example() -> Anything {
    let page = text_of(Path::new("docs/removal.md"))?;
    let rules = page.split("\n## ").find(|part| part.starts_with("Rules\n")).ok_or("a section about rules")?;
    let explained: Vec<&str> = sections(rules).map(|(name, _)| name).collect();
    assert_eq!(explained, Rule::ALL.map(Rule::name));
    for (name, section) in sections(rules) {
        let example: Vec<&str> = section.lines().filter(|line| line.starts_with("    ")).collect();
        assert!(
            matches!(example[..], [before, after] if before.starts_with("    before: ") && after.starts_with("    after:  ")),
            "{name}: {example:?}"
        );
    }
    Ok(())
}

#[test]
fn links_lead_somewhere() -> Anything {
    let mut failures = Vec::new();
    for page in pages()? {
        let text = text_of(&page)?;
        for link in page::links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = root().join(&page).parent().unwrap_or(Path::new("")).join(file);
            let target = if file.is_empty() { root().join(&page) } else { target };
            let found = match anchor {
                "" => target.exists(),
                _ => fs::read_to_string(&target).is_ok_and(|text| page::anchors(&text).contains(&anchor.to_owned())),
            };
            if !found {
                failures.push(format!("{}: nothing is at {link}", page.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}
