//! Certificates that were tampered with. For networks with one input the truth can be found out exactly, so that the
//! test knows which changes make a certificate false: not one of these may be verified.

#[path = "../support/chains.rs"]
mod chains;
#[path = "../laws/random.rs"]
mod random;
#[path = "../support/mod.rs"]
mod support;

mod mutants;
mod oracle;

use std::path::Path;
use std::process::Command;

use fastrand::Rng;
use leo_check::{Certificate, HashedModel, MixedInequality, verify, verify_exactly};
use leo_compress::{CompressOptions, Method, Tolerance};
use leo_formats::onnx::{Document, Float};
use leo_network::op::Op;
use leo_network::{Domain, Network};
use leo_stability::Engine;
use num_rational::BigRational as Ratio;
use num_traits::{ToPrimitive, Zero};
use serde_json::{Value, json};

use chains::{chain, paired};
use mutants::{mutate, with_a_changed_weight};
use oracle::{differences, differences_in_single, ranges};
use random::{random_domain, random_network};
use support::{document, exact, shrink, values_at};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How many networks are compressed.
const NETWORKS: u64 = 100;

/// How many changes are made to each.
const CHANGES: u64 = 20;

/// Networks whose certificates have more than one link. There are few of these.
const LINKED_SEEDS: [u64; 4] = [903, 1622, 1634, 1770];

/// Networks whose certificates have case distinctions, multipliers and slopes. There are few of these.
const SPLIT_SEEDS: [u64; 16] =
    [356, 1014, 1198, 1228, 1268, 1320, 1405, 1579, 1769, 1849, 1898, 1902, 1940, 2036, 2093, 2165];

/// Networks where bounds of later layers matter, and can as well be proved with tilted lines.
const TILTED_SEEDS: [u64; 14] = [52, 92, 356, 903, 1014, 1198, 1320, 1622, 1634, 1849, 1898, 2036, 2093, 2165];

/// How many networks with linear paths are compressed, and changed in [`CHANGES`] ways each.
const PATHS: u64 = 4;

/// Two files and a certificate, the last two as bytes.
struct Case {
    first: Vec<u8>,
    second: Vec<u8>,
    certificate: Vec<u8>,
}

fn sealed(bytes: &[u8]) -> Option<HashedModel> {
    HashedModel::from_bytes(bytes.to_vec(), Path::new("network.onnx")).ok()
}

/// A network with one input, compressed.
fn case(seed: u64) -> Anything<Case> {
    let mut random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let depth = random.usize(1..5);
    let network = random_network(&mut random, 1, depth)?;
    let domain = random_domain(&mut random, 1);
    // The same proofs with and without a solver.
    let stability =
        leo_stability::AnalysisOptions { engine: Engine::Bounds, ..leo_stability::AnalysisOptions::default() };
    let options = [
        CompressOptions { stability, ..CompressOptions::default() },
        CompressOptions { tolerance: Some(Tolerance::Absolute(0.01)), stability, ..CompressOptions::default() },
        CompressOptions { method: Method::Leo, stability, ..CompressOptions::default() },
    ];
    compressed(&network, &domain, &options[random.usize(0..3)])
}

/// A network in which linear functions pass beside layers once it is compressed.
fn with_paths() -> Anything<Case> {
    let network = chain(&paired(3, 1.0, &[-0.5, -0.25, 0.0, 0.25]))?;
    let stability =
        leo_stability::AnalysisOptions { engine: Engine::Bounds, ..leo_stability::AnalysisOptions::default() };
    let case = compressed(
        &network,
        &Domain::uniform(1, -1.0, 1.0)?,
        &CompressOptions { stability, ..CompressOptions::default() },
    )?;
    let has_sum = |network: &Network| network.nodes().iter().any(|node| matches!(node.op(), Op::Sum(_)));
    assert!(sealed(&case.second).is_some_and(|sealed| has_sum(sealed.model.network())), "it has no path");
    Ok(case)
}

