//! Laws that hold for every network: written and read again it is the same; both precisions agree.

use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{Arithmetic, Broadcast, Dense, Elementwise, Matrix, Op, Relu, Reshape, Sum, Transpose};
use leo_network::{Evaluator, Network, NetworkError, Shape, ValueId};
use proptest::prelude::*;

/// What to add to a network; numbers are drawn on from `seed`.
#[derive(Clone, Debug)]
struct Step {
    kind: u8,
    width: usize,
    seed: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u8..7, 1_usize..6, any::<u64>()).prop_map(|(kind, width, seed)| Step { kind, width, seed });
    prop::collection::vec(step, 0..10)
}

/// Singles between -1 and 1.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| f64::from(random.f32() * 2.0 - 1.0)).collect()
}

/// A network of these steps, each on the value before; sums reach back to an earlier value of the same shape.
fn network(input: &[usize], steps: &[Step]) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new(input)?);
    let mut values = vec![ValueId::INPUT];
    for (index, step) in steps.iter().enumerate() {
        let last = values[values.len() - 1];
        let shape = builder.shape(last).clone();
        let (op, operands): (Op, Vec<ValueId>) = match step.kind {
            0 | 1 => {
                let weight = Matrix::new(step.width, shape.last(), numbers(step.width * shape.last(), step.seed))?;
                let bias = (step.kind == 0).then(|| numbers(step.width, step.seed ^ 1));
                (Dense::new(weight, bias)?.into(), vec![last])
            }
            2 => (Relu.into(), vec![last]),
            3 => {
                let extents: Vec<usize> = shape
                    .extents()
                    .iter()
                    .enumerate()
                    .map(|(axis, &extent)| if step.seed >> axis & 1 == 0 { extent } else { 1 })
                    .collect();
                let own = Shape::new(extents)?;
                let values =
                    numbers(own.elements(), step.seed).iter().map(|&value| f64::from(value as f32 + 1.5)).collect();
                let arithmetic = [Arithmetic::Add, Arithmetic::Multiply, Arithmetic::Divide][step.width % 3];
                (Elementwise::new(arithmetic, Broadcast::new(own, values)?)?.into(), vec![last])
            }
            4 => (Reshape::new(Shape::new([1, shape.elements()])?).into(), vec![last]),
            5 => (Transpose::reversal(shape.rank()).into(), vec![last]),
            _ => {
                let same: Vec<ValueId> =
                    values.iter().copied().filter(|&value| *builder.shape(value) == shape).collect();
                (Sum.into(), vec![last, same[step.width % same.len()]])
            }
        };
        values.push(builder.add(format!("step{index}"), op, &operands)?);
    }
    builder.finish(vec![values[values.len() - 1]])
}

fn export() -> Export {
    Export { float: Float::F32, input: "x".into(), outputs: vec!["y".into()], metadata: vec![] }
}

proptest! {
    #[test]
    fn written_and_read_again_it_computes_the_same(steps in steps(), rows in 1_usize..20) {
        let network = network(&[2, 3], &steps)?;
        let document = Document::from_network(&network, &export())?;
        let again = Document::from_bytes(document.to_bytes()?, None)?;
        prop_assert_eq!(again.network(), document.network());
        let samples = numbers(rows * 6, 7);
        let expected = Evaluator::<f64>::new(&network).run(&samples);
        let found = Evaluator::<f64>::new(again.network()).run(&samples);
        // MatMul with a bias becomes two nodes, whose sum may round once more.
        for (x, y) in expected[0].iter().zip(&found[0]) {
            prop_assert!((x - y).abs() <= 1e-9 * x.abs().max(1.0), "{} {}", x, y);
        }
    }

    #[test]
    fn both_precisions_agree(steps in steps(), rows in 1_usize..300) {
        let network = network(&[2, 3], &steps)?;
        let samples = numbers(rows * 6, 11);
        let singles: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
        let double = Evaluator::<f64>::new(&network).run(&samples);
        let single = Evaluator::<f32>::new(&network).run(&singles);
        let scale = double[0].iter().fold(1.0_f64, |scale, x| scale.max(x.abs()));
        for (x, y) in double[0].iter().zip(&single[0]) {
            prop_assert!((x - f64::from(*y)).abs() <= 1e-3 * scale, "{} {}", x, y);
        }
    }

    #[test]
    fn a_batch_is_its_samples(steps in steps(), rows in 1_usize..40) {
        let network = network(&[2, 3], &steps)?;
        let evaluator = Evaluator::<f64>::new(&network);
        let samples = numbers(rows * 6, 13);
        let together = evaluator.run(&samples);
        let alone: Vec<f64> = samples.chunks(6).flat_map(|sample| evaluator.run(sample)[0].clone()).collect();
        for (x, y) in together[0].iter().zip(&alone) {
            prop_assert!((x - y).abs() <= 1e-9 * x.abs().max(1.0), "{} {}", x, y);
        }
    }
}
