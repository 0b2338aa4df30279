//! Networks with convolutions: channels that are planted are found, whatever random networks are made of, and what is
//! proved of them holds at points without any rounding.

mod support;

use fastrand::Rng;
use leo_check::{Checker, Exact, Number, Side, Target};
use leo_compress::{CompressOptions, Compressed, Rule, Tolerance, equivalent};
use leo_formats::onnx::{Document, Float};
use leo_network::op::{
    Arithmetic, Broadcast, Concat, Convolution, Dense, Elementwise, Matrix, MaxPool, Relu, Reshape, Select, Sum,
    SumPool, Window, WindowAxis,
};
use leo_network::{Builder, Domain, Network, NetworkError, Shape, ValueId};
use leo_stability::AnalysisOptions;
use support::{document, evaluate, exact, shrink, values_at};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A network in the making, with numbers that singles can hold.
struct Sketch {
    builder: Builder,
    random: Rng,
    layers: usize,
}

impl Sketch {
    fn new(shape: &[usize], seed: u64) -> Result<Self, NetworkError> {
        Ok(Self { builder: Network::builder(Shape::new(shape)?), random: Rng::with_seed(seed), layers: 0 })
    }

    fn numbers(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| f64::from(self.random.i32(-64..=64)) / 32.0).collect()
    }

    fn channels(&self, value: ValueId) -> usize {
        self.builder.shape(value).extents()[0]
    }

    /// A convolution, in one group or in one for each channel, perhaps with channels that are dead or constant, and a
    /// ReLU behind it.
    fn convolution(&mut self, value: ValueId, outputs: usize, is_depthwise: bool) -> Result<ValueId, NetworkError> {
        let inputs = self.channels(value);
        let window = self.window(value);
        let entries = window.entries().unwrap_or(1);
        let (outputs, groups) = if is_depthwise { (inputs, inputs) } else { (outputs, 1) };
        let row = inputs / groups * entries;
        let (mut weights, mut bias) = (self.numbers(outputs * row), self.numbers(outputs));
        for output in 0..outputs {
            let (earlier, row) = weights.split_at_mut(output * row);
            let row = &mut row[..inputs / groups * entries];
            match self.random.u8(..11) {
                // Dead: by its bias, whatever the weights are.
                0 => bias[output] = -64.0 * row.len() as f64 * 64.0,
                // Dead, with weights that have decayed.
                1 => {
                    row.iter_mut().for_each(|weight| *weight *= f64::from(1e-20_f32));
                    bias[output] = -0.25;
                }
                // Constant.
                2 => {
                    row.fill(0.0);
                    bias[output] = 0.375;
                }
                // A multiple of another one.
                3 if output > 0 => {
                    let other = self.random.usize(..output);
                    row.copy_from_slice(&earlier[other * row.len()..][..row.len()]);
                    row.iter_mut().for_each(|weight| *weight *= 0.5);
                    bias[output] = 0.5 * bias[other];
                }
                // On, and perhaps a combination of others that are.
                4 | 5 => {
                    for (other, weight) in row.iter_mut().enumerate() {
                        *weight = if other == 0 { *weight } else { 0.0 };
                    }
                    bias[output] = 256.0;
                }
                _ => {}
            }
        }
        let weights = weights.into_iter().map(|weight| f64::from(weight as f32)).collect();
        let map = Convolution::new(window, groups, outputs, weights, Some(bias))?;
        let made = self.add("conv", map, &[value])?;
        self.add("relu", Relu, &[made])
    }

    fn window(&mut self, value: ValueId) -> Window {
        let extents = self.builder.shape(value).extents()[1..].to_vec();
        let mut axis = |&extent: &usize| WindowAxis {
            dilation: 1,
            before: self.random.usize(..2),
            after: self.random.usize(..2),
            ..WindowAxis::new(self.random.usize(1..=3.min(extent)), self.random.usize(1..=2))
        };
        Window::new(extents.iter().map(&mut axis).collect::<Vec<_>>())
    }

    fn add(
        &mut self,
        name: &str,
        op: impl Into<leo_network::op::Op>,
        operands: &[ValueId],
    ) -> Result<ValueId, NetworkError> {
        self.layers += 1;
        self.builder.add(format!("{name}{}", self.layers), op, operands)
    }

    /// One or two random nodes.
    fn step(&mut self, value: ValueId) -> Result<ValueId, NetworkError> {
        let shape = self.builder.shape(value).clone();
        let (channels, extents) = (shape.extents()[0], shape.extents()[1..].to_vec());
        match self.random.u8(..10) {
            0..=2 => {
                let outputs = self.random.usize(1..6);
                self.convolution(value, outputs, false)
            }
            3 => self.convolution(value, 0, true),
            4 => {
                // A branch, and back.
                let kernel = self.numbers(channels * channels);
                let window = Window::new(vec![WindowAxis::new(1, 1); extents.len()]);
                let branch = self.add("branch", Convolution::new(window, 1, channels, kernel, None)?, &[value])?;
                let sum = self.add("sum", Sum, &[value, branch])?;
                self.add("relu", Relu, &[sum])
            }
            5 => {
                let outputs = self.random.usize(1..4);
                let axes = extents.iter().map(|_| WindowAxis::new(1, 1)).collect::<Vec<_>>();
                let kernel = self.numbers(channels * outputs);
                let other =
                    self.add("other", Convolution::new(Window::new(axes), 1, outputs, kernel, None)?, &[value])?;
                self.add("concat", Concat::new(0, 2), &[other, value])
            }
            6 => {
                let axes = extents.iter().map(|&extent| WindowAxis::new(2.min(extent), 2)).collect::<Vec<_>>();
                self.add("max", MaxPool::new(Window::new(axes)), &[value])
            }
            7 => {
                let axes = extents.iter().map(|&extent| WindowAxis::new(2.min(extent), 1)).collect::<Vec<_>>();
                let count: usize = extents.iter().map(|&extent| 2.min(extent)).product();
                let sum = self.add("pool", SumPool::new(Window::new(axes)), &[value])?;
                let constant = Broadcast::new(Shape::new(vec![1; shape.rank()])?, vec![count as f64])?;
                self.add("mean", Elementwise::of_operator(Arithmetic::Divide, constant)?, &[sum])
            }
            8 => {
                let mut axes: Vec<Vec<Option<usize>>> =
                    shape.extents().iter().map(|&extent| (0..extent).map(Some).collect()).collect();
                let last = axes.last_mut().expect("an axis");
                if self.random.bool() {
                    last.insert(0, None);
                } else {
                    *last = last.iter().flat_map(|index| [*index; 2]).collect();
                }
                self.add("select", Select::new(axes), &[value])
            }
            _ => {
                let entries = extents.len();
                let kernel = self.numbers(channels * 2 * 2_usize.pow(entries as u32));
                let axes = vec![WindowAxis::new(2, 2); entries];
                let map = Convolution::new(Window::transposed(axes), 1, 2, kernel, None)?;
                let made = self.add("up", map, &[value])?;
                self.add("relu", Relu, &[made])
            }
        }
    }

    /// All positions as a vector, and a dense map, or two with units between them.
    fn finish(mut self, value: ValueId, has_units: bool) -> Result<Network, NetworkError> {
        let elements = self.builder.shape(value).elements();
        let flat = self.add("flat", Reshape::new(Shape::new([elements])?), &[value])?;
        if !has_units {
            let weights = self.numbers(2 * elements);
            let last = self.add("fc", Dense::new(Matrix::new(2, elements, weights)?, None)?, &[flat])?;
            return self.builder.finish(vec![last]);
        }
        let (hidden, weights, bias) = (4, self.numbers(4 * elements), self.numbers(4));
        let first = Dense::new(Matrix::new(hidden, elements, weights)?, Some(bias))?;
        let made = self.add("fc", first, &[flat])?;
        let made = self.add("relu", Relu, &[made])?;
        let weights = self.numbers(2 * hidden);
        let last = self.add("fc", Dense::new(Matrix::new(2, hidden, weights)?, None)?, &[made])?;
        self.builder.finish(vec![last])
    }
}

