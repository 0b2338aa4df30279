//! Whether JSON is as other programs read it, too.
//!
//! Serde takes a list of all fields for an object, and `null` for what is missing. All objects of a certificate are of
//! known kinds, without fields that are unknown or there twice, so what was read has objects wherever what it means has
//! them exactly if it has as many. To see that, two passes over the bytes will do: of a small file with millions of
//! values, no second copy is made to compare with.

use std::io::{self, Write};

use serde::Serialize;

/// What a pass over JSON finds outside of strings. Bytes are written to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct JsonOutline {
    /// How many objects there are.
    objects: usize,
    /// Whether there is a `null`: nothing else has an n.
    has_null: bool,
    is_in_string: bool,
    is_escaped: bool,
}

impl JsonOutline {
    fn pass(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_in_string => self.is_escaped = true,
            b'"' => self.is_in_string = !self.is_in_string,
            _ if self.is_in_string => {}
            b'{' => self.objects += 1,
            b'n' => self.has_null = true,
            _ => {}
        }
    }
}

impl Write for JsonOutline {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.iter().for_each(|&byte| self.pass(byte));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether JSON has objects wherever what was read from it has them, and `null` nowhere.
///
/// # Errors
/// If what was read cannot be written.
pub(crate) fn is_plain(json: &[u8], meant: &impl Serialize) -> serde_json::Result<bool> {
    let [mut read, mut written] = [JsonOutline::default(), JsonOutline::default()];
    json.iter().for_each(|&byte| read.pass(byte));
    serde_json::to_writer(&mut written, meant)?;
    Ok(!read.has_null && read.objects == written.objects)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Box<Self>>,
    }

    #[test]
    fn lists_for_objects_and_nulls_are_seen_and_strings_are_not() -> serde_json::Result<()> {
        for (json, wanted) in [
            (r#"{"name": "n"}"#, true),
            (r#" { "next" : {"name": "{ null \\" }, "name":"\"{n" }"#, true),
            (r#"{"name": "n", "next": null}"#, false),
            (r#"["n", {"name": ""}]"#, false),
            (r#"{"name": "", "next": ["n", ["", null]]}"#, false),
            (r#"["{", {"name": "{"}]"#, false),
        ] {
            let meant: Pair = serde_json::from_str(json)?;
            assert_eq!(is_plain(json.as_bytes(), &meant)?, wanted, "{json}");
        }
        Ok(())
    }
}
