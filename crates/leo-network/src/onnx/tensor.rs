//! Constants: what ONNX stores in tensors, decoded.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use half::{bf16, f16};
use prost::bytes::Bytes;

use super::proto::TensorProto;
use crate::op::Transpose;
use crate::shape::{MAX_RANK, product};

/// ONNX's numbers for the types of elements that Leo reads.
pub(super) mod code {
    pub(in super::super) const FLOAT: i32 = 1;
    pub(super) const UINT8: i32 = 2;
    pub(super) const INT8: i32 = 3;
    pub(super) const UINT16: i32 = 4;
    pub(super) const INT16: i32 = 5;
    pub(in super::super) const INT32: i32 = 6;
    pub(in super::super) const INT64: i32 = 7;
    pub(super) const BOOL: i32 = 9;
    pub(super) const FLOAT16: i32 = 10;
    pub(super) const DOUBLE: i32 = 11;
    pub(super) const UINT32: i32 = 12;
    pub(super) const BFLOAT16: i32 = 16;
}

/// The data location that stands for "in another file".
const EXTERNAL: i32 = 1;

/// The floating-point types that networks are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Float {
    /// Half precision.
    F16,
    /// Bfloat16.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Float {
    /// The type with this ONNX number, if it is a floating-point type that Leo reads.
    pub(super) fn from_code(number: i32) -> Option<Self> {
        Some(match number {
            code::FLOAT16 => Self::F16,
            code::BFLOAT16 => Self::Bf16,
            code::FLOAT => Self::F32,
            code::DOUBLE => Self::F64,
            _ => return None,
        })
    }

    pub(super) fn code(self) -> i32 {
        match self {
            Self::F16 => code::FLOAT16,
            Self::Bf16 => code::BFLOAT16,
            Self::F32 => code::FLOAT,
            Self::F64 => code::DOUBLE,
        }
    }

    /// How people write it: `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// The nearest number of this type.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::F16 => f16::from_f64(value).to_f64(),
            Self::Bf16 => bf16::from_f64(value).to_f64(),
            Self::F32 => f64::from(value as f32),
            Self::F64 => value,
        }
    }
}

/// Why a tensor cannot be decoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// Not a type of number that Leo reads.
    #[error("has the element type {0}; Leo reads floats of 16, 32 and 64 bits, integers and booleans")]
    ElementType(i32),
    /// The data are not as long as the shape says.
    #[error("has the shape {dims:?} but {found} numbers")]
    Length {
        /// The shape as the file has it.
        dims: Vec<i64>,
        /// How many numbers there are.
        found: usize,
    },
    /// More axes than any tensor needs.
    #[error("has {rank} axes, more than the {MAX_RANK} that Leo takes")]
    TooManyAxes {
        /// How many.
        rank: usize,
    },
    /// Mostly zeros, and stored so.
    #[error("is sparse, which Leo does not read")]
    Sparse,
    /// Stored in chunks.
    #[error("is stored in segments, which Leo does not read")]
    Segmented,
    /// Outside the model's folder, or not a plain file.
    #[error("has its data in {0:?}, which is not a file inside the model's folder")]
    Outside(String),
    /// No such file, or too short.
    #[error("has its data in {file:?}, which {reason}")]
    External {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A constant's numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Numbers {
    /// Floats, exactly as stored.
    Float(Float, Vec<f64>),
    /// Integers and booleans.
    Int(Vec<i64>),
}

/// A decoded constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) dims: Vec<usize>,
    pub(super) numbers: Numbers,
}