/// A random network of one or two dimensions.
fn random(seed: u64) -> Anything<Network> {
    let shape: &[usize] = if seed.is_multiple_of(3) { &[2, 7] } else { &[2, 4, 3] };
    let mut sketch = Sketch::new(shape, seed)?;
    let mut value = sketch.convolution(ValueId::INPUT, 5, false)?;
    for _ in 0..sketch.random.usize(1..4) {
        let next = sketch.step(value)?;
        if sketch.builder.shape(next).elements() < 200 {
            value = next;
        }
    }
    Ok(sketch.finish(value, seed.is_multiple_of(2))?)
}

/// Sees to it that networks that are compared in either order are proved to be no closer than they are at a point; and
/// says whether that proves about as much as whoever knows which channels stayed.
fn is_found_again(before: &Network, after: &Compressed, domain: &Domain, point: &[f64]) -> Anything<bool> {
    let small = after.document.network();
    let values = [before, small].map(|network| evaluate(network, point));
    let mut is_near = true;
    for networks in [[before, small], [small, before]] {
        let found = equivalent(networks[0], networks[1], domain, &AnalysisOptions::default())?;
        for (bounds, (old, new)) in found.deviation.iter().zip(values[0].iter().zip(&values[1])) {
            for (bound, (old, new)) in bounds.iter().zip(old.iter().zip(new)) {
                assert!(old - new <= exact(*bound) && new - old <= exact(*bound));
            }
        }
        is_near &= found.largest_deviation() <= 10.0 * after.largest_delta() + 1e-12;
    }
    Ok(is_near)
}

