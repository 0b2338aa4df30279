//! The page that `--report` writes: what it says, and how it looks in a browser.
//!
//! With Chromium at hand, the page is opened wide and narrow, light and dark; pictures of it are left in
//! `target/tmp/report`. Without it, these tests say so and stop.

mod browser;
mod convolutions;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use browser::Browser;
use leo_formats::onnx::proto::ModelProto;
use prost::Message;
use serde_json::Value;
use support::{Anything, leo, model, models, three_units};

/// Compresses a network, and returns the page and what the program said.
fn compress(folder: &Path, network: &str, name: &str) -> Anything<(PathBuf, Value)> {
    let (small, page) = (format!("{name}.onnx"), format!("{name}.html"));
    let output = leo(folder, &["compress", network, "-o", &small, "--domain", "0,1", "--report", &page, "--json"]);
    assert!(output.status.success(), "{output:?}");
    Ok((folder.join(page), serde_json::from_slice(&output.stdout)?))
}

/// Where pictures are left.
fn pictures() -> Anything<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

#[test]
fn a_page_tells_all_that_the_json_does() -> Anything {
    let folder = three_units()?;
    let (path, json) = compress(folder.path(), "three.nnet", "three")?;
    let page = std::fs::read_to_string(path)?;
    for expected in [
        "<h1>3 units became 2</h1>",
        "Proved, and the proof was checked.",
        "leo compress three.nnet -o three.onnx --domain 0,1 --report three.html --json",
        "leo check three.nnet three.onnx three.leo",
        "always off (1)",
        "always on (1)",
        "on or off (1)",
        "removed: always 0",
        "<td>[-2, -1]</td>",
        "<td>[1, 2]</td>",
        "<td>[-0.5, 0.5]</td>",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert_eq!((&json["report"], &json["checked"]), (&"three.html".into(), &true.into()));
    // Nothing comes from elsewhere.
    for forbidden in ["http://", "https://", "<link", "@import", "src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    Ok(())
}

#[test]
fn names_in_files_are_only_text() -> Anything {
    let folder = three_units()?;
    let hostile = "<script>alert(1)</script>&\"'.nnet";
    std::fs::create_dir(folder.path().join("<script>alert(1)<"))?;
    std::fs::rename(folder.path().join("three.nnet"), folder.path().join(hostile))?;
    let (path, _) = compress(folder.path(), hostile, "three")?;
    let page = std::fs::read_to_string(path)?;
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;"));

    // Layers have names, too.
    assert!(leo(folder.path(), &["convert", hostile, "-o", "named.onnx"]).status.success());
    let named = folder.path().join("named.onnx");
    let mut file = ModelProto::decode(&std::fs::read(&named)?[..])?;
    let nodes = file.graph.iter_mut().flat_map(|graph| &mut graph.node);
    nodes.filter(|node| node.op_type() == "Relu").for_each(|node| node.name = Some("<img src=x>".into()));
    std::fs::write(&named, file.encode_to_vec())?;
    let (path, _) = compress(folder.path(), "named.onnx", "small")?;
    let page = std::fs::read_to_string(path)?;
    assert!(!page.contains("<img") && page.contains("&lt;img src=x&gt;"));
    Ok(())
}

/// What only a solver says is not called proved, and a warning says so.
#[cfg(feature = "highs")]
#[test]
fn a_page_does_not_call_proved_what_is_trusted() -> Anything {
    let folder = tempfile::tempdir()?;
    // Its maximum is 1e-8 times 783 minus 5e-6, above 0, and within the solver's tolerance.
    let (weights, ones) = (vec!["1e-8"; 783].join(","), |count: usize, text: &str| vec![text; count].join(","));
    let (zeros, all) = (ones(784, "0"), ones(784, "1"));
    let (means, ranges) = (ones(785, "0"), ones(785, "1"));
    let text =
        format!("2,784,1,784,\n784,1,1,\n0,\n{zeros},\n{all},\n{means},\n{ranges},\n-1,{weights},\n-5e-6,\n1,\n0,\n");
    std::fs::write(folder.path().join("near.nnet"), text)?;
    let arguments =
        ["analyze", "near.nnet", "--domain", "0,1", "--engine", "milp", "--trust-solver", "--report", "page.html"];
    let output = leo(folder.path(), &arguments);
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(folder.path().join("page.html"))?;
    assert!(page.contains("<p class=\"warning\">1 verdict not proved: the solver says so"), "{page}");
    assert!(page.contains("on the whole domain.</p>") && !page.contains(": proved."));
    Ok(())
}

#[test]
fn a_network_without_units_has_a_page() -> Anything {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("line.nnet"), "1,1,1,1,\n1,1,\n0,\n0,\n1,\n0,0,\n1,1,\n2,\n1,\n")?;
    let arguments = ["analyze", "line.nnet", "--domain", "0,1", "--report", "page.html"];
    assert!(leo(folder.path(), &arguments).status.success());
    let page = std::fs::read_to_string(folder.path().join("page.html"))?;
    assert!(page.contains("<h1>No ReLU units</h1>") && page.contains("The network has no ReLU units."));
    let (path, _) = compress(folder.path(), "line.nnet", "small")?;
    assert!(std::fs::read_to_string(path)?.contains("<h1>Nothing to remove</h1>"));
    Ok(())
}

#[test]
fn analyze_writes_a_page_too() -> Anything {
    let folder = three_units()?;
    let arguments = ["analyze", "three.nnet", "--domain", "0,1", "--report", "page.html"];
    assert!(leo(folder.path(), &arguments).status.success());
    let page = std::fs::read_to_string(folder.path().join("page.html"))?;
    assert!(page.contains("<h1>2 stable units of 3</h1>") && !page.contains("became"));
    let again = leo(folder.path(), &arguments);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8(again.stderr)?.contains("page.html: is there already; --force overwrites it"));
    assert!(leo(folder.path(), &[&arguments[..], &["--force"]].concat()).status.success());
    Ok(())
}

