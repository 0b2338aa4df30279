//! The program at a terminal, in a pipe and in a script: flags, completions, manual pages, widths, and what goes wrong around a command.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Anything, leo};

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
