//! Constants: what ONNX stores in tensors, decoded.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use half::{bf16, f16};
use prost::bytes::Bytes;

use super::Reason;
use super::element::{Float, Int, code, nearest_bf16, nearest_f16};
use super::proto::TensorProto;
use leo_network::op::Transpose;
use leo_network::{MAX_RANK, product};

/// The data location that stands for "in another file".
const EXTERNAL_LOCATION: i32 = 1;

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
    /// An element that its type cannot hold.
    #[error("has an element {element} that does not fit its type {of}")]
    Misfit {
        /// The element as the file has it.
        element: String,
        /// The type.
        of: &'static str,
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
    /// Numbers here and there, of which programs take one or the other.
    #[error("has its numbers in several places: {}", .0.join(", "))]
    Several(Vec<&'static str>),
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
pub(super) enum TensorNumbers {
    /// Floats, exactly as stored.
    Float(Float, Vec<f64>),
    /// Whole numbers and truth values, each one of its type.
    Int(Int, Vec<i64>),
}

/// A decoded constant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) dims: Vec<usize>,
    pub(super) numbers: TensorNumbers,
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
            TensorNumbers::Float(_, values) => values.len(),
            TensorNumbers::Int(_, values) => values.len(),
        };
        let extents: Option<Vec<usize>> = proto.dims.iter().map(|&extent| usize::try_from(extent).ok()).collect();
        let wrong = || TensorError::Length { dims: proto.dims.clone(), found };
        let dims = extents.ok_or_else(wrong)?;
        let whole = raw.is_none_or(|raw| raw.len() == found * width(proto.data_type()));
        if product(&dims) == Some(found) && whole { Ok(Self { dims, numbers }) } else { Err(wrong()) }
    }

    /// Only some places along one axis.
    pub(super) fn selected(&self, axis: usize, kept: &[usize]) -> Self {
        let mut dims = self.dims.clone();
        dims[axis] = kept.len();
        let (width, inner) = (self.dims[axis], self.dims[axis + 1..].iter().product::<usize>());
        let source = |place: usize| {
            let (outer, rest) = (place / (kept.len() * inner), place % (kept.len() * inner));
            (outer * width + kept[rest / inner]) * inner + rest % inner
        };
        let places = || (0..dims.iter().product::<usize>()).map(source);
        let numbers = match &self.numbers {
            TensorNumbers::Float(float, values) => {
                TensorNumbers::Float(*float, places().map(|place| values[place]).collect())
            }
            TensorNumbers::Int(int, values) => TensorNumbers::Int(*int, places().map(|place| values[place]).collect()),
        };
        Self { dims, numbers }
    }

    pub(super) fn doubles(dims: Vec<usize>, values: Vec<f64>) -> Self {
        Self { dims, numbers: TensorNumbers::Float(Float::F64, values) }
    }

    pub(super) fn ints(values: Vec<i64>) -> Self {
        Self { dims: vec![values.len()], numbers: TensorNumbers::Int(Int::I64, values) }
    }

    pub(super) fn elements(&self) -> usize {
        match &self.numbers {
            TensorNumbers::Float(_, values) => values.len(),
            TensorNumbers::Int(_, values) => values.len(),
        }
    }

    pub(super) fn reshaped(&self, dims: Vec<usize>) -> Self {
        debug_assert_eq!(dims.iter().product::<usize>(), self.dims.iter().product());
        Self { dims, numbers: self.numbers.clone() }
    }

    pub(super) fn transposed(&self, transpose: &Transpose) -> Self {
        let sources = transpose.sources(&self.dims);
        let numbers = match &self.numbers {
            TensorNumbers::Float(float, values) => {
                TensorNumbers::Float(*float, sources.iter().map(|&at| values[at]).collect())
            }
            TensorNumbers::Int(int, values) => TensorNumbers::Int(*int, sources.iter().map(|&at| values[at]).collect()),
        };
        Self { dims: transpose.order().iter().map(|&axis| self.dims[axis]).collect(), numbers }
    }

    /// The constant after a Cast to the type with ONNX's number `target`; otherwise, why not.
    pub(super) fn cast(&self, target: i32) -> Result<Self, Reason> {
        let unsure = |number: &dyn Display, target: &str| {
            Reason::Unusable(format!("casts {number} to {target}, which programs do in different ways"))
        };
        let numbers = match (&self.numbers, Float::from_code(target), Int::from_code(target)) {
            (TensorNumbers::Float(_, values), Some(float), _) => {
                let cast =
                    values.iter().map(|&value| float.cast_float(value).ok_or_else(|| unsure(&value, float.name())));
                TensorNumbers::Float(float, cast.collect::<Result<_, _>>()?)
            }
            (TensorNumbers::Int(_, values), Some(float), _) => {
                let cast =
                    values.iter().map(|&value| float.cast_int(value).ok_or_else(|| unsure(&value, float.name())));
                TensorNumbers::Float(float, cast.collect::<Result<_, _>>()?)
            }
            (TensorNumbers::Float(_, values), None, Some(int)) => {
                let cast = values.iter().map(|&value| int.cast_float(value).ok_or_else(|| unsure(&value, int.name())));
                TensorNumbers::Int(int, cast.collect::<Result<_, _>>()?)
            }
            (TensorNumbers::Int(_, values), None, Some(int)) => {
                TensorNumbers::Int(int, values.iter().map(|&value| int.cast_int(value)).collect())
            }
            (_, None, None) => {
                return Err(Reason::Unusable(format!("casts a constant to type {target}, which Leo does not read")));
            }
        };
        Ok(Self { dims: self.dims.clone(), numbers })
    }

    /// The numbers as doubles, which are to compute with the network's.
    pub(super) fn floats(&self) -> Result<Vec<f64>, Reason> {
        match &self.numbers {
            TensorNumbers::Float(_, values) => Ok(values.clone()),
            TensorNumbers::Int(int, _) => Err(Reason::Unusable(format!(
                "computes with a constant of type {} and with floats at once",
                int.name()
            ))),
        }
    }

    /// Whether any of the numbers is not 0.
    pub(super) fn any(&self) -> bool {
        match &self.numbers {
            TensorNumbers::Float(_, values) => values.iter().any(|&value| value != 0.0),
            TensorNumbers::Int(_, values) => values.iter().any(|&value| value != 0),
        }
    }
}

