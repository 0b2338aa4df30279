//! A model: a network, what comes after it, and the file around both.

use std::path::{Path, PathBuf};

use crate::file::{self, FileError, Problem};
use crate::nnet::Nnet;
use crate::onnx::{Axis, DeclaredAxis, Dims, Document, Export, Float, GivenShape, OnnxError};
use crate::tail::{NO_TAIL, Source, Tail};
use leo_network::Evaluator;
use leo_network::Real;
use leo_network::op::Transpose;
use leo_network::{Array, Elements, NetworkError};
use leo_network::{Network, ValueId};

/// A network as it comes from a file.
#[derive(Clone, Debug)]
pub struct Model {
    format: Format,
    input: Port,
    outputs: Vec<ModelOutput>,
    /// Values that are no outputs of the file, but can be asked for by name.
    inner: Vec<ModelOutput>,
}

/// The file that a model comes from.
#[derive(Clone, Debug)]
pub enum Format {
    /// An ONNX file.
    Onnx(Document),
    /// An NNet file.
    Nnet(Nnet),
}

/// An input or output as its file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its axes, the batch included, where the file gives them.
    pub axes: Option<Vec<DeclaredAxis>>,
}

#[derive(Clone, Debug)]
struct ModelOutput {
    port: Port,
    source: Source,
    dims: Option<Dims>,
}

/// Why a model cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Samples of another shape.
    #[error(
        "samples of shape {given:?} do not fit the network's input, {wanted:?} for one sample; the first axis counts \
         samples"
    )]
    Samples {
        /// The array's shape.
        given: Vec<usize>,
        /// The shape of one sample.
        wanted: Vec<usize>,
    },
    /// An operator of the tail that Leo cannot evaluate.
    #[error(
        "output {output:?} comes from {operator}, which Leo keeps but does not evaluate here; what can be asked for \
         instead: {others:?}"
    )]
    Tail {
        /// The output asked for.
        output: String,
        /// The operator.
        operator: String,
        /// The outputs that can be evaluated, or else the values between that can.
        others: Vec<String>,
    },
    /// No such output.
    #[error("there is no output {output:?}; the outputs are {others:?}")]
    NoSuchOutput {
        /// The output asked for.
        output: String,
        /// The outputs there are.
        others: Vec<String>,
    },
    /// The result has no shape that an array could have.
    #[error(transparent)]
    Array(#[from] NetworkError),
}