#[test]
fn random_networks_stay_what_they_are() -> Anything {
    let (mut removed, mut changed, mut parts, mut lost) = (0, 0, 0, Vec::new());
    for seed in 0..300 {
        let made = random(seed)?;
        let domain = Domain::uniform(made.input().elements(), -1.0, 1.0)?;
        let before = document(&made, Float::F32);
        let network = before.network();
        let middle = domain.at(|| 0.25);
        assert!(evaluate(network, &middle) == evaluate(&made, &middle), "seed {seed}: it is read as it was written");
        // How much noise is too much depends on what was given, which is another network the next time.
        let allow_noise = (!seed.is_multiple_of(4)).then_some(1e6);
        let options = CompressOptions { align: Some(1 + seed as usize % 2), allow_noise, ..CompressOptions::default() };
        let after = shrink(&before, &domain, &options);
        removed += after.history.removed.iter().flatten().flatten().count();
        let certificate = after.certificate(String::new(), String::new(), &domain)?.to_bytes()?;
        // Units of dense parts that were rewritten are not matched: there is more in that than channels.
        let has_part = String::from_utf8(certificate)?.contains("\"part\"");
        parts += usize::from(has_part);
        if after.changed && !has_part {
            changed += 1;
            if !is_found_again(network, &after, &domain, &middle)? {
                lost.push(seed);
            }
        }
        let facts = Checker::new(network, &domain)?.finish();
        let mut random = Rng::with_seed(seed);
        for _ in 0..3 {
            let point = domain.at(|| random.f64());
            let values = values_at(network, point.iter().map(|&x| exact(x)).collect());
            for (value, numbers) in network.values().zip(&values) {
                let range = facts.range(value);
                let is_within = |(element, number): (usize, _)| {
                    exact(range.lower[element]) <= number && number <= exact(range.upper[element])
                };
                assert!(numbers.iter().cloned().enumerate().all(is_within), "seed {seed}: {value:?}");
            }
            let moved = evaluate(after.document.network(), &point);
            for ((old, new), delta) in
                network.outputs().iter().map(|v| &values[v.index()]).zip(&moved).zip(&after.delta)
            {
                for ((old, new), &delta) in old.iter().zip(new).zip(delta) {
                    let apart = if old > new { old - new } else { new - old };
                    assert!(apart <= exact(delta), "seed {seed}");
                }
            }
        }
        let again = shrink(&after.document, &domain, &options);
        assert!(allow_noise.is_none() || !again.changed, "seed {seed}: twice is once");
    }
    assert!(removed > 300, "{removed} channels were removed");
    assert!(changed > 100 && parts > 100, "{changed} networks lost channels alone, {parts} have a rewritten part");
    println!("{} of {changed} are not found to be the same: {lost:?}", lost.len());
    assert!(20 * lost.len() <= changed, "of {changed} networks, these are not found to be the same: {lost:?}");
    Ok(())
}

