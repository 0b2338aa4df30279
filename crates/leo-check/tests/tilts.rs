//! Tilted lines above units (Anderson et al. 2020): what they prove, and what is refused of them.

mod support;

use std::sync::Arc;

use leo_check::{
    BoundProof, Certificate, Exact, Expression, LayerProof, MixedInequality, Proof, Refusal, Relaxation, Side,
    SplitTree, Status, Target, verify, verify_exactly,
};
use leo_network::op::{Arithmetic, Broadcast, Dense, Elementwise, Matrix, Relu, Reshape};
use leo_network::{Domain, LayerId, Network, Shape, UnitId, ValueId};

use support::{Anything, Case, chain};

/// Over the box, `relu(w z + b)` is nowhere above a linear function of one input, `x + c`: a unit of the second layer,
/// their difference, is nowhere positive. The chord above the first unit does not show it.
fn tilted(domain: (f64, f64), weights: [f64; 2], biases: [f64; 2], position: [u8; 2]) -> Anything<Case> {
    let layers =
        |last: f64| chain(&[(&[&weights, &[1.0, 0.0]], &biases), (&[&[1.0, -1.0]], &[0.0]), (&[&[last]], &[2.0])]);
    // All of the first weight, and nothing of the second, if the one does not help to turn the unit on at the position,
    // and the other does.
    let tilt = MixedInequality { layer: LayerId::new(0), position: position.to_vec(), on: vec![128, 0], softness: 0.5 };
    let lines = Relaxation { tilt: Some(Arc::new(tilt)), ..Relaxation::default() };
    let bounds = vec![BoundProof {
        target: Target { unit: 0, side: Side::Upper },
        tree: SplitTree::Leaf { multipliers: vec![], lines },
    }];
    let units = vec![Status::Undecided, Status::ON];
    let open = LayerProof { units, linear: true, ..LayerProof::default() };
    let off = LayerProof { units: vec![Status::OFF], bounds, ..LayerProof::default() };
    let copy = |layer, unit| Expression::copy(UnitId::new(layer, unit));
    Ok(Case {
        networks: [layers(1.0)?, layers(0.0)?],
        domain,
        proof: Proof { layers: vec![open, off], points: Vec::new() },
        claims: vec![vec![Expression::Itself; 2], vec![Expression::constant(0.0)]],
        roles: vec![vec![copy(0, 0), copy(0, 1)], vec![copy(1, 0)]],
        delta: 0.0,
    })
}

#[test]
fn tilted_lines_prove_what_chords_do_not() -> Anything {
    // relu(x + y - 1) <= x, because y <= 1; and relu(x - y) <= x + 1, because -1 <= x and -1 <= y.
    let corner = ((0.0, 1.0), [1.0, 1.0], [-1.0, 0.0]);
    let edge = ((-1.0, 1.0), [1.0, -1.0], [0.0, 1.0]);
    for ((domain, weights, biases), position) in [(corner, [0, 255]), (edge, [0, 0])] {
        let mut case = tilted(domain, weights, biases, position)?;
        case.check()??;
        let chord = SplitTree::Leaf { multipliers: vec![], lines: Relaxation::default() };
        case.proof.layers[1].bounds = vec![BoundProof { target: Target { unit: 0, side: Side::Upper }, tree: chord }];
        assert!(matches!(case.check()?, Err(Refusal::Unit { layer: 1, unit: 0, .. })));
        // Tilted another way, lines are above the unit all the same, and too far.
        for other in [[128, 128], [255, 0]] {
            let refusal = tilted(domain, weights, biases, other)?.check()?.expect_err("another line");
            assert!(matches!(refusal, Refusal::Unit { layer: 1, unit: 0, .. }), "{refusal}");
        }
    }
    // There is no room: a little more, and it is false.
    for (domain, weights, [first, second], position) in [
        (corner.0, corner.1, [(-1.0_f64).next_up(), 0.0], [0, 255]),
        (edge.0, edge.1, [1e-300, 1.0], [0, 0]),
        (edge.0, edge.1, [0.0, 1.0_f64.next_down()], [0, 0]),
    ] {
        let refusal = tilted(domain, weights, [first, second], position)?.check()?.expect_err("it can be on");
        assert!(matches!(refusal, Refusal::Unit { .. }), "{refusal}");
    }
    Ok(())
}

