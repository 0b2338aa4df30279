//! The program at a terminal, in a pipe and in a script: flags, completions, manual pages, widths, and what goes wrong
//! around a command.

mod support;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use leo_formats::ArrayFile;
use leo_network::Array;

use support::{Anything, command, leo, model, models, three_units};

/// Every command there is, as `leo --help` lists them.
fn commands() -> Anything<Vec<String>> {
    let help = String::from_utf8(leo(Path::new("."), &["--help"]).stdout)?;
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // What is further to the right goes on with the line above.
    let lines = list.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' '));
    let names = lines.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.len() > 10, "{names:?}");
    Ok(names)
}

#[test]
fn completions_name_every_command() -> Anything {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = leo(Path::new("."), &["completions", shell, "--quiet"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {output:?}");
        let script = String::from_utf8(output.stdout)?;
        for name in commands()? {
            assert!(script.contains(&name), "{shell}: {name}");
        }
        if shell == "bash" {
            let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
            bash.stdin.take().ok_or("a pipe")?.write_all(script.as_bytes())?;
            let complaint = bash.wait_with_output()?;
            assert!(complaint.status.success() && complaint.stderr.is_empty(), "{complaint:?}");
        }
    }
    assert_eq!(leo(Path::new("."), &["completions", "tcsh"]).status.code(), Some(2));
    Ok(())
}

#[test]
fn every_command_has_a_manual_page() -> Anything {
    let folder = tempfile::tempdir()?;
    let output = leo(folder.path(), &["man", "--to", "share/man1"]);
    assert!(output.status.success(), "{output:?}");
    let page = |name: &str| std::fs::read_to_string(folder.path().join("share/man1").join(name));
    for name in commands()? {
        let page = page(&format!("leo-{name}.1"))?;
        assert!(page.contains(".TH") && page.contains("SYNOPSIS"), "{name}");
    }
    let printed = leo(folder.path(), &["man"]);
    assert_eq!(String::from_utf8(printed.stdout)?, page("leo.1")?);
    Ok(())
}

#[test]
fn quiet_and_verbose_exclude_each_other() -> Anything {
    for arguments in [["check", "a", "b", "-q", "-v"], ["-q", "check", "-v", "a", "b"]] {
        let output = leo(Path::new("."), &arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8(output.stderr)?.contains("'--quiet' cannot be used with '--verbose'"));
    }
    Ok(())
}

/// Waits until something is so, for a while.
fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    (0..20_000).any(|_| {
        let now = is_so();
        if !now {
            sleep(Duration::from_millis(1));
        }
        now
    })
}

/// The names in a folder that begin as temporary files do.
fn leftovers(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
    names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".leo-"))
        .collect()
}

#[cfg(unix)]
fn interrupt(child: &Child) -> Anything {
    Ok(Command::new("kill").args(["-INT", &child.id().to_string()]).status().map(drop)?)
}

/// The network takes long enough in exact arithmetic.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_check_with_one_line() -> Anything {
    let folder = tempfile::tempdir()?;
    let network = model("100-100-100-100-100-l1-0.0002");
    assert!(leo(folder.path(), &["compress", &network, "-o", "small.onnx", "--domain", "0,1"]).status.success());
    let mut check = command(folder.path(), &["check", &network, "small.onnx", "--exact"]);
    let child = check.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    sleep(Duration::from_millis(500));
    interrupt(&child)?;
    let output = child.wait_with_output()?;
    assert_eq!((output.status.code(), String::from_utf8(output.stderr)?.as_str()), (Some(130), "leo: stopped\n"));
    assert!(output.stdout.is_empty());
    Ok(())
}

