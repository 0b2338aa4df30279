//! Files whose encoding is changed, field by field: what a decoder could see in one way or in another.

use std::collections::HashMap;

use fastrand::Rng;
use leo_formats::onnx::wire;

/// The encoding of whole numbers.
const VARINT: u8 = 0;

/// The encoding of what takes eight bytes.
const EIGHT_BYTES: u8 = 1;

/// The encoding of what has its length in front of it.
const LENGTH_DELIMITED: u8 = 2;

/// The beginning of a message that has an end instead of a length.
const GROUP_START: u8 = 3;

/// The end of such a message.
const GROUP_END: u8 = 4;

/// The encoding of what takes four bytes.
const FOUR_BYTES: u8 = 5;

/// Numbers that enums do not have, that types do not hold, or that decide something.
const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    6,
    7,
    10,
    11,
    13,
    29,
    99,
    127,
    128,
    1 << 31,
    1 << 32,
    (1 << 32) + 1,
    (1 << 32) + 2,
    u32::MAX as u64,
    1 << 63,
    u64::MAX,
    u64::MAX - 6,
];

/// Numbers of fields: of ONNX's, of none, and the last that there can be.
const FIELDS: &[u32] = &[1, 2, 3, 4, 5, 7, 8, 9, 12, 14, 15, 16, 20, 27, 99, 1000, 536_870_911];

/// By the name of a message and the number of a field: the type, and the message inside.
pub struct Schema(HashMap<(String, u32), (String, String)>);

impl Schema {
    /// What Leo says that ONNX has.
    pub fn known() -> Self {
        let mut fields = HashMap::new();
        let mut message = String::new();
        for line in wire::listing().lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["message", name] => message = name.to_owned(),
                [number, _, kind, _, inside, _] => {
                    let number = number.parse().expect("a number comes first");
                    fields.insert((message.clone(), number), (kind.to_owned(), inside.to_owned()));
                }
                _ => panic!("no line of the listing: {line}"),
            }
        }
        Self(fields)
    }

    fn of(&self, message: &str, number: u32) -> Option<&(String, String)> {
        self.0.get(&(message.to_owned(), number))
    }
}

/// One field on the wire, and the ways in which it may be written badly.
#[derive(Clone)]
struct Item {
    number: u32,
    encoding: u8,
    content: Content,
    /// By how many bytes the key and the count are longer than they need be.
    padding: [usize; 2],
}

#[derive(Clone)]
enum Content {
    Raw(Vec<u8>),
    Message(String, Vec<Item>),
}

impl Item {
    fn new(number: u32, encoding: u8, content: Vec<u8>) -> Self {
        Self { number, encoding, content: Content::Raw(content), padding: [0; 2] }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(varint(u64::from(self.number) << 3 | u64::from(self.encoding), self.padding[0]));
        let content = match &self.content {
            Content::Raw(raw) => raw.clone(),
            Content::Message(_, items) => encoded(items),
        };
        if self.encoding == LENGTH_DELIMITED {
            bytes.extend(varint(content.len() as u64, self.padding[1]));
        }
        bytes.extend(content);
        if self.encoding == GROUP_START {
            bytes.extend(varint(u64::from(self.number) << 3 | u64::from(GROUP_END), 0));
        }
    }
}

fn encoded(items: &[Item]) -> Vec<u8> {
    let mut bytes = Vec::new();
    items.iter().for_each(|item| item.write(&mut bytes));
    bytes
}

/// A number on the wire, longer than it needs be by `padding` bytes.
fn varint(mut number: u64, padding: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    padded(bytes, padding)
}

fn padded(mut bytes: Vec<u8>, padding: usize) -> Vec<u8> {
    if padding > 0 {
        bytes.last_mut().into_iter().for_each(|byte| *byte |= 0x80);
        bytes.extend(vec![0x80; padding - 1]);
        bytes.push(0);
    }
    bytes
}

/// Takes a number from the front.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let length = bytes.iter().position(|&byte| byte < 0x80)? + 1;
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    Some(taken.iter().rev().fold(0, |number, &byte| number << 7 | u64::from(byte & 0x7f)))
}

