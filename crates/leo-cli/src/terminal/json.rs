//! JSON that people can look into and programs can read line by line: two levels are indented, and what is deeper
//! stands on one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// How many levels are indented.
const INDENTED_LEVELS: usize = 2;

/// A report, with a line for each entry of its lists.
///
/// # Errors
/// If it has no form in JSON.
pub fn by_line(report: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::new();
    report.serialize(&mut Serializer::with_formatter(&mut text, Lines::default()))?;
    Ok(text)
}

/// Where a line is broken.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// For each level that was begun, whether there is nothing in it yet.
    empty: Vec<bool>,
}

impl Lines {
    fn begin(&mut self) {
        self.depth += 1;
        self.empty.push(true);
    }

    /// Before an entry: the comma after the one before, and the line.
    fn entry<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let is_first = self.empty.last_mut().is_none_or(|empty| std::mem::replace(empty, false));
        if !is_first {
            writer.write_all(b",")?;
        }
        match self.depth <= INDENTED_LEVELS {
            true => self.line(writer),
            false if is_first => Ok(()),
            false => writer.write_all(b" "),
        }
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let was_empty = self.empty.pop().unwrap_or(true);
        self.depth -= 1;
        if was_empty || self.depth >= INDENTED_LEVELS { Ok(()) } else { self.line(writer) }
    }

    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin();
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer)?;
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        self.entry(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin();
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer)?;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, _: bool) -> io::Result<()> {
        self.entry(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_lists_are_lines() -> Result<(), Box<dyn std::error::Error>> {
        let report = serde_json::json!({"a": [{"b": [1, 2.5], "c": {}}, []], "d": {"e": null}, "f": []});
        let text = String::from_utf8(by_line(&report)?)?;
        let lines = [
            "{",
            r#"  "a": ["#,
            r#"    {"b": [1, 2.5], "c": {}},"#,
            "    []",
            "  ],",
            r#"  "d": {"#,
            r#"    "e": null"#,
            "  },",
            r#"  "f": []"#,
            "}",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text)?, report);
        Ok(())
    }
}
