//! The syntax of VNN-LIB: parentheses, words, and version 2's indices in brackets.

use super::VnnlibError;

/// How deep expressions may be nested. Real files stay below ten; the limit keeps the recursion over them safe.
const MAX_DEPTH: usize = 200;

/// A piece of a VNN-LIB file.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SExpression<'a> {
    /// A name, a number or an operator.
    Word(&'a str),
    /// What stands between brackets: a shape, or an index into the word before.
    Index(Vec<usize>),
    /// What stands between parentheses.
    List(Vec<Self>),
}

/// The expressions of a file, each with the line that it begins on.
pub(super) fn parse(text: &str) -> Result<Vec<(usize, SExpression<'_>)>, VnnlibError> {
    let mut finished = Vec::new();
    // The lists that are still open, each with the line of its parenthesis.
    let mut open: Vec<(usize, Vec<SExpression<'_>>)> = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let begin = line;
        let at = |reason: &str| VnnlibError::Line { line: begin, reason: reason.to_owned() };
        let (token, after) = rest.split_at(token_length(rest));
        rest = after;
        line += token.matches('\n').count();
        let expression = match first {
            ';' => continue,
            _ if first.is_whitespace() => continue,
            '(' if open.len() == MAX_DEPTH => return Err(at("expressions nested more than 200 deep")),
            '(' => {
                open.push((begin, Vec::new()));
                continue;
            }
            ')' => open.pop().map(|(_, list)| SExpression::List(list)).ok_or_else(|| at("a parenthesis too many"))?,
            '[' => index(token).map(SExpression::Index).ok_or_else(|| at("brackets without whole numbers in them"))?,
            ']' => return Err(at("a bracket too many")),
            '"' | '|' if token.len() < 2 || !token.ends_with(first) => return Err(at("a quotation that does not end")),
            '|' => SExpression::Word(&token[1..token.len() - 1]),
            _ => SExpression::Word(token),
        };
        match open.last_mut() {
            Some((_, list)) => list.push(expression),
            None => finished.push((begin, expression)),
        }
    }
    match open.first() {
        Some(&(line, _)) => Err(VnnlibError::Line { line, reason: "a parenthesis that is not closed".to_owned() }),
        None => Ok(finished),
    }
}

/// How many bytes the token at the start of `text` takes. `text` is not empty.
fn token_length(text: &str) -> usize {
    let until = |end: fn(char) -> bool| text.find(end).unwrap_or(text.len());
    let closing = |quote: char| text[1..].find(quote).map_or(text.len(), |position| position + 2);
    match text.as_bytes()[0] {
        b'(' | b')' | b']' => 1,
        b';' => until(|c| c == '\n'),
        b'"' => closing('"'),
        b'|' => closing('|'),
        b'[' => closing(']'),
        _ if text.starts_with(char::is_whitespace) => until(|c| !c.is_whitespace()),
        _ => until(|c| c.is_whitespace() || matches!(c, '(' | ')' | '[' | ']' | ';' | '"')),
    }
}

/// The numbers in `[1, 2, 3]`.
fn index(token: &str) -> Option<Vec<usize>> {
    let inside = token.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(|number| number.trim().parse().ok()).collect()
}
