//! The types of a tensor's elements: which numbers each can hold, and how one becomes another.
//!
//! What a file computes from its constants must come out as it does in every program that runs the file. So each
//! conversion here is exact, or the one that ONNX asks for, or refused.

use half::{bf16, f16};

/// ONNX's numbers for the types of elements that Leo reads.
pub(super) mod code {
    pub(in super::super) const FLOAT: i32 = 1;
    pub(in super::super) const UINT8: i32 = 2;
    pub(in super::super) const INT8: i32 = 3;
    pub(in super::super) const UINT16: i32 = 4;
    pub(in super::super) const INT16: i32 = 5;
    pub(in super::super) const INT32: i32 = 6;
    pub(in super::super) const INT64: i32 = 7;
    pub(in super::super) const BOOL: i32 = 9;
    pub(in super::super) const FLOAT16: i32 = 10;
    pub(in super::super) const DOUBLE: i32 = 11;
    pub(in super::super) const UINT32: i32 = 12;
    pub(in super::super) const BFLOAT16: i32 = 16;
}

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

    /// The smallest number above 0 that this type has with all its digits.
    pub(super) fn smallest_normal(self) -> f64 {
        match self {
            Self::F16 => f16::MIN_POSITIVE.to_f64(),
            Self::Bf16 => bf16::MIN_POSITIVE.to_f64(),
            Self::F32 => f64::from(f32::MIN_POSITIVE),
            Self::F64 => f64::MIN_POSITIVE,
        }
    }

    /// The nearest number of this type.
    pub fn round(self, value: f64) -> f64 {
        match self {
            Self::F16 => nearest_f16(value).to_f64(),
            Self::Bf16 => nearest_bf16(value).to_f64(),
            Self::F32 => f64::from(value as f32),
            Self::F64 => value,
        }
    }

    /// A float as one of this type, where all programs agree on it: some go to half precision by way of single
    /// precision, and round twice.
    pub(super) fn cast_float(self, value: f64) -> Option<f64> {
        let rounded = self.round(value);
        let agreed = match self {
            Self::F16 | Self::Bf16 => self.round(f64::from(value as f32)).to_bits() == rounded.to_bits(),
            Self::F32 | Self::F64 => true,
        };
        agreed.then_some(rounded)
    }

    /// A whole number as a float of this type, rounded once, where all programs agree on it.
    pub(super) fn cast_int(self, value: i64) -> Option<f64> {
        match self {
            Self::F64 => Some(value as f64),
            Self::F32 => Some(f64::from(value as f32)),
            Self::F16 | Self::Bf16 => {
                let double = value as f64;
                (double as i128 == i128::from(value)).then(|| self.cast_float(double)).flatten()
            }
        }
    }

    /// The result of arithmetic between numbers of this type, given in doubles. Programs compute with half precision in
    /// single precision and round now or later, so there it must be exact.
    pub(super) fn result(self, value: f64) -> Option<f64> {
        let rounded = self.round(value);
        let certain = matches!(self, Self::F32 | Self::F64) || rounded == value;
        certain.then_some(rounded)
    }
}

/// The number of half precision that is nearest to `value`.
pub(super) fn nearest_f16(value: f64) -> f16 {
    f16::from_f32(rounded_to_odd(value))
}

/// The number of type bfloat16 that is nearest to `value`.
pub(super) fn nearest_bf16(value: f64) -> bf16 {
    bf16::from_f32(rounded_to_odd(value))
}

/// `value` in single precision; of the two neighbours of one that is not there, the one with an odd last bit.
///
/// It is on the same side as `value` of every number with fewer bits and of the middle of any two, so that rounding it
/// again is rounding once.
fn rounded_to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let bits = nearest.to_bits();
    if f64::from(nearest) == value || value.is_nan() || bits & 1 == 1 {
        return nearest;
    }
    let too_far = f64::from(nearest).abs() > value.abs();
    f32::from_bits(if too_far { bits - 1 } else { bits + 1 })
}

/// The types of whole numbers, truth values among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Int {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
}

impl Int {
    /// The type with this ONNX number, if it is one of whole numbers that Leo reads.
    pub(super) fn from_code(number: i32) -> Option<Self> {
        Some(match number {
            code::BOOL => Self::Bool,
            code::INT8 => Self::I8,
            code::INT16 => Self::I16,
            code::INT32 => Self::I32,
            code::INT64 => Self::I64,
            code::UINT8 => Self::U8,
            code::UINT16 => Self::U16,
            code::UINT32 => Self::U32,
            _ => return None,
        })
    }

