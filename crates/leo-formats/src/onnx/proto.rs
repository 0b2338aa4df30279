//! The messages of an ONNX file, declared here so that no protocol compiler is needed to build Leo.
//!
//! Every field that ONNX has (IR version 14) is here, whether Leo looks at it or not: what is read is written back.
//! Field names are ONNX's own. All scalar fields are optional, as in ONNX's schema, so that "absent" survives too.

#![allow(missing_docs, reason = "the fields are ONNX's, and are documented there")]

use std::ops::RangeInclusive;

use prost::bytes::Bytes;
use prost::{Message, Oneof};

use super::declare::{choices, messages};
use super::wire::{Declared, Field, Schema};

/// What [`AttributeProto`]'s `type` says of those attributes that Leo reads or writes.
pub(super) mod attribute_type {
    /// A float.
    pub(in crate::onnx) const FLOAT: i32 = 1;

    /// A whole number.
    pub(in crate::onnx) const INT: i32 = 2;

    /// A text.
    pub(in crate::onnx) const STRING: i32 = 3;

    /// A tensor.
    pub(in crate::onnx) const TENSOR: i32 = 4;

    /// Floats.
    pub(in crate::onnx) const FLOATS: i32 = 6;

    /// Whole numbers.
    pub(in crate::onnx) const INTS: i32 = 7;
}

/// What [`AttributeProto`]'s `type` can be; 0 stands for none.
const ATTRIBUTE_TYPES: RangeInclusive<i32> = 0..=14;

/// What [`TensorProto`]'s `data_location` can be.
const DATA_LOCATIONS: RangeInclusive<i32> = 0..=1;

/// What the type of an element can be; 0 stands for none. On the wire these are plain numbers, but only these mean
/// something.
const ELEMENT_TYPES: RangeInclusive<i32> = 0..=28;