/// Whenever Ctrl-C comes while a file is written, the file is whole or not there, and nothing else is.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_no_half_files() -> Anything {
    let folder = three_units()?;
    let count = 1 << 22;
    Array::new(vec![count, 1], vec![0.5_f32; count])?.save(&folder.path().join("x.npy"))?;
    let mut run = command(folder.path(), &["run", "three.nnet", "-i", "x.npy", "-o", "y.npy"]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let begins = wait_until(|| !leftovers(folder.path()).is_empty() || child.try_wait().is_ok_and(|end| end.is_some()));
    assert!(begins, "nothing was ever written");
    interrupt(&child)?;
    let output = child.wait_with_output()?;
    let (code, complaint) = (output.status.code(), String::from_utf8(output.stderr)?);
    assert_eq!(leftovers(folder.path()), [""; 0], "{code:?} {complaint}");
    match code {
        // It was through before the signal came.
        Some(0) => assert_eq!(Array::load(&folder.path().join("y.npy"))?.len(), count),
        code => assert_eq!((code, complaint.as_str()), (Some(130), "leo: stopped\n")),
    }
    Ok(())
}

/// Calls whose output has tables, or might have.
fn calls<'a>(network: &'a str, small: &'a str) -> Vec<Vec<&'a str>> {
    vec![
        vec!["inspect", network, "--domain", "0,1"],
        vec!["analyze", network, "--domain", "0,1"],
        vec!["compress", network, "-o", "narrow.onnx", "--domain", "0,1"],
        vec!["check", network, small, "-v"],
        vec!["equiv", network, small, "--domain", "0,1"],
    ]
}

/// The words in tables, but for times.
fn words(text: &str) -> BTreeSet<&str> {
    let cells = text.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('|'));
    cells.flat_map(str::split_whitespace).filter(|word| !word.contains('.') && !word.starts_with('-')).collect()
}

#[test]
fn tables_fit_the_terminal() -> Anything {
    for width in [40, 60, 80] {
        for network in [model("100-100-100-100-100-l1-0.0002"), models().join("digits.onnx").to_string_lossy().into()] {
            let folder = tempfile::tempdir()?;
            let compress = ["compress", &network, "-o", "small.onnx", "--domain", "0,1"];
            assert!(leo(folder.path(), &compress).status.success());
            for arguments in calls(&network, "small.onnx") {
                let printed = |width: usize| {
                    let arguments =
                        [arguments.as_slice(), &["--force"][..usize::from(arguments[0] == "compress")]].concat();
                    let output = command(folder.path(), &arguments).env("COLUMNS", width.to_string()).output()?;
                    assert!(output.status.success(), "{output:?}");
                    Ok::<_, Box<dyn std::error::Error>>(String::from_utf8(output.stdout)?)
                };
                let (text, wide) = (printed(width)?, printed(100)?);
                let broken: Vec<&str> = words(&wide).into_iter().filter(|word| !text.contains(word)).collect();
                assert!(broken.is_empty(), "{arguments:?}, {width} columns, {broken:?}:\n{text}");
                for line in text.lines().filter(|line| line.starts_with('|')) {
                    assert!(line.chars().count() <= width, "{arguments:?}, {width} columns:\n{text}");
                }
            }
        }
    }
    Ok(())
}

