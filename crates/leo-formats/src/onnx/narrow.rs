//! Leaving out channels of values, and with them rows and columns of the constants around them, and nothing else.
//!
//! The nodes of the file stay, with their names, operators and attributes. Numbers are selected and never computed, so
//! that each one that stays has the bits that it had. The result is read again, as any file is, and each of its values
//! must have the axes that are expected of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::dims::Axis;
use super::emit::value_info;
use super::graph::{CONSTANTS_ALONE, label, live_order, replaceable};
use super::import::{Computed, Constants, import};
use super::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, NodeProto, TensorProto, TypeValue, ValueInfoProto,
};
use super::splice::names_at;
use super::tensor::{Tensor, TensorNumbers, encode_floats, encode_ints};
use super::{Document, OnnxError, Spliced, is_native};
use leo_network::ValueId;

impl Document {
    /// This file with only some of the channels of some values: for each value of [`network`](Self::network) that is to
    /// change, which indices along its innermost axis stay, at least one of them and in ascending order.
    ///
    /// Values that a node makes element by element must keep the same channels as what it reads. Rows and columns of
    /// weights, and elements of other constants, that belong to the other channels go. Everything else stays as it is,
    /// and every number that stays has the bits that it had. Constants keep their names, unless they are read elsewhere
    /// too.
    ///
    /// # Errors
    /// If an operator that reads or makes such a value does more than to treat channels alone or to multiply with a
    /// constant matrix, or if the file is not of a kind that can be changed so.
    pub fn narrow(&self, kept: &BTreeMap<ValueId, Vec<usize>>) -> Result<Spliced<Self>, OnnxError> {
        self.check_rewritable()?;
        let mut model = self.embedded()?;
        let lists_constants = model.ir_version() < CONSTANTS_ALONE;
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        let live = live_order(graph)?;
        let needed = names_at(graph, &live);
        let live: HashSet<usize> = live.into_iter().collect();
        let mut selection = Selection::new(self, kept, graph)?;
        for (index, node) in graph.node.iter_mut().enumerate() {
            match live.contains(&index) {
                true => selection.node(node)?,
                false => selection.leave(node)?,
            }
        }
        let constants = std::mem::take(&mut selection.made);
        replace(graph, constants, lists_constants)?;
        graph.value_info.iter_mut().for_each(|value| selection.declare(value));
        remove_unread(graph, &needed)?;
        let narrow = Self::from_model(model, None)?;
        let is_expected = |(name, computed): (&String, &Computed)| {
            let dims = selection.channels(name).map_or_else(
                || computed.dims.clone(),
                |channels| computed.dims.with(channels.axis, channels.kept.len()),
            );
            narrow.read.computed.get(name).is_some_and(|found| found.dims == dims)
        };
        match self.read.computed.iter().find(|&value| !is_expected(value)) {
            // All names are there still.
            None => Ok(self.spliced(narrow, &HashSet::new(), &[])),
            Some((name, _)) => Err(refused(format!("{name:?} gets other axes than it should"))),
        }
    }
}

fn refused(why: String) -> OnnxError {
    OnnxError::Splice(why)
}

/// The channels of a value that stay.
#[derive(Clone, Copy, Debug)]
struct KeptChannels<'a> {
    kept: &'a [usize],
    /// How many there are in the file as it was.
    width: usize,
    /// Which of ONNX's axes they are along, and how many axes there are.
    axis: usize,
    rank: usize,
}

/// A file whose constants are being cut down.
struct Selection<'a> {
    document: &'a Document,
    kept: &'a BTreeMap<ValueId, Vec<usize>>,
    constants: Constants,
    /// How often each name is read, by nodes or as an output.
    readers: HashMap<String, usize>,
    /// Names of constants of the graph's own, which may be replaced if nothing else reads them.
    own: HashSet<String>,
    taken: HashSet<String>,
    /// The constants that nodes read now.
    made: Vec<TensorProto>,
}

impl<'a> Selection<'a> {
    fn new(
        document: &'a Document,
        kept: &'a BTreeMap<ValueId, Vec<usize>>,
        graph: &GraphProto,
    ) -> Result<Self, OnnxError> {
        let mut readers: HashMap<String, usize> = HashMap::new();
        let outputs = graph.output.iter().map(|output| output.name());
        for name in graph.node.iter().flat_map(|node| node.input.iter().map(String::as_str)).chain(outputs) {
            *readers.entry(name.to_owned()).or_default() += 1;
        }
        let own: HashSet<String> = graph.initializer.iter().map(|tensor| tensor.name().to_owned()).collect();
        let made = graph.node.iter().flat_map(|node| &node.output).cloned();
        let given = graph.input.iter().map(|input| input.name().to_owned());
        let taken = own.iter().cloned().chain(made).chain(given).collect();
        let constants = import(graph, document.opset, None, &replaceable(&document.model))?.1;
        Ok(Self { document, kept, constants, readers, own, taken, made: Vec::new() })
    }

