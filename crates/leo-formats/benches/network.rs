//! How fast networks of the paper's size (784-100-100-10) are read and run.
//!
//! `cargo bench -p leo-network` prints the time a call and, for evaluation, samples a second.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use leo_formats::onnx::Document;
use leo_network::{Evaluator, Network, Real, ValueId};

fn main() {
    divan::main();
}

/// A network of the paper's, trained with l1 5e-4.
const FILE: &[u8] = include_bytes!("../../../models/mnist/100-100-l1-0.0005-seed-0.onnx");

fn paper_network() -> Network {
    Document::from_bytes(FILE, None).expect("the file is whole").network().clone()
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
    bencher.bench(|| Document::from_bytes(black_box(FILE), None));
}