/// Where a tensor has its data if these are in another file: its name, relative to the model's folder.
pub(super) fn external_location(proto: &TensorProto) -> Option<&str> {
    let mut locations = proto.external_data.iter().filter(|entry| entry.key() == "location");
    locations.next().filter(|_| proto.data_location() == EXTERNAL_LOCATION).map(|entry| entry.value())
}

/// A tensor's bytes, if that is how it is stored; external data are read from their file.
pub(super) fn raw_data(proto: &TensorProto, folder: Option<&Path>) -> Result<Option<Bytes>, TensorError> {
    let places = places(proto);
    if places.len() > 1 {
        return Err(TensorError::Several(places));
    }
    if proto.data_location() == EXTERNAL_LOCATION {
        return external_data(proto, folder).map(Some);
    }
    // Some writers leave an empty string beside typed fields.
    Ok(proto.raw_data.clone().filter(|raw| !raw.is_empty()))
}

/// The fields that a tensor has numbers in.
fn places(proto: &TensorProto) -> Vec<&'static str> {
    let places = [
        ("float_data", !proto.float_data.is_empty()),
        ("int32_data", !proto.int32_data.is_empty()),
        ("string_data", !proto.string_data.is_empty()),
        ("int64_data", !proto.int64_data.is_empty()),
        ("raw_data", !proto.raw_data().is_empty()),
        ("double_data", !proto.double_data.is_empty()),
        ("uint64_data", !proto.uint64_data.is_empty()),
        ("external_data", proto.data_location() == EXTERNAL_LOCATION),
    ];
    places.into_iter().filter(|(_, has)| *has).map(|(place, _)| place).collect()
}

fn external_data(proto: &TensorProto, folder: Option<&Path>) -> Result<Bytes, TensorError> {
    let entry = |key: &str| proto.external_data.iter().find(|entry| entry.key() == key).map(|entry| entry.value());
    let location = entry("location").unwrap_or_default();
    let wrong = |reason: String| TensorError::External { file: location.to_owned(), reason };
    let number = |key: &str| match entry(key) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| wrong(format!("has the {key} {text:?}, no number"))),
    };
    let mut keys = HashSet::new();
    if let Some(again) = proto.external_data.iter().find(|entry| !keys.insert(entry.key())) {
        return Err(wrong(format!("is not certain: {:?} is said twice", again.key())));
    }
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

