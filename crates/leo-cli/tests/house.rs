//! Rules of the house that no compiler holds: one name, one type; nothing too long to be read; and words that whoever
//! knows the field will look for.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{read_dir, read_to_string};
use std::path::{Path, PathBuf};

type Anything<T = ()> = Result<T, Box<dyn Error>>;

/// How many lines a file may have.
const MOST_LINES: usize = 500;
/// How many lines a function may have.
const LONGEST_FUNCTION: usize = 80;
/// How many lines what a command does may have.
const LONGEST_RUN: usize = 60;
/// How wide a comment may be.
const WIDTH: usize = 120;

/// All files of Rust below a folder of each crate, with the crate's name.
fn sources(folders: &[&str]) -> Anything<Vec<(String, PathBuf, String)>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for entry in read_dir(crates)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name().to_string_lossy().into_owned()))?;
        for folder in folders.iter().map(|folder| path.join(folder)).filter(|folder| folder.is_dir()) {
            for file in files_below(&folder)? {
                found.push((name.clone(), file.clone(), read_to_string(file)?));
            }
        }
    }
    assert!(found.len() > 100, "the sources are found");
    Ok(found)
}

fn files_below(folder: &Path) -> Anything<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.extension().is_some_and(|suffix| suffix == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// The name that a line defines a type by, if it does.
fn defined(line: &str) -> Option<&str> {
    let words = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
    let after = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| words.strip_prefix(kind))?;
    let end = after.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(after.len());
    Some(&after[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[test]
fn no_type_has_the_name_of_another_crates() -> Anything {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (home, _, text) in sources(&["src"])? {
        for name in text.lines().filter_map(defined) {
            let homes = homes.entry(name.to_owned()).or_default();
            if !homes.contains(&home) {
                homes.push(home.clone());
            }
        }
    }
    assert!(homes.len() > 300, "types are found");
    homes.retain(|_, homes| homes.len() > 1);
    assert!(homes.is_empty(), "types that are defined in several crates: {homes:?}");
    Ok(())
}

#[test]
fn nothing_is_too_long() -> Anything {
    let mut long = Vec::new();
    for (_, file, text) in sources(&["src", "tests", "benches", "examples"])? {
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() > MOST_LINES {
            long.push(format!("{}: {} lines", file.display(), lines.len()));
        }
        for (start, line) in lines.iter().enumerate() {
            let indent = &line[..line.len() - line.trim_start().len()];
            if line.trim_start().starts_with("//") && line.chars().count() > WIDTH {
                long.push(format!("{}:{}: a comment of {} columns", file.display(), start + 1, line.chars().count()));
            }
            let head = line.trim_start().trim_start_matches("pub ").trim_start_matches("pub(crate) ");
            let Some(name) = head.trim_start_matches("const ").strip_prefix("fn ") else { continue };
            if line.ends_with('}') || line.ends_with(';') {
                continue;
            }
            let closing = format!("{indent}}}");
            let length = lines[start..].iter().position(|line| *line == closing).map_or(0, |end| end + 1);
            let is_run = name.starts_with("run(") && file.to_string_lossy().contains("commands");
            if length > if is_run { LONGEST_RUN } else { LONGEST_FUNCTION } {
                let name = name.split(['(', '<']).next().unwrap_or(name);
                long.push(format!("{}:{}: {name} has {length} lines", file.display(), start + 1));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
    Ok(())
}

#[test]
fn the_words_of_the_field_stand_at_the_head_of_what_implements_them() -> Anything {
    let sources = sources(&["src"])?;
    let words = ["CROWN", "DeepPoly", "branch and bound", "PGD", "IBP", "Anderson", "triangle", "Serra"];
    for word in words {
        let is_at_head = |text: &str| {
            let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
            head.join(" ").to_lowercase().contains(&word.to_lowercase())
        };
        assert!(sources.iter().any(|(_, _, text)| is_at_head(text)), "{word} stands at the head of no module");
    }
    Ok(())
}
