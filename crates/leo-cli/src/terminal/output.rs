//! What every command needs to speak to people: numbers, names, and one-line errors.

use std::fmt::{self, Display};

/// The longest error that is printed whole. Names in hostile files can be megabytes long.
const LONGEST_ERROR: usize = 1000;

/// A whole number with its digits in groups of three.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// `1 unit`, `2 units`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Several things with commas between them.
pub fn listed<T: Display>(things: impl IntoIterator<Item = T>) -> String {
    things.into_iter().map(|thing| thing.to_string()).collect::<Vec<_>>().join(", ")
}

/// The error of a command whose answer is negative.
#[derive(Debug)]
pub struct Negative(pub String);

impl Display for Negative {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Negative {}

/// Letters that are not seen and change how others are.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text without line breaks or other control characters, and not too long.
pub fn one_line(text: &str) -> String {
    let mut line: String = text
        .chars()
        .take(LONGEST_ERROR)
        .flat_map(|c| if c.is_control() || is_invisible(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect();
    if text.chars().nth(LONGEST_ERROR).is_some() {
        line.push_str(" ...");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "unit"), counted(2, "unit")], ["1 unit", "2 units"]);
    }

    #[test]
    fn errors_stay_on_one_line() {
        assert_eq!(one_line("a\nb\u{1b}[31m\u{202e}é"), "a\\nb\\u{1b}[31m\\u{202e}é");
        assert_eq!(one_line(&"x".repeat(2000)).len(), LONGEST_ERROR + 4);
    }
}
