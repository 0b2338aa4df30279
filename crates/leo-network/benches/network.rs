//! How fast networks of the paper's size (784-100-100-10) are read and run.
//!
//! `cargo bench -p leo-network` prints the time a call and, for evaluation, samples a second.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use leo_network::onnx::{Document, Export, Float};
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Evaluator, Network, NetworkError, Real, Shape, ValueId};

fn main() {
    divan::main();
}

/// A network with these widths and arbitrary weights.
fn network(widths: &[usize]) -> Result<Network, NetworkError> {
    let mut random = fastrand::Rng::with_seed(0);
    let mut numbers = |count: usize| (0..count).map(|_| f64::from(random.f32() - 0.5)).collect::<Vec<_>>();
    let mut builder = Network::builder(Shape::new([widths[0]])?);
    let mut last = ValueId::INPUT;
    for (layer, pair) in widths.windows(2).enumerate() {
        let weight = Matrix::new(pair[1], pair[0], numbers(pair[0] * pair[1]))?;
        last = builder.add(format!("fc{layer}"), Dense::new(weight, Some(numbers(pair[1])))?, &[last])?;
        if layer + 2 < widths.len() {
            last = builder.add(format!("relu{layer}"), Relu, &[last])?;
        }
    }
    builder.finish(vec![last])
}

fn paper_network() -> Network {
    network(&[784, 100, 100, 10]).expect("the widths are small and the weights finite")
}

fn samples<T: Real>(rows: usize) -> Vec<T> {
    (0..rows * 784).map(|i| T::from_f64((i % 255) as f64 / 255.0)).collect()
}

/// A whole test set through the network.
#[divan::bench(types = [f32, f64], args = [1, 2])]
fn run_10_000_samples<T: Real>(bencher: Bencher<'_, '_>, threads: usize) {
    let evaluator = Evaluator::<T>::new(&paper_network());
    let samples = samples::<T>(10_000);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be made");
    bencher.counter(ItemsCount::new(10_000_usize)).bench(|| pool.install(|| evaluator.run(black_box(&samples))));
}

/// One block, as a search for witnesses evaluates it again and again: nothing is allocated.
#[divan::bench(types = [f32, f64])]
fn forward_one_block<T: Real>(bencher: Bencher<'_, '_>) {
    let evaluator = Evaluator::<T>::new(&paper_network());
    let samples = samples::<T>(evaluator.block_rows());
    let mut workspace = evaluator.workspace();
    bencher
        .counter(ItemsCount::new(evaluator.block_rows()))
        .bench_local(|| black_box(evaluator.forward(&mut workspace, black_box(&samples)).get(ValueId::INPUT).len()));
}

/// From the bytes of a file to a network.
#[divan::bench]
fn read_onnx(bencher: Bencher<'_, '_>) {
    let export = Export { float: Float::F32, input: "x".into(), outputs: vec!["y".into()], metadata: vec![] };
    let document = Document::from_network(&paper_network(), &export).expect("the names fit");
    let bytes = document.to_bytes().expect("there are no external data");
    let bytes = prost::bytes::Bytes::from(bytes);
    bencher.bench(|| Document::from_bytes(black_box(bytes.clone()), None));
}