/// What a command writes to a terminal of 40 columns, if there is a program to play one.
#[cfg(target_os = "linux")]
fn on_terminal(folder: &Path, arguments: &str, no_color: &str) -> Anything<Option<String>> {
    let leo = assert_cmd::cargo::cargo_bin!("leo");
    let line = format!("stty rows 24 cols 40; exec '{}' {arguments}", leo.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(folder).stdin(Stdio::null());
    script.env("NO_COLOR", no_color).env("TERM", "xterm").env_remove("COLUMNS");
    let Ok(output) = script.output() else {
        eprintln!("skipped a test: there is no script(1) to play a terminal");
        return Ok(None);
    };
    Ok(Some(String::from_utf8(output.stdout)?))
}

#[cfg(target_os = "linux")]
#[test]
fn colours_and_width_are_the_terminals() -> Anything {
    let folder = tempfile::tempdir()?;
    let digits = models().join("digits.onnx");
    std::fs::copy(digits, folder.path().join("digits.onnx"))?;
    let arguments = "inspect digits.onnx";
    let Some(text) = on_terminal(folder.path(), arguments, "")? else { return Ok(()) };
    assert!(text.contains("\u{1b}[1m48 ReLU units\u{1b}[0m"), "{text}");
    assert!(
        text.lines().filter(|line| line.starts_with('|')).all(|line| line.trim_end().chars().count() <= 40),
        "{text}"
    );
    let Some(text) = on_terminal(folder.path(), "inspect missing.onnx", "")? else { return Ok(()) };
    assert!(text.contains("\u{1b}[31mleo:\u{1b}[0m missing.onnx: "), "{text:?}");
    let Some(text) = on_terminal(folder.path(), arguments, "1")? else { return Ok(()) };
    assert!(!text.contains('\u{1b}') && text.contains("48 ReLU units"), "{text:?}");
    // In a pipe there are no colours either.
    assert!(!String::from_utf8(leo(folder.path(), &["inspect", "digits.onnx"]).stdout)?.contains('\u{1b}'));
    Ok(())
}

/// Bars come after half a second, fit, and are gone in the end; with --quiet there are none.
#[cfg(target_os = "linux")]
#[test]
fn progress_is_shown_to_who_waits() -> Anything {
    let folder = tempfile::tempdir()?;
    std::fs::copy(model("100-100-l1-0"), folder.path().join("big.onnx"))?;
    let compress = ["compress", "big.onnx", "-o", "small.onnx", "--domain", "0,1"];
    assert!(leo(folder.path(), &compress).status.success());
    let start = Instant::now();
    let Some(text) = on_terminal(folder.path(), "check big.onnx small.onnx --exact", "1")? else { return Ok(()) };
    if start.elapsed() < Duration::from_secs(1) {
        eprintln!("skipped a test: the check is through before there is anything to show");
        return Ok(());
    }
    assert!(text.contains("layers 2/2, bounds") && text.contains(" left"), "{text:?}");
    // Every line is cleared before the next one: carriage return, and erase to the end.
    let end = text.rsplit("\u{1b}[2K").next().unwrap_or_default();
    assert!(!end.contains("bounds") && end.contains("verified"), "{end:?}");
    let output = leo(folder.path(), &["check", "big.onnx", "small.onnx"]);
    assert!(output.stderr.is_empty(), "{output:?}");
    let Some(text) = on_terminal(folder.path(), "check big.onnx small.onnx --exact --quiet", "1")? else {
        return Ok(());
    };
    assert_eq!(text.trim(), "");
    Ok(())
}

#[test]
fn bad_flags_come_with_a_hint() -> Anything {
    for (arguments, hint) in [
        (&["chek", "a", "b"][..], "a similar subcommand exists: 'check'"),
        (&["inspect", "a.onnx", "--dommain", "0,1"], "a similar argument exists: '--domain'"),
        (&["analyze", "a.onnx", "--engine", "mlp"], "a similar value exists: 'milp'"),
        (&["check", "a.onnx"], "<SMALL>"),
        (&["equiv", "a.onnx", "b.onnx", "--tolerance", "-1"], "should be 0 or a number above 0"),
    ] {
        let output = leo(Path::new("."), arguments);
        let said = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(hint) && said.contains("--help"), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty() && !said.contains('\u{1b}'), "{arguments:?}");
    }
    Ok(())
}

#[test]
fn quiet_says_nothing_but_what_is_asked_for() -> Anything {
    let folder = three_units()?;
    let network = "three.nnet";
    for arguments in [
        &["inspect", network][..],
        &["analyze", network],
        &["compress", network, "-o", "small.onnx"],
        &["check", network, "small.onnx"],
        &["equiv", network, "small.onnx"],
        &["convert", network, "-o", "three.onnx"],
    ] {
        let output = leo(folder.path(), &[&["-q"], arguments].concat());
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    let json = leo(folder.path(), &["check", network, "small.onnx", "--json", "-q"]);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&json.stdout)?["verified"], true);
    let verbose = String::from_utf8(leo(folder.path(), &["check", network, "small.onnx", "-v"]).stdout)?;
    assert!(verbose.contains("output 0: within 0, proved to be within 0"), "{verbose}");
    Ok(())
}
