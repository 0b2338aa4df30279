//! A page of documentation, taken apart: commands with what they are said to print, Python, links and headings.

use std::collections::BTreeMap;

/// Something on a page that can be run.
#[derive(Debug, PartialEq)]
pub enum Piece {
    /// A line for a shell.
    Command {
        /// Where it stands.
        line: usize,
        /// The line, without the prompt.
        text: String,
        /// What it is said to print; `None` where nothing is said.
        shown: Option<String>,
        /// With which exit code, which a comment can say: `# exit code 1`.
        code: i32,
    },
    /// A block of Python.
    Python {
        /// Where it stands.
        line: usize,
        /// All of it.
        code: String,
    },
}

/// A block of code, fenced or indented.
struct Block<'a> {
    line: usize,
    /// `None` if it is indented, or fenced without a word.
    language: Option<&'a str>,
    lines: Vec<&'a str>,
}

/// What a line of commands can begin with. Where no line of a block does, and there is no prompt, it is not about
/// commands.
const PROGRAMS: [&str; 9] = ["leo", "make", "cargo", "pip", "cp", "onnxslim", "python", "python3", ".venv/bin/python"];

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut fenced, mut indented, mut blank) = (false, false, true);
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            fenced = !fenced;
            indented = false;
            if fenced {
                let language = Some(language.trim()).filter(|language| !language.is_empty());
                blocks.push(Block { line: index + 2, language, lines: Vec::new() });
            }
        } else if fenced {
            blocks.last_mut().expect("a fence opened it").lines.push(line);
        } else if let Some(code) = line.strip_prefix("    ").filter(|_| indented || blank) {
            if !indented {
                blocks.push(Block { line: index + 1, language: None, lines: Vec::new() });
            }
            indented = true;
            blocks.last_mut().expect("it was just opened").lines.push(code);
        } else if line.trim().is_empty() && indented {
            // It may go on after a blank line.
            blocks.last_mut().expect("one is open").lines.push("");
        } else {
            indented = false;
        }
        blank = line.trim().is_empty();
    }
    blocks
}

/// Everything that can be run, in order.
pub fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    for block in blocks(text) {
        match block.language {
            Some("python") => pieces.push(Piece::Python { line: block.line, code: block.lines.join("\n") + "\n" }),
            Some("sh" | "console") => pieces.extend(commands(&block)?),
            None => {
                let program = |line: &&str| PROGRAMS.contains(&line.split(' ').next().unwrap_or_default());
                if block.lines.iter().any(|line| line.starts_with("$ ") || program(line)) {
                    pieces.extend(commands(&block)?);
                }
            }
            Some("json" | "text") => {}
            Some(other) => return Err(format!("line {}: a block of {other}, which no test looks at", block.line)),
        }
    }
    Ok(pieces)
}

fn commands(block: &Block<'_>) -> Result<Vec<Piece>, String> {
    let prompted = block.lines.iter().any(|line| line.starts_with("$ "));
    let mut pieces: Vec<Piece> = Vec::new();
    let mut goes_on = false;
    for (index, line) in block.lines.iter().enumerate() {
        let start = if prompted { line.strip_prefix("$ ") } else { Some(*line).filter(|line| !line.trim().is_empty()) };
        match (start, pieces.last_mut()) {
            (_, Some(Piece::Command { text, .. })) if goes_on => *text = format!("{text}\n{line}"),
            (Some(text), _) => {
                let shown = prompted.then(String::new);
                pieces.push(Piece::Command { line: block.line + index, text: text.to_owned(), shown, code: 0 });
            }
            (None, Some(Piece::Command { shown: Some(shown), .. })) => *shown = format!("{shown}{line}\n"),
            (None, _) if line.trim().is_empty() => {}
            (None, _) => return Err(format!("line {}: output without a command", block.line + index)),
        }
        goes_on = line.ends_with('\\');
    }
    for piece in &mut pieces {
        if let Piece::Command { text, shown, code, .. } = piece {
            if let Some((_, said)) = text.split_once("# exit code ") {
                *code = said.trim().parse().map_err(|_| format!("no exit code: {text}"))?;
            }
            *shown = shown.take().filter(|shown| !shown.trim().is_empty());
        }
    }
    Ok(pieces)
}

/// The text without blocks of code.
fn prose(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for block in blocks(text) {
        for line in lines.iter_mut().skip(block.line - 1).take(block.lines.len()) {
            *line = "";
        }
    }
    lines.join("\n")
}

/// What stands between backquotes in the text.
pub fn inline_code(text: &str) -> Vec<String> {
    let prose = prose(text).replace("```", "");
    prose.split('`').skip(1).step_by(2).map(|code| code.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Where links lead, pictures included.
pub fn links(text: &str) -> Vec<String> {
    let prose = prose(text).replace("```", "");
    let outside: String = prose.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let ends = outside.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(target, _)| target.to_owned()).collect()
}

/// What headings can be linked to by, as GitHub makes it.
pub fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let prose = prose(text);
    let headings = prose
        .lines()
        .filter_map(|line| line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#')));
    headings
        .map(|heading| {
            let kept = heading
                .to_lowercase()
                .chars()
                .filter(|&c| c.is_alphanumeric() || " -_".contains(c))
                .collect::<String>();
            let anchor = kept.trim().replace(' ', "-");
            let count = seen.entry(anchor.clone()).and_modify(|count| *count += 1).or_insert(0);
            if *count == 0 { anchor } else { format!("{anchor}-{count}") }
        })
        .collect()
}

#[test]
fn pages_are_taken_apart() -> Result<(), String> {
    let text = "Text.\n\n    $ leo a \\\n      b     # exit code 1\n    out\n\n    more\n    $ leo c\n\n    y = 2x\n\n\
                ```sh\nleo d > e  # why\n```\n\n```python\nimport f\n```\n";
    let command = |line, text: &str, shown: Option<&str>, code| Piece::Command {
        line,
        text: text.to_owned(),
        shown: shown.map(str::to_owned),
        code,
    };
    let expected = [
        command(3, "leo a \\\n  b     # exit code 1", Some("out\n\nmore\n"), 1),
        command(8, "leo c", Some("\ny = 2x\n\n"), 0),
        command(13, "leo d > e  # why", None, 0),
        Piece::Python { line: 17, code: "import f\n".to_owned() },
    ];
    assert_eq!(pieces(text)?, expected);
    assert!(pieces("```ruby\n```\n").is_err());
    assert_eq!(pieces("Formulas:\n\n    y = 2x\n")?, []);
    assert_eq!(anchors("# A, b?\n## A b\n### `c_d` e-f\n"), ["a-b", "a-b-1", "c_d-e-f"]);
    assert_eq!(links("[a](b.md#c) `[no](link)` ![d](e.svg)\n\n    [no](f)\n"), ["b.md#c", "e.svg"]);
    assert_eq!(inline_code("a `leo b\n--c` d\n\n```sh\n`no`\n```\n"), ["leo b --c"]);
    Ok(())
}
