//! From operators whose windows move over positions, and from those that select parts, to ONNX nodes.

use super::emit::{Emitter, int, ints};
use super::proto::AttributeProto;
use leo_network::op::{AffineMap, Concat, Convolution, MaxPool, Op, Select, SumPool, Window};
use leo_network::{Network, Node};

/// Whether ONNX has such operators for these operands: it takes samples, channels and positions, and nothing else.
pub(super) fn can_be_written(network: &Network) -> bool {
    network.nodes().iter().all(|node| {
        let axes = match node.op() {
            Op::Affine(AffineMap::Convolution(convolution)) => convolution.window().axes().len(),
            Op::Affine(AffineMap::SumPool(pool)) => pool.window().axes().len(),
            Op::MaxPool(pool) => pool.window().axes().len(),
            Op::Affine(_) | Op::Activation(_) | Op::Sum(_) | Op::Concat(_) => return true,
        };
        network.shape(node.operands()[0]).rank() == axes + 1
    })
}

impl Emitter<'_> {
    pub(super) fn convolution(&mut self, map: &Convolution, name: &str, mut operands: Vec<String>, output: &str) {
        let window = map.window();
        let kernel: Vec<usize> = window.axes().iter().map(|axis| axis.kernel).collect();
        let (entries, groups) = (kernel.iter().product::<usize>(), map.groups());
        let (inputs, outputs) = (map.inputs() / groups, map.outputs() / groups);
        let with_kernel = |first: usize, second: usize| [&[first, second], &kernel[..]].concat();
        let (operator, dims, values) = match window.is_transposed() {
            false => ("Conv", with_kernel(map.outputs(), inputs), map.weights().to_vec()),
            true => {
                let row = |input: usize, output: usize| {
                    let output = input / inputs * outputs + output;
                    &map.weights()[(output * inputs + input % inputs) * entries..][..entries]
                };
                let rows = (0..map.inputs()).flat_map(|input| (0..outputs).map(move |output| row(input, output)));
                ("ConvTranspose", with_kernel(map.inputs(), outputs), rows.flatten().copied().collect())
            }
        };
        operands.push(self.constant("kernel", &dims, &values));
        if let Some(bias) = map.bias() {
            operands.push(self.constant("bias", &[bias.len()], bias));
        }
        let mut attributes = layout(window);
        attributes.push(int("group", groups as i64));
        self.push(operator, name, operands, output, attributes);
    }

    /// A sum over windows is a convolution of each channel with ones.
    pub(super) fn sum_pool(
        &mut self,
        node: &Node,
        pool: &SumPool,
        name: &str,
        mut operands: Vec<String>,
        output: &str,
    ) {
        let channels = self.piece.network.shape(node.operands()[0]).extents()[0];
        let kernel = pool.window().axes().iter().map(|axis| axis.kernel);
        let dims: Vec<usize> = [channels, 1].into_iter().chain(kernel).collect();
        operands.push(self.constant("ones", &dims, &vec![1.0; dims.iter().product()]));
        let mut attributes = layout(pool.window());
        attributes.push(int("group", channels as i64));
        self.push("Conv", name, operands, output, attributes);
    }

    pub(super) fn max_pool(&mut self, pool: &MaxPool, name: &str, operands: Vec<String>, output: &str) {
        let kernel = pool.window().axes().iter().map(|axis| axis.kernel as i64).collect();
        let mut attributes = layout(pool.window());
        attributes.push(ints("kernel_shape", kernel));
        self.push("MaxPool", name, operands, output, attributes);
    }

    pub(super) fn concat(&mut self, concat: &Concat, name: &str, operands: Vec<String>, output: &str) {
        let axis = concat.axis() + usize::from(self.piece.batched);
        self.push("Concat", name, operands, output, vec![int("axis", axis as i64)]);
    }

    /// Axis by axis: a zero behind all others, if one is wanted, and then each index.
    pub(super) fn select(&mut self, node: &Node, select: &Select, name: &str, operands: Vec<String>, output: &str) {
        let extents = self.piece.network.shape(node.operands()[0]).extents().to_vec();
        let rank = extents.len() + usize::from(self.piece.batched);
        let mut value = operands[0].clone();
        let chosen: Vec<usize> = (0..extents.len())
            .filter(|&axis| !select.axes()[axis].iter().copied().eq((0..extents[axis]).map(Some)))
            .collect();
        for &axis in &chosen {
            let at = axis + usize::from(self.piece.batched);
            if select.axes()[axis].contains(&None) {
                let mut pads = vec![0; 2 * rank];
                pads[rank + at] = 1;
                let pads = self.ints_constant("pads", &pads);
                let padded = self.fresh("padded");
                self.push("Pad", name, vec![value, pads], &padded, vec![]);
                value = padded;
            }
            let indices: Vec<i64> =
                select.axes()[axis].iter().map(|index| index.unwrap_or(extents[axis]) as i64).collect();
            let indices = self.ints_constant("indices", &indices);
            let made = if Some(&axis) == chosen.last() { output.to_owned() } else { self.fresh("selected") };
            self.push("Gather", name, vec![value, indices], &made, vec![int("axis", at as i64)]);
            value = made;
        }
        if chosen.is_empty() {
            self.push("Identity", name, vec![value], output, vec![]);
        }
    }
}

/// How a window lies, as attributes.
fn layout(window: &Window) -> Vec<AttributeProto> {
    let axes = || window.axes().iter();
    let pads = axes().map(|axis| axis.before).chain(axes().map(|axis| axis.after));
    let numbers = |numbers: Vec<usize>| numbers.into_iter().map(|number| number as i64).collect::<Vec<i64>>();
    let mut attributes = vec![
        ints("strides", numbers(axes().map(|axis| axis.stride).collect())),
        ints("dilations", numbers(axes().map(|axis| axis.dilation).collect())),
        ints("pads", numbers(pads.collect())),
    ];
    if window.is_transposed() {
        attributes.push(ints("output_padding", numbers(axes().map(|axis| axis.extra).collect())));
    }
    attributes
}