impl Tensor {
    /// Decodes a tensor; `folder` is where external data may lie.
    pub(super) fn decode(proto: &TensorProto, folder: Option<&Path>) -> Result<Self, TensorError> {
        if proto.dims.len() > MAX_RANK {
            return Err(TensorError::TooManyAxes { rank: proto.dims.len() });
        }
        if proto.segment.is_some() {
            return Err(TensorError::Segmented);
        }
        let raw = raw_data(proto, folder)?;
        let numbers = match &raw {
            Some(raw) => from_raw(proto.data_type(), raw)?,
            None => from_fields(proto)?,
        };
        let found = match &numbers {
            Numbers::Float(_, values) => values.len(),
            Numbers::Int(values) => values.len(),
        };
        let extents: Option<Vec<usize>> = proto.dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let wrong = || TensorError::Length { dims: proto.dims.clone(), found };
        let dims = extents.ok_or_else(wrong)?;
        let whole = raw.is_none_or(|raw| raw.len() == found * width(proto.data_type()));
        if product(&dims) == Some(found) && whole { Ok(Self { dims, numbers }) } else { Err(wrong()) }
    }

    pub(super) fn doubles(dims: Vec<usize>, values: Vec<f64>) -> Self {
        Self { dims, numbers: Numbers::Float(Float::F64, values) }
    }

    pub(super) fn ints(values: Vec<i64>) -> Self {
        Self { dims: vec![values.len()], numbers: Numbers::Int(values) }
    }

    pub(super) fn elements(&self) -> usize {
        match &self.numbers {
            Numbers::Float(_, values) => values.len(),
            Numbers::Int(values) => values.len(),
        }
    }

    pub(super) fn reshaped(&self, dims: Vec<usize>) -> Self {
        debug_assert_eq!(dims.iter().product::<usize>(), self.dims.iter().product());
        Self { dims, numbers: self.numbers.clone() }
    }

    pub(super) fn transposed(&self, transpose: &Transpose) -> Self {
        let sources = transpose.sources(&self.dims);
        let numbers = match &self.numbers {
            Numbers::Float(float, values) => Numbers::Float(*float, sources.iter().map(|&at| values[at]).collect()),
            Numbers::Int(values) => Numbers::Int(sources.iter().map(|&at| values[at]).collect()),
        };
        Self { dims: transpose.order().iter().map(|&axis| self.dims[axis]).collect(), numbers }
    }

    /// The constant after a Cast to the type with ONNX's number `target`, rounded or wrapped as a runtime would; `None` for
    /// types that Leo does not read, and for floats outside the range of an integer.
    pub(super) fn cast(&self, target: i32) -> Option<Self> {
        let numbers = match (&self.numbers, Float::from_code(target)) {
            (_, Some(float)) => {
                Numbers::Float(float, self.to_floats().into_iter().map(|value| float.round(value)).collect())
            }
            (_, None) if target == code::BOOL => {
                Numbers::Int(self.to_floats().into_iter().map(|value| i64::from(value != 0.0)).collect())
            }
            (Numbers::Int(values), None) => {
                Numbers::Int(values.iter().map(|&value| wrapped(value, target)).collect::<Option<_>>()?)
            }
            (Numbers::Float(_, values), None) => {
                Numbers::Int(values.iter().map(|value| whole(value.trunc(), target)).collect::<Option<_>>()?)
            }
        };
        Some(Self { dims: self.dims.clone(), numbers })
    }