    /// Which channels of a value stay, if some do not.
    fn channels(&self, name: &str) -> Option<KeptChannels<'a>> {
        let computed = self.document.read.computed.get(name)?;
        let kept = self.kept.get(&computed.id)?;
        let axes = computed.dims.axes();
        let axis = axes.iter().rposition(|axis| matches!(axis, Axis::Fixed(_)))?;
        let Axis::Fixed(width) = axes[axis] else { return None };
        Some(KeptChannels { kept, width, axis, rank: axes.len() })
    }

    /// A node that no output depends on must have nothing to do with what changes.
    fn leave(&self, node: &NodeProto) -> Result<(), OnnxError> {
        match node.input.iter().find(|name| self.channels(name).is_some()) {
            None => Ok(()),
            Some(name) => Err(refused(format!("{} reads {name:?}, and nothing reads it", label(node)))),
        }
    }

    /// Cuts down the constants of a node.
    fn node(&mut self, node: &mut NodeProto) -> Result<(), OnnxError> {
        let after = node.output.first().and_then(|name| self.channels(name));
        let computed: Vec<usize> =
            (0..node.input.len()).filter(|&input| self.is_computed(&node.input[input])).collect();
        let before = computed.iter().find_map(|&input| self.channels(&node.input[input]));
        if before.is_none() && after.is_none() {
            return Ok(());
        }
        let domain = node.domain().to_owned();
        match (node.op_type().to_owned().as_str(), &computed[..]) {
            ("Gemm", [0, ..]) if is_native(&domain) && int(node, "transA") == 0 => self.gemm(node, before, after),
            ("MatMul", &[input]) if is_native(&domain) => self.matmul(node, 1 - input, before, after),
            ("Add" | "Sub" | "Mul" | "Div", &[input]) if is_native(&domain) => {
                self.elementwise(node, 1 - input, after.or(before))
            }
            ("BatchNormalization", [0]) if is_native(&domain) => self.batch_normalization(node, after),
            ("Scaler", [0]) if domain == "ai.onnx.ml" => scaler(node, after),
            ("Reshape", [0, ..]) if is_native(&domain) => self.reshape(node, after),
            (
                "Relu" | "Identity" | "Dropout" | "Cast" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "Shape",
                [0],
            ) if is_native(&domain) => Ok(()),
            _ => Err(refused(format!("{} ({}) needs all channels", label(node), node.op_type()))),
        }
    }

    fn is_computed(&self, name: &str) -> bool {
        self.document.read.computed.contains_key(name)
    }

    fn gemm(
        &mut self,
        node: &mut NodeProto,
        before: Option<KeptChannels<'_>>,
        after: Option<KeptChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let (inner, outer) = if int(node, "transB") == 0 { (0, 1) } else { (1, 0) };
        self.matrix(node, 1, (inner, before), (outer, after))?;
        match node.input.get(2).is_some_and(|name| !name.is_empty()) {
            true => self.elementwise(node, 2, after),
            false => Ok(()),
        }
    }

    /// A product with a constant that is input `input`, on either side.
    fn matmul(
        &mut self,
        node: &mut NodeProto,
        input: usize,
        before: Option<KeptChannels<'_>>,
        after: Option<KeptChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let rank = self.constant(node, input)?.dims.len();
        match (rank, input) {
            (0, _) => Err(refused(format!("{} multiplies with no matrix", label(node)))),
            (1, _) => self.matrix(node, input, (0, before), (0, None)),
            (_, 0) => self.matrix(node, input, (rank - 1, before), (rank - 2, after)),
            (_, _) => self.matrix(node, input, (rank - 2, before), (rank - 1, after)),
        }
    }

    /// A matrix with the axis along which it reads channels, and the one along which it makes them.
    fn matrix(
        &mut self,
        node: &mut NodeProto,
        input: usize,
        before: (usize, Option<KeptChannels<'_>>),
        after: (usize, Option<KeptChannels<'_>>),
    ) -> Result<(), OnnxError> {
        let mut tensor = Tensor::clone(&*self.constant(node, input)?);
        for (axis, channels) in [before, after] {
            let Some(channels) = channels else { continue };
            if tensor.dims.get(axis) != Some(&channels.width) {
                return Err(refused(format!("{} has weights that do not fit its channels", label(node))));
            }
            tensor = selected(&tensor, axis, channels.kept);
        }
        self.put(node, input, &tensor)
    }

    /// A constant that is stretched to the channels, as in NumPy, or has one number for each.
    fn elementwise(
        &mut self,
        node: &mut NodeProto,
        input: usize,
        channels: Option<KeptChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let Some(channels) = channels else { return Ok(()) };
        let constant = self.constant(node, input)?;
        let Some(axis) = (channels.axis + constant.dims.len()).checked_sub(channels.rank) else { return Ok(()) };
        match constant.dims.get(axis) {
            Some(&extent) if extent == channels.width => {
                self.put(node, input, &selected(&constant, axis, channels.kept))
            }
            Some(1) => Ok(()),
            _ => Err(refused(format!("{} has a constant that does not fit its channels", label(node)))),
        }
    }

    fn batch_normalization(
        &mut self,
        node: &mut NodeProto,
        channels: Option<KeptChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let Some(channels) = channels.filter(|channels| (channels.axis, channels.rank) == (1, 2)) else {
            return Err(refused(format!("{} normalises along another axis", label(node))));
        };
        (1..5).try_for_each(|input| self.matrix(node, input, (0, Some(channels)), (0, None)))
    }

    /// Where the shape that is asked for has a number for the channels, it gets another.
    fn reshape(&mut self, node: &mut NodeProto, channels: Option<KeptChannels<'_>>) -> Result<(), OnnxError> {
        let (Some(channels), Some(shape)) = (channels, node.input.get(1)) else {
            return Err(refused(format!("{} gives a shape in another way", label(node))));
        };
        let known = match self.constants.get(shape).map(|tensor| &tensor.numbers) {
            Some(TensorNumbers::Int(_, entries)) => Some(entries.clone()),
            _ => None,
        };
        // A computed shape may come from the very value that changes. What it is for is known.
        let mut entries = known.unwrap_or_else(|| self.entries(node));
        match entries.get_mut(channels.axis) {
            Some(entry) if *entry > 0 => *entry = channels.kept.len() as i64,
            Some(_) => {}
            None => return Err(refused(format!("{} has a shape of other axes", label(node)))),
        }
        self.rename(node, 1, |name| encode_ints(name, &entries));
        Ok(())
    }

    /// The shape that a node gives, as a constant: the batch is as many as before.
    fn entries(&self, node: &NodeProto) -> Vec<i64> {
        let axes = |name: Option<&String>| -> &[Axis] {
            name.and_then(|name| self.document.read.computed.get(name)).map_or(&[], |computed| computed.dims.axes())
        };
        let before = axes(node.input.first());
        let entry = |(position, axis): (usize, &Axis)| match axis {
            Axis::Fixed(extent) => *extent as i64,
            Axis::Batch(_) if before.get(position) == Some(axis) => 0,
            Axis::Batch(_) => -1,
        };
        axes(node.output.first()).iter().enumerate().map(entry).collect()
    }

    fn constant(&self, node: &NodeProto, input: usize) -> Result<Rc<Tensor>, OnnxError> {
        let constant = node.input.get(input).and_then(|name| self.constants.get(name));
        constant.cloned().ok_or_else(|| refused(format!("input {input} of {} is no constant", label(node))))
    }

    /// Lets a node read another constant of floats.
    fn put(&mut self, node: &mut NodeProto, input: usize, tensor: &Tensor) -> Result<(), OnnxError> {
        match &tensor.numbers {
            TensorNumbers::Float(float, values) => {
                self.rename(node, input, |name| encode_floats(name, *float, &tensor.dims, values));
                Ok(())
            }
            TensorNumbers::Int(..) => Err(refused(format!("{} has weights that are whole numbers", label(node)))),
        }
    }

    /// Lets a node read another constant, under the same name if nothing else reads that.
    fn rename(&mut self, node: &mut NodeProto, input: usize, encode: impl FnOnce(&str) -> TensorProto) {
        let name = &mut node.input[input];
        let is_free = self.own.contains(name) && self.readers.get(name) == Some(&1);
        if !is_free {
            let numbered = (2..).map(|number| format!("{name}_{number}"));
            *name = numbered.into_iter().find(|name| !self.taken.contains(name)).unwrap_or_default();
            self.taken.insert(name.clone());
        }
        self.made.push(encode(name));
    }

    /// Declares a value with as many channels as it has now.
    fn declare(&self, value: &mut ValueInfoProto) {
        let Some(channels) = self.channels(value.name()) else { return };
        let Some(TypeValue::Tensor(tensor)) = value.r#type.as_mut().and_then(|of| of.value.as_mut()) else { return };
        if let Some(dimension) = tensor.shape.as_mut().and_then(|shape| shape.dim.get_mut(channels.axis)) {
            let extent = Some(DimensionValue::Value(channels.kept.len() as i64));
            *dimension = Dimension { value: extent, ..dimension.clone() };
        }
    }
}

/// A whole number among a node's attributes; 0 if it is not there.
fn int(node: &NodeProto, name: &str) -> i64 {
    node.attribute.iter().find(|attribute| attribute.name() == name).map_or(0, |attribute| attribute.i())
}

/// Offsets and scales are attributes, one for all channels or one for each.
fn scaler(node: &mut NodeProto, channels: Option<KeptChannels<'_>>) -> Result<(), OnnxError> {
    let Some(channels) = channels else { return Ok(()) };
    let is_list = |attribute: &&mut AttributeProto| attribute.floats.len() == channels.width;
    for attribute in node.attribute.iter_mut().filter(is_list) {
        attribute.floats = channels.kept.iter().map(|&channel| attribute.floats[channel]).collect();
    }
    Ok(())
}

/// Only some places along one axis.
fn selected(tensor: &Tensor, axis: usize, kept: &[usize]) -> Tensor {
    let mut dims = tensor.dims.clone();
    dims[axis] = kept.len();
    let (width, inner) = (tensor.dims[axis], tensor.dims[axis + 1..].iter().product::<usize>());
    let source = |place: usize| {
        let (outer, rest) = (place / (kept.len() * inner), place % (kept.len() * inner));
        (outer * width + kept[rest / inner]) * inner + rest % inner
    };
    let places = || (0..dims.iter().product::<usize>()).map(source);
    let numbers = match &tensor.numbers {
        TensorNumbers::Float(float, values) => {
            TensorNumbers::Float(*float, places().map(|place| values[place]).collect())
        }
        TensorNumbers::Int(int, values) => TensorNumbers::Int(*int, places().map(|place| values[place]).collect()),
    };
    Tensor { dims, numbers }
}

/// Puts constants into a graph, instead of those of the same name.
fn replace(graph: &mut GraphProto, constants: Vec<TensorProto>, lists_constants: bool) -> Result<(), OnnxError> {
    for constant in constants {
        let declared =
            value_info(constant.name(), constant.data_type(), constant.dims.iter().copied().map(DimensionValue::Value));
        match graph.input.iter_mut().find(|input| input.name() == constant.name()) {
            Some(_) if !lists_constants => {
                return Err(refused(format!("{:?} is also an input, which may have another value", constant.name())));
            }
            Some(input) => *input = declared,
            None if lists_constants => graph.input.push(declared),
            None => {}
        }
        match graph.initializer.iter_mut().find(|tensor| tensor.name() == constant.name()) {
            Some(tensor) => *tensor = TensorProto { doc_string: tensor.doc_string.take(), ..constant },
            None => graph.initializer.push(constant),
        }
    }
    Ok(())
}

/// Removes nodes and constants that outputs needed before, and need no more.
fn remove_unread(graph: &mut GraphProto, needed: &HashSet<String>) -> Result<(), OnnxError> {
    let still = names_at(graph, &live_order(graph)?);
    let is_aside = |node: &&NodeProto| !node.output.iter().any(|name| needed.contains(name));
    let aside: HashSet<String> = graph.node.iter().filter(is_aside).flat_map(|node| node.input.clone()).collect();
    let is_gone = |name: &str| needed.contains(name) && !still.contains(name) && !aside.contains(name);
    graph.node.retain(|node| !node.output.iter().any(|name| is_gone(name)));
    let read: HashSet<&str> = graph.node.iter().flat_map(|node| node.input.iter().map(String::as_str)).collect();
    let output = |name: &str| graph.output.iter().any(|output| output.name() == name);
    let gone: HashSet<String> =
        needed.iter().filter(|name| is_gone(name) && !read.contains(name.as_str()) && !output(name)).cloned().collect();
    graph.initializer.retain(|tensor| !gone.contains(tensor.name()));
    graph.input.retain(|input| !gone.contains(input.name()));
    graph.value_info.retain(|value| !gone.contains(value.name()));
    graph.quantization_annotation.retain(|annotation| !gone.contains(annotation.tensor_name()));
    Ok(())
}
