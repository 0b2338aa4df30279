//! NumPy's `.npy` format, versions 1 to 3.

use half::f16;

use leo_network::{Array, Elements};

use super::{ArrayError, ElementType, array, checked_shape, decoder};
use leo_network::op::Transpose;

/// What every file begins with.
const MAGIC: &[u8] = b"\x93NUMPY";

/// Whether a file begins like one.
pub(super) fn is_npy(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Encodes an array as a `.npy` file.
pub(super) fn encode(array: &Array) -> Vec<u8> {
    let code = match array.elements() {
        Elements::U8(_) => "|u1",
        Elements::I64(_) => "<i8",
        Elements::F32(_) => "<f4",
        Elements::F64(_) => "<f8",
    };
    let shape = match array.shape()[..] {
        [only] => format!("({only},)"),
        _ => format!("({})", array.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut header = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}");
    // The numbers start at a multiple of 64 bytes, and the header ends in a line feed.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    match array.elements() {
        Elements::U8(values) => bytes.extend(values),
        Elements::I64(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
        Elements::F32(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
        Elements::F64(values) => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
    }
    bytes
}

/// Unsigned 64-bit numbers have no exact home among the four; doubles come nearest.
const fn unsigned_64(little: bool) -> ElementType {
    ElementType {
        width: 8,
        decode: if little {
            |bytes| bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word) as f64).collect::<Vec<_>>().into()
        } else {
            |bytes| bytes.as_chunks().0.iter().map(|&word| u64::from_be_bytes(word) as f64).collect::<Vec<_>>().into()
        },
    }
}

fn npy_type(code: &str) -> Option<ElementType> {
    Some(match code {
        "|u1" | "<u1" | ">u1" | "|b1" | "<b1" | ">b1" => decoder!(u8, from_le_bytes, u8),
        "|i1" | "<i1" | ">i1" => decoder!(i8, from_le_bytes, i64),
        "<u2" => decoder!(u16, from_le_bytes, i64),
        ">u2" => decoder!(u16, from_be_bytes, i64),
        "<i2" => decoder!(i16, from_le_bytes, i64),
        ">i2" => decoder!(i16, from_be_bytes, i64),
        "<u4" => decoder!(u32, from_le_bytes, i64),
        ">u4" => decoder!(u32, from_be_bytes, i64),
        "<i4" => decoder!(i32, from_le_bytes, i64),
        ">i4" => decoder!(i32, from_be_bytes, i64),
        "<u8" => unsigned_64(true),
        ">u8" => unsigned_64(false),
        "<i8" => decoder!(i64, from_le_bytes, i64),
        ">i8" => decoder!(i64, from_be_bytes, i64),
        "<f2" => decoder!(f16, from_le_bytes, f32),
        ">f2" => decoder!(f16, from_be_bytes, f32),
        "<f4" => decoder!(f32, from_le_bytes, f32),
        ">f4" => decoder!(f32, from_be_bytes, f32),
        "<f8" => decoder!(f64, from_le_bytes, f64),
        ">f8" => decoder!(f64, from_be_bytes, f64),
        _ => return None,
    })
}

/// Decodes a `.npy` file.
pub(super) fn decode(bytes: &[u8]) -> Result<Array, ArrayError> {
    let broken = |what: &str| ArrayError::Header(what.to_owned());
    let after_magic = &bytes[MAGIC.len()..];
    let (length, rest) = match after_magic {
        [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
        [2 | 3, _, a, b, c, d, rest @ ..] => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest),
        [1..=3, ..] => return Err(broken("it is cut short")),
        _ => return Err(broken("its version is not 1, 2 or 3")),
    };
    let (header, numbers) = rest.split_at_checked(length).ok_or_else(|| broken("it is cut short"))?;
    let header = std::str::from_utf8(header).map_err(|_| broken("it is not text"))?;
    let header = NpyHeader::parse(header).map_err(broken)?;
    let element_type = npy_type(&header.descr).ok_or_else(|| ArrayError::ElementType(format!("{:?}", header.descr)))?;
    let shape = checked_shape(&header.shape, element_type.width, numbers)?;
    let elements = (element_type.decode)(numbers);
    if header.fortran_order { from_column_major(shape, elements) } else { array(shape, elements) }
}

/// A file in column-major order is the row-major file of the transposed array.
fn from_column_major(mut shape: Vec<usize>, elements: Elements) -> Result<Array, ArrayError> {
    shape.reverse();
    let reversal = Transpose::reversal(shape.len());
    Ok(array(shape, elements)?.transposed(&reversal))
}

/// The three entries of a NumPy header, a Python dictionary such as
/// `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
#[derive(Default)]
struct NpyHeader {
    descr: String,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl NpyHeader {
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut rest = text.trim().strip_prefix('{').ok_or("it is not a dictionary")?;
        let mut header = Self::default();
        let mut seen = [false; 3];
        loop {
            rest = rest.trim_start();
            if rest.starts_with('}') {
                break;
            }
            let (key, after) = quoted(rest)?;
            rest = after.trim_start().strip_prefix(':').ok_or("an entry has no value")?.trim_start();
            let entry = match key {
                "descr" => {
                    if rest.starts_with('[') {
                        return Err("it holds records, not numbers");
                    }
                    (header.descr, rest) = quoted(rest).map(|(descr, rest)| (descr.to_owned(), rest))?;
                    0
                }
                "fortran_order" => {
                    (header.fortran_order, rest) = match (rest.strip_prefix("True"), rest.strip_prefix("False")) {
                        (Some(rest), _) => (true, rest),
                        (_, Some(rest)) => (false, rest),
                        _ => return Err("fortran_order is neither True nor False"),
                    };
                    1
                }
                "shape" => {
                    let inside = rest.strip_prefix('(').ok_or("the shape is not a tuple")?;
                    let (inside, after) = inside.split_once(')').ok_or("the shape does not end")?;
                    header.shape = extents(inside)?;
                    rest = after;
                    2
                }
                _ => return Err("it has an unknown entry"),
            };
            seen[entry] = true;
            rest = rest.trim_start();
            rest = match rest.strip_prefix(',') {
                Some(rest) => rest,
                None if rest.starts_with('}') => rest,
                None => return Err("its entries run into one another"),
            };
        }
        if seen == [true; 3] { Ok(header) } else { Err("descr, fortran_order or shape is missing") }
    }
}

/// A Python string at the start of `text`, and what follows it.
fn quoted(text: &str) -> Result<(&str, &str), &'static str> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"')).ok_or("a string is missing")?;
    text[1..].split_once(quote).ok_or("a string does not end")
}