messages! {
    /// A named constant of a node.
    pub struct AttributeProto {
        #[prost(string, optional, tag = "1")]
        pub name: Option<String>,
        #[prost(float, optional, tag = "2")]
        pub f: Option<f32>,
        #[prost(int64, optional, tag = "3")]
        pub i: Option<i64>,
        #[prost(bytes = "bytes", optional, tag = "4")]
        pub s: Option<Bytes>,
        #[prost(message, optional, tag = "5")]
        pub t: Option<TensorProto>,
        #[prost(message, optional, boxed, tag = "6")]
        pub g: Option<Box<GraphProto>>,
        #[prost(float, repeated, packed = "false", tag = "7")]
        pub floats: Vec<f32>,
        #[prost(int64, repeated, packed = "false", tag = "8")]
        pub ints: Vec<i64>,
        #[prost(bytes = "bytes", repeated, tag = "9")]
        pub strings: Vec<Bytes>,
        #[prost(message, repeated, tag = "10")]
        pub tensors: Vec<TensorProto>,
        #[prost(message, repeated, tag = "11")]
        pub graphs: Vec<GraphProto>,
        #[prost(string, optional, tag = "13")]
        pub doc_string: Option<String>,
        #[prost(message, optional, tag = "14")]
        pub tp: Option<TypeProto>,
        #[prost(message, repeated, tag = "15")]
        pub type_protos: Vec<TypeProto>,
        #[among(ATTRIBUTE_TYPES)]
        #[prost(int32, optional, tag = "20")]
        pub r#type: Option<i32>,
        #[prost(string, optional, tag = "21")]
        pub ref_attr_name: Option<String>,
        #[prost(message, optional, tag = "22")]
        pub sparse_tensor: Option<SparseTensorProto>,
        #[prost(message, repeated, tag = "23")]
        pub sparse_tensors: Vec<SparseTensorProto>,
    }

    /// The name, type and shape of a value.
    pub struct ValueInfoProto {
        #[prost(string, optional, tag = "1")]
        pub name: Option<String>,
        #[prost(message, optional, tag = "2")]
        pub r#type: Option<TypeProto>,
        #[prost(string, optional, tag = "3")]
        pub doc_string: Option<String>,
        #[prost(message, repeated, tag = "4")]
        pub metadata_props: Vec<StringStringEntryProto>,
    }

    /// One operator and the names of what it reads and makes.
    pub struct NodeProto {
        #[prost(string, repeated, tag = "1")]
        pub input: Vec<String>,
        #[prost(string, repeated, tag = "2")]
        pub output: Vec<String>,
        #[prost(string, optional, tag = "3")]
        pub name: Option<String>,
        #[prost(string, optional, tag = "4")]
        pub op_type: Option<String>,
        #[prost(message, repeated, tag = "5")]
        pub attribute: Vec<AttributeProto>,
        #[prost(string, optional, tag = "6")]
        pub doc_string: Option<String>,
        #[prost(string, optional, tag = "7")]
        pub domain: Option<String>,
        #[prost(string, optional, tag = "8")]
        pub overload: Option<String>,
        #[prost(message, repeated, tag = "9")]
        pub metadata_props: Vec<StringStringEntryProto>,
        #[prost(message, repeated, tag = "10")]
        pub device_configurations: Vec<NodeDeviceConfigurationProto>,
    }

    /// An entry of a map from integers to lists.
    pub struct IntIntListEntryProto {
        #[prost(int64, optional, tag = "1")]
        pub key: Option<i64>,
        #[prost(int64, repeated, packed = "false", tag = "2")]
        pub value: Vec<i64>,
    }

    /// How a node is spread over devices.
    pub struct NodeDeviceConfigurationProto {
        #[prost(string, optional, tag = "1")]
        pub configuration_id: Option<String>,
        #[prost(message, repeated, tag = "2")]
        pub sharding_spec: Vec<ShardingSpecProto>,
        #[prost(int32, optional, tag = "3")]
        pub pipeline_stage: Option<i32>,
    }

    /// How a tensor is spread over devices.
    pub struct ShardingSpecProto {
        #[prost(string, optional, tag = "1")]
        pub tensor_name: Option<String>,
        #[prost(int64, repeated, packed = "false", tag = "2")]
        pub device: Vec<i64>,
        #[prost(message, repeated, tag = "3")]
        pub index_to_device_group_map: Vec<IntIntListEntryProto>,
        #[prost(message, repeated, tag = "4")]
        pub sharded_dim: Vec<ShardedDimProto>,
    }

    /// How one axis is spread over devices.
    pub struct ShardedDimProto {
        #[prost(int64, optional, tag = "1")]
        pub axis: Option<i64>,
        #[prost(message, repeated, tag = "2")]
        pub simple_sharding: Vec<SimpleShardedDimProto>,
    }

    /// One axis cut into equal parts.
    pub struct SimpleShardedDimProto {
        #[prost(int64, optional, tag = "3")]
        pub num_shards: Option<i64>,
        #[prost(oneof = "ShardedDimValue", tags = "1, 2")]
        pub dim: Option<ShardedDimValue>,
    }

    /// Graphs that are used for training only.
    pub struct TrainingInfoProto {
        #[prost(message, optional, tag = "1")]
        pub initialization: Option<GraphProto>,
        #[prost(message, optional, tag = "2")]
        pub algorithm: Option<GraphProto>,
        #[prost(message, repeated, tag = "3")]
        pub initialization_binding: Vec<StringStringEntryProto>,
        #[prost(message, repeated, tag = "4")]
        pub update_binding: Vec<StringStringEntryProto>,
    }

    /// A whole file.
    pub struct ModelProto {
        #[prost(int64, optional, tag = "1")]
        pub ir_version: Option<i64>,
        #[prost(string, optional, tag = "2")]
        pub producer_name: Option<String>,
        #[prost(string, optional, tag = "3")]
        pub producer_version: Option<String>,
        #[prost(string, optional, tag = "4")]
        pub domain: Option<String>,
        #[prost(int64, optional, tag = "5")]
        pub model_version: Option<i64>,
        #[prost(string, optional, tag = "6")]
        pub doc_string: Option<String>,
        #[prost(message, optional, tag = "7")]
        pub graph: Option<GraphProto>,
        #[prost(message, repeated, tag = "8")]
        pub opset_import: Vec<OperatorSetIdProto>,
        #[prost(message, repeated, tag = "14")]
        pub metadata_props: Vec<StringStringEntryProto>,
        #[prost(message, repeated, tag = "20")]
        pub training_info: Vec<TrainingInfoProto>,
        #[prost(message, repeated, tag = "25")]
        pub functions: Vec<FunctionProto>,
        #[prost(message, repeated, tag = "26")]
        pub configuration: Vec<DeviceConfigurationProto>,
    }

    /// A set of devices.
    pub struct DeviceConfigurationProto {
        #[prost(string, optional, tag = "1")]
        pub name: Option<String>,
        #[prost(int32, optional, tag = "2")]
        pub num_devices: Option<i32>,
        #[prost(string, repeated, tag = "3")]
        pub device: Vec<String>,
    }

    /// A key and its value.
    pub struct StringStringEntryProto {
        #[prost(string, optional, tag = "1")]
        pub key: Option<String>,
        #[prost(string, optional, tag = "2")]
        pub value: Option<String>,
    }

    /// Quantisation parameters of a tensor.
    pub struct TensorAnnotation {
        #[prost(string, optional, tag = "1")]
        pub tensor_name: Option<String>,
        #[prost(message, repeated, tag = "2")]
        pub quant_parameter_tensor_names: Vec<StringStringEntryProto>,
    }

    /// Nodes, and the constants they read.
    pub struct GraphProto {
        #[prost(message, repeated, tag = "1")]
        pub node: Vec<NodeProto>,
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
        #[prost(message, repeated, tag = "5")]
        pub initializer: Vec<TensorProto>,
        #[prost(string, optional, tag = "10")]
        pub doc_string: Option<String>,
        #[prost(message, repeated, tag = "11")]
        pub input: Vec<ValueInfoProto>,
        #[prost(message, repeated, tag = "12")]
        pub output: Vec<ValueInfoProto>,
        #[prost(message, repeated, tag = "13")]
        pub value_info: Vec<ValueInfoProto>,
        #[prost(message, repeated, tag = "14")]
        pub quantization_annotation: Vec<TensorAnnotation>,
        #[prost(message, repeated, tag = "15")]
        pub sparse_initializer: Vec<SparseTensorProto>,
        #[prost(message, repeated, tag = "16")]
        pub metadata_props: Vec<StringStringEntryProto>,
    }

    /// A constant.
    pub struct TensorProto {
        #[prost(int64, repeated, packed = "false", tag = "1")]
        pub dims: Vec<i64>,
        #[among(ELEMENT_TYPES)]
        #[prost(int32, optional, tag = "2")]
        pub data_type: Option<i32>,
        #[prost(message, optional, tag = "3")]
        pub segment: Option<Segment>,
        #[prost(float, repeated, tag = "4")]
        pub float_data: Vec<f32>,
        #[prost(int32, repeated, tag = "5")]
        pub int32_data: Vec<i32>,
        #[prost(bytes = "bytes", repeated, tag = "6")]
        pub string_data: Vec<Bytes>,
        #[prost(int64, repeated, tag = "7")]
        pub int64_data: Vec<i64>,
        #[prost(string, optional, tag = "8")]
        pub name: Option<String>,
        #[prost(bytes = "bytes", optional, tag = "9")]
        pub raw_data: Option<Bytes>,
        #[prost(double, repeated, tag = "10")]
        pub double_data: Vec<f64>,
        #[prost(uint64, repeated, tag = "11")]
        pub uint64_data: Vec<u64>,
        #[prost(string, optional, tag = "12")]
        pub doc_string: Option<String>,
        #[prost(message, repeated, tag = "13")]
        pub external_data: Vec<StringStringEntryProto>,
        #[among(DATA_LOCATIONS)]
        #[prost(int32, optional, tag = "14")]
        pub data_location: Option<i32>,
        #[prost(message, repeated, tag = "16")]
        pub metadata_props: Vec<StringStringEntryProto>,
    }

    /// A part of a tensor stored in chunks.
    pub struct Segment {
        #[prost(int64, optional, tag = "1")]
        pub begin: Option<i64>,
        #[prost(int64, optional, tag = "2")]
        pub end: Option<i64>,
    }

    /// A constant that is mostly zero.
    pub struct SparseTensorProto {
        #[prost(message, optional, tag = "1")]
        pub values: Option<TensorProto>,
        #[prost(message, optional, tag = "2")]
        pub indices: Option<TensorProto>,
        #[prost(int64, repeated, packed = "false", tag = "3")]
        pub dims: Vec<i64>,
    }

    /// The axes of a tensor.
    pub struct TensorShapeProto {
        #[prost(message, repeated, tag = "1")]
        pub dim: Vec<Dimension>,
    }

    /// One axis: a number, a name, or neither.
    pub struct Dimension {
        #[prost(string, optional, tag = "3")]
        pub denotation: Option<String>,
        #[prost(oneof = "DimensionValue", tags = "1, 2")]
        pub value: Option<DimensionValue>,
    }

    /// The type of a value.
    pub struct TypeProto {
        #[prost(string, optional, tag = "6")]
        pub denotation: Option<String>,
        #[prost(oneof = "TypeValue", tags = "1, 4, 5, 9, 8, 7")]
        pub value: Option<TypeValue>,
    }

    /// A dense tensor.
    pub struct TensorType {
        #[among(ELEMENT_TYPES)]
        #[prost(int32, optional, tag = "1")]
        pub elem_type: Option<i32>,
        #[prost(message, optional, tag = "2")]
        pub shape: Option<TensorShapeProto>,
    }

    /// A sequence of values.
    pub struct SequenceType {
        #[prost(message, optional, boxed, tag = "1")]
        pub elem_type: Option<Box<TypeProto>>,
    }

    /// A map to values.
    pub struct MapType {
        #[among(ELEMENT_TYPES)]
        #[prost(int32, optional, tag = "1")]
        pub key_type: Option<i32>,
        #[prost(message, optional, boxed, tag = "2")]
        pub value_type: Option<Box<TypeProto>>,
    }

    /// A value that may be missing.
    pub struct OptionalType {
        #[prost(message, optional, boxed, tag = "1")]
        pub elem_type: Option<Box<TypeProto>>,
    }

    /// A sparse tensor.
    pub struct SparseTensorType {
        #[among(ELEMENT_TYPES)]
        #[prost(int32, optional, tag = "1")]
        pub elem_type: Option<i32>,
        #[prost(message, optional, tag = "2")]
        pub shape: Option<TensorShapeProto>,
    }

    /// A type that only its own operators know.
    pub struct OpaqueType {
        #[prost(string, optional, tag = "1")]
        pub domain: Option<String>,
        #[prost(string, optional, tag = "2")]
        pub name: Option<String>,
    }

    /// A set of operators and its version.
    pub struct OperatorSetIdProto {
        #[prost(string, optional, tag = "1")]
        pub domain: Option<String>,
        #[prost(int64, optional, tag = "2")]
        pub version: Option<i64>,
    }

    /// An operator defined by other operators.
    pub struct FunctionProto {
        #[prost(string, optional, tag = "1")]
        pub name: Option<String>,
        #[prost(string, repeated, tag = "4")]
        pub input: Vec<String>,
        #[prost(string, repeated, tag = "5")]
        pub output: Vec<String>,
        #[prost(string, repeated, tag = "6")]
        pub attribute: Vec<String>,
        #[prost(message, repeated, tag = "7")]
        pub node: Vec<NodeProto>,
        #[prost(string, optional, tag = "8")]
        pub doc_string: Option<String>,
        #[prost(message, repeated, tag = "9")]
        pub opset_import: Vec<OperatorSetIdProto>,
        #[prost(string, optional, tag = "10")]
        pub domain: Option<String>,
        #[prost(message, repeated, tag = "11")]
        pub attribute_proto: Vec<AttributeProto>,
        #[prost(message, repeated, tag = "12")]
        pub value_info: Vec<ValueInfoProto>,
        #[prost(string, optional, tag = "13")]
        pub overload: Option<String>,
        #[prost(message, repeated, tag = "14")]
        pub metadata_props: Vec<StringStringEntryProto>,
    }
}

choices! {
    /// What a [`SimpleShardedDimProto`] holds.
    pub enum ShardedDimValue {
        #[prost(int64, tag = "1")]
        Value(i64),
        #[prost(string, tag = "2")]
        Param(String),
    }

    /// What a [`Dimension`] holds.
    pub enum DimensionValue {
        #[prost(int64, tag = "1")]
        Value(i64),
        #[prost(string, tag = "2")]
        Param(String),
    }

    /// What a [`TypeProto`] holds.
    pub enum TypeValue {
        #[prost(message, tag = "1")]
        Tensor(TensorType),
        #[prost(message, boxed, tag = "4")]
        Sequence(Box<SequenceType>),
        #[prost(message, boxed, tag = "5")]
        Map(Box<MapType>),
        #[prost(message, boxed, tag = "9")]
        Optional(Box<OptionalType>),
        #[prost(message, tag = "8")]
        SparseTensor(SparseTensorType),
        #[prost(message, tag = "7")]
        Opaque(OpaqueType),
    }
}
