//! Networks with convolutions: what finding, certifying, checking and evaluating take, and how that grows with the
//! number of positions and of channels.
//!
//! The networks are MobileNets of random weights: a convolution with stride 2, then depthwise and 1 by 1 convolutions
//! in turns. Of their filters two thirds are dead, as in networks that were trained with weight decay for long. Set
//! LEO_NETWORKS to a folder of .onnx files for a table of these, too, on the domain LEO_DOMAIN (0,1 if that is not
//! set).

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use fastrand::Rng;
use leo_check::{Certificate, HashedModel, verify, verify_exactly};
use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{Convolution, Dense, Matrix, Op, Relu, Reshape, SumPool, Window, WindowAxis};
use leo_network::{Array, Builder, Network, Shape, ValueId};

type Anything<T = ()> = Result<T, Box<dyn Error>>;

/// The widths of the blocks, in parts of the first one's; with stride 2 in front of those that are marked.
const BLOCKS: [(usize, bool); 8] =
    [(2, false), (4, true), (4, false), (8, true), (8, false), (16, true), (16, false), (32, true)];

/// How often each thing is done; the fastest counts.
const TIMES: usize = 5;

fn main() -> Anything {
    println!("resolution, width, channels, left, multiply-adds, compress s, check s, exactly s, evaluate ms a sample");
    let mut rows = Vec::new();
    for (resolution, width) in [(48, 8), (96, 8), (192, 8), (384, 8), (96, 4), (96, 16), (96, 32)] {
        let network = mobilenet(resolution, width)?;
        let export =
            Export { float: Float::F32, input: "x".to_owned(), outputs: vec!["y".to_owned()], metadata: vec![] };
        let bytes = Document::from_network(&network, &export)?.to_bytes()?;
        let [compress, check, exact, evaluate] = measure(&format!("{resolution}, {width}"), bytes, "0,1")?;
        rows.push((resolution, width, [compress, check, exact, evaluate]));
    }
    for (what, at) in [("resolution", 0), ("width", 1)] {
        let of = |row: &(usize, usize, [f64; 4])| if at == 0 { row.0 } else { row.1 };
        let other = |row: &&(usize, usize, [f64; 4])| if at == 0 { row.1 == 8 } else { row.0 == 96 };
        let rows: Vec<_> = rows.iter().filter(other).collect();
        let exponents = [0, 1, 2, 3]
            .map(|step| exponent(&rows.iter().map(|row| (of(row) as f64, row.2[step])).collect::<Vec<_>>()));
        println!("grows with {what} to the power of {exponents:.2?}");
    }
    let domain = std::env::var("LEO_DOMAIN").unwrap_or_else(|_| "0,1".to_owned());
    if let Some(folder) = std::env::var_os("LEO_NETWORKS") {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Err(error) =
                std::fs::read(&path).map_err(Into::into).and_then(|bytes| measure(&name, bytes, &domain))
            {
                println!("{name}: {error}");
            }
        }
    }
    Ok(())
}

/// Prints what one network takes: compressing it without what compares and certifies, both checks, and evaluating it on
/// this thread.
fn measure(name: &str, bytes: Vec<u8>, domain: &str) -> Anything<[f64; 4]> {
    let file = leo::ModelFile::from_onnx(bytes.clone())?;
    let domain = leo::Domain::parse(domain)?;
    let mut least = [f64::INFINITY; 4];
    let mut left = String::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        let small = file.compress(domain.clone())?;
        least[0] = least[0].min(start.elapsed().as_secs_f64());
        left = format!("{}, {}, {}", small.before().units, small.units(), small.before().multiply_adds);
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("small.onnx");
        small.save(&path)?;
        let certificate = Certificate::from_bytes(&std::fs::read(leo::certificate_of(&path))?)?;
        let (first, second) = (HashedModel::from_onnx(bytes.clone())?, HashedModel::load(Path::new(&path))?);
        for (place, check) in [verify, verify_exactly].into_iter().enumerate() {
            let start = Instant::now();
            check(&first, &second, &certificate, &())?;
            least[1 + place] = least[1 + place].min(start.elapsed().as_secs_f64());
        }
        let inputs = file.network().input().elements();
        let sample = Array::new(vec![1, inputs], vec![0.5_f32; inputs])?;
        least[3] = least[3].min(file.seconds_a_sample(&sample));
    }
    let [compress, check, exact, evaluate] = least;
    println!("{name}, {left}, {compress:.3}, {check:.3}, {exact:.3}, {:.3}", evaluate * 1e3);
    Ok(least)
}

/// The slope of logarithms, by least squares.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let points: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let over = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    over / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}

/// A network for images of so many pixels a side, with so many channels in its first convolution.
fn mobilenet(resolution: usize, width: usize) -> Anything<Network> {
    let mut random = Rng::with_seed(1);
    let mut builder = Network::builder(Shape::new([3, resolution, resolution])?);
    let mut value =
        convolution(&mut builder, &mut random, ValueId::INPUT, Layer { outputs: width, kernel: 3, stride: 2 })?;
    for (times, is_halved) in BLOCKS {
        let stride = 1 + usize::from(is_halved);
        value = convolution(&mut builder, &mut random, value, Layer { outputs: 0, kernel: 3, stride })?;
        value = convolution(&mut builder, &mut random, value, Layer { outputs: times * width, kernel: 1, stride: 1 })?;
    }
    let extents = builder.shape(value).extents().to_vec();
    let whole = [WindowAxis::new(extents[1], 1), WindowAxis::new(extents[2], 1)];
    let sums = builder.add("pool", SumPool::new(Window::new(whole)), &[value])?;
    let flat = builder.add("flat", Reshape::new(Shape::new([extents[0]])?), &[sums])?;
    let weights = (0..2 * extents[0]).map(|_| f64::from((random.f32() - 0.5) * 0.01)).collect();
    let last = builder.add("fc", Dense::new(Matrix::new(2, extents[0], weights)?, Some(vec![0.0; 2]))?, &[flat])?;
    Ok(builder.finish(vec![last])?)
}

/// A convolution: how many channels it makes, or 0 for a depthwise one.
struct Layer {
    outputs: usize,
    kernel: usize,
    stride: usize,
}

fn convolution(builder: &mut Builder, random: &mut Rng, value: ValueId, layer: Layer) -> Anything<ValueId> {
    let Layer { outputs, kernel, stride } = layer;
    let inputs = builder.shape(value).extents()[0];
    let (outputs, groups) = if outputs == 0 { (inputs, inputs) } else { (outputs, 1) };
    let axis = WindowAxis { before: kernel / 2, after: kernel / 2, ..WindowAxis::new(kernel, stride) };
    let row = inputs / groups * kernel * kernel;
    let (mut weights, mut bias) = (Vec::new(), Vec::new());
    for output in 0..outputs {
        // Of the first channels all are alive, and of the later ones a third.
        let is_dead = outputs >= 32 && output % 3 > 0 && groups == 1;
        let (size, shift) = if is_dead { (1e-30, -0.3) } else { (1.0 / (row as f32).sqrt(), 0.1) };
        weights.extend((0..row).map(|_| f64::from((random.f32() - 0.5) * size)));
        bias.push(f64::from(shift * random.f32()));
    }
    let map = Convolution::new(Window::new([axis; 2]), groups, outputs, weights, Some(bias))?;
    let made = builder.add("conv", Op::from(map), &[value])?;
    Ok(builder.add("relu", Relu, &[made])?)
}
