//! The tail: what a file does after the last affine map.
//!
//! Softmax, sigmoid, argmax and the like turn a network's outputs into probabilities or labels. Leo keeps them as they
//! are. Where two networks agree before the tail, they agree after it, so nothing but evaluation ever looks inside.

use leo_network::Elements;
use leo_network::Real;

/// Where a tail's operator, or an output of a file, takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The output of the network with this index.
    Network(usize),
    /// The tail's operator with this index.
    Tail(usize),
    /// Nothing that depends on the input.
    Constant,
}

/// The operators after a network, each after those it reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tail {
    pub(crate) nodes: Vec<TailNode>,
}

/// No operators.
pub(crate) static NO_TAIL: Tail = Tail { nodes: Vec::new() };

/// An operator that is kept as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct TailNode {
    pub(crate) name: String,
    pub(crate) operator: String,
    /// What it computes, and from what, if Leo can evaluate it; else the index of the operator that it cannot.
    pub(crate) function: Result<(Function, Source), usize>,
    /// Whether it makes positions: whole numbers, and not reals.
    pub(crate) positions: bool,
}

impl TailNode {
    /// What the file calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file's word for what it does.
    pub fn operator(&self) -> &str {
        &self.operator
    }
}

/// The functions that Leo can evaluate in a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Identity,
    Sigmoid,
    Tanh,
    Softmax(Along),
    LogSoftmax(Along),
    ArgMax { along: Along, last: bool },
}

/// An axis, or several neighbouring ones, of a sample: `outer` times `length` times `inner` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) outer: usize,
    pub(crate) length: usize,
    pub(crate) inner: usize,
}

impl Along {
    /// Calls `f` with the positions of each run along the axis, in a batch of `rows` samples.
    fn each(self, rows: usize, mut f: impl FnMut(usize, &mut dyn Iterator<Item = usize>)) {
        for outer in 0..rows * self.outer {
            for inner in 0..self.inner {
                let first = outer * self.length * self.inner + inner;
                f(outer * self.inner + inner, &mut (0..self.length).map(|i| first + i * self.inner));
            }
        }
    }
}

/// Operators that Leo does not evaluate, and that give the same answer another form.
const OTHER_FORMS: [&str; 4] = ["ZipMap", "ArrayFeatureExtractor", "Cast", "Reshape"];

impl Tail {
    /// Whether whatever comes out depends on which of a sample's numbers is largest, or has it at the same place: no
    /// operator does anything else with samples of one axis.
    pub(crate) fn keeps_largest(&self) -> bool {
        let is_whole = |along: Along| along.outer == 1 && along.inner == 1;
        self.nodes.iter().all(|node| match node.function {
            Ok((Function::Identity | Function::Sigmoid | Function::Tanh, _)) => true,
            Ok((Function::Softmax(along) | Function::LogSoftmax(along) | Function::ArgMax { along, .. }, _)) => {
                is_whole(along)
            }
            Err(_) => OTHER_FORMS.contains(&node.operator.as_str()),
        })
    }

    /// The operators.
    pub fn nodes(&self) -> &[TailNode] {
        &self.nodes
    }

    /// The operator that keeps Leo from evaluating `source`, if there is one.
    pub(crate) fn blamed(&self, source: Source) -> Option<&str> {
        match source {
            Source::Network(_) => None,
            Source::Constant => Some("a constant"),
            Source::Tail(index) => self.nodes[index].function.err().map(|blamed| self.nodes[blamed].operator.as_str()),
        }
    }

    /// What the operators between a network and `source` compute from the network's outputs, for a batch of `rows`
    /// samples; or the operator that Leo cannot evaluate.
    pub(crate) fn evaluate<T: Real>(&self, source: Source, rows: usize, outputs: &[Vec<T>]) -> Result<Elements, &str>
    where
        Elements: From<Vec<T>>,
    {
        let mut path = Vec::new();
        let mut at = source;
        let output = loop {
            match at {
                Source::Network(output) => break output,
                Source::Constant => return Err("a constant"),
                Source::Tail(index) => {
                    let node = self.nodes[index].function;
                    let (function, from) = node.map_err(|blamed| self.nodes[blamed].operator.as_str())?;
                    path.push(function);
                    at = from;
                }
            }
        };
        let mut values = outputs[output].clone();
        while let Some(function) = path.pop() {
            match function.apply(rows, values) {
                Ok(reals) => values = reals,
                // Only identities follow.
                Err(positions) => return Ok(positions.into()),
            }
        }
        Ok(values.into())
    }