/// Two convolutions of 1 by 1, or of 3 by 3 with padding, and a dense layer; the first has these rows and biases.
fn planted(rows: &[(f64, f64)], is_padded: bool) -> Anything<Document> {
    let mut sketch = Sketch::new(&[1, 3, 3], 1)?;
    let (weights, bias): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
    let point = Window::new(vec![WindowAxis::new(1, 1); 2]);
    let first = Convolution::new(point.clone(), 1, rows.len(), weights, Some(bias))?;
    let made = sketch.add("conv", first, &[ValueId::INPUT])?;
    let units = sketch.add("relu", Relu, &[made])?;
    let axis = WindowAxis { before: 1, after: 1, ..WindowAxis::new(3, 1) };
    let window = if is_padded { Window::new(vec![axis; 2]) } else { point };
    let kernel = sketch.numbers(4 * rows.len() * window.entries().unwrap_or(1));
    let second = Convolution::new(window, 1, 4, kernel, Some(vec![-0.25; 4]))?;
    let made = sketch.add("conv", second, &[units])?;
    let units = sketch.add("relu", Relu, &[made])?;
    let network = sketch.finish(units, true)?;
    Ok(document(&network, Float::F32))
}

fn first_layer(after: &Compressed) -> Vec<Option<Rule>> {
    after.history.removed[0].clone()
}

#[test]
fn what_is_planted_is_found() -> Anything {
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let rows = [(1.0, -0.5), (1.0, -2.0), (1e-25, -0.5), (0.0, 0.25), (-1.0, 0.5)];
    let options = CompressOptions { align: Some(1), ..CompressOptions::default() };
    let off = Some(Rule::Inactive);
    let after = shrink(&planted(&rows, false)?, &domain, &options);
    assert_eq!(first_layer(&after), [None, off, off, Some(Rule::Constant), None], "a constant goes into a bias");
    assert!(after.largest_delta() > 0.0, "which rounds");
    let after = shrink(&planted(&rows, true)?, &domain, &options);
    assert_eq!(first_layer(&after), [None, off, off, None, None], "unless padding stands beside it");
    assert_eq!(after.largest_delta(), 0.0);
    Ok(())
}

#[test]
fn channels_by_others_are_found() -> Anything {
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let options = CompressOptions { align: Some(1), ..CompressOptions::default() };
    let rows = [(1.0, -0.5), (2.0, -1.0), (-1.0, 0.5), (1.0, -0.25), (0.5, -0.25)];
    let multiple = Some(Rule::Multiple);
    for is_padded in [false, true] {
        let after = shrink(&planted(&rows, is_padded)?, &domain, &options);
        assert_eq!(first_layer(&after), [None, multiple, None, None, multiple], "padding is 0 times anything");
        assert_eq!(after.approximation, 0.0, "and what is exactly a multiple is no approximation");
    }
    // Always on: one that says where it is, and one that says that it is on, are enough.
    let rows = [(1.0, 1.0), (0.5, 2.0), (-0.25, 0.5), (1.0, -0.5)];
    let merged = |after: &Compressed| first_layer(after).into_iter().filter(|rule| *rule == Some(Rule::Merged)).count();
    let after = shrink(&planted(&rows, false)?, &domain, &options);
    assert_eq!(merged(&after), 2, "a constant goes into a bias");
    let after = shrink(&planted(&rows, true)?, &domain, &options);
    assert_eq!(merged(&after), 1, "unless padding stands beside it");
    let exact = CompressOptions { bit_exact: true, ..options };
    assert_eq!(first_layer(&shrink(&planted(&rows, false)?, &domain, &exact)), [None; 4]);
    Ok(())
}

#[test]
fn nothing_is_rounded_that_may_not_be() -> Anything {
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let rows = [(1.0, -0.5), (1.0, -2.0), (0.0, 0.25), (-1.0, 0.5)];
    for options in [
        CompressOptions { bit_exact: true, align: Some(1), ..CompressOptions::default() },
        CompressOptions { tolerance: Some(Tolerance::Zero), align: Some(1), ..CompressOptions::default() },
    ] {
        let after = shrink(&planted(&rows, false)?, &domain, &options);
        assert_eq!(first_layer(&after), [None, Some(Rule::Inactive), None, None]);
        assert_eq!(after.largest_delta(), 0.0);
    }
    Ok(())
}

