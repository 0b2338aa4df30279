//! What lowering functions build with: each method takes values as ONNX sees them, adds operators to the network, and
//! gives the value back that these make.

use super::Reason;
use super::dims::{Axis, Dims};
use super::element::Float;
use super::import::Computed;
use super::tensor::Tensor;
use leo_network::op::{
    Arithmetic, Broadcast, Concat, Dense, Elementwise, Matrix, Op, Operator, Reshape, Select, Sum, SumPool, Transpose,
    Window, WindowAxis,
};
use leo_network::{Builder, Network, ValueId};
use leo_network::{NetworkError, Shape};

/// How many numbers the constants that are made from constants may have, and the network's weights, beyond a few for
/// each in the file: 256 MiB.
const FOLDED_ELEMENTS: usize = 1 << 25;

/// A network in the making, and how much room its numbers take.
pub(super) struct Composer {
    builder: Builder,
    /// The name of the node that is being lowered.
    node: String,
    /// How many numbers the file's constants have.
    decoded: usize,
    /// How many numbers the constants have that were made from the file's.
    folded: usize,
    /// How many numbers the network's operators have of their own: a constant that several read is there several times.
    weights: usize,
}

impl Composer {
    /// Starts a network whose samples have this shape.
    pub(super) fn new(sample: Shape) -> Self {
        Self { builder: Network::builder(sample), node: String::new(), decoded: 0, folded: 0, weights: 0 }
    }

    /// Begins with another node of the file.
    pub(super) fn begin(&mut self, node: &str) {
        node.clone_into(&mut self.node);
    }

    /// Counts a constant of the file.
    pub(super) fn count_decoded(&mut self, constant: &Tensor) {
        self.decoded += constant.elements();
    }

    /// Counts a constant that was made from others.
    pub(super) fn count_folded(&mut self, constant: &Tensor) -> Result<(), Reason> {
        self.folded += constant.elements();
        self.ensure_room(self.folded, "constants made from constants")
    }

    /// A small file must not take much room: not many more numbers may be made than the file has.
    fn ensure_room(&self, numbers: usize, what: &str) -> Result<(), Reason> {
        match numbers <= FOLDED_ELEMENTS + 4 * self.decoded {
            true => Ok(()),
            false => Err(Reason::Unusable(format!("is one too many: {what} take too much room"))),
        }
    }

    /// The finished network, with these values leaving it.
    pub(super) fn finish(self, outputs: Vec<ValueId>) -> Result<Network, NetworkError> {
        self.builder.finish(outputs)
    }

    fn add(&mut self, op: impl Into<Op>, operands: &[ValueId], dims: Dims, float: Float) -> Result<Computed, Reason> {
        let op = op.into();
        self.weights += op.parameters();
        self.ensure_room(self.weights, "constants that are read again and again")?;
        let id = self.builder.add(self.node.clone(), op, operands)?;
        debug_assert_eq!(Ok(self.builder.shape(id).clone()), dims.sample());
        Ok(Computed { id, dims, float, narrowed: None })
    }

    /// An operator that keeps the shape.
    pub(super) fn unary(&mut self, op: impl Into<Op>, x: &Computed) -> Result<Computed, Reason> {
        self.add(op, &[x.id], x.dims.clone(), x.float)
    }

    /// The elements of `x` in the same order under other axes.
    pub(super) fn reshape(&mut self, x: &Computed, dims: Dims) -> Result<Computed, Reason> {
        let target = dims.sample()?;
        if *self.builder.shape(x.id) == target {
            return Ok(Computed { dims, ..x.clone() });
        }
        self.add(Reshape::new(target), &[x.id], dims, x.float)
    }

    /// The axes of `x` in another order.
    pub(super) fn transpose(&mut self, x: &Computed, order: &[usize]) -> Result<Computed, Reason> {
        let dims = x.dims.permuted(order);
        let moving = |axis: &&usize| matches!(x.dims.axes()[**axis], Axis::Fixed(extent) if extent > 1);
        if order.iter().filter(moving).is_sorted() {
            return self.reshape(x, dims);
        }
        let within = order.iter().filter(|&&axis| Some(axis) != x.dims.batch_axis());
        let within: Vec<usize> = within.map(|&axis| x.dims.sample_axis(axis)).collect();
        self.add(Transpose::new(within)?, &[x.id], dims, x.float)
    }

