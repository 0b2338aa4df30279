//! The maps are true: the tables of ARCHITECTURE.md name every file of the source, and those of CONTRIBUTING.md every
//! test, and nothing else; and every path that either page names is there.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::Anything;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The first cells of those rows of tables that begin with a name.
fn first_cells(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next())
}

/// What is in a folder: files of Rust, and folders with a slash at the end.
fn entries(folder: &Path) -> Anything<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() {
            names.insert(name + "/");
        } else if name.ends_with(".rs") {
            names.insert(name);
        }
    }
    Ok(names)
}

#[test]
fn architecture_names_every_file_of_the_source() -> Anything {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md"))?;
    let mut crates = BTreeSet::new();
    for section in page.split("\n## ").filter(|section| section.contains(", file by file\n")) {
        let name = quoted(section).next().ok_or("a name")?;
        let map = section.split("\n### ").next().unwrap_or_default();
        crates.insert(format!("{name}/"));
        let source = root().join("crates").join(name).join("src");
        let named: BTreeSet<String> = first_cells(map).flat_map(quoted).map(str::to_owned).collect();
        let missing: Vec<&String> = named.iter().filter(|name| !source.join(name).exists()).collect();
        assert!(missing.is_empty(), "{name}: named, and not there: {missing:?}");
        let mut nameless = Vec::new();
        for entry in entries(&source)? {
            if named.contains(&entry) || entry == "lib.rs" {
                continue;
            }
            // A folder may also be told file by file.
            let files = if entry.ends_with('/') { entries(&source.join(&entry))? } else { BTreeSet::new() };
            let is_told = |file: &String| file == "mod.rs" || named.contains(&format!("{entry}{file}"));
            if files.is_empty() || !files.iter().all(is_told) {
                nameless.push(entry);
            }
        }
        assert!(nameless.is_empty(), "{name}: there, and not named: {nameless:?}");
    }
    assert_eq!(crates, entries(&root().join("crates"))?, "a section for each crate");
    Ok(())
}

#[test]
fn contributing_names_every_test() -> Anything {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md"))?;
    let mut named = BTreeSet::new();
    for cell in first_cells(&page) {
        let mut folder = PathBuf::new();
        for name in quoted(cell) {
            // The first name is a path, and those after it are beside it.
            let path = if name.starts_with("crates/") { PathBuf::from(name) } else { folder.join(name) };
            folder = path.parent().ok_or("a folder")?.to_owned();
            assert!(root().join(&path).exists(), "{} is named, and not there", path.display());
            named.insert(path);
        }
    }
    for name in entries(&root().join("crates"))? {
        let tests = Path::new("crates").join(name).join("tests");
        if !root().join(&tests).exists() {
            continue;
        }
        for entry in entries(&root().join(&tests))? {
            let is_test = entry.ends_with(".rs") || root().join(&tests).join(&entry).join("main.rs").exists();
            assert!(!is_test || named.contains(&tests.join(&entry)), "{}: {entry} is not named", tests.display());
        }
    }
    Ok(())
}

#[test]
fn paths_on_both_pages_lead_somewhere() -> Anything {
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(page))?;
        let paths = quoted(&text)
            .filter(|name| ["crates/", "tools/", "docs/", "models/"].iter().any(|of| name.starts_with(of)));
        for path in paths {
            assert!(root().join(path).exists(), "{page}: {path} is not there");
        }
    }
    Ok(())
}
