//! The bytes of an ONNX file, looked at before they are decoded: a file that programs could read as different messages
//! is refused.
//!
//! Protocol buffers leave room for that. A value that a closed enum does not have is set aside by one decoder and taken
//! by another; a field that is there twice is replaced, merged or set aside; what stands under a number that a decoder
//! does not know, or is encoded in a way that it does not expect, is skipped. Then the file that is proved to be fine
//! is not the file that runs. Writers do none of this. So here every field is one that ONNX has, encoded as ONNX says,
//! there once unless it may be repeated, and every number is written as short as it can be and is one of its type. Of
//! such a file all decoders see the same.
//!
//! What the fields are is declared once, in [`proto`](super::proto), for prost and for this.

use std::ops::RangeInclusive;

use prost::bytes::Bytes;

/// How deep messages may lie within messages: as deep as all decoders go.
const MAX_DEPTH: usize = 100;

/// Why a file could be read in different ways, or in none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{fault}", if .place.is_empty() { String::new() } else { format!("{} ", .place) })]
pub struct WireError {
    /// Where in the file: the fields that lead there, as in `graph.node[3].name`.
    pub place: String,
    /// What is wrong there.
    pub fault: Fault,
}

/// What can be wrong with the encoding of a message or a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The data end before what they promise.
    #[error("ends too early")]
    Truncated,
    /// No such encoding.
    #[error("has bytes that are no field")]
    NoField,
    /// A number that no field has.
    #[error("has a field {0} that Leo does not know; some programs might")]
    UnknownField(u32),
    /// A field in an encoding of another type.
    #[error("is not encoded as {0}; programs skip it, or refuse the file")]
    Encoding(&'static str),
    /// A field that may be there once only.
    #[error("is there twice; programs take the first, the last or both")]
    Twice,
    /// Two fields of which one may be there only.
    #[error("is there beside {0}, in whose place it should be")]
    Beside(&'static str),
    /// A value that is not one of the enum's.
    #[error("has the value {0}, which ONNX does not have")]
    UnknownValue(i32),
    /// A whole number in a way that no writer writes it.
    #[error("has a whole number that takes more bytes than it needs, or does not fit its type")]
    Number,
    /// A string that is no text.
    #[error("is not text in UTF-8")]
    Text,
    /// Messages in messages in messages.
    #[error("lies deeper than {MAX_DEPTH} messages within one another")]
    Depth,
}

impl Fault {
    /// Whether this is no protocol buffer at all.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self, Self::Truncated | Self::NoField)
    }

    fn here(self) -> WireError {
        WireError { place: String::new(), fault: self }
    }

    fn at(self, name: &str) -> WireError {
        self.here().within(name)
    }
}

impl WireError {
    /// This error, with `name` around the place where it is.
    fn within(mut self, name: &str) -> Self {
        let name = plain(name);
        self.place = if self.place.is_empty() { name.to_owned() } else { format!("{name}.{}", self.place) };
        self
    }
}

/// A name without what Rust needs where a field is called like one of its words.
fn plain(name: &str) -> &str {
    name.trim_start_matches("r#")
}

/// What a message looks like.
#[derive(Debug)]
pub(super) struct Schema {
    /// What Leo calls it.
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

/// What a field looks like.
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    /// 0 for a choice, whose members have numbers of their own.
    number: u32,
    kind: FieldKind,
    repeated: bool,
    /// The values that it can have, if not all of its type.
    values: Option<RangeInclusive<i32>>,
    /// What is inside, for messages and choices.
    inside: Option<fn() -> &'static Schema>,
}

/// The types that ONNX's fields have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Int32,
    Int64,
    Uint64,
    Float,
    Double,
    Text,
    Bytes,
    Message,
    /// One of several fields.
    Choice,
}

/// What is declared in [`proto`](super::proto): a message or choice, or a scalar; on its own, optional or repeated.
pub(super) trait Declared {
    /// For a message or choice, what is inside.
    const SCHEMA: Option<fn() -> &'static Schema> = None;
}

impl Declared for i32 {}
impl Declared for i64 {}
impl Declared for u64 {}
impl Declared for f32 {}
impl Declared for f64 {}
impl Declared for String {}
impl Declared for Bytes {}

impl<T: Declared> Declared for Option<T> {
    const SCHEMA: Option<fn() -> &'static Schema> = T::SCHEMA;
}

impl<T: Declared> Declared for Vec<T> {
    const SCHEMA: Option<fn() -> &'static Schema> = T::SCHEMA;
}

impl<T: Declared> Declared for Box<T> {
    const SCHEMA: Option<fn() -> &'static Schema> = T::SCHEMA;
}