    /// The numbers as doubles.
    pub(super) fn to_floats(&self) -> Vec<f64> {
        match &self.numbers {
            Numbers::Float(_, values) => values.clone(),
            Numbers::Int(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }
}

/// A whole number as an integer of another type.
fn wrapped(value: i64, target: i32) -> Option<i64> {
    Some(match target {
        code::INT64 => value,
        code::INT32 => i64::from(value as i32),
        code::INT16 => i64::from(value as i16),
        code::INT8 => i64::from(value as i8),
        code::UINT32 => i64::from(value as u32),
        code::UINT16 => i64::from(value as u16),
        code::UINT8 => i64::from(value as u8),
        _ => return None,
    })
}

/// A float without a fraction as an integer, if it is one of that type.
fn whole(value: f64, target: i32) -> Option<i64> {
    // Beyond 2^53 doubles skip whole numbers, and no shape is that large.
    let exact = value.abs() <= 9_007_199_254_740_992.0;
    exact.then_some(value as i64).filter(|&value| wrapped(value, target) == Some(value))
}

/// A tensor's bytes, if that is how it is stored; external data are read from their file.
pub(super) fn raw_data(proto: &TensorProto, folder: Option<&Path>) -> Result<Option<Bytes>, TensorError> {
    if proto.data_location() == EXTERNAL {
        return external_data(proto, folder).map(Some);
    }
    // Some writers leave an empty string beside typed fields.
    Ok(proto.raw_data.clone().filter(|raw| !raw.is_empty()))
}

fn external_data(proto: &TensorProto, folder: Option<&Path>) -> Result<Bytes, TensorError> {
    let entry = |key: &str| proto.external_data.iter().find(|entry| entry.key() == key).map(|entry| entry.value());
    let location = entry("location").unwrap_or_default();
    let wrong = |reason: String| TensorError::External { file: location.to_owned(), reason };
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| wrong(format!("has the {key} {text:?}, no number"))),
    };
    let path = inside(folder, location)?.ok_or_else(|| wrong("does not exist".to_owned()))?;
    let about = fs::metadata(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if !about.is_file() {
        return Err(TensorError::Outside(location.to_owned()));
    }
    let offset = number("offset")?.unwrap_or(0);
    let rest = about.len().checked_sub(offset).ok_or_else(|| wrong("is too short".to_owned()))?;
    // Only types that Leo does not read, and copies all the same, have no width.
    let width = Some(width(proto.data_type()) as u64).filter(|&width| width > 0);
    let mut extents = proto.dims.iter().map(|&extent| u64::try_from(extent).ok());
    let wanted = width.and_then(|width| extents.try_fold(width, |bytes, extent| bytes.checked_mul(extent?)));
    let length = number("length")?.or(wanted).unwrap_or(rest);
    if length > rest {
        return Err(wrong(format!("is too short: {length} bytes from byte {offset} on, of {} in all", about.len())));
    }
    if width.is_some() && wanted != Some(length) {
        return Err(wrong(format!("gives it {length} bytes, not what its shape {:?} needs", proto.dims)));
    }
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(&path)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length as usize];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    };
    read().map(Bytes::from).map_err(|error| wrong(format!("cannot be read: {error}")))
}

/// The path of a file inside `folder`, links followed; `None` if there is no such file.
fn inside(folder: Option<&Path>, location: &str) -> Result<Option<PathBuf>, TensorError> {
    let outside = || TensorError::Outside(location.to_owned());
    let folder = folder.ok_or_else(outside)?;
    let relative = Path::new(location);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if location.is_empty() || !plain {
        return Err(outside());
    }
    let Ok(folder) = folder.canonicalize() else { return Err(outside()) };
    match folder.join(relative).canonicalize() {
        Err(_) => Ok(None),
        Ok(path) if path.starts_with(&folder) => Ok(Some(path)),
        Ok(_) => Err(outside()),
    }
}

/// How many bytes an element takes in raw data; 0 for types that Leo does not read.
fn width(data_type: i32) -> usize {
    match data_type {
        code::UINT8 | code::INT8 | code::BOOL => 1,
        code::FLOAT16 | code::BFLOAT16 | code::UINT16 | code::INT16 => 2,
        code::FLOAT | code::INT32 | code::UINT32 => 4,
        code::DOUBLE | code::INT64 => 8,
        _ => 0,
    }
}

