//! Files, disks and pipes as they are out there: names of all kinds, folders that cannot be written, disks that are
//! full, readers that leave.

#![cfg(unix)]

mod support;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use leo_check::HashedModel;
use leo_formats::ArrayFile;
use leo_formats::Model;
use leo_formats::onnx::proto::{ModelProto, StringStringEntryProto};
use leo_network::Array;
use prost::Message;

use support::{Anything, command, leo, models, three_units};

/// What is said, on one line, by a command that cannot do what it should.
fn complaint(output: &Output) -> Anything<String> {
    let said = String::from_utf8(output.stderr.clone())?;
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.starts_with("leo: "), "{said}");
    Ok(said)
}

/// Names with spaces, quotes, letters of all kinds, commas, and bytes that are no letters at all.
#[test]
fn every_name_will_do() -> Anything {
    let strange = OsString::from_vec(b"n\xffame".to_vec());
    for stem in [OsStr::new("a b"), OsStr::new("it's \"it\""), OsStr::new("größe, 大小"), OsStr::new("-x"), &strange]
    {
        let folder = three_units()?;
        let named = |suffix: &str| {
            let mut name = OsString::from("./");
            name.push(stem);
            name.push(suffix);
            name
        };
        let leo = |arguments: &[&OsStr]| -> Anything<String> {
            let output = command(folder.path(), &[]).args(arguments).output()?;
            let said = String::from_utf8(output.stderr)?;
            assert!(output.status.success() && said.is_empty(), "{arguments:?}: {said}");
            Ok(String::from_utf8(output.stdout)?)
        };
        let [network, onnx, small, domain] = [".nnet", ".onnx", "-small.onnx", ".box.nnet"].map(named);
        let [samples, outputs, proof] = [".npy", ".out.npy", ".proof"].map(named);
        std::fs::rename(folder.path().join("three.nnet"), folder.path().join(&network))?;
        std::fs::copy(folder.path().join(&network), folder.path().join(&domain))?;
        Array::new(vec![2, 1], vec![0.5_f64, 1.0])?.save(&folder.path().join(&samples))?;
        let of = OsStr::new;
        let shown = network.to_string_lossy().into_owned();
        assert!(leo(&[of("inspect"), &network])?.contains(&shown));
        leo(&[of("convert"), &network, of("-o"), &onnx])?;
        leo(&[of("compress"), &onnx, of("-o"), &small, of("--domain"), &domain, of("--certificate"), &proof])?;
        assert!(leo(&[of("check"), &onnx, &small, &proof])?.contains("verified"));
        assert!(leo(&[of("analyze"), &network])?.contains(&shown));
        assert!(
            leo(&[of("equiv"), &onnx, &small, of("--domain"), of("0,1"), of("--data"), &samples])?.contains("equal")
        );
        leo(&[of("run"), &network, of("-i"), &samples, of("-o"), &outputs])?;
        let json: serde_json::Value = serde_json::from_str(&leo(&[of("inspect"), &network, of("--json")])?)?;
        assert_eq!(json["file"], shown);
        // What cannot be read is named.
        let missing = named(".missing.onnx");
        let output = command(folder.path(), &["inspect"]).arg(&missing).output()?;
        assert!(complaint(&output)?.contains(&*missing.to_string_lossy()));
    }
    Ok(())
}

#[test]
fn what_cannot_be_written_is_named() -> Anything {
    let folder = three_units()?;
    std::fs::write(folder.path().join("file"), "")?;
    let name = "a".repeat(300) + ".onnx";
    for path in ["file/small.onnx", "nowhere/small.onnx", "/proc/small.onnx", &name] {
        let said = complaint(&leo(folder.path(), &["convert", "three.nnet", "-o", path]))?;
        assert!(said.contains(&format!("{path}: cannot be written: ")), "{said}");
    }
    let said = complaint(&leo(folder.path(), &["man", "--to", "file/man"]))?;
    assert!(said.contains("file/man: cannot be made"), "{said}");
    Ok(())
}

/// Runs a script in a folder with a file system of its own, if that can be had here: even root cannot write where
/// nothing can be written.
fn mounted(folder: &Path, options: &str, script: &str) -> Anything<Option<Output>> {
    std::fs::create_dir_all(folder.join("disk"))?;
    let mount = format!("mount -t tmpfs -o {options} none disk || exit 77\n");
    let mut shell = Command::new("unshare");
    shell.args(["-rm", "sh", "-c", &(mount + script)]).current_dir(folder);
    let output = shell.env("LEO", assert_cmd::cargo::cargo_bin!("leo")).output();
    let output = output.ok().filter(|output| output.status.code() != Some(77) && output.status.code() != Some(1));
    if output.is_none() {
        eprintln!("skipped a test: no file system can be mounted here");
    }
    Ok(output)
}