fn compressed(network: &Network, domain: &Domain, options: &CompressOptions<'_>) -> Anything<Case> {
    let before = document(network, Float::F32);
    let after = shrink(&before, domain, options);
    let [first, second] = [before.to_bytes()?, after.document.to_bytes()?];
    let [a, b] = [&first, &second].map(|bytes| sealed(bytes).map(|sealed| sealed.sha256).unwrap_or_default());
    Ok(Case { certificate: after.certificate(a, b, domain)?.to_bytes()?, first, second })
}

/// The same with another proof: there is a fact for every linear bound, and all leaves are tilted. Mostly the lines are
/// nearly the chords, which prove as much.
fn tilted(seed: u64) -> Anything<Case> {
    let case = case(seed)?;
    let first = Document::from_bytes(case.first.clone(), None)?;
    let network = first.network();
    let mut random = Rng::with_seed(seed);
    let mut certificate: Value = serde_json::from_slice(&case.certificate)?;
    let bound = |name: &str| certificate["domain"][name].as_f64().ok_or("one number for one input");
    let ranges = ranges(network, &Domain::uniform(1, bound("lo")?, bound("hi")?)?);
    // For each layer that can be tilted, how many numbers its units read, and how much of each unit's range is above 0.
    let layers: Vec<Option<(usize, Vec<f64>)>> = network
        .layers()
        .zip(&ranges)
        .map(|(layer, units)| {
            let share = |(least, most): &(Ratio, Ratio)| {
                if least < most { (most / (most - least)).to_f64().unwrap_or(0.0).clamp(0.0, 1.0) } else { 0.0 }
            };
            let (dense, _) = MixedInequality::map(network, layer)?;
            Some((dense.weight().columns(), units.iter().map(share).collect()))
        })
        .collect();
    let mut tilt = |before: usize| {
        let earlier: Vec<usize> = (0..before).filter(|&layer| layers[layer].is_some()).collect();
        let layer = *earlier.get(random.usize(0..earlier.len().max(1)))?;
        let (inputs, on) = layers[layer].as_ref()?;
        let mut position = vec![0.5; *inputs];
        if random.u8(0..4) == 0 {
            position.fill_with(|| random.f64());
        }
        let digits = |shares: &[f64]| {
            shares.iter().map(|&share| format!("{:02x}", MixedInequality::parts(share))).collect::<String>()
        };
        let (position, on) = (digits(&position), digits(on));
        let softness = [1.0, 0.9][random.usize(0..2)];
        Some(json!({ "layer": layer, "position": position, "on": on, "softness": softness }))
    };
    for (index, layer) in certificate["links"][0]["layers"].as_array_mut().ok_or("layers")?.iter_mut().enumerate() {
        let letters = layer["units"].as_str().ok_or("letters")?.to_owned();
        let mut facts = layer["facts"].as_array().cloned().unwrap_or_default();
        if index > 0 && layer.as_object_mut().and_then(|layer| layer.remove("linear")).is_some() {
            let sides = |(unit, letter)| ["upper", "lower"].map(|side| (unit, letter, side));
            for (unit, letter, side) in letters.chars().enumerate().flat_map(sides) {
                if letter != '-' || side == "upper" {
                    facts.push(json!({ "unit": unit, "side": side, "tree": [{}] }));
                }
            }
        }
        for leaf in facts.iter_mut().filter_map(|fact| fact["tree"].as_array_mut()).flatten().filter(|x| x.is_object())
        {
            if let Some(tilt) = tilt(index) {
                leaf["tilt"] = tilt;
            }
        }
        if !facts.is_empty() {
            layer["facts"] = facts.into();
        }
    }
    // Other lines give other ranges, of which the rounding of single precision depends.
    if let Some(deltas) = certificate.get_mut("delta_f32").and_then(Value::as_array_mut) {
        for delta in deltas {
            match delta.as_array_mut() {
                Some(each) => each.iter_mut().for_each(|delta| *delta = json!(2.0 * delta.as_f64().unwrap_or(0.0))),
                None => *delta = json!(2.0 * delta.as_f64().unwrap_or(0.0)),
            }
        }
    }
    let case = Case { certificate: serde_json::to_vec(&certificate)?, ..case };
    let certificate = Certificate::from_bytes(&case.certificate)?;
    verify_exactly(&sealed(&case.first).ok_or("first")?, &sealed(&case.second).ok_or("second")?, &certificate, &())?;
    Ok(case)
}