impl Field {
    /// A field by what prost is told of it: its kind, and further words, some with a value. What prost would refuse, or
    /// is not provided for here, does not compile.
    pub(super) const fn declared(
        name: &'static str,
        kind: &'static str,
        words: &[(&'static str, &'static str)],
        inside: Option<fn() -> &'static Schema>,
    ) -> Self {
        let kind = match kind.as_bytes() {
            b"int32" => FieldKind::Int32,
            b"int64" => FieldKind::Int64,
            b"uint64" => FieldKind::Uint64,
            b"float" => FieldKind::Float,
            b"double" => FieldKind::Double,
            b"string" => FieldKind::Text,
            b"bytes" => FieldKind::Bytes,
            b"message" => FieldKind::Message,
            b"oneof" => FieldKind::Choice,
            _ => panic!("a kind of field that the wire does not know"),
        };
        assert!(
            inside.is_some() == matches!(kind, FieldKind::Message | FieldKind::Choice),
            "only messages have something inside"
        );
        let (mut number, mut repeated, mut index) = (0, false, 0);
        while index < words.len() {
            let (word, value) = words[index];
            match word.as_bytes() {
                b"tag" => number = parsed(value),
                b"repeated" => repeated = true,
                b"optional" | b"boxed" | b"packed" | b"tags" => {}
                _ => panic!("a word that the wire does not know"),
            }
            index += 1;
        }
        assert!((number == 0) == matches!(kind, FieldKind::Choice), "every field has a number");
        Self { name, number, kind, repeated, values: None, inside }
    }

    /// This field, if it can only have these values.
    pub(super) const fn among(mut self, values: RangeInclusive<i32>) -> Self {
        assert!(matches!(self.kind, FieldKind::Int32), "enums are numbers");
        self.values = Some(values);
        self
    }

    fn inside(&self) -> &'static [Self] {
        self.inside.map_or(&[], |schema| schema().fields)
    }
}

/// A number from its decimal digits.
const fn parsed(digits: &str) -> u32 {
    let (digits, mut number, mut index) = (digits.as_bytes(), 0, 0);
    while index < digits.len() {
        assert!(digits[index].is_ascii_digit(), "numbers have digits");
        number = number * 10 + (digits[index] - b'0') as u32;
        index += 1;
    }
    number
}

impl FieldKind {
    /// The encoding of one such value.
    fn encoding(self) -> Encoding {
        match self {
            Self::Int32 | Self::Int64 | Self::Uint64 => Encoding::Varint,
            Self::Double => Encoding::Eight,
            Self::Float => Encoding::Four,
            Self::Text | Self::Bytes | Self::Message | Self::Choice => Encoding::Counted,
        }
    }

    /// What people call it.
    fn name(self) -> &'static str {
        match self {
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float => "float",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Message => "message",
            Self::Choice => "oneof",
        }
    }
}

/// The encodings that ONNX's fields have. Groups, which protocol buffers have besides, are none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Varint,
    Eight,
    Counted,
    Four,
}

/// Bytes that are still to be read.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Fault::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// A whole number, which must be as short as it can be.
    fn varint(&mut self) -> Result<u64, Fault> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let &[byte] = self.take(1)? else { return Err(Fault::Truncated) };
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(Fault::Number);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return if byte == 0 && shift > 0 { Err(Fault::Number) } else { Ok(number) };
            }
        }
        Err(Fault::Number)
    }

    fn counted(&mut self) -> Result<&'a [u8], Fault> {
        let count = self.varint()?;
        self.take(usize::try_from(count).map_err(|_| Fault::Truncated)?)
    }

    /// The number of the next field and its encoding; none for the encodings that ONNX does not use.
    fn key(&mut self) -> Result<(u32, Option<Encoding>), Fault> {
        let key = u32::try_from(self.varint()?).map_err(|_| Fault::NoField)?;
        let encoding = match key & 7 {
            0 => Some(Encoding::Varint),
            1 => Some(Encoding::Eight),
            2 => Some(Encoding::Counted),
            5 => Some(Encoding::Four),
            3 | 4 => None,
            _ => return Err(Fault::NoField),
        };
        if key >> 3 == 0 { Err(Fault::NoField) } else { Ok((key >> 3, encoding)) }
    }
}

/// Checks that these bytes are a message of this kind to everyone.
pub(super) fn check<M: Declared>(bytes: &[u8]) -> Result<(), WireError> {
    M::SCHEMA.map_or(Ok(()), |schema| check_message(schema(), bytes, 0))
}

