//! NNet, the text format of the ACAS Xu networks.
//!
//! After comment lines (`//`) come, separated by commas: the number of layers, inputs, outputs and the largest
//! width; all widths; an unused flag; the inputs' minima and maxima; means and ranges, one for each input and one
//! for all outputs; then each layer's weight rows and biases. The network computes
//!
//! ```text
//! x -> (x - mean) / range -> affine, ReLU, ..., affine -> y * range + mean
//! ```
//!
//! so that it takes and gives numbers in their physical units. The minima and maxima apply to these, before the
//! normalisation, and make the file's own [domain](Nnet::domain). Programs that use this format clip inputs to that
//! box first; on the box itself clipping does nothing, and Leo does not add it.

use leo_network::op::{Arithmetic, Broadcast, Dense, Elementwise, Matrix, Op, Relu};
use leo_network::{Builder, Network, ValueId};
use leo_network::{Domain, DomainError};
use leo_network::{NetworkError, Shape};

/// A network from an NNet file, and the box that comes with it.
#[derive(Clone, Debug)]
pub struct Nnet {
    network: Network,
    minima: Vec<f64>,
    maxima: Vec<f64>,
}

/// What is wrong with an NNet file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NnetError {
    /// Not text.
    #[error("is not an NNet file: {0}")]
    NotText(&'static str),
    /// It ends too soon.
    #[error("ends where {wanted} should follow")]
    Truncated {
        /// What was missing.
        wanted: String,
    },
    /// A line that does not hold the numbers it should.
    #[error("line {line}: {reason}")]
    Line {
        /// Which one, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The numbers make no network.
    #[error("{}: {error}", name_of(*.layer))]
    Layer {
        /// Which layer, counted from 1; 0 is the normalisation of the inputs.
        layer: usize,
        /// Why not.
        error: NetworkError,
    },
}

/// What a layer is called, counted from 1, since the file has no names; 0 is the normalisation of the inputs.
fn name_of(layer: usize) -> String {
    if layer == 0 { "the normalisation of the inputs".to_owned() } else { format!("layer{layer}") }
}

/// The non-comment lines of a file, with their numbers.
struct TextLines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
}

impl<'a> TextLines<'a> {
    /// The next line's fields. A comma after the last one is usual.
    fn fields(&mut self, wanted: &str) -> Result<(usize, Vec<&'a str>), NnetError> {
        for (index, line) in self.lines.by_ref() {
            let line = line.trim();
            if line.is_empty() || line.starts_with("//") {
                continue;
            }
            let fields = line.strip_suffix(',').unwrap_or(line).split(',').map(str::trim).collect();
            return Ok((index + 1, fields));
        }
        Err(NnetError::Truncated { wanted: wanted.to_owned() })
    }

    /// The next line's numbers, `count` of them.
    fn numbers(&mut self, wanted: &str, count: usize) -> Result<Vec<f64>, NnetError> {
        let (line, fields) = self.fields(wanted)?;
        if fields.len() != count {
            let reason = format!("{} numbers where {wanted} should be, {count} of them", fields.len());
            return Err(NnetError::Line { line, reason });
        }
        fields
            .iter()
            .map(|field| {
                field.parse().map_err(|_| NnetError::Line { line, reason: format!("{field:?} is not a number") })
            })
            .collect()
    }

    /// The next line's sizes, at least `least` of them, none of them zero.
    fn sizes(&mut self, wanted: &str, least: usize) -> Result<(usize, Vec<usize>), NnetError> {
        let (line, fields) = self.fields(wanted)?;
        let sizes: Option<Vec<usize>> =
            fields.iter().map(|field| field.parse().ok().filter(|&size| size > 0)).collect();
        match sizes {
            Some(sizes) if sizes.len() >= least => Ok((line, sizes)),
            _ => Err(NnetError::Line { line, reason: format!("{wanted} should be {least} whole numbers above zero") }),
        }
    }
}

impl Nnet {
    /// Decodes an NNet file.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NnetError> {
        let text = std::str::from_utf8(bytes).map_err(|_| NnetError::NotText(crate::file::looks_like(bytes)))?;
        let mut lines = TextLines { lines: text.lines().enumerate() };
        let (_, header) = lines.sizes("the numbers of layers, inputs and outputs", 3)?;
        let (layers, inputs, outputs) = (header[0], header[1], header[2]);
        let (line, widths) = lines.sizes("the widths of all layers", 2)?;
        if widths.len() - 1 != layers || widths[0] != inputs || widths[layers] != outputs {
            let reason = format!("widths {widths:?} for {layers} layers from {inputs} inputs to {outputs} outputs");
            return Err(NnetError::Line { line, reason });
        }
        lines.fields("an unused flag")?;
        let minima = lines.numbers("the inputs' minima", inputs)?;
        let maxima = lines.numbers("the inputs' maxima", inputs)?;
        let means = lines.numbers("the means", inputs.saturating_add(1))?;
        let ranges = lines.numbers("the ranges", inputs.saturating_add(1))?;