fn from_raw(data_type: i32, raw: &[u8]) -> Result<TensorNumbers, TensorError> {
    macro_rules! words {
        ($number:ty) => {
            raw.as_chunks::<{ size_of::<$number>() }>().0.iter().map(|&word| <$number>::from_le_bytes(word))
        };
    }
    Ok(match data_type {
        code::FLOAT => TensorNumbers::Float(Float::F32, words!(f32).map(f64::from).collect()),
        code::DOUBLE => TensorNumbers::Float(Float::F64, words!(f64).collect()),
        code::FLOAT16 => TensorNumbers::Float(Float::F16, words!(f16).map(f64::from).collect()),
        code::BFLOAT16 => TensorNumbers::Float(Float::Bf16, words!(bf16).map(f64::from).collect()),
        code::INT64 => whole(Int::I64, words!(i64))?,
        code::INT32 => whole(Int::I32, words!(i32))?,
        code::INT16 => whole(Int::I16, words!(i16))?,
        code::INT8 => whole(Int::I8, words!(i8))?,
        code::UINT32 => whole(Int::U32, words!(u32))?,
        code::UINT16 => whole(Int::U16, words!(u16))?,
        code::UINT8 => whole(Int::U8, words!(u8))?,
        code::BOOL => whole(Int::Bool, words!(u8))?,
        other => return Err(TensorError::ElementType(other)),
    })
}

fn from_fields(proto: &TensorProto) -> Result<TensorNumbers, TensorError> {
    // Half-precision numbers are stored as their bits, in the low half of an integer.
    let halves = |float: Float, decode: fn(u16) -> f64| {
        let misfit = |element: i32| TensorError::Misfit { element: element.to_string(), of: float.name() };
        let numbers = proto.int32_data.iter().map(|&bits| u16::try_from(bits).map(decode).map_err(|_| misfit(bits)));
        Ok(TensorNumbers::Float(float, numbers.collect::<Result<_, _>>()?))
    };
    Ok(match (proto.data_type(), Int::from_code(proto.data_type())) {
        (code::FLOAT, _) => {
            TensorNumbers::Float(Float::F32, proto.float_data.iter().map(|&value| f64::from(value)).collect())
        }
        (code::DOUBLE, _) => TensorNumbers::Float(Float::F64, proto.double_data.clone()),
        (code::FLOAT16, _) => halves(Float::F16, |bits| f16::from_bits(bits).to_f64())?,
        (code::BFLOAT16, _) => halves(Float::Bf16, |bits| bf16::from_bits(bits).to_f64())?,
        (_, Some(Int::I64)) => whole(Int::I64, proto.int64_data.iter().copied())?,
        (_, Some(Int::U32)) => whole(Int::U32, proto.uint64_data.iter().copied())?,
        (_, Some(int)) => whole(int, proto.int32_data.iter().copied())?,
        (other, None) => return Err(TensorError::ElementType(other)),
    })
}

/// Whole numbers, each of which must be one of its type: programs wrap others around, or do not, or refuse them.
fn whole(int: Int, elements: impl Iterator<Item = impl Into<i128>>) -> Result<TensorNumbers, TensorError> {
    let numbers = elements.map(|element| {
        let element = element.into();
        int.checked(element).ok_or_else(|| TensorError::Misfit { element: element.to_string(), of: int.name() })
    });
    Ok(TensorNumbers::Int(int, numbers.collect::<Result<_, _>>()?))
}

/// Encodes floats as a tensor of raw data, each rounded to `float`.
pub(super) fn encode_floats(name: &str, float: Float, dims: &[usize], values: &[f64]) -> TensorProto {
    let mut raw = Vec::with_capacity(values.len() * width(float.code()));
    for &value in values {
        match float {
            Float::F16 => raw.extend(nearest_f16(value).to_le_bytes()),
            Float::Bf16 => raw.extend(nearest_bf16(value).to_le_bytes()),
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
    if proto.data_location() == EXTERNAL_LOCATION {
        proto.raw_data = raw_data(proto, folder)?;
        proto.external_data.clear();
        proto.data_location = None;
    }
    Ok(())
}