fn check_message(schema: &Schema, bytes: &[u8], depth: usize) -> Result<(), WireError> {
    if depth == MAX_DEPTH {
        return Err(Fault::Depth.here());
    }
    let mut reader = Reader(bytes);
    let mut counts = vec![0_usize; schema.fields.len()];
    // By the position of a choice, which of its fields is there.
    let mut chosen = vec![None; schema.fields.len()];
    while !reader.0.is_empty() {
        let (number, encoding) = reader.key().map_err(Fault::here)?;
        let (position, field) = find(schema, number).ok_or_else(|| Fault::UnknownField(number).here())?;
        if let Some(before) = chosen[position].replace(field.name).filter(|before| *before != field.name) {
            return Err(Fault::Beside(before).at(field.name));
        }
        let count = counts[position];
        counts[position] += 1;
        if count > 0 && !field.repeated {
            return Err(Fault::Twice.at(field.name));
        }
        let inner = check_field(field, encoding, &mut reader, depth);
        inner.map_err(|error| match (field.repeated, field.kind) {
            (true, FieldKind::Message) => error.within(&format!("{}[{count}]", field.name)),
            _ => error.within(field.name),
        })?;
    }
    Ok(())
}

/// The field with this number, and its position or that of the choice that it belongs to.
fn find(schema: &Schema, number: u32) -> Option<(usize, &'static Field)> {
    schema.fields.iter().enumerate().find_map(|(position, field)| match field.kind {
        FieldKind::Choice => {
            field.inside().iter().find(|member| member.number == number).map(|member| (position, member))
        }
        _ => (field.number == number).then_some((position, field)),
    })
}

fn check_field(
    field: &Field,
    encoding: Option<Encoding>,
    reader: &mut Reader<'_>,
    depth: usize,
) -> Result<(), WireError> {
    let own = field.kind.encoding();
    if encoding == Some(own) {
        return check_value(field, reader, depth);
    }
    if encoding != Some(Encoding::Counted) || !field.repeated {
        return Err(Fault::Encoding(field.kind.name()).here());
    }
    // Numbers may be packed, one after the other, or not; every decoder takes both.
    let mut packed = Reader(reader.counted().map_err(Fault::here)?);
    while !packed.0.is_empty() {
        check_value(field, &mut packed, depth)?;
    }
    Ok(())
}

/// Reads one value of a field, in the field's own encoding.
fn check_value(field: &Field, reader: &mut Reader<'_>, depth: usize) -> Result<(), WireError> {
    match field.kind {
        FieldKind::Int64 | FieldKind::Uint64 => reader.varint().map(drop).map_err(Fault::here),
        FieldKind::Int32 => check_int32(field, reader).map_err(Fault::here),
        FieldKind::Float => reader.take(4).map(drop).map_err(Fault::here),
        FieldKind::Double => reader.take(8).map(drop).map_err(Fault::here),
        FieldKind::Bytes => reader.counted().map(drop).map_err(Fault::here),
        FieldKind::Text => {
            let bytes = reader.counted().map_err(Fault::here)?;
            std::str::from_utf8(bytes).map(drop).map_err(|_| Fault::Text.here())
        }
        FieldKind::Message | FieldKind::Choice => {
            let bytes = reader.counted().map_err(Fault::here)?;
            field.inside.map_or(Ok(()), |schema| check_message(schema(), bytes, depth + 1))
        }
    }
}

/// A number of 32 bits stands there with its sign in 64. Decoders would drop the upper half.
fn check_int32(field: &Field, reader: &mut Reader<'_>) -> Result<(), Fault> {
    let value = i32::try_from(reader.varint()? as i64).map_err(|_| Fault::Number)?;
    match &field.values {
        Some(values) if !values.contains(&value) => Err(Fault::UnknownValue(value)),
        _ => Ok(()),
    }
}

/// All messages that Leo knows, a line for each and one for each of its fields: number, name, type, whether it is
/// repeated, what is inside, and the last of the values that it can have. Tests compare it with what ONNX says.
pub fn listing() -> String {
    let mut listed: Vec<&'static Schema> =
        super::proto::ModelProto::SCHEMA.map(|schema| schema()).into_iter().collect();
    let mut lines = Vec::new();
    let mut next = 0;
    while next < listed.len() {
        let schema = listed[next];
        next += 1;
        lines.push(format!("message {}", schema.name));
        for field in schema.fields.iter().flat_map(|field| match field.kind {
            FieldKind::Choice => field.inside(),
            _ => std::slice::from_ref(field),
        }) {
            let inside = field.inside.map(|schema| schema());
            if let Some(inside) = inside.filter(|inside| listed.iter().all(|other| other.name != inside.name)) {
                listed.push(inside);
            }
            let inside = inside.map_or("-", |inside| inside.name);
            let last = field.values.as_ref().map_or("-".to_owned(), |values| values.end().to_string());
            let repeated = if field.repeated { "repeated" } else { "single" };
            let (name, kind) = (plain(field.name), field.kind.name());
            lines.push(format!("{} {name} {kind} {repeated} {inside} {last}", field.number));
        }
    }
    lines.join("\n")
}
