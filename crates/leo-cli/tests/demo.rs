//! `leo demo`: the first thing that people see.

mod support;

use support::{Anything, leo};

/// `make demo` builds without the solver.
#[cfg(not(feature = "highs"))]
#[test]
fn without_the_solver_one_line_says_how_to_get_it() -> Anything {
    let model = support::model("100-100-l1-0.0005");
    for flags in [&["--engine", "milp"][..], &["--trust-solver"]] {
        let output = leo(std::path::Path::new("."), &[&["analyze", &model, "--domain", "0,1"], flags].concat());
        let said = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        let begin = format!("leo: {}: this Leo was built without the solver HiGHS; `make build`", flags.join(" "));
        assert!(said.starts_with(&begin), "{said}");
    }
    Ok(())
}

#[test]
fn the_demo_shows_a_network_shrink_with_proof_and_page() -> Anything {
    let folder = tempfile::tempdir()?;
    // The second time it replaces its own files.
    for _ in 0..2 {
        let output = leo(folder.path(), &["demo"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let printed = String::from_utf8(output.stdout)?;
        for expected in [
            "| hidden layers | 100, 100 | 28, 21 |",
            "verified: for all inputs of the domain (784 inputs, within [0, 1])",
            "Open leo-demo/report.html in a browser",
            "leo compress model.onnx --domain 0,1",
        ] {
            assert!(printed.contains(expected), "{expected}: {printed}");
        }
        let mut names: Vec<_> = std::fs::read_dir(folder.path().join("leo-demo"))?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Anything<_>>()?;
        names.sort();
        assert_eq!(names, ["model.onnx", "report.html", "small.leo", "small.onnx"]);
    }
    let quiet = leo(folder.path(), &["demo", "--to", "a/b", "-q"]);
    assert!(quiet.status.success() && quiet.stdout.is_empty() && folder.path().join("a/b/report.html").exists());
    std::fs::write(folder.path().join("file"), "")?;
    let refused = leo(folder.path(), &["demo", "--to", "file"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr)?.contains("file: cannot be made; --to names another folder"));
    Ok(())
}
