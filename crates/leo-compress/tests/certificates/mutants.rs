//! Certificates and networks with a single change.

use fastrand::Rng;
use leo_formats::onnx::Document;
use prost::Message;
use serde_json::{Number, Value};

/// Changes one thing in a certificate: a number, by as little as it can be or by a lot, a letter, a name, a flag, the
/// order of two things, or whether something is there. Says which.
pub fn mutate(random: &mut Rng, certificate: &mut Value) -> String {
    // Numbers of domains and deltas are few, and matter most.
    let places = ["", "", "", "", "/delta", "/delta_f32", "/domain", "/links/0/layers", "/links/0/roles"];
    let place = places[random.usize(0..places.len())];
    let Some(part) = certificate.pointer_mut(place) else { return "nothing".to_owned() };
    let mut count = 0;
    visit(part, &mut |_| count += 1);
    format!("{place} {}", mutate_one(random, part, count))
}

fn mutate_one(random: &mut Rng, root: &mut Value, count: usize) -> String {
    let chosen = random.usize(0..count);
    let mut index = 0;
    let mut done = String::new();
    visit(root, &mut |value| {
        if index == chosen {
            done = change(random, value);
        }
        index += 1;
    });
    done
}

/// Comes by everything in a value.
fn visit(value: &mut Value, act: &mut impl FnMut(&mut Value)) {
    act(value);
    match value {
        Value::Array(parts) => parts.iter_mut().for_each(|part| visit(part, act)),
        Value::Object(parts) => parts.values_mut().for_each(|part| visit(part, act)),
        _ => {}
    }
}

fn change(random: &mut Rng, value: &mut Value) -> String {
    let before = value.clone();
    match value {
        Value::Null => *value = Value::Bool(true),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) if number.is_u64() => {
            let old = number.as_u64().unwrap_or(0);
            let new = [old + 1, old.saturating_sub(1), 0, random.u64(0..8), u64::MAX];
            *number = new[random.usize(0..new.len())].into();
        }
        Value::Number(number) => {
            let old = number.as_f64().unwrap_or(0.0);
            let new = [
                old.next_up(),
                old.next_down(),
                old * 1.001,
                old * 0.999,
                old * 0.5,
                old * 10.0,
                -old,
                0.0,
                old + 1.0,
                old - 1.0,
                4096.0,
                random.f64(),
            ];
            *number = Number::from_f64(new[random.usize(0..new.len())]).unwrap_or_else(|| 0.into());
        }
        Value::String(text) => {
            let mut letters: Vec<char> = text.chars().collect();
            let place = random.usize(0..letters.len().max(1));
            let other = ['-', '+', '~', '?', '0', '1', '8', 'f', 'x'][random.usize(0..9)];
            match (random.u8(0..4), letters.len()) {
                (_, 0) | (0, _) => letters.insert(place.min(letters.len()), other),
                (1, _) => drop(letters.remove(place)),
                (2, length) => letters.swap(place, random.usize(0..length)),
                _ => letters[place] = other,
            }
            *text = letters.into_iter().collect();
        }
        Value::Array(parts) => {
            let place = random.usize(0..parts.len().max(1));
            match (random.u8(0..3), parts.len()) {
                (_, 0) => parts.push(0.into()),
                (0, _) => drop(parts.remove(place)),
                (1, _) => parts.insert(place, parts[place].clone()),
                (_, length) => parts.swap(place, random.usize(0..length)),
            }
        }
        Value::Object(parts) => {
            let names: Vec<String> = parts.keys().cloned().collect();
            if let Some(name) = names.get(random.usize(0..names.len().max(1))) {
                parts.remove(name);
            }
        }
    }
    let shown = |value: &Value| value.to_string().chars().take(60).collect::<String>();
    format!("{} became {}", shown(&before), shown(value))
}

/// A file with one of its weights changed, by as little as it can be or by a lot; or none, if it has none.
pub fn with_a_changed_weight(random: &mut Rng, document: &Document) -> Option<Vec<u8>> {
    let mut model = document.model().clone();
    let graph = model.graph.as_mut()?;
    let places: Vec<(usize, usize)> = graph
        .initializer
        .iter()
        .enumerate()
        .flat_map(|(tensor, proto)| (0..proto.raw_data().len() / 4).map(move |number| (tensor, number)))
        .collect();
    let &(tensor, number) = places.get(random.usize(0..places.len().max(1)))?;
    let raw = graph.initializer[tensor].raw_data.as_mut()?;
    let mut bytes = raw.to_vec();
    let place = &mut bytes[4 * number..][..4];
    let old = f32::from_le_bytes((&*place).try_into().ok()?);
    let new = [old.next_up(), old.next_down(), old * 1.001, -old, 0.0, old + 0.25, old - 1.0];
    place.copy_from_slice(&new[random.usize(0..new.len())].to_le_bytes());
    *raw = bytes.into();
    Some(model.encode_to_vec())
}
