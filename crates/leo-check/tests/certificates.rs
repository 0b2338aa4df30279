//! What an unsound prover might write, and is refused; what a sound one writes, and is verified.

mod support;

use leo_check::{
    BoundProof, Certificate, Exact, Expression, LayerProof, Number, Proof, Refusal, Relaxation, Side, SplitTree,
    Status, Target, verify, verify_exactly,
};
use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{Dense, Matrix, Relu, Reshape};
use leo_network::{Domain, Network, Shape, UnitId, ValueId};

use support::{Anything, Case, Layer, chain};

/// Units of one layer, without any proof but intervals.
fn units(units: Vec<Status>) -> Proof {
    Proof { layers: vec![LayerProof { units, ..LayerProof::default() }], points: Vec::new() }
}

/// A unit with a maximum just above 0 is left out.
fn nearly_off(status: Status) -> Anything<Case> {
    Ok(Case {
        networks: [chain(&[(&[&[1.0]], &[-1.0 + 1e-12]), (&[&[1.0]], &[0.0])])?, chain(&[(&[&[0.0]], &[0.0])])?],
        domain: (0.0, 1.0),
        proof: units(vec![status]),
        claims: vec![vec![Expression::constant(0.0)]],
        roles: vec![],
        delta: 1e-9,
    })
}

#[test]
fn a_unit_that_can_be_on_is_not_off() -> Anything {
    let refusal = nearly_off(Status::OFF)?.check()?.expect_err("its maximum is 1e-12");
    assert!(matches!(refusal, Refusal::Unit { layer: 0, unit: 0, .. }), "{refusal}");
    // That it is nearly off is true all the same, and may be made use of.
    assert!(nearly_off(Status::Undecided)?.check()?.is_ok());
    let refusal = Case { delta: 0.99e-12, ..nearly_off(Status::Undecided)? }.check()?.expect_err("it moves by 1e-12");
    assert!(matches!(refusal, Refusal::Delta { output: 0, element: 0, .. }), "{refusal}");
    Ok(())
}

#[test]
fn a_unit_that_can_be_off_is_not_on() -> Anything {
    let case = Case {
        networks: [chain(&[(&[&[1.0]], &[-1e-12]), (&[&[1.0]], &[0.0])])?, chain(&[(&[&[1.0]], &[-1e-12])])?],
        domain: (0.0, 1.0),
        proof: units(vec![Status::ON]),
        claims: vec![vec![Expression::linear(0.0)]],
        roles: vec![],
        delta: 1e-9,
    };
    assert!(matches!(case.check()?, Err(Refusal::Unit { layer: 0, unit: 0, .. })));
    Ok(())
}

/// Two linear functions, carried past a layer.
fn carried(carriers: Layer<'_>, readers: Layer<'_>) -> Anything<Case> {
    Ok(Case {
        networks: [
            chain(&[
                (&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]], &[5.0, 5.0, 5.0]),
                (&[&[1.0, 0.0, 1.0], &[0.0, 1.0, 1.0]], &[0.0, 0.0]),
            ])?,
            chain(&[carriers, readers])?,
        ],
        domain: (-1.0, 1.0),
        proof: units(vec![Status::ON; 3]),
        claims: vec![vec![Expression::linear(0.0); 3]],
        roles: vec![vec![Expression::linear(0.0); carriers.0.len()]],
        delta: 1e-9,
    })
}

#[test]
fn carriers_must_not_go_negative() -> Anything {
    // 2 x + y + 10 and x + 2 y + 10.
    let rows: [&[f64]; 2] = [&[2.0, 1.0], &[1.0, 2.0]];
    let readers: [&[f64]; 2] = [&[1.0, 0.0], &[0.0, 1.0]];
    assert!(carried((&rows, &[10.0, 10.0]), (&readers, &[0.0, 0.0]))?.check()?.is_ok());
    assert!(carried((&rows, &[3.0, 3.0]), (&readers, &[7.0, 7.0]))?.check()?.is_ok());
    let refusal = carried((&rows, &[2.9, 3.0]), (&readers, &[7.1, 7.0]))?.check()?.expect_err("it is -0.1 at a corner");
    assert!(matches!(refusal, Refusal::Delta { output: 0, element: 0, .. }), "{refusal}");
    Ok(())
}

#[test]
fn a_rank_that_is_too_small_is_found_out() -> Anything {
    let refusal = carried((&[&[2.0, 1.0]], &[10.0]), (&[&[1.0], &[1.0]], &[0.0, 0.0]))?.check()?;
    let refusal = refusal.expect_err("x + 2 y is not carried");
    assert!(matches!(refusal, Refusal::Delta { output: 0, element: 1, proved, .. } if proved > 1.9), "{refusal}");
    Ok(())
}