#[test]
fn widths_are_multiples_of_what_is_asked_for() -> Anything {
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let rows = [(1.0, -2.0), (1.0, -0.5), (1.0, -2.0), (1.0, -2.0), (1.0, -2.0), (1.0, -2.0), (1.0, -0.25)];
    for (align, left) in [(1, 2), (2, 2), (3, 3), (4, 4), (16, 7)] {
        let options = CompressOptions { align: Some(align), bit_exact: true, ..CompressOptions::default() };
        let after = shrink(&planted(&rows, false)?, &domain, &options);
        assert_eq!(after.document.network().hidden()[0], left, "multiples of {align}");
        assert_eq!(after.largest_delta(), 0.0);
    }
    Ok(())
}

/// Where a single channel was left in front of a change of layout, the file that was written had other nodes, or
/// channels along another axis, and that was called a mistake of Leo's.
#[test]
fn a_change_of_layout_keeps_two_channels() -> Anything {
    let mut sketch = Sketch::new(&[1, 1, 2], 1)?;
    let point = Window::new(vec![WindowAxis::new(1, 1); 2]);
    let first = Convolution::new(point, 1, 4, vec![1.0; 4], Some(vec![-0.5, -2.0, -2.0, -2.0]))?;
    let made = sketch.add("conv", first, &[ValueId::INPUT])?;
    let units = sketch.add("relu", Relu, &[made])?;
    let network = sketch.finish(units, true)?;
    let options = CompressOptions { align: Some(1), ..CompressOptions::default() };
    let after = shrink(&document(&network, Float::F32), &Domain::uniform(2, 0.0, 1.0)?, &options);
    assert_eq!(after.document.network().hidden()[0], 2);
    Ok(())
}

/// A network and another one like it, whose numbers are a little off: all channels are the same, in their places.
#[test]
fn numbers_that_are_a_little_off_are_no_obstacle() -> Anything {
    let rows = [(1.0, -0.5), (1.0, -0.25), (-1.0, 0.5)];
    let moved = rows.map(|(weight, bias)| (weight, bias + 1e-7));
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let [one, other] = [planted(&rows, true)?, planted(&moved, true)?];
    let found = equivalent(one.network(), other.network(), &domain, &AnalysisOptions::default())?;
    assert!(found.largest_deviation() < 1e-3, "{}", found.largest_deviation());
    assert_eq!((found.obstacle, found.unmatched), (None, [vec![], vec![]]));
    Ok(())
}