/// The fields of a message that is as it should be.
fn parsed(mut bytes: &[u8], message: &str, schema: &Schema) -> Vec<Item> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes).expect("a key");
        let (number, encoding) = ((key >> 3) as u32, (key & 7) as u8);
        let length = match encoding {
            VARINT => bytes.iter().position(|&byte| byte < 0x80).expect("an end") + 1,
            EIGHT_BYTES => 8,
            FOUR_BYTES => 4,
            _ => take_varint(&mut bytes).expect("a count") as usize,
        };
        let (content, rest) = bytes.split_at(length);
        bytes = rest;
        let mut item = Item::new(number, encoding, content.to_vec());
        if let Some((_, inside)) = schema.of(message, number).filter(|(kind, _)| kind == "message") {
            item.content = Content::Message(inside.clone(), parsed(content, inside, schema));
        }
        items.push(item);
    }
    items
}

/// A file and what is changed in it.
pub struct Mutator<'a> {
    pub schema: &'a Schema,
    pub random: Rng,
}

impl Mutator<'_> {
    /// The file with one to three changes, as different from what writers do as can be.
    pub fn mutant(&mut self, file: &[u8]) -> Vec<u8> {
        let mut items = parsed(file, "ModelProto", self.schema);
        for _ in 0..self.random.choice([1, 1, 2, 3]).unwrap_or(1) {
            let depth = self.random.usize(..6);
            self.change("ModelProto", &mut items, depth);
        }
        let mut bytes = encoded(&items);
        match self.random.u8(..20) {
            0 => bytes.truncate(self.random.usize(..bytes.len().max(1))),
            1 if !bytes.is_empty() => {
                let at = self.random.usize(..bytes.len());
                bytes[at] ^= 1 << self.random.u8(..8);
            }
            _ => {}
        }
        bytes
    }

    /// Goes down by as many messages as there are, at most `depth`, and changes something there.
    fn change(&mut self, message: &str, items: &mut Vec<Item>, depth: usize) {
        if depth > 0 {
            let inner = items.iter_mut().filter_map(|item| match &mut item.content {
                Content::Message(name, items) => Some((name.clone(), items)),
                Content::Raw(_) => None,
            });
            let inner: Vec<_> = inner.collect();
            if let Some((name, items)) = self.random.choice(inner) {
                return self.change(&name, items, depth - 1);
            }
        }
        self.change_here(message, items);
    }

    fn change_here(&mut self, message: &str, items: &mut Vec<Item>) {
        let place = self.random.usize(..=items.len());
        let Some(at) = self.random.choice(0..items.len()) else {
            return items.push(self.unknown());
        };
        match self.random.u8(..17) {
            0 => items.insert(place, items[at].clone()),
            1 | 2 => {
                let mut copy = items[at].clone();
                self.distort(&mut copy);
                items.insert(place, copy);
            }
            3 => {
                let other = self.random.usize(..items.len());
                items.swap(at, other);
            }
            4 => drop(items.remove(at)),
            5 => self.reencode(&mut items[at]),
            6 | 7 => {
                let unknown = self.unknown();
                items.insert(place, unknown);
            }
            8 => self.distort(&mut items[at]),
            9 => items[at].padding[self.random.usize(..2)] = self.random.usize(1..6),
            10 => {
                if let (VARINT, Content::Raw(raw)) = (items[at].encoding, &mut items[at].content) {
                    *raw = padded(raw.clone(), self.random.usize(1..9));
                }
            }
            11 => self.repack(message, items, items[at].number),
            12 => self.split(items, at, place),
            13 => items[at].encoding = GROUP_START,
            14 => items[at].number = self.random.choice(FIELDS).copied().unwrap_or(1),
            15 => {
                let mut other = items[self.random.usize(..items.len())].clone();
                other.number = items[at].number;
                items.insert(place, other);
            }
            _ => {
                // Another member of a choice, or a field that was not there: the next number in the same encoding.
                let mut other = items[at].clone();
                other.number = other.number % 20 + 1;
                items.insert(place, other);
            }
        }
    }

    /// A field that is made up.
    fn unknown(&mut self) -> Item {
        let number = self.random.choice(FIELDS).copied().unwrap_or(1);
        let value = self.random.choice(NUMBERS).copied().unwrap_or(0);
        match self.random.u8(..5) {
            0 => Item::new(number, EIGHT_BYTES, value.to_le_bytes().to_vec()),
            1 => Item::new(number, FOUR_BYTES, (value as u32).to_le_bytes().to_vec()),
            2 => Item::new(number, LENGTH_DELIMITED, vec![b'x'; self.random.usize(..9)]),
            3 => Item::new(number, GROUP_START, vec![]),
            _ => Item::new(number, VARINT, varint(value, 0)),
        }
    }

    /// Another value for a field.
    fn distort(&mut self, item: &mut Item) {
        let value = self.random.choice(NUMBERS).copied().unwrap_or(0);
        match (&mut item.content, item.encoding) {
            (Content::Raw(raw), VARINT) => *raw = varint(value, 0),
            (Content::Raw(raw), _) if !raw.is_empty() => {
                let at = self.random.usize(..raw.len());
                raw[at] ^= 1 << self.random.u8(..8);
            }
            (Content::Raw(_), _) => {}
            (Content::Message(name, items), _) => {
                let name = name.clone();
                self.change_here(&name, items);
            }
        }
    }

    /// The same content in another encoding.
    fn reencode(&mut self, item: &mut Item) {
        let raw = match &item.content {
            Content::Raw(raw) => raw.clone(),
            Content::Message(_, items) => encoded(items),
        };
        let number = raw.iter().rev().fold(0_u64, |number, &byte| number << 7 | u64::from(byte & 0x7f));
        item.encoding = self.random.choice([VARINT, EIGHT_BYTES, LENGTH_DELIMITED, FOUR_BYTES]).unwrap_or(VARINT);
        item.content = Content::Raw(match item.encoding {
            VARINT => varint(number, 0),
            EIGHT_BYTES => number.to_le_bytes().to_vec(),
            FOUR_BYTES => (number as u32).to_le_bytes().to_vec(),
            _ => raw,
        });
    }

    /// Numbers of a repeated field that stand in one piece, each on its own, or the other way round.
    fn repack(&mut self, message: &str, items: &mut Vec<Item>, number: u32) {
        let Some((kind, _)) = self.schema.of(message, number) else { return };
        let encoding = match kind.as_str() {
            "int32" | "int64" | "uint64" => VARINT,
            "float" => FOUR_BYTES,
            "double" => EIGHT_BYTES,
            _ => return,
        };
        let mut numbers: Vec<Vec<u8>> = Vec::new();
        let mut was_packed = false;
        for item in items.iter().filter(|item| item.number == number) {
            let Content::Raw(raw) = &item.content else { return };
            was_packed |= item.encoding == LENGTH_DELIMITED;
            numbers.extend(match encoding {
                VARINT => raw.split_inclusive(|&byte| byte < 0x80).map(<[u8]>::to_vec).collect::<Vec<_>>(),
                FOUR_BYTES => raw.chunks(4).map(<[u8]>::to_vec).collect(),
                _ => raw.chunks(8).map(<[u8]>::to_vec).collect(),
            });
        }
        items.retain(|item| item.number != number);
        let cut = self.random.usize(..=numbers.len());
        let (first, last) = numbers.split_at(if self.random.bool() { numbers.len() } else { cut });
        for (half, numbers) in [first, last].into_iter().enumerate() {
            if (half == 1) != was_packed {
                items.push(Item::new(number, LENGTH_DELIMITED, numbers.concat()));
            } else {
                items.extend(numbers.iter().map(|raw| Item::new(number, encoding, raw.clone())));
            }
        }
    }

    /// A message in two pieces, which decoders put together.
    fn split(&mut self, items: &mut Vec<Item>, at: usize, place: usize) {
        let mut second = items[at].clone();
        if let (Content::Message(_, first), Content::Message(_, last)) = (&mut items[at].content, &mut second.content) {
            let cut = self.random.usize(..=first.len());
            first.truncate(cut);
            last.drain(..cut);
        }
        items.insert(place.max(at + 1), second);
    }
}
