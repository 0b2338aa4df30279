//! Replacing parts of a file's network, and nothing else.
//!
//! First every part is looked up in the file as it was read. Then all that is to be replaced goes at once, and only
//! then the new nodes are written. So no part takes away what another one needs, and new nodes may have the names of
//! old ones, whichever part these were in.

use std::collections::{HashMap, HashSet};

use super::dims::Dims;
use super::element::Float;
use super::emit::{EmittedPart, emit, value_info};
use super::graph::{CONSTANTS_ALONE, live_order, order_for, sort};
use super::import::Computed;
use super::proto::{DimensionValue, GraphProto};
use super::{Document, OnnxError};
use leo_network::NetworkError;
use leo_network::{LayerId, Network, ValueId};
use leo_network::{Part, Spliced};

impl Document {
    /// This file with everything between where each part begins and where it ends replaced by the part's network.
    ///
    /// All values are values of [`network`](Self::network). A part may begin where another one begins or ends, but
    /// every value is the end of one part at the most.
    ///
    /// Weights are rounded to the type of the values where the part ends, or to `float` if that is given. Where `float`
    /// is not the type of a value that a part begins or ends with, the part casts that value, so that outside the
    /// parts all types stay as they are.
    ///
    /// Nodes that only the replaced parts needed go, and their constants with them. Everything else stays as it is.
    /// New nodes have the names that they have in the part's network, with a number behind it where such a node is
    /// there already. The result is read again, as any file is; without parts, it is this file.
    /// [`preview`](Self::preview) tells what comes of it at a fraction of the price.
    ///
    /// # Errors
    /// If the file [cannot be rewritten](Self::check_rewritable), or a part has other shapes than what it is to
    /// replace, or a value has no name in the file, or two parts end at the same value, or the values where a part ends
    /// have different types and `float` does not say which to take.
    pub fn splice(&self, parts: &[Part], float: Option<Float>) -> Result<Spliced<Self>, OnnxError> {
        if parts.is_empty() {
            return Ok(self.spliced(self.clone(), &HashSet::new(), &[]));
        }
        let pieces = self.pieces(parts, float)?;
        let from: Vec<&str> = pieces.iter().map(|piece| piece.input.0).collect();
        let to = ends(&pieces)?;

        let mut model = self.to_rewrite()?;
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        let gone = remove(graph, &from, &to)?;
        let mut written = emit(&pieces, graph);
        if self.model.ir_version() < CONSTANTS_ALONE {
            let declared = written.constants.iter().map(|tensor| {
                value_info(tensor.name(), tensor.data_type(), tensor.dims.iter().copied().map(DimensionValue::Value))
            });
            graph.input.extend(declared);
        }
        graph.node.append(&mut written.nodes);
        graph.initializer.append(&mut written.constants);
        sort(graph);
        Ok(self.spliced(self.read_again(model)?, &gone, &written.pieces))
    }

    /// The network that [`splice`](Self::splice) would write, without writing it: with weights as they would be
    /// rounded, and nodes as they would be read again. It is refused for the same reasons, but for what only reading
    /// the new file would show.
    ///
    /// # Errors
    /// As for [`splice`](Self::splice).
    pub fn preview(&self, parts: &[Part], float: Option<Float>) -> Result<Spliced<Network>, OnnxError> {
        let refused = |error: NetworkError| OnnxError::Splice(error.to_string());
        let pieces = self.pieces(parts, float)?;
        ends(&pieces)?;
        let read = pieces.iter().map(EmittedPart::as_read).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let (networks, values): (Vec<Network>, Vec<Vec<ValueId>>) = read.into_iter().unzip();
        let as_read = |(part, network): (&Part, Network)| Part { from: part.from, to: part.to.clone(), network };
        let as_read: Vec<Part> = parts.iter().zip(networks).map(as_read).collect();
        let mut spliced = self.network().splice(&as_read).map_err(refused)?;
        for (part, values) in spliced.parts.iter_mut().zip(&values) {
            *part = values.iter().map(|value| part[*value]).collect();
        }
        Ok(spliced)
    }

    /// Names for new layers that stand where these layers of the network did: their own, unless that would not tell
    /// them apart.
    pub fn layer_names(&self, layers: impl Iterator<Item = LayerId>) -> HashMap<LayerId, String> {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        for node in &self.graph().node {
            *taken.entry(node.name()).or_default() += 1;
        }
        let mut names: HashMap<LayerId, String> = HashMap::new();
        for layer in layers {
            let own = self.network().node_of(layer).name();
            let own = (!own.is_empty() && taken.get(own) == Some(&1)).then(|| own.to_owned());
            let first = self.network().output_of(layer).index() - 1;
            let numbered = (first..).map(|number| format!("relu_{number}"));
            let numbered = numbered.filter(|name| !taken.contains_key(name.as_str()));
            let mut candidates = own.into_iter().chain(numbered);
            let free = candidates.find(|name| !names.values().any(|other| other == name));
            names.extend(free.map(|name| (layer, name)));
        }
        names
    }

    /// A file that was made from this one, and what became of values, by their names: of those here that are not gone,
    /// and of those in new parts.
    pub(super) fn spliced(&self, made: Self, gone: &HashSet<String>, parts: &[Vec<String>]) -> Spliced<Self> {
        let still = |value| self.name_of(value).filter(|name| !gone.contains(*name));
        let values = self.network().values().map(|value| made.value_named(still(value)?)).collect();
        let became = |names: &Vec<String>| names.iter().map(|name| made.value_named(name)).collect();
        Spliced { values, parts: parts.iter().map(became).collect(), made }
    }