#[test]
fn senseless_tilts_are_refused() -> Anything {
    let ([first, second], certificate) = tilted((0.0, 1.0), [1.0, 1.0], [-1.0, 0.0], [0, 255])?.certificate()?;
    let text = String::from_utf8(certificate.to_bytes()?)?;
    let tilt = r#"{"layer":0,"position":"00ff","on":"8000","softness":0.5}"#;
    assert!(text.contains(&format!(r#""tree":[{{"tilt":{tilt}}}]"#)), "{text}");
    for (old, new) in [
        (r#""layer":0"#, r#""layer":1"#),
        (r#""layer":0"#, r#""layer":2"#),
        (r#""layer":0"#, r#""layer":18446744073709551615"#),
        (r#""position":"00ff""#, r#""position":"00""#),
        (r#""position":"00ff""#, r#""position":"00ffff""#),
        (r#""position":"00ff""#, r#""position":"""#),
        (r#""on":"8000""#, r#""on":"80""#),
        (r#""on":"8000""#, r#""on":"800000""#),
        (r#""on":"8000""#, r#""on":"80+0""#),
        (r#""softness":0.5"#, r#""softness":0.0"#),
        (r#""softness":0.5"#, r#""softness":-0.0"#),
        (r#""softness":0.5"#, r#""softness":-1.0"#),
    ] {
        let certificate = Certificate::from_bytes(text.replace(tilt, &tilt.replace(old, new)).as_bytes())?;
        for checked in [verify, verify_exactly].map(|check| check(&first, &second, &certificate, &())) {
            let refusal = checked.expect_err(new);
            assert!(matches!(refusal, Refusal::Unit { layer: 1, unit: 0, .. }), "{new}: {refusal}");
        }
    }
    for broken in [
        r#"{"layer":0,"position":"00ff","on":"8000"}"#,
        r#"{"layer":0,"position":"00ff","on":"8000","softness":1e999}"#,
        r#"{"layer":0,"position":null,"on":"8000","softness":0.5}"#,
        r#"{"layer":0,"position":0.5,"on":"8000","softness":0.5}"#,
        r#"{"layer":0.0,"position":"00ff","on":"8000","softness":0.5}"#,
        r#"{"layer":0,"position":"00ff","on":"8000","softness":0.5,"hard":1.0}"#,
        r#"[0,"00ff","8000",0.5]"#,
        r#"null"#,
    ] {
        assert!(Certificate::from_bytes(text.replace(tilt, broken).as_bytes()).is_err(), "{broken}");
    }
    Ok(())
}

/// Only pre-activations that one matrix makes of one vector can be tilted, and nothing may come after that.
#[test]
fn tilts_of_other_layers_are_refused() -> Anything {
    fn check(vectors: usize, adds: bool, position: usize, on: usize) -> Anything<Result<(), Refusal>> {
        let dense = |rows: usize, columns: usize| -> Anything<Dense> {
            Ok(Dense::new(Matrix::new(rows, columns, vec![1.0; rows * columns])?, None)?)
        };
        let mut builder = Network::builder(Shape::new([vectors, 2])?);
        let mut value = builder.add("first", dense(2, 2)?, &[ValueId::INPUT])?;
        if adds {
            let constant = Broadcast::new(Shape::new([1, 1])?, vec![-1.0])?;
            value = builder.add("add", Elementwise::new(Arithmetic::Add, constant)?, &[value])?;
        }
        value = builder.add("relu", Relu, &[value])?;
        value = builder.add("flat", Reshape::new(Shape::new([2 * vectors])?), &[value])?;
        value = builder.add("second", dense(1, 2 * vectors)?, &[value])?;
        value = builder.add("relu", Relu, &[value])?;
        let network = builder.finish(vec![value])?;

        let layer = network.layers().next().ok_or("a layer")?;
        let tilt = MixedInequality { layer, position: vec![128; position], on: vec![128; on], softness: 1.0 };
        let lines = Relaxation { tilt: Some(Arc::new(tilt)), ..Relaxation::default() };
        let bounds = vec![BoundProof {
            target: Target { unit: 0, side: Side::Upper },
            tree: SplitTree::Leaf { multipliers: vec![], lines },
        }];
        let open = |units| LayerProof { units: vec![Status::Undecided; units], ..LayerProof::default() };
        let proof = Proof { layers: vec![open(2 * vectors), LayerProof { bounds, ..open(1) }], points: vec![] };
        let domain = Domain::uniform(2 * vectors, -1.0, 1.0)?;
        let [rounded, exact] =
            [proof.check::<f64>(&network, &domain).map(|_| ()), proof.check::<Exact>(&network, &domain).map(|_| ())];
        assert_eq!(rounded.is_ok(), exact.is_ok());
        Ok(rounded)
    }
    check(1, false, 2, 2)??;
    for (vectors, adds, position, on) in [(1, true, 2, 2), (2, false, 2, 2), (2, false, 4, 4), (2, true, 4, 4)] {
        let refusal = check(vectors, adds, position, on)?.expect_err("a layer that cannot be tilted");
        assert!(matches!(refusal, Refusal::Unit { layer: 1, unit: 0, .. }), "{refusal}");
    }
    Ok(())
}