/// One change somewhere, and what it was. Where a network changes, the fingerprint mostly does too, or the change would
/// be found out by that.
fn changed(random: &mut Rng, case: &Case) -> Anything<(Case, String)> {
    let mut certificate: Value = serde_json::from_slice(&case.certificate)?;
    let (mut first, mut second) = (case.first.clone(), case.second.clone());
    let kind = random.u8(0..8);
    let what = match kind {
        0 | 1 => {
            let (name, file) = if kind == 0 { ("first", &mut first) } else { ("second", &mut second) };
            let document = Document::from_bytes(file.clone(), None)?;
            if let Some(bytes) = with_a_changed_weight(random, &document) {
                *file = bytes;
            }
            if let (Some(sealed), true) = (sealed(file), random.u8(0..8) > 0) {
                certificate[name] = sealed.sha256.into();
            }
            format!("a weight of the {name} network")
        }
        _ => mutate(random, &mut certificate),
    };
    Ok((Case { first, second, certificate: serde_json::to_vec(&certificate)? }, what))
}

/// All tilts in a certificate, in their order.
fn tilts_of(case: &Case) -> Anything<Vec<Value>> {
    fn collect(value: &Value, found: &mut Vec<Value>) {
        match value {
            Value::Array(parts) => parts.iter().for_each(|part| collect(part, found)),
            Value::Object(parts) => {
                found.extend(parts.get("tilt").cloned());
                parts.values().for_each(|part| collect(part, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::from_slice(&case.certificate)?, &mut found);
    Ok(found)
}

/// Whether all that a certificate says is true, of whatever networks: found out without the checker.
fn is_true(first: &HashedModel, second: &HashedModel, certificate: &Value) -> bool {
    let networks = [first, second].map(|sealed| sealed.model.network());
    let bound = |name: &str| {
        certificate["domain"][name].as_array().map_or(&certificate["domain"][name], |list| &list[0]).as_f64()
    };
    let (Some(lo), Some(hi)) = (bound("lo"), bound("hi")) else { return false };
    let Ok(domain) = Domain::uniform(1, lo, hi) else { return false };
    let seen = differences_in_single(networks[0], networks[1], &domain);
    certificate["first"] == first.sha256
        && certificate["second"] == second.sha256
        && certificate["domain"]["inputs"] == 1
        && are_bounds(&differences(networks[0], networks[1], &domain), &certificate["delta"], |most, delta| {
            *most <= exact(delta)
        })
        && (certificate.get("delta_f32").is_none()
            || are_bounds(&seen, &certificate["delta_f32"], |most, delta| *most <= delta))
        && are_true(networks[0], &domain, &certificate["links"][0])
}

/// Whether deltas, for each output one or one for each element, are no less than what is there.
fn are_bounds<T>(most: &[Vec<T>], deltas: &Value, holds: impl Fn(&T, f64) -> bool) -> bool {
    let deltas = deltas.as_array().map(Vec::as_slice).unwrap_or_default();
    deltas.len() == most.len()
        && most.iter().zip(deltas).all(|(most, delta)| match delta.as_array() {
            Some(deltas) => {
                deltas.len() == most.len()
                    && most
                        .iter()
                        .zip(deltas)
                        .all(|(most, delta)| delta.as_f64().is_some_and(|delta| holds(most, delta)))
            }
            None => delta.as_f64().is_some_and(|delta| most.iter().all(|most| holds(most, delta))),
        })
}

/// Whether what a link says of the units of its first network is true, and its case distinctions are whole.
fn are_true(network: &Network, domain: &Domain, link: &Value) -> bool {
    let point = |index: &Value| -> Option<Vec<Vec<_>>> {
        let point = &link["points"][index.as_u64()? as usize];
        let x = match point.as_str() {
            Some(digit) if digit.chars().next()?.to_digit(16)? >= 8 => domain.hull().hi()[0],
            Some(_) => domain.hull().lo()[0],
            None => point[0].as_f64()?,
        };
        domain.contains(&[x]).then(|| values_at(network, vec![exact(x)]))
    };
    let layers = link["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ranges = ranges(network, domain);
    layers.len() == network.layers().len()
        && layers.iter().zip(network.layers()).zip(&ranges).all(|((layer, id), ranges)| {
            let value = network.pre_activation(id).index();
            let letters = layer["units"].as_str().unwrap_or_default();
            let mut witnesses = layer["witnesses"].as_array().into_iter().flatten();
            let mut facts = layer["facts"].as_array().into_iter().flatten();
            letters.len() == ranges.len()
                && letters.chars().zip(ranges).enumerate().all(|(unit, (letter, (least, most)))| match letter {
                    '-' => *most <= Zero::zero(),
                    '+' => *least >= Zero::zero(),
                    '~' => witnesses.next().is_some_and(|pair| {
                        let off = point(&pair[0]).is_some_and(|values| values[value][unit] < Zero::zero());
                        let on = point(&pair[1]).is_some_and(|values| values[value][unit] > Zero::zero());
                        off && on
                    }),
                    _ => letter == '?',
                })
                && facts.all(|fact| is_whole(&fact["tree"]))
        })
}

/// Whether a list is a whole tree: one leaf more than case distinctions, and not before the end.
fn is_whole(tree: &Value) -> bool {
    let nodes = tree.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut open = 1_i64;
    nodes.iter().enumerate().all(|(index, node)| {
        open += if node.is_array() { 1 } else { -1 };
        open > 0 || index + 1 == nodes.len()
    }) && open == 0
}

#[test]
fn no_false_certificate_is_verified() -> Anything {
    let (mut made, mut false_ones, mut passed, mut doubtful) = (0, 0, 0, 0);
    // Changes of tilts, refused and verified.
    let mut tilts = [0, 0];
    let mut kinds = Kinds::default();
    let mut files = Files::new()?;
    let seeds = (0..NETWORKS).chain(LINKED_SEEDS).chain(SPLIT_SEEDS).map(|seed| (seed, "plain"));
    let paths = (0..PATHS).map(|seed| (seed, "with paths"));
    for (seed, kind) in seeds.chain(TILTED_SEEDS.map(|seed| (seed, "tilted"))).chain(paths) {
        let case = match kind {
            "tilted" => tilted(seed)?,
            "with paths" => with_paths()?,
            _ => case(seed)?,
        };
        kinds.count(&case.certificate)?;
        let mut random = Rng::with_seed(seed);
        for change in 0..CHANGES {
            let (mutant, what) = changed(&mut random, &case)?;
            let label = format!("network {seed}, {kind}, change {change}: {what}");
            made += 1;
            let (Some(first), Some(second)) = (sealed(&mutant.first), sealed(&mutant.second)) else { continue };
            let is_true = is_true(&first, &second, &serde_json::from_slice(&mutant.certificate)?);
            false_ones += usize::from(!is_true);
            let Ok(certificate) = Certificate::from_bytes(&mutant.certificate) else {
                files.add(&mutant, "broken", label)?;
                continue;
            };
            let checked = [verify, verify_exactly].map(|check| check(&first, &second, &certificate, &()));
            for verdict in &checked {
                assert!(is_true || verdict.is_err(), "{label}: false, and verified");
            }
            // With rounding, what just holds may just fail; not the other way round.
            let [rounded, exact] = &checked;
            assert!(exact.is_ok() || rounded.is_err(), "{label}: refused only without rounding: {exact:?}");
            doubtful += usize::from(exact.is_ok() != rounded.is_ok());
            passed += usize::from(exact.is_ok());
            tilts[usize::from(exact.is_ok())] += usize::from(tilts_of(&mutant)? != tilts_of(&case)?);
            files.add(&mutant, if exact.is_ok() { "verified" } else { "refused" }, label)?;
        }
    }
    println!(
        "{made} changes, {false_ones} of them false, {passed} verified, {doubtful} only without rounding; \
         tilts: {tilts:?}; {kinds:?}"
    );
    assert!(made >= 2000 && false_ones >= 900 && passed >= 300, "{made} {false_ones} {passed}");
    assert!(kinds.is_diverse() && tilts.iter().all(|&count| count >= 10), "{kinds:?} {tilts:?}");
    files.ask_the_other_checker()
}

/// What there is in the certificates that are changed.
#[derive(Debug, Default)]
struct Kinds {
    splits: usize,
    multipliers: usize,
    slopes: usize,
    tilts: usize,
    anchors: usize,
    multiples: usize,
    constants: usize,
    carriers: usize,
    links: usize,
    single: usize,
    elements: usize,
}

impl Kinds {
    fn count(&mut self, certificate: &[u8]) -> Anything {
        let text = std::str::from_utf8(certificate)?;
        for (count, sign) in [
            (&mut self.splits, "\"tree\":[["),
            (&mut self.multipliers, "multipliers"),
            (&mut self.slopes, "slopes"),
            (&mut self.tilts, "tilt"),
            (&mut self.anchors, "anchors"),
            (&mut self.multiples, "multiple"),
            (&mut self.constants, "constant"),
            (&mut self.carriers, "\"linear\"]"),
            (&mut self.links, "network"),
            (&mut self.single, "delta_f32"),
            (&mut self.elements, "\"delta\":[["),
        ] {
            *count += usize::from(text.contains(sign));
        }
        Ok(())
    }

    fn is_diverse(&self) -> bool {
        let Self { splits, multipliers, slopes, tilts, anchors, multiples, constants, carriers, links, .. } = *self;
        let others = [self.single, self.elements];
        let counts = [splits, multipliers, slopes, tilts, anchors, multiples, constants, carriers, links];
        counts.iter().chain(&others).all(|&count| count > 0)
    }
}

/// All changed certificates in a folder, for the other checker.
struct Files {
    folder: tempfile::TempDir,
    list: String,
    verdicts: Vec<(&'static str, String)>,
}

impl Files {
    fn new() -> Anything<Self> {
        Ok(Self { folder: tempfile::tempdir()?, list: String::new(), verdicts: Vec::new() })
    }

    fn add(&mut self, case: &Case, verdict: &'static str, label: String) -> Anything {
        let number = self.verdicts.len();
        let parts = [("first.onnx", &case.first), ("second.onnx", &case.second), ("leo", &case.certificate)];
        let mut paths = Vec::new();
        for (suffix, bytes) in parts {
            let path = self.folder.path().join(format!("{number}.{suffix}"));
            std::fs::write(&path, bytes)?;
            paths.push(path.to_string_lossy().into_owned());
        }
        self.list += &format!("{}\n", paths.join("\t"));
        self.verdicts.push((verdict, label));
        Ok(())
    }

    /// `tools/check.py`, which was written from the description of the format, comes to the same verdicts.
    fn ask_the_other_checker(&self) -> Anything {
        let Ok(interpreter) = std::env::var("LEO_PYTHON") else {
            eprintln!("skipped: LEO_PYTHON names no Python with NumPy; `make test` makes one");
            return Ok(());
        };
        let list = self.folder.path().join("list");
        std::fs::write(&list, &self.list)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/check.py");
        let output = Command::new(interpreter).arg(script).arg("--batch").arg(&list).output()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let printed = String::from_utf8(output.stdout)?;
        assert_eq!(printed.lines().count(), self.verdicts.len());
        let pairs = printed.lines().zip(&self.verdicts).filter(|(line, (verdict, _))| !line.starts_with(verdict));
        let differences =
            pairs.map(|(line, (verdict, label))| format!("{label}: {verdict}, and the other checker says {line}"));
        let differences: Vec<String> = differences.collect();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        Ok(())
    }
}