    /// Whether a value is made of positions, whole numbers that nothing but an identity is evaluated on.
    pub(crate) fn are_positions(&self, source: Source) -> bool {
        matches!(source, Source::Tail(index) if self.nodes[index].positions)
    }
}

impl Function {
    /// The function of every sample: real numbers, or else positions.
    fn apply<T: Real>(self, rows: usize, mut values: Vec<T>) -> Result<Vec<T>, Vec<i64>> {
        let each_element = |mut values: Vec<T>, f: fn(f64) -> f64| {
            values.iter_mut().for_each(|value| *value = T::from_f64(f(value.to_f64())));
            Ok(values)
        };
        match self {
            Self::Identity => Ok(values),
            Self::Sigmoid => each_element(values, |x| 1.0 / (1.0 + (-x).exp())),
            Self::Tanh => each_element(values, f64::tanh),
            Self::Softmax(along) => {
                softmax(&mut values, along, rows, |x, log_sum| (x - log_sum).exp());
                Ok(values)
            }
            Self::LogSoftmax(along) => {
                softmax(&mut values, along, rows, |x, log_sum| x - log_sum);
                Ok(values)
            }
            Self::ArgMax { along, last } => Err(argmax(&values, along, rows, last)),
        }
    }
}

fn softmax<T: Real>(values: &mut [T], along: Along, rows: usize, f: impl Fn(f64, f64) -> f64) {
    let mut run = Vec::with_capacity(along.length);
    along.each(rows, |_, positions| {
        run.clear();
        run.extend(positions.map(|at| (at, values[at].to_f64())));
        let largest = run.iter().fold(f64::NEG_INFINITY, |largest, &(_, x)| largest.max(x));
        let log_sum = run.iter().map(|&(_, x)| (x - largest).exp()).sum::<f64>().ln();
        run.iter().for_each(|&(at, x)| values[at] = T::from_f64(f(x - largest, log_sum)));
    });
}

fn argmax<T: Real>(values: &[T], along: Along, rows: usize, last: bool) -> Vec<i64> {
    let mut positions_of_maxima = vec![0; rows * along.outer * along.inner];
    along.each(rows, |run, positions| {
        let mut best: Option<(i64, T)> = None;
        for (position, at) in (0..).zip(positions) {
            let x = values[at];
            if best.is_none_or(|(_, largest)| x > largest || (last && x >= largest)) {
                best = Some((position, x));
            }
        }
        positions_of_maxima[run] = best.map_or(0, |(position, _)| position);
    });
    positions_of_maxima
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(function: Function, values: Vec<f64>) -> Option<Elements> {
        let node = TailNode {
            name: String::new(),
            operator: String::new(),
            function: Ok((function, Source::Network(0))),
            positions: matches!(function, Function::ArgMax { .. }),
        };
        Tail { nodes: vec![node] }.evaluate(Source::Tail(0), 1, &[values]).ok()
    }

    #[test]
    fn softmax_runs_along_its_axis_without_overflow() {
        let along = Along { outer: 1, length: 2, inner: 2 };
        let Some(Elements::F64(values)) =
            evaluate(Function::Softmax(along), vec![1000.0, 0.0, 1000.0, 1f64.exp().ln()])
        else {
            panic!("softmax gives reals")
        };
        let expected = [0.5, 1.0 / (1.0 + 1f64.exp()), 0.5, 1f64.exp() / (1.0 + 1f64.exp())];
        assert!(values.iter().zip(expected).all(|(x, y)| (x - y).abs() < 1e-15), "{values:?}");
    }

    #[test]
    fn argmax_breaks_ties_as_told() {
        let along = Along { outer: 1, length: 4, inner: 1 };
        let of = |last| evaluate(Function::ArgMax { along, last }, vec![1.0, 3.0, 3.0, 2.0]);
        assert_eq!(of(false), Some(Elements::I64(vec![1])));
        assert_eq!(of(true), Some(Elements::I64(vec![2])));
    }
}
