//! Parts of a value, along each axis: slices, repetitions, and zeros around them.

use super::{Action, ActionKind, Evaluate, Kernel, Map, Operands, Operator, Sums, Terms};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// For each axis, which index of the operand stands at each of the result's; where it is none, there is 0.
///
/// Slicing, splitting, padding with zeros and resizing to the nearest neighbour are of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    axes: Vec<Vec<Option<usize>>>,
}

impl Select {
    /// The elements at these indices along each axis.
    pub fn new(axes: Vec<Vec<Option<usize>>>) -> Self {
        Self { axes }
    }

    /// For each axis, the index of the operand that stands at each of the result's.
    pub fn axes(&self) -> &[Vec<Option<usize>>] {
        &self.axes
    }

    /// For each element of the result, the element of an operand with these extents that it is.
    fn sources(&self, extents: &[usize]) -> Vec<Option<usize>> {
        let mut sources = vec![Some(0)];
        for (axis, &extent) in self.axes.iter().zip(extents) {
            let joined = |outer: &Option<usize>| {
                let outer = *outer;
                axis.iter().map(move |inner| Some(outer? * extent + (*inner)?))
            };
            sources = sources.iter().flat_map(joined).collect();
        }
        sources
    }
}

impl Operator for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let extents = operands[0].extents();
        let fits = |(axis, &extent): (&Vec<Option<usize>>, &usize)| axis.iter().flatten().all(|&index| index < extent);
        if extents.len() != self.axes.len() || !self.axes.iter().zip(extents).all(fits) {
            return Err(NetworkError::mismatch(format!("selects what a value of shape {} does not have", operands[0])));
        }
        Shape::new(self.axes.iter().map(Vec::len).collect::<Vec<_>>())
    }

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        Channels::along(result, operand.axis())
    }
}

impl Map for Select {
    fn action(&self, operand: &Shape) -> Action<'_> {
        let terms = Selected { sources: self.sources(operand.extents()), inputs: operand.elements() };
        Action::Sums(Sums::of_terms(terms))
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Sums
    }

    fn ties_channels(&self) -> bool {
        true
    }
}

/// Sums of one term, or none.
#[derive(Debug)]
struct Selected {
    sources: Vec<Option<usize>>,
    inputs: usize,
}

impl Terms for Selected {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn outputs(&self) -> usize {
        self.sources.len()
    }

    fn of(&self, output: usize) -> Vec<(usize, f64)> {
        self.sources[output].iter().map(|&source| (source, 1.0)).collect()
    }

    fn bias(&self, _output: usize) -> Option<f64> {
        None
    }

    fn longest(&self) -> usize {
        1
    }

    fn readers(&self) -> usize {
        let mut readers = vec![0; self.inputs];
        self.sources.iter().flatten().for_each(|&source| readers[source] += 1);
        readers.into_iter().max().unwrap_or(0)
    }
}

impl Evaluate for Select {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(Selected { sources: self.sources(operands[0].extents()), inputs: operands[0].elements() })
    }
}

impl<T: Real> Kernel<T> for Selected {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let rows = operands.get(0).chunks_exact(self.inputs).zip(output.chunks_exact_mut(self.sources.len()));
        for (x, y) in rows {
            y.iter_mut().zip(&self.sources).for_each(|(y, source)| *y = source.map_or(T::default(), |at| x[at]));
        }
    }
}