#[test]
fn a_delta_that_is_too_small_is_refused() -> Anything {
    let moved = |delta| -> Anything<Case> {
        let rows: [&[f64]; 2] = [&[2.0, 1.0], &[1.0, 2.0]];
        let readers: [&[f64]; 2] = [&[1.0, 0.0], &[0.0, 1.0]];
        Ok(Case { delta, ..carried((&rows, &[10.0, 10.0]), (&readers, &[0.25, 0.0]))? })
    };
    assert!(moved(0.25 + 1e-9)?.check()?.is_ok());
    for delta in [0.25 - 1e-9, 0.0, -1.0] {
        assert!(matches!(moved(delta)?.check()?, Err(Refusal::Delta { delta: said, .. }) if said == delta));
    }
    Ok(())
}

/// `relu(x) + relu(-x)` is `|x|`: that `1 - |x| - |1 - x|`, a unit of the second layer, is nowhere positive takes case
/// distinctions, with the default slopes.
fn split() -> Anything<Case> {
    let first: [&[f64]; 4] = [&[1.0], &[-1.0], &[1.0], &[-1.0]];
    let layers = |last: f64| chain(&[(&first, &[0.0, 0.0, -1.0, 1.0]), (&[&[-1.0; 4]], &[1.0]), (&[&[last]], &[2.0])]);
    let leaf = |multipliers: &[f64]| {
        Box::new(SplitTree::Leaf { multipliers: multipliers.to_vec(), lines: Relaxation::default() })
    };
    let cut = |unit: usize, off, on| SplitTree::Split { unit: UnitId::new(0, unit), knot: 0, halves: [off, on] };
    // At first only 2 x is known to be no less. That is nowhere positive where x <= 0; elsewhere, relu(-x) is 0.
    let tree = cut(0, leaf(&[2.0]), Box::new(cut(1, leaf(&[]), leaf(&[0.0, 1.0]))));
    let open = LayerProof { units: vec![Status::Undecided; 4], ..LayerProof::default() };
    let off = LayerProof {
        units: vec![Status::OFF],
        bounds: vec![BoundProof { target: Target { unit: 0, side: Side::Upper }, tree }],
        ..LayerProof::default()
    };
    let roles = (0..4).map(|unit| Expression::copy(UnitId::new(0, unit))).collect();
    Ok(Case {
        networks: [layers(1.0)?, layers(0.0)?],
        domain: (-3.0, 2.0),
        proof: Proof { layers: vec![open, off], points: Vec::new() },
        claims: vec![vec![Expression::Itself; 4], vec![Expression::constant(0.0)]],
        roles: vec![roles, vec![Expression::copy(UnitId::new(1, 0))]],
        delta: 0.0,
    })
}

