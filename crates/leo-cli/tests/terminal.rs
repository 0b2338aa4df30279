//! The program at a terminal, in a pipe and in a script: flags, completions, manual pages, widths, and what goes wrong around a command.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use leo_network::Array;

use support::{Anything, command, leo, model, three_units};

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