/// Finds texts that lie over each other, or outside of what holds them; and whether the page is wider than the window.
const DISORDER: &str = r#"(() => {
  const found = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > window.innerWidth) found.push(`wider than the window: ${wide}`);
  const visible = (box) => box.width > 0 && box.height > 0;
  const holders = ".what, .graph text, .ticks span, .end, .width, .tiles b, .tiles span, figcaption, h1, h2, h3";
  const texts = [...document.querySelectorAll(holders)]
    .map((thing) => [thing, thing.getBoundingClientRect()]).filter(([, box]) => visible(box));
  for (const [thing, box] of texts) {
    if (box.left < 0 || box.right > window.innerWidth + 0.5) found.push(`cut: ${thing.textContent}`);
    const narrow = thing.scrollWidth > thing.clientWidth + 1 && thing.clientWidth > 0;
    if (narrow) found.push(`too narrow: ${thing.textContent}`);
  }
  texts.forEach(([a, one], index) => texts.slice(index + 1).forEach(([b, two]) => {
    const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    if (across > 1 && down > 1) found.push(`over each other: ${a.textContent} / ${b.textContent}`);
  }));
  for (const svg of document.querySelectorAll("svg")) {
    const frame = svg.getBoundingClientRect();
    for (const thing of svg.querySelectorAll("circle, rect, text")) {
      const box = thing.getBoundingClientRect();
      const across = Math.max(frame.left - box.left, box.right - frame.right);
      const out = Math.max(across, frame.top - box.top, box.bottom - frame.bottom);
      if (out > 1.5) found.push(`outside of its drawing by ${out}: ${thing.outerHTML}`);
    }
  }
  return found;
})()"#;

#[test]
fn pages_look_right_wide_and_narrow_light_and_dark() -> Anything {
    let Some(mut browser) = Browser::start()? else { return Ok(()) };
    let (folder, pictures) = (three_units()?, pictures()?);
    let networks = [
        ("three-units", "three.nnet".to_owned()),
        ("2x100", model("100-100-l1-0.0005")),
        ("5x100", model("100-100-100-100-100-l1-0.0002")),
        ("convolutions", convolutions::branches(folder.path())?),
        ("digits", models().join("digits.onnx").to_string_lossy().into_owned()),
    ];
    for (name, network) in networks {
        let (page, _) = compress(folder.path(), &network, name)?;
        for (width, is_dark) in [(1200, false), (1200, true), (390, false), (390, true), (320, false)] {
            browser.open(&page, width, is_dark)?;
            let disorder = browser.evaluate(DISORDER)?;
            let theme = if is_dark { "dark" } else { "light" };
            browser.photograph(&pictures.join(format!("{name}-{width}-{theme}.png")))?;
            assert_eq!(disorder, Value::Array(Vec::new()), "{name}, {width} wide");
        }
        browser.print(&pictures.join(format!("{name}.pdf")))?;
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    Ok(())
}

#[test]
fn hovering_tells_of_a_unit_wherever_it_is_drawn() -> Anything {
    let Some(mut browser) = Browser::start()? else { return Ok(()) };
    let folder = three_units()?;
    let (page, _) = compress(folder.path(), "three.nnet", "three")?;
    browser.open(&page, 1200, false)?;
    let tip = "document.getElementById('tip').hidden ? null : document.getElementById('tip').innerText";
    assert_eq!(browser.evaluate(tip)?, Value::Null);
    let off = "relu1, unit 0\nis always off\nrange [-2, -1]\ndecided by intervals\nfate removed: always 0";
    let on = "relu1, unit 1\nis always on\nrange [1, 2]\ndecided by intervals\nfate kept";
    let places = [(".graph [data-u=u0-0]", off), ("#ranges rect[data-u=u0-0]", off), ("figure + figure .graph .u", on)];
    for (selector, expected) in places {
        browser.hover(selector)?;
        assert_eq!(browser.evaluate(tip)?, expected, "{selector}");
    }
    // It is marked in both drawings and among the ranges.
    assert_eq!(browser.evaluate("document.querySelectorAll('.lit').length")?, 3);
    browser.photograph(&pictures()?.join("hovering.png"))?;
    browser.hover("h1")?;
    assert_eq!(browser.evaluate(tip)?, Value::Null);
    assert_eq!(browser.complaints, Vec::<String>::new());
    Ok(())
}