#[test]
fn case_distinctions_must_be_whole() -> Anything {
    let case = split()?;
    case.check()??;
    let ([first, second], certificate) = case.certificate()?;
    let text = String::from_utf8(certificate.to_bytes()?)?;
    let tree = r#""tree":[[0,0],{"multipliers":[2.0]},[0,1],{},{"multipliers":[0.0,1.0]}]"#;
    assert!(text.contains(tree), "{text}");
    let long = format!(r#""tree":[{}{{}}]"#, "[0,0],".repeat(100_000));
    for changed in [
        r#""tree":[]"#,
        r#""tree":[{}]"#,
        r#""tree":[[0,0],{"multipliers":[2.0]},[0,1],{}]"#,
        r#""tree":[[0,0],{"multipliers":[2.0]},[0,1],{},{"multipliers":[0.0,1.0]},{}]"#,
        r#""tree":[[0,0],{"multipliers":[2.0]},{}]"#,
        r#""tree":[[0,0],[0,1],{},{"multipliers":[0.0,1.0]},{"multipliers":[2.0]}]"#,
        r#""tree":[[0,0],{"multipliers":[2.0,0.0]},[0,1],{},{"multipliers":[0.0,1.0]}]"#,
        r#""tree":[[0,0],{"multipliers":[2.0],"slopes":[[0,4,1.0]]},[0,1],{},{"multipliers":[0.0,1.0]}]"#,
        r#""tree":[[0,0],{"multipliers":[-2.0]},[0,1],{},{"multipliers":[0.0,1.0]}]"#,
        r#""tree":[[0,0],{"multipliers":[2.0]},[0,4],{},{"multipliers":[0.0,1.0]}]"#,
        r#""tree":[[1,0],{"multipliers":[2.0]},[0,1],{},{"multipliers":[0.0,1.0]}]"#,
        r#""tree":[[7,0],{"multipliers":[2.0]},[0,1],{},{"multipliers":[0.0,1.0]}]"#,
        long.as_str(),
    ] {
        let certificate = Certificate::from_bytes(text.replace(tree, changed).as_bytes())?;
        for checked in [verify, verify_exactly].map(|check| check(&first, &second, &certificate, &())) {
            let refusal = checked.expect_err(&changed[..changed.len().min(200)]);
            assert!(matches!(refusal, Refusal::Unit { layer: 1, unit: 0, .. }), "{refusal}");
        }
    }
    Ok(())
}

#[test]
fn what_is_said_of_other_files_is_refused() -> Anything {
    let case = nearly_off(Status::Undecided)?;
    let ([first, second], certificate) = case.certificate()?;
    let refusal = verify(&second, &second, &certificate, &()).expect_err("another file");
    assert!(matches!(refusal, Refusal::Hash { which: "first", .. }), "{refusal}");
    let other = Document::from_network(
        case.networks[1].network(),
        &Export { float: Float::F64, input: "x".to_owned(), outputs: vec!["z".to_owned()], metadata: vec![] },
    )?;
    let renamed = Case { networks: [case.networks[0].clone(), other], ..nearly_off(Status::Undecided)? };
    assert!(matches!(renamed.check()?, Err(Refusal::Interface(_))));
    let text = String::from_utf8(certificate.to_bytes()?)?;
    for (old, new) in [
        (r#""inputs":1"#, r#""inputs":2"#),
        (r#""inputs":1"#, r#""inputs":18446744073709551615"#),
        (r#""lo":0.0"#, r#""lo":2.0"#),
        (r#""lo":0.0"#, r#""lo":[0.0,0.0]"#),
        (r#""lo":0.0"#, r#""lo":[]"#),
        (r#""hi":1.0"#, r#""hi":1.1"#),
        (r#""delta":[1e-9]"#, r#""delta":[]"#),
        (r#""delta":[1e-9]"#, r#""delta":[1e-9,1.0]"#),
        (r#""units":"?""#, r#""units":"~""#),
        (r#""units":"?""#, r#""units":"!""#),
        (r#""units":"?""#, r#""units":"??""#),
        (r#"[0,{"constant":0.0}]"#, r#"[1,{"constant":0.0}]"#),
        (r#"[0,{"constant":0.0}]"#, r#"[0,{"multiple":[0,1.0]}]"#),
        (r#""roles":[]"#, r#""roles":[["linear"]]"#),
        (r#""roles":[]"#, r#""roles":[],"network":"00""#),
        (r#""roles":[]"#, r#""roles":[],"anchors":[["x","nothing"]]"#),
        (r#""links":["#, r#""links":[],"nothing":["#),
    ] {
        assert!(text.contains(old), "{old} is not in {text}");
        let Ok(certificate) = Certificate::from_bytes(text.replace(old, new).as_bytes()) else { continue };
        assert!(verify(&first, &second, &certificate, &()).is_err(), "{new}");
    }
    Ok(())
}

#[test]
fn broken_files_are_no_certificates() -> Anything {
    let (_, certificate) = split()?.certificate()?;
    let text = String::from_utf8(certificate.to_bytes()?)?;
    assert_eq!(Certificate::from_bytes(text.as_bytes())?, certificate);
    for length in 0..text.len() - 2 {
        assert!(Certificate::from_bytes(&text.as_bytes()[..length]).is_err(), "{length}");
    }
    for (old, new) in [
        (r#""version":2"#, r#""version":3"#),
        ("leo certificate", "certificate"),
        (r#""version":2"#, r#""version":2,"author":"me""#),
        (r#""delta":[0.0]"#, r#""delta":[null]"#),
        (r#""delta":[0.0]"#, r#""delta":[1e999]"#),
        (r#""delta":[0.0]"#, r#""delta":[NaN]"#),
        (r#""delta":[0.0]"#, r#""delta":0.0"#),
        (r#""delta":[0.0]"#, r#""delta":[[[0.0]]]"#),
        (r#""delta":[0.0]"#, r#""delta":[0.0],"delta_f32":0.0"#),
        (r#""version":2"#, r#""version":1,"delta_f32":[0.0]"#),
        (r#""units":"-""#, r#""units":["-"]"#),
        (r#""side":"upper""#, r#""side":"left""#),
        (r#"[0,0]"#, r#"[0]"#),
        (r#"[0,0]"#, r#"[0,-1]"#),
        (r#"{"multipliers":[2.0]}"#, r#"{"multiplier":[2.0]}"#),
    ] {
        assert!(text.contains(old), "{old} is not in {text}");
        assert!(Certificate::from_bytes(text.replacen(old, new, 1).as_bytes()).is_err(), "{new}");
    }
    let deep = text.replacen(r#""delta":[0.0]"#, &format!(r#""delta":{}"#, "[".repeat(1_000_000)), 1);
    assert!(Certificate::from_bytes(deep.as_bytes()).is_err());
    Ok(())
}

/// Serde takes a list of fields for an object, and `null` for what is missing.
#[test]
fn objects_are_objects_and_null_is_nothing() -> Anything {
    let (_, certificate) = split()?.certificate()?;
    let text = String::from_utf8(certificate.to_bytes()?)?;
    let tree = r#"[[0,0],{"multipliers":[2.0]},[0,1],{},{"multipliers":[0.0,1.0]}]"#;
    let fact = format!(r#"{{"unit":0,"side":"upper","tree":{tree}}}"#);
    let (start, end) = (text.find(r#"{"layers""#).ok_or("a link")?, text.rfind("]}").ok_or("an end")?);
    let link = text[start..end].to_owned();
    let roles = &link[link.find(r#""roles":"#).ok_or("roles")? + 8..link.len() - 1];
    let layers = &link[r#"{"layers":"#.len()..link.find(r#","roles""#).ok_or("roles")?];
    for (old, new) in [
        (link.as_str(), format!("[{layers},[],[],{roles}]")),
        (r#"{"inputs":1,"lo":-3.0,"hi":2.0}"#, "[1,-3.0,2.0]".to_owned()),
        (r#"{"units":"????"}"#, r#"["????"]"#.to_owned()),
        (fact.as_str(), format!(r#"[0,"upper",{tree}]"#)),
        (r#"{"multipliers":[2.0]}"#, "[[],[2.0]]".to_owned()),
        (r#",{},"#, ",[],".to_owned()),
        (r#""side":"upper""#, r#""side":{"upper":null}"#.to_owned()),
        (r#""roles":"#, r#""network":null,"roles":"#.to_owned()),
        (r#""roles":"#, r#""points":null,"roles":"#.to_owned()),
    ] {
        assert!(text.contains(old), "{old} is not in {text}");
        let changed = text.replacen(old, &new, 1);
        assert!(serde_json::from_str::<serde_json::Value>(&changed).is_ok(), "{changed} is no JSON");
        assert!(Certificate::from_bytes(changed.as_bytes()).is_err(), "{new}");
    }
    let spelt_out =
        text.replacen(r#""roles":"#, r#""points":[],"anchors":[],"roles":"#, 1).replacen("{}", r#"{"slopes":[]}"#, 1);
    assert_eq!(Certificate::from_bytes(spelt_out.as_bytes())?, certificate);
    Ok(())
}

/// A small unit with many cases, in a network that is large elsewhere: by the count of products too much, though each
/// case is soon proved.
#[test]
fn bounds_that_take_too_much_work_are_refused() -> Anything {
    /// How wide the network is where it is large.
    const WIDTH: usize = 1024;
    fn check<N: Number>(positions: usize, depth: usize) -> Anything<Result<(), Refusal>> {
        let dense = |rows: usize, columns: usize| -> Anything<Dense> {
            Ok(Dense::new(Matrix::new(rows, columns, vec![1.0; rows * columns])?, Some(vec![1.0; rows]))?)
        };
        let mut builder = Network::builder(Shape::new([1])?);
        let broad = builder.add("broad", dense(positions * WIDTH, 1)?, &[ValueId::INPUT])?;
        let rows = builder.add("rows", Reshape::new(Shape::new([positions, WIDTH])?), &[broad])?;
        let large = builder.add("large", dense(WIDTH, WIDTH)?, &[rows])?;
        let mut value = ValueId::INPUT;
        for _ in 0..2 {
            value = builder.add("fc", dense(1, 1)?, &[value])?;
            value = builder.add("relu", Relu, &[value])?;
        }
        let network = builder.finish(vec![value, large])?;

        let layer = network.layers().next().ok_or("a layer")?;
        let mut tree = SplitTree::Leaf { multipliers: vec![], lines: Relaxation::default() };
        for _ in 0..depth {
            let halves = [Box::new(tree.clone()), Box::new(tree)];
            tree = SplitTree::Split { unit: UnitId { layer, unit: 0 }, knot: 0, halves };
        }
        let open = LayerProof { units: vec![Status::Undecided], ..LayerProof::default() };
        let bounds = vec![BoundProof { target: Target { unit: 0, side: Side::Upper }, tree }];
        let proof = Proof { layers: vec![open.clone(), LayerProof { bounds, ..open }], points: vec![] };
        Ok(proof.check::<N>(&network, &Domain::uniform(1, -2.0, 2.0)?).map(|_| ()))
    }
    check::<f64>(16, 10)??;
    check::<Exact>(1, 10)??;
    for checked in [check::<f64>(16, 15)?, check::<Exact>(1, 15)?] {
        let refusal = checked.expect_err("too much work");
        assert!(matches!(&refusal, Refusal::Layer { layer: 1, reason } if reason.contains("work")), "{refusal}");
    }
    Ok(())
}
