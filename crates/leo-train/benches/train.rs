//! How fast networks are trained: steps a second, with the recipe of the paper.
//!
//! `cargo bench -p leo-train` trains an epoch at a time, on MNIST if it is there (see `leo data`), and otherwise on
//! made-up images of which as much is 0. One thread trains one network; two threads train two.

use std::thread::scope;

use divan::Bencher;
use divan::counter::ItemsCount;
use leo_train::{DataPart, DataSet, Recipe, Training, library};

fn main() {
    divan::main();
}

fn data() -> DataSet {
    match library::locate("mnist").map(|place| DataSet::load(&place)) {
        Ok(Ok(data)) => data,
        _ => made_up(),
    }
}

/// As large as MNIST, and a fifth of its pixels on.
fn made_up() -> DataSet {
    let mut random = fastrand::Rng::with_seed(0);
    let mut part = |samples: usize| {
        let pixels: Vec<u8> = (0..samples * 784).map(|_| if random.u8(..) < 50 { random.u8(1..) } else { 0 }).collect();
        DataPart::new(784, &pixels, (0..samples).map(|sample| (sample % 10) as u8).collect())
    };
    DataSet::new(part(60_000), part(10_000))
}

/// An epoch for each of `threads` networks with these hidden layers, each on a thread of its own.
fn epochs(bencher: Bencher<'_, '_>, hidden: &[usize], l1: f64, threads: u64) {
    let data = data();
    let train = |seed| {
        let recipe = Recipe { hidden: hidden.to_vec(), l1, seed, ..Recipe::default() };
        let mut training = Training::new(recipe, &data).expect("the recipe is a good one");
        // The first epoch is not like the others: few outputs of ReLUs are 0 yet.
        training.epoch();
        training
    };
    let mut trainings: Vec<Training<'_>> = (0..threads).map(train).collect();
    let steps = data.train().len().div_ceil(Recipe::default().batch) * trainings.len();
    bencher.counter(ItemsCount::new(steps)).bench_local(|| {
        scope(|scope| {
            for training in &mut trainings {
                scope.spawn(|| training.epoch());
            }
        });
    });
}

#[divan::bench(args = [25, 50, 100, 800], sample_count = 8)]
fn one_thread(bencher: Bencher<'_, '_>, width: usize) {
    epochs(bencher, &[width, width], 1e-4, 1);
}

#[divan::bench(args = [25, 50, 100, 800], sample_count = 8)]
fn two_threads(bencher: Bencher<'_, '_>, width: usize) {
    epochs(bencher, &[width, width], 1e-4, 2);
}

#[divan::bench(sample_count = 8)]
fn five_layers_of_100(bencher: Bencher<'_, '_>) {
    epochs(bencher, &[100; 5], 2e-4, 1);
}