    /// The parts by the file's names and types, if they fit.
    fn pieces<'a>(&'a self, parts: &'a [Part], float: Option<Float>) -> Result<Vec<EmittedPart<'a>>, OnnxError> {
        self.check_rewritable()?;
        parts.iter().map(|part| self.piece(part, float)).collect()
    }

    /// A part by the file's names and types, if it fits.
    fn piece<'a>(&'a self, part: &'a Part, float: Option<Float>) -> Result<EmittedPart<'a>, OnnxError> {
        let (input, from) = self.named(part.from)?;
        let to = part.to.iter().map(|&value| self.named(value)).collect::<Result<Vec<_>, _>>()?;
        part.check_shapes(self.network()).map_err(|error| OnnxError::Splice(error.to_string()))?;
        let batched = from.dims.batch_axis().is_some();
        if !to.iter().map(|(_, value)| *value).chain([from]).all(|value| batch_leads(&value.dims, batched)) {
            return Err(OnnxError::Splice("the batch is not the first axis there".to_owned()));
        }
        let Some((_, first)) = to.first() else {
            return Err(OnnxError::Splice("nothing is to be computed".to_owned()));
        };
        if float.is_none() && to.iter().any(|(_, value)| value.float != first.float) {
            return Err(OnnxError::Splice("the values to compute have different types".to_owned()));
        }
        Ok(EmittedPart {
            network: &part.network,
            float: float.unwrap_or(first.float),
            batched,
            opset: self.opset,
            input: (input, from.float),
            outputs: to.iter().map(|(name, value)| (*name, value.float)).collect(),
        })
    }

    fn named(&self, value: ValueId) -> Result<(&str, &Computed), OnnxError> {
        let named = self.read.names.get(&value).map(|(name, computed)| (name.as_str(), computed));
        named.ok_or_else(|| OnnxError::Splice(format!("value {} has no name in the file", value.index())))
    }
}

fn batch_leads(dims: &Dims, batched: bool) -> bool {
    dims.batch_axis() == batched.then_some(0)
}

/// The names of the values where the pieces end.
fn ends<'a>(pieces: &[EmittedPart<'a>]) -> Result<HashSet<&'a str>, OnnxError> {
    let mut ends = HashSet::new();
    for (name, _) in pieces.iter().flat_map(|piece| &piece.outputs) {
        if !ends.insert(*name) {
            return Err(OnnxError::Splice(format!("{name:?} is to be computed twice")));
        }
    }
    Ok(ends)
}

/// Removes the nodes that make the values called `to`, everything that only these needed, and everything that would
/// read what is gone; and says what that is. What makes the values called `from` stays, unless they are among those
/// called `to` themselves.
fn remove(graph: &mut GraphProto, from: &[&str], to: &HashSet<&str>) -> Result<HashSet<String>, OnnxError> {
    let needed_before = names_at(graph, &live_order(graph)?);
    graph.node.retain(|node| !node.output.iter().any(|output| to.contains(output.as_str())));
    let needed = names_at(graph, &order_for(graph, from, to)?);
    let stays = |name: &str| {
        let interface = graph.input.iter().chain(&graph.output).any(|value| value.name() == name);
        needed.contains(name) || to.contains(name) || from.contains(&name) || interface
    };
    let constant = |name: &str| graph.initializer.iter().any(|tensor| tensor.name() == name);
    let mut gone: HashSet<String> =
        needed_before.iter().filter(|name| !stays(name) && !constant(name)).cloned().collect();
    remove_readers(graph, &mut gone);
    let read: HashSet<&str> = graph.node.iter().flat_map(|node| node.input.iter().map(String::as_str)).collect();
    let output = |name: &str| graph.output.iter().any(|output| output.name() == name);
    let unread = |name: &str| needed_before.contains(name) && !read.contains(name) && !output(name);
    gone.extend(graph.initializer.iter().map(|tensor| tensor.name()).filter(|name| unread(name)).map(str::to_owned));
    graph.initializer.retain(|tensor| !gone.contains(tensor.name()));
    graph.input.retain(|input| !gone.contains(input.name()));
    graph.value_info.retain(|value| !gone.contains(value.name()));
    graph.quantization_annotation.retain(|annotation| !gone.contains(annotation.tensor_name()));
    Ok(gone)
}

/// The names of all that these nodes read and make.
pub(super) fn names_at(graph: &GraphProto, nodes: &[usize]) -> HashSet<String> {
    let nodes = nodes.iter().map(|&index| &graph.node[index]);
    nodes.flat_map(|node| node.input.iter().chain(&node.output)).filter(|name| !name.is_empty()).cloned().collect()
}

/// Removes the nodes that read or make what is gone, after which what they made is gone too.
fn remove_readers(graph: &mut GraphProto, gone: &mut HashSet<String>) {
    // In sorted order, the first pass finds them all.
    sort(graph);
    loop {
        let before = graph.node.len();
        graph.node.retain(|node| {
            let dead = node.input.iter().chain(&node.output).any(|name| gone.contains(name));
            if dead {
                // The empty name stands for inputs and outputs that are not there, in other nodes too.
                gone.extend(node.output.iter().filter(|name| !name.is_empty()).cloned());
            }
            !dead
        });
        if graph.node.len() == before {
            break;
        }
    }
}