impl Model {
    /// Reads a model: ONNX or NNet by its suffix, gzip or not.
    ///
    /// # Errors
    /// If the file cannot be read, is not what its suffix says, or holds what Leo does not read.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        Self::try_load(path).map_err(|problem| problem.in_file(path))
    }

    fn try_load(path: &Path) -> Result<Self, Problem> {
        Self::try_from_bytes(file::read(path)?, path, None)
    }

    /// A model from the content of a file, unpacked if it was gzip. The name says what is in it, and beside which files
    /// external data lie.
    ///
    /// # Errors
    /// If it is not what the suffix says, or holds what Leo does not read.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, FileError> {
        Self::from_bytes_for_shape(bytes, path, None)
    }

    /// A model as [`from_bytes`](Self::from_bytes) has it, for an input of this shape where the file leaves that open.
    ///
    /// # Errors
    /// As for [`from_bytes`](Self::from_bytes), or if its input cannot have this shape.
    pub fn from_bytes_for_shape(bytes: Vec<u8>, path: &Path, shape: Option<&GivenShape>) -> Result<Self, FileError> {
        Self::try_from_bytes(bytes, path, shape).map_err(|problem| problem.in_file(path))
    }

    fn try_from_bytes(bytes: Vec<u8>, path: &Path, shape: Option<&GivenShape>) -> Result<Self, Problem> {
        match file::suffix(path).as_str() {
            "onnx" => {}
            "nnet" if shape.is_some() => return Err(Problem::Shaped),
            "nnet" => return Ok(Self::from(Nnet::from_bytes(&bytes)?)),
            _ => {
                return Err(Problem::UnknownSuffix {
                    expected: "models are .onnx or .nnet files; docs/guide.md says how to export one",
                });
            }
        }
        let folder = path.parent().map(|parent| if parent.as_os_str().is_empty() { Path::new(".") } else { parent });
        let guess = file::looks_like(&bytes);
        match Document::from_bytes_for_shape(bytes, folder, shape) {
            Err(OnnxError::Decode(_) | OnnxError::Wire(_) | OnnxError::NoGraph) if guess != file::NO_GUESS => {
                Err(Problem::WrongContent { expected: "an ONNX file", found: guess })
            }
            read => Ok(Self::from(read?)),
        }
    }

    /// Whether a runtime computes the network in single precision, as Leo reads it: see
    /// [`Document::is_plainly_single`].
    pub fn is_plainly_single(&self) -> bool {
        match &self.format {
            Format::Onnx(document) => document.is_plainly_single(),
            Format::Nnet(_) => false,
        }
    }

    /// The network.
    pub fn network(&self) -> &Network {
        match &self.format {
            Format::Onnx(document) => document.network(),
            Format::Nnet(nnet) => nnet.network(),
        }
    }

    /// What comes after it.
    pub fn tail(&self) -> &Tail {
        match &self.format {
            Format::Onnx(document) => document.tail(),
            Format::Nnet(_) => &NO_TAIL,
        }
    }

    /// The file.
    pub fn format(&self) -> &Format {
        &self.format
    }

    /// How long each axis of the input is, 1 for a batch of any size; nothing for an NNet file, whose input has no
    /// axes but one.
    pub fn extents(&self) -> Option<&[usize]> {
        match &self.format {
            Format::Onnx(document) => Some(document.extents()),
            Format::Nnet(_) => None,
        }
    }

    /// The same, if it takes more than the file to know it.
    pub fn given_shape(&self) -> Option<&[usize]> {
        match &self.format {
            Format::Onnx(document) => document.given_shape(),
            Format::Nnet(_) => None,
        }
    }

    /// How many constants are listed as inputs, too, although they need not be: see
    /// [`Document::listed_constants`].
    pub fn listed_constants(&self) -> usize {
        match &self.format {
            Format::Onnx(document) => document.listed_constants(),
            Format::Nnet(_) => 0,
        }
    }

    /// The other files that this one has data in, each once; empty for a file that stands alone.
    pub fn external_files(&self) -> Vec<PathBuf> {
        match &self.format {
            Format::Onnx(document) => document.external_files(),
            Format::Nnet(_) => Vec::new(),
        }
    }

    /// The input as the file declares it.
    pub fn input(&self) -> &Port {
        &self.input
    }

    /// The outputs as the file declares them.
    pub fn outputs(&self) -> impl Iterator<Item = &Port> {
        self.outputs.iter().map(|output| &output.port)
    }

    /// The type of the numbers that the file computes with. NNet files are text; Leo takes their numbers as doubles.
    pub fn float(&self) -> Float {
        match &self.format {
            Format::Onnx(document) => document.float(),
            Format::Nnet(_) => Float::F64,
        }
    }

    /// The value of the network that the file has this name for. In an NNet file, values are called as Leo calls the
    /// nodes that make them.
    pub fn value_named(&self, name: &str) -> Option<ValueId> {
        match &self.format {
            Format::Onnx(document) => document.value_named(name),
            Format::Nnet(nnet) => {
                let network = nnet.network();
                let node = network.nodes().iter().position(|node| node.name() == name)?;
                Some(network.result_of(node))
            }
        }
    }

    /// The name that the file has for a value of the network, if it has one; the first, if it has several. In an NNet
    /// file, values are called as Leo calls the nodes that make them.
    pub fn name_of(&self, value: ValueId) -> Option<&str> {
        match (&self.format, value.node()) {
            (Format::Onnx(document), _) => document.name_of(value),
            (Format::Nnet(nnet), Some(node)) => Some(nnet.network().nodes()[node].name()),
            (Format::Nnet(_), None) => Some(&self.input.name),
        }
    }

    /// The output of the file that is a value of the network as it is, if one is; the first, if several are.
    pub fn output_that_is(&self, value: ValueId) -> Option<&str> {
        let outputs = self.network().outputs();
        let is_it = |output: &&ModelOutput| matches!(output.source, Source::Network(place) if outputs[place] == value);
        self.outputs.iter().find(is_it).map(|output| output.port.name.as_str())
    }

    /// The model as a self-contained ONNX file: what was read, or, for an NNet file, its network.
    ///
    /// # Errors
    /// If external data cannot be read any more.
    pub fn to_onnx(&self) -> Result<Vec<u8>, OnnxError> {
        match &self.format {
            Format::Onnx(document) => document.to_bytes(),
            Format::Nnet(nnet) => {
                let export = Export {
                    float: Float::F64,
                    input: self.input.name.clone(),
                    outputs: self.outputs.iter().map(|output| output.port.name.clone()).collect(),
                    metadata: vec![],
                };
                Document::from_network(nnet.network(), &export)?.to_bytes()
            }
        }
    }

    /// The outputs that [`run`](Self::run) can compute, and the inner values that it can compute besides.
    pub fn computable(&self) -> (Vec<&str>, Vec<&str>) {
        let [outputs, inner] = [&self.outputs, &self.inner].map(|values| {
            values.iter().filter(|value| self.is_computable(value)).map(|value| value.port.name.as_str()).collect()
        });
        (outputs, inner)
    }

    fn is_computable(&self, output: &ModelOutput) -> bool {
        self.tail().blamed(output.source).is_none()
    }

    /// Computes one output for a batch of samples: the one with this name, or the first that Leo can compute. A value
    /// that leaves the network for its tail, or is made there, can be asked for by its name too.
    ///
    /// What counts as samples is said [there](Array::count_samples). Files in double precision are run in double
    /// precision, all others in single.
    ///
    /// # Errors
    /// If the samples do not fit, or there is no such output, or its tail is beyond Leo.
    pub fn run(&self, samples: &Array, output: Option<&str>) -> Result<Array, RunError> {
        self.run_with_progress(samples, output, &|_| ())
    }

    /// Computes one output as [`run`](Self::run) does, and tells `done` from time to time how many samples more are
    /// done.
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_with_progress(
        &self,
        samples: &Array,
        output: Option<&str>,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Array, RunError> {
        match self.float() {
            Float::F64 => self.run_in::<f64>(samples, output, done),
            _ => self.run_in::<f32>(samples, output, done),
        }
    }

    fn run_in<T: Real>(
        &self,
        samples: &Array,
        output: Option<&str>,
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Array, RunError>
    where
        Elements: From<Vec<T>>,
    {
        let output = self.choose(output)?;
        let rows = samples.count_samples(self.network().input()).ok_or_else(|| RunError::Samples {
            given: samples.shape().to_vec(),
            wanted: self.network().input().extents().to_vec(),
        })?;
        let values = Evaluator::<T>::new(self.network()).run_with_progress(&samples.to_vec(), done);
        let elements =
            self.tail().evaluate(output.source, rows, &values).map_err(|operator| self.kept(output, operator))?;
        self.assemble(rows, output, elements)
    }

    fn kept(&self, output: &ModelOutput, operator: &str) -> RunError {
        let (mut others, inner) = self.computable();
        if others.is_empty() {
            others = inner;
        }
        RunError::Tail {
            output: output.port.name.clone(),
            operator: operator.to_owned(),
            others: others.into_iter().map(str::to_owned).collect(),
        }
    }

    fn choose(&self, name: Option<&str>) -> Result<&ModelOutput, RunError> {
        match name {
            Some(name) => {
                let named = self.outputs.iter().chain(&self.inner).find(|output| output.port.name == name);
                named.ok_or_else(|| RunError::NoSuchOutput {
                    output: name.to_owned(),
                    others: self.outputs.iter().map(|output| output.port.name.clone()).collect(),
                })
            }
            None => {
                let first = self.outputs.iter().find(|output| self.is_computable(output));
                // Where none can be computed, asking for the first one says why.
                Ok(first.unwrap_or(&self.outputs[0]))
            }
        }
    }

    /// Gives rows of results the axes that the file gives them.
    fn assemble(&self, rows: usize, output: &ModelOutput, elements: Elements) -> Result<Array, RunError> {
        let Some(dims) = &output.dims else { return Ok(Array::flat(elements)) };
        let sample = dims.sample_extents();
        let with_rows = |sample: &[usize]| [&[rows], sample].concat();
        let shape = match (dims.batch_axis(), dims.axes().first()) {
            (Some(_), _) => with_rows(&sample),
            (None, Some(Axis::Fixed(1))) => with_rows(&sample[1..]),
            (None, _) if rows == 1 => sample,
            (None, _) => with_rows(&sample),
        };
        let array = Array::new(shape, elements)?;
        match dims.batch_axis() {
            None | Some(0) => Ok(array),
            Some(axis) => {
                let mut order: Vec<usize> = (1..array.shape().len()).collect();
                order.insert(axis, 0);
                Ok(array.transposed(&Transpose::new(order).expect("every axis is named once")))
            }
        }
    }
}

impl From<Document> for Model {
    fn from(document: Document) -> Self {
        let port = |(name, axes): (&str, Option<Vec<DeclaredAxis>>)| Port { name: name.to_owned(), axes };
        let outputs = document
            .declared_outputs()
            .zip(document.outputs())
            .map(|(declared, (source, dims))| ModelOutput { port: port(declared), source: *source, dims: dims.clone() })
            .collect();
        let inner = document.inner().iter().map(|(name, source, dims)| ModelOutput {
            port: Port { name: name.clone(), axes: None },
            source: *source,
            dims: dims.clone(),
        });
        Self { inner: inner.collect(), input: port(document.declared_input()), outputs, format: Format::Onnx(document) }
    }
}

impl From<Nnet> for Model {
    fn from(nnet: Nnet) -> Self {
        let batched = |extents: &[usize]| {
            let mut axes = vec![Axis::Batch(None)];
            axes.extend_from_slice(Dims::fixed(extents).axes());
            Dims::new(axes)
        };
        let port = |name: &str, extents: &[usize]| {
            let sample = extents.iter().map(|&extent| DeclaredAxis::Fixed(extent));
            let axes = std::iter::once(DeclaredAxis::Named("N".to_owned())).chain(sample).collect();
            Port { name: name.to_owned(), axes: Some(axes) }
        };
        let network = nnet.network();
        let (input, output) = (network.input(), network.shape(network.outputs()[0]));
        let outputs = vec![ModelOutput {
            port: port("output", output.extents()),
            source: Source::Network(0),
            dims: Some(batched(output.extents())),
        }];
        Self { input: port("input", input.extents()), outputs, inner: Vec::new(), format: Format::Nnet(nnet) }
    }
}