fn from_raw(data_type: i32, raw: &[u8]) -> Result<Numbers, TensorError> {
    macro_rules! words {
        ($number:ty) => {
            raw.as_chunks::<{ size_of::<$number>() }>().0.iter().map(|&word| <$number>::from_le_bytes(word))
        };
    }
    Ok(match data_type {
        code::FLOAT => Numbers::Float(Float::F32, words!(f32).map(f64::from).collect()),
        code::DOUBLE => Numbers::Float(Float::F64, words!(f64).collect()),
        code::FLOAT16 => Numbers::Float(Float::F16, words!(f16).map(f64::from).collect()),
        code::BFLOAT16 => Numbers::Float(Float::Bf16, words!(bf16).map(f64::from).collect()),
        code::INT64 => Numbers::Int(words!(i64).collect()),
        code::INT32 => Numbers::Int(words!(i32).map(i64::from).collect()),
        code::INT16 => Numbers::Int(words!(i16).map(i64::from).collect()),
        code::INT8 => Numbers::Int(words!(i8).map(i64::from).collect()),
        code::UINT32 => Numbers::Int(words!(u32).map(i64::from).collect()),
        code::UINT16 => Numbers::Int(words!(u16).map(i64::from).collect()),
        code::UINT8 | code::BOOL => Numbers::Int(words!(u8).map(i64::from).collect()),
        other => return Err(TensorError::ElementType(other)),
    })
}

fn from_fields(proto: &TensorProto) -> Result<Numbers, TensorError> {
    // Half-precision numbers are stored as their bits, in the low half of an integer.
    let halves = |decode: fn(u16) -> f64| proto.int32_data.iter().map(|&bits| decode(bits as u16)).collect();
    Ok(match proto.data_type() {
        code::FLOAT => Numbers::Float(Float::F32, proto.float_data.iter().map(|&value| f64::from(value)).collect()),
        code::DOUBLE => Numbers::Float(Float::F64, proto.double_data.clone()),
        code::FLOAT16 => Numbers::Float(Float::F16, halves(|bits| f16::from_bits(bits).to_f64())),
        code::BFLOAT16 => Numbers::Float(Float::Bf16, halves(|bits| bf16::from_bits(bits).to_f64())),
        code::INT64 => Numbers::Int(proto.int64_data.clone()),
        code::UINT32 => Numbers::Int(proto.uint64_data.iter().map(|&value| i64::from(value as u32)).collect()),
        code::INT32 | code::INT16 | code::INT8 | code::UINT16 | code::UINT8 | code::BOOL => {
            Numbers::Int(proto.int32_data.iter().map(|&value| i64::from(value)).collect())
        }
        other => return Err(TensorError::ElementType(other)),
    })
}

/// Encodes floats as a tensor of raw data, each rounded to `float`.
pub(super) fn encode_floats(name: &str, float: Float, dims: &[usize], values: &[f64]) -> TensorProto {
    let mut raw = Vec::with_capacity(values.len() * width(float.code()));
    for &value in values {
        match float {
            Float::F16 => raw.extend(f16::from_f64(value).to_le_bytes()),
            Float::Bf16 => raw.extend(bf16::from_f64(value).to_le_bytes()),
            Float::F32 => raw.extend((value as f32).to_le_bytes()),
            Float::F64 => raw.extend(value.to_le_bytes()),
        }
    }
    encode(name, float.code(), dims, raw)
}

/// Encodes whole numbers as a one-dimensional tensor of raw data.
pub(super) fn encode_ints(name: &str, values: &[i64]) -> TensorProto {
    encode(name, code::INT64, &[values.len()], values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

fn encode(name: &str, data_type: i32, dims: &[usize], raw: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(data_type),
        dims: dims.iter().map(|&extent| extent as i64).collect(),
        raw_data: Some(raw.into()),
        ..TensorProto::default()
    }
}

/// Puts external data into the tensor itself, so that the file stands alone.
pub(super) fn embed(proto: &mut TensorProto, folder: Option<&Path>) -> Result<(), TensorError> {
    if proto.data_location() == EXTERNAL {
        proto.raw_data = raw_data(proto, folder)?;
        proto.external_data.clear();
        proto.data_location = None;
    }
    Ok(())
}
