//! Whether a program printed what a page says it prints.
//!
//! Only words count, not how they are spaced, so pages may break long lines. `...` stands for any number of words, and
//! at the end of a word for the rest of it. Numbers with a fraction may differ by two parts in a hundred, because
//! another processor adds up in another order.

/// Why not, if not.
pub fn compare(shown: &str, printed: &str) -> Result<(), String> {
    let shown: Vec<&str> = shown.split_whitespace().collect();
    let mut rest: &[&str] = &printed.split_whitespace().collect::<Vec<_>>();
    let parts: Vec<&[&str]> = shown.split(|word| *word == "...").collect();
    let fits = |part: &[&str], words: &[&str]| part.iter().zip(words).all(|(said, word)| alike(said, word));
    let missing = |part: &[&str]| format!("it does not print: {}", part.join(" "));
    for (index, part) in parts.iter().enumerate() {
        let (first, last) = (index == 0, index + 1 == parts.len());
        let room = rest.len().checked_sub(part.len()).ok_or_else(|| missing(part))?;
        let place = match (first, last) {
            (true, true) if room > 0 => return Err(format!("it prints more: {}", rest[part.len()..].join(" "))),
            (true, _) => Some(0).filter(|_| fits(part, rest)),
            (false, true) => Some(room).filter(|&room| fits(part, &rest[room..])),
            (false, false) => (0..=room).find(|&place| fits(part, &rest[place..])),
        };
        rest = &rest[place.ok_or_else(|| missing(part))? + part.len()..];
    }
    Ok(())
}

fn alike(said: &str, word: &str) -> bool {
    if said == word || said.strip_suffix("...").is_some_and(|start| word.starts_with(start)) {
        return true;
    }
    // Rules of tables are as long as columns are wide.
    let rule = |word: &str| word.contains('-') && word.chars().all(|c| "|-".contains(c));
    if rule(said) && rule(word) {
        return true;
    }
    let number = |word: &str| word.trim_matches(|c: char| "()[],;:%".contains(c)).replace(',', "").parse::<f64>().ok();
    match (number(said), number(word)) {
        (Some(a), Some(b)) => said.contains(['.', 'e']) && (a - b).abs() <= 0.02 * a.abs(),
        _ => false,
    }
}

#[test]
fn shown_output_is_compared_word_by_word() {
    let printed = "net: 10 units\n| a |  b |\n|---|----|\n| 1 | 2.5 |\nproved: 2.89e-7 at most\n1.2 ms";
    let fits = |shown: &str| compare(shown, printed).is_ok();
    assert!(fits(printed) && fits("...") && fits("net: 10\nunits ...") && fits("...\nproved: 2.88e-7 at\nmost\n..."));
    assert!(fits("... |-|-| | 1 | 2.5 | ... ms") && fits("... prov... ... 1.2... ms"));
    assert!(
        !fits("net: 10 units") && !fits("... 2.88e-7") && !fits("net: 11 units ...") && !fits("... proved: 2.5e-7 ...")
    );
    assert!(!fits("... proved: ... net: ..."), "in order");
}