    /// Moves axis `from` to `to`, the others keeping their order.
    fn move_axis(&mut self, x: &Computed, from: usize, to: usize) -> Result<Computed, Reason> {
        let mut order: Vec<usize> = (0..x.dims.rank()).filter(|&axis| axis != from).collect();
        order.insert(to, from);
        self.transpose(x, &order)
    }

    /// `weight` applied to every vector along `axis`.
    pub(super) fn dense(
        &mut self,
        x: &Computed,
        axis: usize,
        weight: Matrix,
        bias: Option<Vec<f64>>,
    ) -> Result<Computed, Reason> {
        match x.dims.axes()[axis] {
            Axis::Batch(_) => return Err(Reason::MixesBatch),
            Axis::Fixed(extent) if extent != weight.columns() => {
                return Err(NetworkError::mismatch(format!(
                    "the weights take vectors of length {}, the input has axes {}",
                    weight.columns(),
                    x.dims
                ))
                .into());
            }
            Axis::Fixed(_) => {}
        }
        let last = x.dims.rank() - 1;
        // The batch may stand last: within the sample, the axis is the last one all the same.
        let innermost = x.dims.sample_axis(axis) + 1 == x.dims.sample_extents().len();
        let moved = if innermost { x.clone() } else { self.move_axis(x, axis, last)? };
        let at = if innermost { axis } else { last };
        let rows = weight.rows();
        let mapped = self.add(Dense::new(weight, bias)?, &[moved.id], moved.dims.with(at, rows), x.float)?;
        if innermost { Ok(mapped) } else { self.move_axis(&mapped, last, axis) }
    }

    /// An operator that takes the sample's axes and gives as many back, of which it knows how long they are.
    pub(super) fn windowed(&mut self, op: impl Into<Op>, x: &Computed) -> Result<Computed, Reason> {
        let op = op.into();
        let shape = op.output_shape(&[&x.dims.sample()?])?;
        self.add(op, &[x.id], x.dims.with_sample(shape.extents()), x.float)
    }

    /// The elements at some indices along an axis; where there is none, 0.
    pub(super) fn select(&mut self, x: &Computed, indices: &[(usize, Vec<Option<usize>>)]) -> Result<Computed, Reason> {
        let mut axes: Vec<Vec<Option<usize>>> =
            x.dims.sample_extents().iter().map(|&extent| (0..extent).map(Some).collect()).collect();
        let mut is_new = false;
        for (axis, indices) in indices {
            if matches!(x.dims.axes()[*axis], Axis::Batch(_)) {
                return Err(Reason::MixesBatch);
            }
            let own = &mut axes[x.dims.sample_axis(*axis)];
            is_new |= own != indices;
            own.clone_from(indices);
        }
        if is_new { self.windowed(Select::new(axes), x) } else { Ok(x.clone()) }
    }

    /// Values side by side along an axis.
    pub(super) fn concat(&mut self, values: &[&Computed], axis: usize) -> Result<Computed, Reason> {
        let [first, others @ ..] = values else { return Err(Reason::Unusable("joins nothing".to_owned())) };
        if matches!(first.dims.axes()[axis], Axis::Batch(_)) {
            return Err(Reason::MixesBatch);
        }
        let Some(other) = others.iter().find(|other| other.dims.batch_axis() != first.dims.batch_axis()) else {
            let op = Concat::new(first.dims.sample_axis(axis), values.len());
            let shapes = values.iter().map(|value| value.dims.sample()).collect::<Result<Vec<_>, _>>()?;
            let shape = op.output_shape(&shapes.iter().collect::<Vec<_>>())?;
            let ids: Vec<ValueId> = values.iter().map(|value| value.id).collect();
            return self.add(op, &ids, first.dims.with_sample(shape.extents()), first.float);
        };
        Err(NetworkError::mismatch(format!("joins values with axes {} and {}", first.dims, other.dims)).into())
    }