fn extents(tuple: &str) -> Result<Vec<u64>, &'static str> {
    let tuple = tuple.trim();
    let tuple = tuple.strip_suffix(',').unwrap_or(tuple);
    if tuple.is_empty() {
        return Ok(Vec::new());
    }
    let extents = tuple.split(',').map(|extent| extent.trim().trim_end_matches('L').parse());
    extents.collect::<Result<_, _>>().map_err(|_| "an extent is not a whole number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArrayFile;

    fn npy(header: &str, numbers: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(numbers);
        bytes
    }

    #[test]
    fn what_is_written_is_read_back() -> Result<(), Box<dyn std::error::Error>> {
        for array in [
            Array::new(vec![2, 3], vec![1.5_f32, -0.0, 3.0, f32::MIN_POSITIVE, 5.0, 6.0])?,
            Array::new(vec![3], vec![1.0_f64, 1e-300, -2.0])?,
            Array::new(vec![], vec![7_i64])?,
            Array::new(vec![2, 0], Vec::<u8>::new())?,
        ] {
            let bytes = encode(&array);
            assert_eq!(bytes.len() % 64, array.len() * bytes_each(&array) % 64, "the numbers are aligned");
            assert_eq!(Array::from_bytes(&bytes)?, array);
        }
        Ok(())
    }

    fn bytes_each(array: &Array) -> usize {
        match array.elements() {
            Elements::U8(_) => 1,
            Elements::F32(_) => 4,
            _ => 8,
        }
    }

    #[test]
    fn column_major_arrays_are_turned() -> Result<(), ArrayError> {
        let header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n";
        let array = Array::from_bytes(&npy(header, &[1, 4, 2, 5, 3, 6]))?;
        assert_eq!(array.iter().collect::<Vec<_>>(), [1., 2., 3., 4., 5., 6.]);
        Ok(())
    }

    #[test]
    fn headers_are_not_believed() {
        let refused = |header: &str| Array::from_bytes(&npy(header, &[0; 8])).expect_err("must be refused");
        let huge = refused("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}");
        assert!(matches!(huge, ArrayError::TooLarge(_)));
        let long = refused("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}");
        assert!(matches!(long, ArrayError::Truncated { .. }));
        assert!(matches!(
            refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"),
            ArrayError::ElementType(_)
        ));
        assert!(matches!(refused("{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}"), ArrayError::Trailing(1)));
        assert!(matches!(refused("{'descr': '|u1', 'shape': (8,)}"), ArrayError::Header(_)));
    }
}
