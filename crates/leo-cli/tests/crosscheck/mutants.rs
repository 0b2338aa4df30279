//! Certificates that say something else than others.

use std::path::{Path, PathBuf};

use crate::Anything;

/// Certificates that differ from one in a bit of some channels, in their delta, in a value that is missing, in what
/// linear bounds are said to prove, in expressions, or in a dense part, in files beside it.
pub fn mutants(certificate: &Path, index: usize) -> Anything<Vec<PathBuf>> {
    let text = std::fs::read_to_string(certificate)?;
    let mut written = Vec::new();
    let mut write = |kind: &str, changed: &serde_json::Value| -> Anything {
        let path = certificate.with_extension(format!("{kind}.leo"));
        std::fs::write(&path, changed.to_string())?;
        written.push(path);
        Ok(())
    };
    let original: serde_json::Value = serde_json::from_str(&text)?;
    let mut smaller = original.clone();
    for delta in smaller["delta"].as_array_mut().into_iter().flatten() {
        *delta = serde_json::json!(0.0);
    }
    write("delta", &smaller)?;
    let count = original["links"][0]["channels"].as_array().map_or(0, Vec::len);
    if let Some(place) = (count > 0).then(|| index % count.max(1)) {
        let mut flipped = original.clone();
        let digits = &mut flipped["links"][0]["channels"][place][1];
        let first = digits.as_str().and_then(|digits| digits.chars().next()?.to_digit(16)).ok_or("digits")?;
        let rest = digits.as_str().unwrap_or_default()[1..].to_owned();
        *digits = serde_json::json!(format!("{:x}{rest}", first ^ (8 >> (index % 4))));
        write("bit", &flipped)?;
        let mut missing = original.clone();
        missing["links"][0]["channels"].as_array_mut().ok_or("a list")?.remove(place);
        write("missing", &missing)?;
    }
    let said = original["links"][0]["linear"].as_array().map_or(0, Vec::len);
    if let Some(place) = (said > 0).then(|| index % said.max(1)) {
        let mut change = |kind: &str, field: usize, to: &dyn Fn(&serde_json::Value) -> serde_json::Value| {
            let mut changed = original.clone();
            let entry = &mut changed["links"][0]["linear"][place][field];
            *entry = to(entry);
            write(kind, &changed)
        };
        change("letter", 1, &|letter| serde_json::json!(if letter == "-" { "+" } else { "-" }))?;
        change("first", 2, &|first| serde_json::json!(first.as_u64().map_or(0, |first| first + 1)))?;
        change("layer", 0, &|layer| serde_json::json!(layer.as_u64().map_or(0, |layer| layer + 1)))?;
        change("more", 3, &|digits| serde_json::json!("f".repeat(digits.as_str().map_or(0, str::len))))?;
        let mut untold = original.clone();
        untold["links"][0].as_object_mut().ok_or("an object")?.remove("linear");
        untold["version"] = serde_json::json!(3);
        write("untold", &untold)?;
    }
    let said = original["links"][0]["expressions"].as_array().map_or(0, Vec::len);
    if let Some(place) = (said > 0).then(|| index % said.max(1)) {
        let entry = &original["links"][0]["expressions"][place];
        let channel = entry[1].as_u64().unwrap_or_default();
        let factor = entry[3][0][1].as_f64().unwrap_or_default();
        let mut change = |kind: &str, field: usize, to: serde_json::Value| {
            let mut changed = original.clone();
            changed["links"][0]["expressions"][place][field] = to;
            write(kind, &changed)
        };
        change("channel", 1, serde_json::json!(channel + 1))?;
        change("constant", 2, serde_json::json!(0.125))?;
        change("terms", 3, serde_json::json!([]))?;
        change("factor", 3, serde_json::json!([[entry[3][0][0], factor * 1.5]]))?;
        change("itself", 3, serde_json::json!([[channel, 1.0]]))?;
        let mut unsaid = original.clone();
        unsaid["links"][0]["expressions"].as_array_mut().ok_or("a list")?.remove(place);
        write("unsaid", &unsaid)?;
    }
    for (kind, changed) in part_mutants(&original, index) {
        write(kind, &changed)?;
    }
    Ok(written)
}

/// Certificates that say something else of a dense part than one does, if that says something of it.
fn part_mutants(original: &serde_json::Value, index: usize) -> Vec<(&'static str, serde_json::Value)> {
    if original["links"][0]["part"].is_null() {
        return Vec::new();
    }
    let changed = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut changed = original.clone();
        change(&mut changed["links"][0]["part"]);
        changed
    };
    let other_letter = |from: &str, to: &str| {
        changed(&|part| {
            let units = &mut part["layers"][0]["units"];
            *units = serde_json::json!(units.as_str().unwrap_or_default().replacen(from, to, 1));
        })
    };
    let role = |to: &dyn Fn(&mut Vec<serde_json::Value>)| {
        changed(&|part| {
            part["roles"]
                .get_mut(0)
                .and_then(|roles| roles.as_array_mut())
                .filter(|roles| !roles.is_empty())
                .into_iter()
                .for_each(to)
        })
    };
    let constant = |roles: &mut Vec<serde_json::Value>| {
        let place = index % roles.len();
        roles[place] = serde_json::json!({"constant": 0.5});
    };
    let mut without = original.clone();
    without["links"][0].as_object_mut().and_then(|link| link.remove("part"));
    let says_more = ["linear", "expressions"].iter().any(|field| !without["links"][0][*field].is_null());
    without["version"] = serde_json::json!(if says_more { 4 } else { 3 });
    vec![
        ("on", other_letter("-", "+")),
        ("off", other_letter("+", "-")),
        ("open", other_letter("?", "-")),
        ("closed", other_letter("+", "?")),
        ("unstable", other_letter("?", "~")),
        ("turned", role(&|roles| roles.rotate_left(1))),
        ("fewer", role(&|roles| roles.truncate(1))),
        ("constant", role(&constant)),
        ("unclaimed", changed(&|part| part["layers"][0]["claims"] = serde_json::json!([]))),
        ("loose", changed(&|part| part["anchors"] = serde_json::json!([]))),
        ("nowhere", changed(&|part| part["value"] = serde_json::json!("nowhere"))),
        ("whole", changed(&|part| part["value"] = serde_json::json!("x"))),
        ("unparted", without),
    ]
}