    /// The sum over some axes, of which there is at least one, and how many numbers it is of.
    pub(super) fn sum_over(
        &mut self,
        x: &Computed,
        axes: &[usize],
        keeps_axes: bool,
    ) -> Result<(Computed, usize), Reason> {
        if axes.iter().any(|&axis| matches!(x.dims.axes()[axis], Axis::Batch(_))) {
            return Err(Reason::MixesBatch);
        }
        let is_summed = |axis: &usize| axes.contains(axis);
        let (summed, kept): (Vec<usize>, Vec<usize>) = (0..x.dims.rank()).partition(is_summed);
        let order: Vec<usize> = kept.iter().chain(&summed).copied().collect();
        let moved = self.transpose(x, &order)?;
        let extent = |&axis: &usize| if let Axis::Fixed(extent) = x.dims.axes()[axis] { extent } else { 1 };
        let count: usize = summed.iter().map(extent).product();
        let others: Vec<Axis> = kept.iter().map(|&axis| x.dims.axes()[axis]).collect();
        let row = Dims::new(others.iter().copied().chain([Axis::Fixed(1), Axis::Fixed(count)]).collect());
        let rows = self.reshape(&moved, row)?;
        let sum = self.windowed(SumPool::new(Window::new([WindowAxis::new(count, 1)])), &rows)?;
        let left = |axis: usize| if is_summed(&axis) { Axis::Fixed(1) } else { x.dims.axes()[axis] };
        let dims = if keeps_axes { (0..x.dims.rank()).map(left).collect() } else { others };
        Ok((self.reshape(&sum, Dims::new(dims))?, count))
    }

    /// Arithmetic with a constant of the file, either of them stretched to the other's axes as in NumPy.
    pub(super) fn elementwise(
        &mut self,
        x: &Computed,
        arithmetic: Arithmetic,
        constant: &Tensor,
    ) -> Result<Computed, Reason> {
        self.elementwise_with(x, arithmetic, constant, Elementwise::new)
    }

    /// The same with a constant that the operator has of itself, and nobody has learnt.
    pub(super) fn elementwise_of_operator(
        &mut self,
        x: &Computed,
        arithmetic: Arithmetic,
        constant: &Tensor,
    ) -> Result<Computed, Reason> {
        self.elementwise_with(x, arithmetic, constant, Elementwise::of_operator)
    }

    fn elementwise_with(
        &mut self,
        x: &Computed,
        arithmetic: Arithmetic,
        constant: &Tensor,
        new: fn(Arithmetic, Broadcast) -> Result<Elementwise, NetworkError>,
    ) -> Result<Computed, Reason> {
        let rank = x.dims.rank().max(constant.dims.len());
        let mut x = self.reshape(x, x.dims.padded(rank))?;
        let mut extents = vec![1; rank - constant.dims.len()];
        extents.extend_from_slice(&constant.dims);
        for (axis, &extent) in extents.iter().enumerate() {
            match x.dims.axes()[axis] {
                Axis::Batch(_) if extent != 1 => return Err(Reason::MixesBatch),
                Axis::Fixed(own) if own == 1 && extent > 1 => x = self.stretch(&x, axis, extent)?,
                Axis::Fixed(own) if own != extent && extent != 1 => {
                    let message = format!("a constant of shape {:?} does not fit axes {}", constant.dims, x.dims);
                    return Err(NetworkError::mismatch(message).into());
                }
                _ => {}
            }
        }
        if let Some(batch) = x.dims.batch_axis() {
            extents.remove(batch);
        }
        let constant = Broadcast::new(Shape::new(extents)?, constant.floats()?)?;
        self.unary(new(arithmetic, constant)?, &x)
    }

    /// Repeats what axis `axis` of extent 1 holds `extent` times.
    fn stretch(&mut self, x: &Computed, axis: usize, extent: usize) -> Result<Computed, Reason> {
        x.dims.with(axis, extent).sample()?;
        self.dense(x, axis, Matrix::new(extent, 1, vec![1.0; extent])?, None)
    }

    /// The sum of two values, either of them stretched to the other's axes as in NumPy.
    pub(super) fn sum(&mut self, x: &Computed, y: &Computed) -> Result<Computed, Reason> {
        let rank = x.dims.rank().max(y.dims.rank());
        let [mut x, mut y] = [self.reshape(x, x.dims.padded(rank))?, self.reshape(y, y.dims.padded(rank))?];
        for axis in 0..rank {
            match (x.dims.axes()[axis], y.dims.axes()[axis]) {
                (own, other) if own == other => {}
                (Axis::Fixed(1), Axis::Fixed(extent)) => x = self.stretch(&x, axis, extent)?,
                (Axis::Fixed(extent), Axis::Fixed(1)) => y = self.stretch(&y, axis, extent)?,
                (Axis::Batch(_), _) | (_, Axis::Batch(_)) => return Err(Reason::MixesBatch),
                _ => {
                    let message = format!("adds values with different axes, {} and {}", x.dims, y.dims);
                    return Err(NetworkError::mismatch(message).into());
                }
            }
        }
        self.add(Sum, &[x.id, y.id], x.dims.clone(), x.float)
    }
}
