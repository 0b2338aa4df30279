//! Leaving out channels of values, and with them rows and columns of the constants around them, and nothing else.
//!
//! The nodes of the file stay, with their names, operators and attributes. Numbers are selected and never computed, so
//! that each one that stays has the bits that it had. The result is read again, as any file is, and each of its values
//! must have the axes that are expected of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use super::dims::Axis;
use super::element::Float;
use super::emit::value_info;
use super::graph::{CONSTANTS_ALONE, label, live_order};
use super::import::{Computed, Constants};
use super::made_up::{MadeUp, Share};
use super::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, NodeProto, TensorProto, TypeValue, ValueInfoProto,
};
use super::splice::names_at;
use super::tensor::{Tensor, TensorNumbers, encode_floats, encode_ints};
use super::{Document, OnnxError, Spliced, is_native};
use leo_network::{ValueId, product};

impl Document {
    /// This file with only some of the channels of some values: for each value of [`network`](Self::network) that is to
    /// change, which of its [channels](leo_network::Node::channels) stay, at least one of them and in ascending order.
    ///
    /// Where channels that go are something else than nothing, what reads them [makes up for it](MadeUp).
    ///
    /// Values that a node makes element by element must keep the same channels as what it reads. Rows and columns of
    /// weights, and elements of other constants, that belong to the other channels go. Everything else stays as it is,
    /// and every number that stays has the bits that it had. Constants keep their names, unless they are read elsewhere
    /// too.
    ///
    /// # Errors
    /// If an operator that reads or makes such a value does more than to treat channels alone or to multiply with a
    /// constant matrix, or if the file is not of a kind that can be changed so.
    pub fn narrow(&self, kept: &BTreeMap<ValueId, Vec<usize>>, made_up: &MadeUp) -> Result<Spliced<Self>, OnnxError> {
        let mut model = self.to_rewrite()?;
        let lists_constants = model.ir_version() < CONSTANTS_ALONE;
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        let live = live_order(graph)?;
        let needed = names_at(graph, &live);
        let live: HashSet<usize> = live.into_iter().collect();
        let mut selection = Selection::new(self, kept, made_up, graph)?;
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
        let narrow = self.read_again(model)?;
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
struct StayingChannels<'a> {
    kept: &'a [usize],
    /// How many there are in the file as it was.
    width: usize,
    /// Which of ONNX's axes they are along, and how many axes there are.
    axis: usize,
    rank: usize,
    /// What weights for others add to theirs, where they are read.
    shares: &'a [Share],
}

/// Where a node has a summand for each channel.
struct Summand {
    input: usize,
    float: Float,
    dims: Vec<usize>,
}

/// A file whose constants are being cut down.
struct Selection<'a> {
    document: &'a Document,
    kept: &'a BTreeMap<ValueId, Vec<usize>>,
    made_up: &'a MadeUp,
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
        made_up: &'a MadeUp,
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
        let constants = document.constants(graph)?;
        Ok(Self { document, kept, made_up, constants, readers, own, taken, made: Vec::new() })
    }

    /// Which channels of a value stay, if some do not.
    fn channels(&self, name: &str) -> Option<StayingChannels<'a>> {
        let computed = self.document.read.computed.get(name)?;
        let kept = self.kept.get(&computed.id)?;
        let axes = computed.dims.axes();
        let mut fixed = axes.iter().enumerate().filter(|(_, axis)| matches!(axis, Axis::Fixed(_)));
        let (axis, _) = fixed.nth(self.document.network().channels(computed.id).axis())?;
        let Axis::Fixed(width) = axes[axis] else { return None };
        Some(StayingChannels { kept, width, axis, rank: axes.len(), shares: &[] })
    }

    /// What no output depends on must have nothing to do with what changes.
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
        let made = node.output.first().and_then(|name| self.made_by(name));
        let shares = made.and_then(|value| self.made_up.shares.get(&value)).map_or(&[][..], Vec::as_slice);
        let before = before.map(|channels| StayingChannels { shares, ..channels });
        let summands = made.and_then(|value| self.made_up.summands.get(&value)).map(Vec::as_slice);
        if before.is_none() && after.is_none() && summands.is_none() {
            return Ok(());
        }
        let summand = summands.map(|numbers| self.summand_of(node, &computed, numbers.len())).transpose()?;
        self.cut(node, &computed, (before, after))?;
        if let (Some(summand), Some(numbers)) = (summand, summands) {
            self.put_summands(node, &summand, numbers);
        }
        Ok(())
    }

    /// Cuts down the constants of a node by which channels stay of what it reads and of what it makes.
    fn cut(
        &mut self,
        node: &mut NodeProto,
        computed: &[usize],
        (before, after): (Option<StayingChannels<'_>>, Option<StayingChannels<'_>>),
    ) -> Result<(), OnnxError> {
        let (domain, operator) = (node.domain().to_owned(), node.op_type().to_owned());
        let domain = domain.as_str();
        match (operator.as_str(), computed) {
            ("Gemm", [0, ..]) if is_native(domain) && int(node, "transA") == 0 => self.gemm(node, before, after),
            ("MatMul", &[input]) if is_native(domain) => self.matmul(node, 1 - input, before, after),
            ("Add" | "Sub" | "Mul" | "Div", &[input]) if is_native(domain) => {
                self.elementwise(node, 1 - input, after.or(before))
            }
            ("BatchNormalization", [0]) if is_native(domain) => self.batch_normalization(node, after),
            ("Scaler", [0]) if domain == "ai.onnx.ml" => scaler(node, after),
            ("Conv", [0]) if is_native(domain) => self.convolution(node, [(1, before), (0, after)], after),
            ("ConvTranspose", [0]) if is_native(domain) => self.convolution(node, [(0, before), (1, after)], after),
            ("Reshape", [0, ..]) if is_native(domain) => self.reshape(node, after),
            (
                "Relu" | "Identity" | "Dropout" | "Cast" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" | "Shape"
                | "AveragePool" | "GlobalAveragePool" | "GlobalMaxPool" | "MaxPool" | "Pad" | "ReduceMean"
                | "ReduceSum" | "Resize" | "Upsample" | "Slice" | "Split" | "Gather",
                [0],
            ) if is_native(domain) => Ok(()),
            // Side by side, or added up: nothing of the node is about the number of channels.
            ("Add" | "Concat", _) if is_native(domain) && computed.len() == node.input.len() => Ok(()),
            _ => Err(refused(format!("{} ({}) needs all channels", label(node), node.op_type()))),
        }
    }

    /// The value that what makes something of this name makes.
    fn made_by(&self, name: &str) -> Option<ValueId> {
        let computed = self.document.read.computed.get(name)?;
        // A name that is given to the value further on has no part in making it.
        let (first, _) = self.document.read.names.get(&computed.id)?;
        (first == name).then_some(computed.id)
    }

    /// Which input of a node has a summand for each of its channels, and what type and shape these have once channels
    /// are left out.
    fn summand_of(&self, node: &NodeProto, computed: &[usize], count: usize) -> Result<Summand, OnnxError> {
        let refuse = || refused(format!("{} has no summand for each channel", label(node)));
        let (input, weights) = match (node.op_type(), computed) {
            ("Conv" | "ConvTranspose", [0]) => (2, 1),
            ("Gemm", [0, ..]) if node.attribute.iter().all(|given| given.name() != "beta" || given.f() == 1.0) => {
                (2, 1)
            }
            ("Add", &[input]) => (1 - input, 1 - input),
            _ => return Err(refuse()),
        };
        let TensorNumbers::Float(float, _) = self.constant(node, weights)?.numbers else { return Err(refuse()) };
        if input == 2 {
            return Ok(Summand { input, float, dims: vec![count] });
        }
        let after = node.output.first().and_then(|name| self.channels(name));
        let mut dims = self.constant(node, input)?.dims.clone();
        let widths = dims.iter_mut().filter(|extent| after.is_some_and(|channels| channels.width == **extent));
        widths.for_each(|extent| *extent = count);
        // Anything but one number for each channel would have to be stretched first.
        if product(&dims) == Some(count) { Ok(Summand { input, float, dims }) } else { Err(refuse()) }
    }

    /// Puts new summands where a node, whose channels are left out by now, has them or may have them.
    fn put_summands(&mut self, node: &mut NodeProto, Summand { input, float, dims }: &Summand, numbers: &[f64]) {
        let float = self.made_up.type_of(*float);
        let numbers: Vec<f64> = numbers.iter().map(|&number| float.round(number)).collect();
        let encode = |name: &str| encode_floats(name, float, dims, &numbers);
        if node.input.len() <= *input {
            node.input.resize(input + 1, String::new());
        }
        let name = node.input[*input].clone();
        match self.made.iter_mut().find(|made| made.name() == name) {
            Some(made) => *made = encode(&name),
            None if name.is_empty() => {
                node.input[*input] = format!("{}_bias", node.output.first().map_or("", String::as_str));
                self.rename(node, *input, encode);
            }
            None => self.rename(node, *input, encode),
        }
    }

    /// A kernel with the axes along which it has the channels that it reads and makes. In groups, these belong to each
    /// other.
    fn convolution(
        &mut self,
        node: &mut NodeProto,
        [before, after]: [(usize, Option<StayingChannels<'_>>); 2],
        made: Option<StayingChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let groups = node.attribute.iter().find(|attribute| attribute.name() == "group").map_or(1, |group| group.i());
        if groups == 1 {
            self.matrix(node, 1, before, after)?;
        } else {
            // Only whole groups go. Their weights are along the first axis, whatever that is for.
            let first = if before.0 == 0 { before.1 } else { after.1 };
            self.matrix(node, 1, (0, first), (0, None))?;
            let (Some(read), Some(made)) = (before.1, after.1) else {
                return Err(refused(format!("{} makes channels of groups that are not there", label(node))));
            };
            let ratios = (read.kept.len() * groups as usize, made.kept.len() * groups as usize);
            let left = ratios.0 / read.width;
            if ratios != (left * read.width, left * made.width) {
                return Err(refused(format!("{} would have parts of groups", label(node))));
            }
            let group = node.attribute.iter_mut().find(|attribute| attribute.name() == "group");
            group.into_iter().for_each(|group| group.i = Some(left as i64));
        }
        match node.input.get(2).is_some_and(|name| !name.is_empty()) {
            true => self.matrix(node, 2, (0, made), (0, None)),
            false => Ok(()),
        }
    }

    fn is_computed(&self, name: &str) -> bool {
        self.document.read.computed.contains_key(name)
    }

    fn gemm(
        &mut self,
        node: &mut NodeProto,
        before: Option<StayingChannels<'_>>,
        after: Option<StayingChannels<'_>>,
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
        before: Option<StayingChannels<'_>>,
        after: Option<StayingChannels<'_>>,
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
        before: (usize, Option<StayingChannels<'_>>),
        after: (usize, Option<StayingChannels<'_>>),
    ) -> Result<(), OnnxError> {
        let mut tensor = Tensor::clone(&*self.constant(node, input)?);
        for (axis, channels) in [before, after] {
            let Some(channels) = channels else { continue };
            if tensor.dims.get(axis) != Some(&channels.width) {
                return Err(refused(format!("{} has weights that do not fit its channels", label(node))));
            }
            tensor = tensor.with_shares(axis, channels.shares, self.made_up).selected(axis, channels.kept);
        }
        self.put(node, input, &tensor)
    }

    /// A constant that is stretched to the channels, as in NumPy, or has one number for each.
    fn elementwise(
        &mut self,
        node: &mut NodeProto,
        input: usize,
        channels: Option<StayingChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let Some(channels) = channels else { return Ok(()) };
        let constant = self.constant(node, input)?;
        let Some(axis) = (channels.axis + constant.dims.len()).checked_sub(channels.rank) else { return Ok(()) };
        match constant.dims.get(axis) {
            Some(&extent) if extent == channels.width => self.put(node, input, &constant.selected(axis, channels.kept)),
            Some(1) => Ok(()),
            _ => Err(refused(format!("{} has a constant that does not fit its channels", label(node)))),
        }
    }

    fn batch_normalization(
        &mut self,
        node: &mut NodeProto,
        channels: Option<StayingChannels<'_>>,
    ) -> Result<(), OnnxError> {
        let Some(channels) = channels.filter(|channels| channels.axis == 1) else {
            return Err(refused(format!("{} normalises along another axis", label(node))));
        };
        (1..5).try_for_each(|input| self.matrix(node, input, (0, Some(channels)), (0, None)))
    }

    /// Where the shape that is asked for has a number for the channels, it gets another.
    fn reshape(&mut self, node: &mut NodeProto, channels: Option<StayingChannels<'_>>) -> Result<(), OnnxError> {
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
            // What several nodes read, and is cut down alike for them, is there once.
            let (cut, prefix) = (encode(""), format!("{name}_"));
            let is_same = |made: &&TensorProto| TensorProto { name: Some(String::new()), ..(*made).clone() } == cut;
            if let Some(made) = self.made.iter().filter(|made| made.name().starts_with(&prefix)).find(is_same) {
                return made.name().clone_into(name);
            }
            let numbered = (2..).map(|number| format!("{prefix}{number}"));
            *name = numbered.into_iter().find(|name| !self.taken.contains(name)).unwrap_or_default();
            self.taken.insert(name.clone());
            return self.made.push(TensorProto { name: Some(name.clone()), ..cut });
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
fn scaler(node: &mut NodeProto, channels: Option<StayingChannels<'_>>) -> Result<(), OnnxError> {
    let Some(channels) = channels else { return Ok(()) };
    let is_list = |attribute: &&mut AttributeProto| attribute.floats.len() == channels.width;
    for attribute in node.attribute.iter_mut().filter(is_list) {
        attribute.floats = channels.kept.iter().map(|&channel| attribute.floats[channel]).collect();
    }
    Ok(())
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
