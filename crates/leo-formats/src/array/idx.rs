//! IDX, the format of MNIST and its kin.

use leo_network::Array;

use super::{ArrayError, ElementType, array, checked_shape, decoder};

/// Whether a file begins like one.
pub(super) fn is_idx(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0, 0]) && bytes.len() >= 4
}

/// Decodes an IDX file: two zero bytes, the type, the number of axes, the extents and the numbers, big-endian.
pub(super) fn decode(bytes: &[u8]) -> Result<Array, ArrayError> {
    let element_type = match bytes[2] {
        0x08 => decoder!(u8, from_be_bytes, u8),
        0x09 => decoder!(i8, from_be_bytes, i64),
        0x0b => decoder!(i16, from_be_bytes, i64),
        0x0c => decoder!(i32, from_be_bytes, i64),
        0x0d => decoder!(f32, from_be_bytes, f32),
        0x0e => decoder!(f64, from_be_bytes, f64),
        other => return Err(ArrayError::ElementType(format!("{other:#04x}"))),
    };
    let header = 4 * usize::from(bytes[3]);
    let (extents, numbers) = bytes[4..]
        .split_at_checked(header)
        .ok_or(ArrayError::Truncated { expected: header as u64, found: bytes.len() as u64 - 4 })?;
    let extents: Vec<u64> = extents.as_chunks().0.iter().map(|&word| u64::from(u32::from_be_bytes(word))).collect();
    let shape = checked_shape(&extents, element_type.width, numbers)?;
    array(shape, (element_type.decode)(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArrayFile;

    #[test]
    fn idx_files_are_read() -> Result<(), ArrayError> {
        let array = Array::from_bytes(&[0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 2, 7, 255])?;
        assert_eq!((array.shape(), array.iter().collect::<Vec<_>>()), (&[1, 2][..], vec![7.0, 255.0]));
        assert_eq!(array.divided::<f32>(255.0).iter().nth(1), Some(1.0));
        assert_eq!(array.divided::<f64>(255.0).iter().next(), Some(7.0 / 255.0), "as precise as the network");
        assert!(matches!(Array::from_bytes(&[0, 0, 8, 1, 0, 0, 1, 0, 7]), Err(ArrayError::Truncated { .. })));
        Ok(())
    }
}