/// Channels that are the same number everywhere look the same; what reads them tells them apart.
#[test]
fn channels_that_look_the_same_are_told_apart() -> Anything {
    let rows = [(0.0, 0.25), (1.0, -0.5), (0.0, 0.25), (0.0, 0.25), (1.0, -2.0), (-1.0, 0.5)];
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let before = planted(&rows, false)?;
    for align in [1, 3, 4, 5] {
        let after = shrink(&before, &domain, &CompressOptions { align: Some(align), ..CompressOptions::default() });
        assert!(after.changed && is_found_again(before.network(), &after, &domain, &[0.5; 9])?, "align {align}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_matched_is_said() -> Anything {
    let domain = Domain::uniform(9, 0.0, 1.0)?;
    let options = AnalysisOptions::default();
    let widths = |widths: &[usize]| -> Anything<Network> {
        let mut sketch = Sketch::new(&[1, 3, 3], 1)?;
        let mut value = ValueId::INPUT;
        for &width in widths {
            let window = Window::new(vec![WindowAxis::new(1, 1); 2]);
            let kernel = sketch.numbers(width * sketch.channels(value));
            value = sketch.add("conv", Convolution::new(window, 1, width, kernel, None)?, &[value])?;
            value = sketch.add("relu", Relu, &[value])?;
        }
        Ok(sketch.finish(value, true)?)
    };
    let (more, fewer, other) = (widths(&[4, 5])?, widths(&[6, 3])?, widths(&[4])?);
    let found = equivalent(&more, &fewer, &domain, &options)?;
    let why = found.obstacle.unwrap_or_default();
    assert!(
        why.contains("\"conv3\" makes 5 channels in the first network and 3 in the second, and \"conv1\" makes 4"),
        "{why}"
    );
    let found = equivalent(&more, &other, &domain, &options)?;
    let why = found.obstacle.unwrap_or_default();
    assert!(why.starts_with("node 2 is convolution \"conv3\" in one network and reshape \"flat3\""), "{why}");
    assert!(found.deviation.iter().flatten().all(|bound| bound.is_finite()), "where outputs lie is known all the same");
    Ok(())
}

/// `relu(x) - (x + 2) + 0.9` is always off, which only linear bounds see. The certificate says so, and is checked in
/// both arithmetics.
#[test]
fn channels_that_linear_bounds_decide_go() -> Anything {
    let mut sketch = Sketch::new(&[1, 3, 3], 1)?;
    let point = Window::new(vec![WindowAxis::new(1, 1); 2]);
    let first = Convolution::new(point.clone(), 1, 2, vec![1.0, 1.0], Some(vec![2.0, 0.0]))?;
    let made = sketch.add("conv", first, &[ValueId::INPUT])?;
    let units = sketch.add("relu", Relu, &[made])?;
    let bias = vec![f64::from(0.9_f32), 1.5, f64::from(0.9_f32)];
    let second = Convolution::new(point, 1, 3, vec![-1.0, 1.0, -1.0, 1.0, -1.0, 1.0], Some(bias))?;
    let made = sketch.add("conv", second, &[units])?;
    let units = sketch.add("relu", Relu, &[made])?;
    let before = document(&sketch.finish(units, true)?, Float::F32);
    let domain = Domain::uniform(9, -1.0, 1.0)?;
    let after = shrink(&before, &domain, &CompressOptions { align: Some(1), ..CompressOptions::default() });
    assert_eq!(after.history.removed[1], [None, None, Some(Rule::Inactive)], "a change of layout keeps two");
    assert_eq!(after.largest_delta(), 0.0);
    let certificate = after.certificate(String::new(), String::new(), &domain)?.to_bytes()?;
    let text = String::from_utf8(certificate)?;
    assert!(text.contains(r#""version":4"#) && text.contains(r#""linear":[[1,"-",0,"a"]]"#), "{text}");
    Ok(())
}

/// Bounds by patches hold at points without any rounding, wherever they stop, and in both arithmetics; and those that
/// stop nowhere are no worse than intervals.
#[test]
fn no_point_leaves_what_patches_prove() -> Anything {
    let mut narrower = 0;
    for seed in 0..60 {
        let network = random(seed)?;
        let domain = Domain::uniform(network.input().elements(), -1.0, 1.0)?;
        let mut checker = Checker::new(&network, &domain)?;
        let mut exactly = Checker::<Exact>::begin(&network, &domain)?;
        let mut random = Rng::with_seed(seed);
        let points: Vec<_> = (0..3).map(|_| domain.at(|| random.f64()).iter().map(|&x| exact(x)).collect()).collect();
        let points: Vec<_> = points.into_iter().map(|point| values_at(&network, point)).collect();
        while let Some(layer) = checker.next_layer() {
            exactly.next_layer();
            let value = network.pre_activation(layer);
            let mut targets: Vec<Target> = (0..network.shape(value).elements()).flat_map(Target::both).collect();
            random.shuffle(&mut targets);
            targets.truncate(24);
            let first = random.usize(..=layer.index());
            let range = checker.range(layer).clone();
            let found = checker.patch_bounds(layer, &targets, first);
            let in_exact_numbers = exactly.patch_bounds(layer, &targets, first);
            for ((Target { unit, side }, bound), other) in targets.iter().zip(found).zip(in_exact_numbers) {
                let limit = exact(bound.limit) * exact(side.sign());
                assert!(other.limit.rounded_up() <= bound.limit + 1e-9 * bound.limit.abs(), "seed {seed}: {layer:?}");
                for values in &points {
                    let number = &values[value.index()][*unit];
                    let holds = if *side == Side::Upper { *number <= limit } else { *number >= limit };
                    assert!(holds, "seed {seed}: {layer:?}, unit {unit}, {side:?}");
                }
                let interval = if *side == Side::Upper { range.upper[*unit] } else { -range.lower[*unit] };
                narrower += usize::from(bound.limit < interval);
            }
        }
    }
    assert!(narrower > 300, "{narrower} bounds were narrower");
    Ok(())
}