        let shape = |extent| Shape::new([extent]).map_err(|error| NnetError::Layer { layer: 0, error });
        let mut chain = Chain { builder: Network::builder(shape(inputs)?), last: ValueId::INPUT };
        let negated = means[..inputs].iter().map(|mean| -mean).collect();
        chain.arithmetic(0, "subtract_mean", Arithmetic::Add, negated)?;
        chain.arithmetic(0, "divide_by_range", Arithmetic::Divide, ranges[..inputs].to_vec())?;
        for (index, pair) in widths.windows(2).enumerate() {
            let layer = index + 1;
            let weight = read_matrix(&mut lines, layer, pair[1], pair[0])?;
            let mut bias = Vec::new();
            for _ in 0..pair[1] {
                bias.extend(lines.numbers(&format!("a bias of {}", name_of(layer)), 1)?);
            }
            chain.add(layer, &name_of(layer), || Dense::new(weight?, Some(bias)))?;
            if layer < layers {
                chain.add(layer, &format!("relu{layer}"), || Ok(Relu))?;
            }
        }
        if let Ok((line, _)) = lines.fields("nothing") {
            return Err(NnetError::Line { line, reason: "numbers after the last layer's biases".to_owned() });
        }
        chain.arithmetic(layers, "multiply_by_range", Arithmetic::Multiply, vec![ranges[inputs]])?;
        chain.arithmetic(layers, "add_mean", Arithmetic::Add, vec![means[inputs]])?;
        let network =
            chain.builder.finish(vec![chain.last]).map_err(|error| NnetError::Layer { layer: layers, error })?;
        Ok(Self { network, minima, maxima })
    }

    /// The network, from physical units to physical units.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The box between the file's minima and maxima, in physical units.
    ///
    /// # Errors
    /// If they make no box, such as when a bound is infinite.
    pub fn domain(&self) -> Result<Domain, DomainError> {
        Domain::new(self.minima.clone(), self.maxima.clone())
    }
}

fn read_matrix(
    lines: &mut TextLines<'_>,
    layer: usize,
    rows: usize,
    columns: usize,
) -> Result<Result<Matrix, NetworkError>, NnetError> {
    let mut values = Vec::new();
    for _ in 0..rows {
        values.extend(lines.numbers(&format!("a row of weights of {}", name_of(layer)), columns)?);
    }
    Ok(Matrix::new(rows, columns, values))
}

/// A network without branches in the making.
struct Chain {
    builder: Builder,
    last: ValueId,
}

impl Chain {
    fn add<O: Into<Op>>(
        &mut self,
        layer: usize,
        name: &str,
        op: impl FnOnce() -> Result<O, NetworkError>,
    ) -> Result<(), NnetError> {
        let added = op().and_then(|op| self.builder.add(name, op, &[self.last]));
        self.last = added.map_err(|error| NnetError::Layer { layer, error })?;
        Ok(())
    }

    fn arithmetic(
        &mut self,
        layer: usize,
        name: &str,
        arithmetic: Arithmetic,
        constant: Vec<f64>,
    ) -> Result<(), NnetError> {
        self.add(layer, name, || {
            let shape = Shape::new([constant.len()])?;
            Elementwise::new(arithmetic, Broadcast::new(shape, constant)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leo_network::Evaluator;

    /// A network of two inputs, two units and an output.
    const EXAMPLE: &str = "// a comment\n2,2,1,2,\n2,2,1,\n0,\n-1,-2,\n1,2,\n0.5,1,10,\n2,4,3,\n\
                        1,0,\n0,-1,\n0.25,\n0,\n1,2,\n-1,\n";

    #[test]
    fn normalises_before_and_after() -> Result<(), NnetError> {
        let nnet = Nnet::from_bytes(EXAMPLE.as_bytes())?;
        // x = (1.5, -3): normalised (0.5, -1), hidden (0.75, 1), output 0.75 + 2 - 1 = 1.75, in units 15.25.
        assert_eq!(Evaluator::<f64>::new(nnet.network()).run(&[1.5, -3.0]), [[15.25]]);
        let domain = nnet.domain().expect("a box");
        assert_eq!((domain.hull().lo(), domain.hull().hi()), (&[-1.0, -2.0][..], &[1.0, 2.0][..]));
        Ok(())
    }

    #[test]
    fn errors_name_the_line() {
        let broken = EXAMPLE.replace("0,-1,", "0,x,");
        let error = Nnet::from_bytes(broken.as_bytes()).expect_err("x is no number");
        assert_eq!(error.to_string(), "line 10: \"x\" is not a number");
        let longer = Nnet::from_bytes(format!("{EXAMPLE}7,\n").as_bytes()).expect_err("a number too many");
        assert_eq!(longer.to_string(), "line 15: numbers after the last layer's biases");
        let short = &EXAMPLE[..EXAMPLE.len() - 4];
        assert!(matches!(Nnet::from_bytes(short.as_bytes()), Err(NnetError::Truncated { .. })));
        let zero_range = EXAMPLE.replace("2,4,3,", "0,4,3,");
        assert!(matches!(Nnet::from_bytes(zero_range.as_bytes()), Err(NnetError::Layer { layer: 0, .. })));
        let huge = "2,99999999999,1,2,\n99999999999,2,1,\n0,\n1,\n";
        assert!(Nnet::from_bytes(huge.as_bytes()).is_err());
    }
}