#[test]
fn a_full_disk_gets_no_half_file() -> Anything {
    let folder = three_units()?;
    let count = 1 << 16;
    Array::new(vec![count, 1], vec![0.5_f32; count])?.save(&folder.path().join("x.npy"))?;
    let script = "\"$LEO\" run three.nnet -i x.npy -o disk/y.npy; code=$?; ls -A disk; exit $code";
    let Some(output) = mounted(folder.path(), "size=64k", script)? else { return Ok(()) };
    let said = complaint(&output)?;
    assert!(said.contains("disk/y.npy: cannot be written: ") && said.contains("No space"), "{said}");
    assert!(output.stdout.is_empty(), "left: {}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

#[test]
fn a_folder_for_reading_only_is_no_place_to_write() -> Anything {
    let folder = three_units()?;
    let script = "exec \"$LEO\" convert three.nnet -o disk/small.onnx";
    let Some(output) = mounted(folder.path(), "ro", script)? else { return Ok(()) };
    let said = complaint(&output)?;
    assert!(said.contains("disk/small.onnx: cannot be written: "), "{said}");
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_that_is_full_is_an_error() -> Anything {
    let folder = three_units()?;
    Array::new(vec![1, 1], vec![0.5_f32])?.save(&folder.path().join("x.npy"))?;
    for arguments in [
        &["inspect", "three.nnet"][..],
        &["inspect", "three.nnet", "--json"],
        &["run", "three.nnet", "-i", "x.npy"],
        &["completions", "bash"],
        &["man"],
    ] {
        let full = File::options().write(true).open("/dev/full")?;
        let said = complaint(&command(folder.path(), arguments).stdout(full).output()?)?;
        assert!(said.contains("standard output cannot be written: No space left"), "{arguments:?}: {said}");
    }
    let full = File::options().write(true).open("/dev/full")?;
    assert_eq!(command(folder.path(), &["--help"]).stdout(full).output()?.status.code(), Some(2));
    // Nobody hears of the error, but the exit code.
    let full = File::options().write(true).open("/dev/full")?;
    let status = command(folder.path(), &["inspect", "missing.onnx"]).stderr(full).status()?;
    assert_eq!(status.code(), Some(2));
    // With --quiet there is nothing to be written.
    let full = File::options().write(true).open("/dev/full")?;
    assert!(command(folder.path(), &["inspect", "three.nnet", "--quiet"]).stdout(full).status()?.success());
    Ok(())
}

/// A reader that has seen enough is no error, and the exit code is the answer.
#[test]
fn a_reader_may_leave() -> Anything {
    let folder = three_units()?;
    let count = 100_000;
    Array::new(vec![count, 1], vec![0.5_f32; count])?.save(&folder.path().join("x.npy"))?;
    let digits = models().join("digits.onnx").to_string_lossy().into_owned();
    for (arguments, code) in [
        (&["inspect", &digits][..], 0),
        (&["inspect", &digits, "--json"], 0),
        (&["run", "three.nnet", "-i", "x.npy"], 0),
        (&["--help"], 0),
        (&["analyze", "three.nnet", "--time-limit", "0"], 1),
    ] {
        let mut child = command(folder.path(), arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        let output = child.wait_with_output()?;
        let said = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(code == 1 || said.is_empty(), "{arguments:?}: {said}");
    }
    Ok(())
}

#[test]
fn no_terminal_is_no_problem() -> Anything {
    let folder = three_units()?;
    let leo = assert_cmd::cargo::cargo_bin!("leo");
    for script in ["inspect three.nnet <&- >&- 2>&-", "compress three.nnet -o small.onnx --domain 0,1 <&- >&- 2>&-"] {
        let line = format!("exec '{}' {script}", leo.display());
        assert!(Command::new("sh").args(["-c", &line]).current_dir(folder.path()).status()?.success(), "{script}");
    }
    // Files that are opened in place of what was closed stay what they are.
    assert!(Model::load(&folder.path().join("small.onnx")).is_ok());
    Ok(())
}

/// A network may go to standard output, alone.
#[test]
fn networks_go_to_standard_output_alone() -> Anything {
    let folder = three_units()?;
    for arguments in [
        &["convert", "three.nnet", "-o", "/dev/stdout"][..],
        &["compress", "three.nnet", "-o", "/dev/stdout", "--domain", "0,1"],
    ] {
        let output = leo(folder.path(), arguments);
        assert!(output.status.success(), "{output:?}");
        std::fs::write(folder.path().join("copy.onnx"), &output.stdout)?;
        assert!(leo(folder.path(), &["inspect", "copy.onnx"]).status.success(), "{arguments:?}");
        let said = complaint(&leo(folder.path(), &[arguments, &["--json"]].concat()))?;
        assert!(said.contains("/dev/stdout: --json goes there, too"), "{said}");
    }
    // So may a page.
    let output = leo(folder.path(), &["analyze", "three.nnet", "--domain", "0,1", "--report", "/dev/stdout"]);
    let page = String::from_utf8(output.stdout)?;
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{page}");
    Ok(())
}

/// No command writes over what it reads, whatever it is told.
#[test]
fn nothing_that_is_read_is_written() -> Anything {
    let folder = three_units()?;
    Array::new(vec![2, 1], vec![0.5_f64, 1.0])?.save(&folder.path().join("x.npy"))?;
    leo(folder.path(), &["convert", "three.nnet", "-o", "three.onnx"]);
    let before = std::fs::read(folder.path().join("x.npy"))?;
    for arguments in [
        &["run", "three.onnx", "-i", "x.npy", "-o", "./x.npy"][..],
        &["equiv", "three.onnx", "three.nnet", "--domain", "0,1", "--data", "x.npy", "--counterexample", "x.npy"],
        &["compress", "three.onnx", "--domain", "0,1", "--data", "x.npy", "--report", "x.npy", "--force"],
        &["compress", "three.onnx", "--domain", "0,1", "--data", "x.npy", "--certificate", "x.npy", "--force"],
        &["analyze", "three.onnx", "--domain", "0,1", "--data", "x.npy", "--report", "./x.npy", "--force"],
        &["analyze", "three.onnx", "--domain", "0,1", "--report", "three.onnx", "--force"],
        &["convert", "three.onnx", "-o", "./three.onnx", "--force"],
    ] {
        let said = complaint(&leo(folder.path(), arguments))?;
        assert!(said.contains("would overwrite"), "{arguments:?}: {said}");
    }
    assert_eq!(std::fs::read(folder.path().join("x.npy"))?, before);
    Ok(())
}

/// The network of three units as an ONNX file, with the weights of its first layer in a file of their own.
fn with_external_data(folder: &Path, file: &str) -> Anything {
    let mut model = ModelProto::decode(Model::load(&folder.join("three.nnet"))?.to_onnx()?.as_slice())?;
    let tensor = model.graph.as_mut().and_then(|graph| graph.initializer.first_mut()).ok_or("a tensor")?;
    std::fs::write(folder.join(file), tensor.raw_data.take().ok_or("raw data")?)?;
    tensor.data_location = Some(1);
    tensor.external_data = vec![StringStringEntryProto { key: Some("location".into()), value: Some(file.into()) }];
    Ok(std::fs::write(folder.join("parts.onnx"), model.encode_to_vec())?)
}

/// The weights of a model can be in another file, and --force used to overwrite that.
#[test]
fn external_data_are_never_written_over() -> Anything {
    use std::os::unix::fs::symlink;
    let folder = three_units()?;
    let path = |name: &str| folder.path().join(name);
    with_external_data(folder.path(), "w.npy")?;
    let before = std::fs::read(path("w.npy"))?;
    Array::new(vec![1, 1], vec![0.5_f64])?.save(&path("x.npy"))?;
    symlink("w.npy", path("soft.onnx"))?;
    symlink("soft.onnx", path("softer.npy"))?;
    std::fs::hard_link(path("w.npy"), path("hard.onnx"))?;
    let compress = ["compress", "parts.onnx", "--domain", "0,1", "--force"];
    let analyze = ["analyze", "parts.onnx", "--domain", "0,1", "--force"];
    for arguments in [
        &[&compress[..], &["-o", "soft.onnx"]].concat()[..],
        &[&compress[..], &["-o", "hard.onnx"]].concat(),
        &[&compress[..], &["-o", "small.onnx", "--certificate", "w.npy"]].concat(),
        &[&compress[..], &["-o", "small.onnx", "--report", "./w.npy"]].concat(),
        &[&compress[..], &["-o", "small.onnx", "--resume", "softer.npy"]].concat(),
        &[&analyze[..], &["--report", "w.npy"]].concat(),
        &[&analyze[..], &["--resume", "w.npy"]].concat(),
        &["convert", "parts.onnx", "-o", "hard.onnx", "--force"],
        &["convert", "parts.onnx", "-o", "soft.onnx", "--force"],
        &["run", "parts.onnx", "-i", "x.npy", "-o", "w.npy"],
        &["run", "parts.onnx", "-i", "x.npy", "-o", "softer.npy"],
        &["equiv", "three.nnet", "parts.onnx", "--counterexample", "w.npy"],
        &["equiv", "parts.onnx", "three.nnet", "--counterexample", "softer.npy"],
    ] {
        let said = complaint(&leo(folder.path(), arguments))?;
        assert!(said.contains("would overwrite ./w.npy; give another name"), "{arguments:?}: {said}");
        assert!(std::fs::read(path("w.npy"))? == before && !path("small.onnx").exists(), "{arguments:?}");
    }
    assert!(leo(folder.path(), &[&compress[..], &["-o", "small.onnx"]].concat()).status.success());
    Ok(())
}

/// Files that do not exist yet can be one all the same.
#[test]
fn two_outputs_that_are_one_file_are_noticed() -> Anything {
    use std::os::unix::fs::symlink;
    let folder = three_units()?;
    let path = |name: &str| folder.path().join(name);
    symlink("new", path("a.onnx"))?;
    symlink("new", path("b.leo"))?;
    symlink("b.leo", path("c.html"))?;
    symlink(".", path("here"))?;
    std::fs::write(path("there.onnx"), "")?;
    std::fs::hard_link(path("there.onnx"), path("hard.leo"))?;
    for (network, flag, other) in [
        ("a.onnx", "--certificate", "b.leo"),
        ("a.onnx", "--certificate", "new"),
        ("a.onnx", "--report", "c.html"),
        ("a.onnx", "--resume", "c.html"),
        ("x.onnx", "--report", "here/here/x.onnx"),
        ("x.onnx", "--report", "X.ONNX"),
        ("there.onnx", "--certificate", "hard.leo"),
    ] {
        let said = complaint(&leo(
            folder.path(),
            &["compress", "three.nnet", "-o", network, "--domain", "0,1", "--force", flag, other],
        ))?;
        let wanted = format!("{flag} {other}: would overwrite {network}; give another name");
        assert!(said.contains(&wanted), "{said}");
    }
    // A link to what is not there yet is a good name for one of them.
    let arguments = ["compress", "three.nnet", "-o", "a.onnx", "--domain", "0,1", "--certificate", "c.leo"];
    assert!(leo(folder.path(), &arguments).status.success());
    assert!(path("a.onnx").is_symlink() && path("new").is_file());
    Ok(())
}

/// Whether the certificate is about the network beside it.
fn is_pair(folder: &Path) -> Anything<bool> {
    let network = HashedModel::load(&folder.join("small.onnx"))?.sha256;
    let certificate: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("small.leo"))?)?;
    Ok(certificate["second"] == network)
}

/// Two runs at once used to leave the one's network with the other's certificate, and say nothing.
#[test]
fn two_runs_at_once_leave_a_pair_or_say_so() -> Anything {
    let folder = three_units()?;
    let run = |domain: &str, options: &[&str]| {
        let arguments = ["compress", "three.nnet", "-o", "small.onnx", "--domain", domain, "-q"];
        command(folder.path(), &[&arguments, options].concat()).stderr(Stdio::piped()).spawn()
    };
    for round in 0..25 {
        let children = [run("0,1", &["--force"])?, run("0,0.25", &["--force"])?, run("0.75,1", &["--force"])?];
        for child in children {
            let output = child.wait_with_output()?;
            assert!(output.status.success(), "{round}: {}", String::from_utf8_lossy(&output.stderr));
        }
        assert!(is_pair(folder.path())?, "{round}");
    }
    // Without --force one of them comes first, and the other one says so.
    for round in 0..25 {
        std::fs::remove_file(folder.path().join("small.onnx"))?;
        std::fs::remove_file(folder.path().join("small.leo"))?;
        let children = [run("0,1", &[])?, run("0,0.25", &[])?];
        let mut done = 0;
        for child in children {
            let output = child.wait_with_output()?;
            if output.status.success() {
                done += 1;
            } else {
                assert!(complaint(&output)?.contains("is there already; --force overwrites it"), "{round}");
            }
        }
        assert!(done == 1 && is_pair(folder.path())?, "{round}: {done}");
    }
    Ok(())
}

/// A network that is written anew without a certificate leaves an old one beside it.
#[test]
fn a_certificate_of_another_network_is_pointed_out() -> Anything {
    let folder = three_units()?;
    let compress = ["compress", "three.nnet", "-o", "small.onnx", "--force", "--domain"];
    let run = |rest: &[&str]| -> Anything<String> {
        let output = leo(folder.path(), &[&compress[..], rest].concat());
        assert!(output.status.success(), "{output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    let warning = "beware: small.leo is from before, and is no certificate of what small.onnx is now";
    assert!(!run(&["0,1"])?.contains(warning));
    // The same network again: it still is.
    assert!(!run(&["0,1", "--no-certificate"])?.contains(warning));
    assert!(run(&["0,0.25", "--no-certificate"])?.contains(warning));
    let json: serde_json::Value = serde_json::from_str(&run(&["0,0.25", "--certificate", "other.leo", "--json"])?)?;
    assert_eq!(json["stale_certificate"], "small.leo");
    assert!(!run(&["0,0.25"])?.contains(warning));
    Ok(())
}
