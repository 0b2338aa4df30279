//! Bounds as comma-separated values (RFC 4180): a row for each number that is bounded.

use std::borrow::Cow;

use crate::StabilityReport;

/// The names of the columns.
const HEADER: &str = "kind,index,name,value,element,lower,upper,status\n";

/// A row for each input, unit and element of an output.
pub(super) fn encode(bounds: &StabilityReport) -> Vec<u8> {
    let mut text = HEADER.to_owned();
    let input = Some(bounds.input.as_str());
    let domain = (&bounds.domain.lower[..], &bounds.domain.upper[..]);
    add(&mut text, &["input", "0", &quoted(input), &quoted(input)], domain, |_| "");
    for layer in &bounds.layers {
        let (index, of) = (layer.index.to_string(), quoted(layer.pre_activation.as_deref()));
        let head = ["unit", &index, &quoted(Some(&layer.name)), &of];
        add(&mut text, &head, (&layer.lower, &layer.upper), |unit| layer.units[unit].status);
    }
    for output in &bounds.outputs {
        let (index, of) = (output.index.to_string(), quoted(output.value.as_deref()));
        let head = ["output", &index, &quoted(output.name.as_deref()), &of];
        add(&mut text, &head, (&output.lower, &output.upper), |_| "");
    }
    text.into_bytes()
}

fn add<'a>(text: &mut String, head: &[&str], bounds: (&[f64], &[f64]), status: impl Fn(usize) -> &'a str) {
    for (element, (lower, upper)) in bounds.0.iter().zip(bounds.1).enumerate() {
        // As few digits as name the number.
        let row = format!("{},{element},{lower:?},{upper:?},{}\n", head.join(","), status(element));
        text.push_str(&row);
    }
}

/// A name as a field. Files may call things whatever they like.
fn quoted(name: Option<&str>) -> Cow<'_, str> {
    let name = name.unwrap_or_default();
    match name.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))),
        false => Cow::Borrowed(name),
    }
}

#[test]
fn names_stay_in_their_fields() {
    let names = [None, Some("fc1"), Some("a,b"), Some("say \"x\"\n")];
    assert_eq!(names.map(quoted), ["", "fc1", "\"a,b\"", "\"say \"\"x\"\"\n\""]);
}