    /// What ONNX calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
        }
    }

    /// The number, if it is one of this type.
    pub(super) fn checked(self, value: i128) -> Option<i64> {
        let value = i64::try_from(value).ok()?;
        (self.cast_int(value) == value).then_some(value)
    }

    /// A whole number of any type as one of this type. What does not fit loses its upper bits, as ONNX asks for; all
    /// but 0 is true.
    pub(super) fn cast_int(self, value: i64) -> i64 {
        match self {
            Self::Bool => i64::from(value != 0),
            Self::I8 => i64::from(value as i8),
            Self::I16 => i64::from(value as i16),
            Self::I32 => i64::from(value as i32),
            Self::I64 => value,
            Self::U8 => i64::from(value as u8),
            Self::U16 => i64::from(value as u16),
            Self::U32 => i64::from(value as u32),
        }
    }

    /// A float as a whole number, without its fraction. ONNX does not say what becomes of one that does not fit.
    pub(super) fn cast_float(self, value: f64) -> Option<i64> {
        if self == Self::Bool {
            return Some(i64::from(value != 0.0));
        }
        let whole = value.trunc();
        // Beyond 2^53 doubles skip whole numbers, and no shape is that large.
        let exact = whole.abs() <= 9_007_199_254_740_992.0;
        exact.then_some(whole as i128).and_then(|whole| self.checked(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_is_rounded_once() {
        let above_the_middle = 1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-50);
        assert_eq!(Float::F16.round(above_the_middle), 1.0 + 2.0_f64.powi(-10));
        assert_eq!(Float::F16.round(-above_the_middle), -1.0 - 2.0_f64.powi(-10));
        assert_eq!(Float::F16.round(1.0 + 2.0_f64.powi(-11)), 1.0);
        assert_eq!(Float::Bf16.round(1.0 + 2.0_f64.powi(-8) + 2.0_f64.powi(-50)), 1.0 + 2.0_f64.powi(-7));
        assert_eq!(Float::F16.round(65519.999), 65504.0);
        assert_eq!(Float::F16.round(65520.0), f64::INFINITY);
        assert_eq!(Float::Bf16.round(1e300), f64::INFINITY);
        assert_eq!(Float::F16.round(-1e-300).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(Float::F16.round(2.0_f64.powi(-25) * (1.0 + f64::EPSILON)), 2.0_f64.powi(-24));
        assert!(Float::F16.round(f64::NAN).is_nan());
    }

    #[test]
    fn what_programs_round_differently_is_nothing() {
        assert_eq!(Float::F16.cast_float(1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-50)), None);
        assert_eq!(Float::F16.cast_float(0.1_f32.into()), Some(f16::from_f32(0.1).to_f64()));
        assert_eq!(Float::Bf16.cast_int((1 << 30) + (1 << 22) + 1), None);
        assert_eq!(Float::Bf16.cast_int(i64::MAX), None);
        assert_eq!(Float::F16.cast_int(2049), Some(2048.0));
        assert_eq!(Float::F32.cast_int((1 << 60) + (1 << 36) + 1), Some(2.0_f64.powi(60) + 2.0_f64.powi(37)));
        assert_eq!(Float::F16.result(2049.0), None);
        assert_eq!(Float::F16.result(2050.0), Some(2050.0));
    }

    #[test]
    fn whole_numbers_know_their_type() {
        assert_eq!([0, 1, 2].map(|number| Int::Bool.checked(number)), [Some(0), Some(1), None]);
        assert_eq!([255, 256, -1].map(|number| Int::U8.checked(number)), [Some(255), None, None]);
        assert_eq!([-128, -129].map(|number| Int::I8.checked(number)), [Some(-128), None]);
        assert_eq!(Int::I64.checked(1 << 63), None);
        assert_eq!(Int::I8.cast_int(200), -56, "ONNX's own example");
        assert_eq!(
            [2.9, -0.9, 256.0, f64::NAN].map(|number| Int::U8.cast_float(number)),
            [Some(2), Some(0), None, None]
        );
        assert_eq!([0.5, -0.0, f64::NAN].map(|number| Int::Bool.cast_float(number)), [Some(1), Some(0), Some(1)]);
    }
}
