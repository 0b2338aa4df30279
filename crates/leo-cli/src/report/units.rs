//! Units as the page shows them: each a mark, or several of a kind a mark where a layer is very wide.

use std::collections::BTreeSet;

use leo_compress::{Rule, Why};
use leo_network::UnitId;
use leo_stability::{Layer, Status, Unit};

use super::{Page, ReportedChange};
use crate::terminal::number::{lower, upper};
use crate::terminal::output::{counted, listed, one_line};

/// How many marks a layer may have.
pub const MOST_MARKS: usize = 400;

/// How many units of a mark are named.
const MOST_NAMED: usize = 8;

/// What became of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnitFate {
    /// Nothing was to be done.
    Untouched,
    Kept,
    /// It could go, and is there for the number of channels that it makes.
    Aligned,
    /// It could go, but for others that would have to go with it.
    Tied,
    /// It is gone, and nothing stands for it.
    Removed,
    /// It is gone, and others do its work.
    Merged,
}

/// Units that are shown as one.
#[derive(Clone, Debug)]
pub struct Mark {
    /// What the page calls it.
    pub id: String,
    /// Their numbers, from 0.
    pub units: Vec<usize>,
    pub status: Status,
    pub fate: UnitFate,
    /// The smallest range that holds theirs.
    pub lower: f64,
    pub upper: f64,
    /// What decided them.
    pub by: String,
    /// What became of them.
    pub became: String,
}

/// All marks.
pub struct Marks {
    /// For each layer.
    pub layers: Vec<Vec<Mark>>,
    /// For each unit of each layer, its mark.
    mark_of: Vec<Vec<usize>>,
}

impl Marks {
    pub fn new(page: &Page<'_>) -> Self {
        let marks = |(index, layer): (usize, &Layer)| {
            marks(index, &layer.units, &|unit| match &page.outcome {
                None => (UnitFate::Untouched, String::new()),
                Some(outcome) => outcome.fate(UnitId { layer: layer.id, unit }),
            })
        };
        let layers: Vec<Vec<Mark>> = page.layers.iter().enumerate().map(marks).collect();
        let mark_of = |marks: &Vec<Mark>| {
            let mut mark_of = vec![0; marks.iter().map(|mark| mark.units.len()).sum()];
            for (index, mark) in marks.iter().enumerate() {
                mark.units.iter().for_each(|&unit| mark_of[unit] = index);
            }
            mark_of
        };
        Self { mark_of: layers.iter().map(mark_of).collect(), layers }
    }

    /// The mark of a unit.
    pub fn mark(&self, UnitId { layer, unit }: UnitId) -> &Mark {
        &self.layers[layer.index()][self.mark_of[layer.index()][unit]]
    }

    pub fn count(&self) -> Counts {
        Counts::of(self.layers.iter().flatten())
    }
}

/// How many units there are of each kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    by_status: [usize; 4],
    by_fate: [usize; 6],
}

impl Counts {
    pub fn of<'m>(marks: impl IntoIterator<Item = &'m Mark>) -> Self {
        let mut counts = Self::default();
        for mark in marks {
            counts.by_status[rank(mark.status)] += mark.units.len();
            counts.by_fate[mark.fate as usize] += mark.units.len();
        }
        counts
    }

    pub fn with(self, status: Status) -> usize {
        self.by_status[rank(status)]
    }

    pub fn with_fate(self, fate: UnitFate) -> usize {
        self.by_fate[fate as usize]
    }

    pub fn stable(self) -> usize {
        self.by_status[0] + self.by_status[1]
    }

    /// Each kind that there is, and how many there are of it.
    pub fn named(self) -> impl Iterator<Item = (&'static str, usize)> {
        STATUSES.into_iter().map(in_words).zip(self.by_status).filter(|(_, count)| *count > 0)
    }

    /// The same without words.
    pub fn styled(self) -> impl Iterator<Item = (Status, usize)> {
        STATUSES.into_iter().zip(self.by_status).filter(|(_, count)| *count > 0)
    }
}

/// All there are, in the order of the page.
const STATUSES: [Status; 4] = [Status::OFF, Status::ON, Status::Unstable, Status::Undecided];

fn rank(status: Status) -> usize {
    STATUSES.iter().position(|other| *other == status).unwrap_or(1)
}

/// What people call it.
pub fn in_words(status: Status) -> &'static str {
    match status {
        Status::OFF => "always off",
        Status::Stable(_) => "always on",
        Status::Unstable => "on or off",
        Status::Undecided => "undecided",
    }
}

/// What the style calls it.
pub fn class(status: Status) -> &'static str {
    match status {
        Status::OFF => "off",
        Status::Stable(_) => "on",
        Status::Unstable => "both",
        Status::Undecided => "open",
    }
}

impl Mark {
    /// What the style calls it.
    pub fn class(&self) -> String {
        let gone = match self.fate {
            UnitFate::Untouched | UnitFate::Kept => "",
            UnitFate::Aligned => " aligned",
            UnitFate::Tied => " tied",
            UnitFate::Removed => " gone removed",
            UnitFate::Merged => " gone merged",
        };
        format!("u {}{gone}", class(self.status))
    }

    /// Which units it stands for, counted from 0.
    pub fn numbers(&self, noun: &str) -> String {
        let numbers = listed(self.units.iter().take(MOST_NAMED));
        match self.units.len() {
            ..=MOST_NAMED => numbers,
            more => format!("{numbers}, ... ({} in all)", counted(more, noun)),
        }
    }

    /// Its range, rounded outward.
    pub fn range(&self) -> String {
        format!("[{}, {}]", lower(self.lower), upper(self.upper))
    }
}

/// The marks of a layer: those of a kind side by side, from small to large.
fn marks(layer: usize, units: &[Unit], fate: &dyn Fn(usize) -> (UnitFate, String)) -> Vec<Mark> {
    let fates: Vec<(UnitFate, String)> = (0..units.len()).map(fate).collect();
    let kind = |unit: usize| (rank(units[unit].status), fates[unit].0);
    let mut order: Vec<usize> = (0..units.len()).collect();
    let middle = |unit: usize| units[unit].lower + units[unit].upper;
    order.sort_by(|&a, &b| kind(a).cmp(&kind(b)).then(middle(a).total_cmp(&middle(b))));
    let size = units.len().div_ceil(MOST_MARKS).max(1);
    let groups = order.chunk_by(|&a, &b| kind(a) == kind(b)).flat_map(|kind| kind.chunks(size));
    let mark = |(index, group): (usize, &[usize])| {
        let first = &units[group[0]];
        let by: BTreeSet<String> = group.iter().map(|&unit| decided_by(&units[unit])).collect();
        let became: BTreeSet<&str> = group.iter().map(|&unit| fates[unit].1.as_str()).collect();
        Mark {
            id: format!("u{layer}-{}", if size == 1 { group[0] } else { index }),
            units: group.to_vec(),
            status: first.status,
            fate: fates[group[0]].0,
            lower: group.iter().map(|&unit| units[unit].lower).fold(f64::INFINITY, f64::min),
            upper: group.iter().map(|&unit| units[unit].upper).fold(f64::NEG_INFINITY, f64::max),
            by: by.into_iter().collect::<Vec<_>>().join("; "),
            became: became.into_iter().collect::<Vec<_>>().join("; "),
        }
    };
    groups.enumerate().map(mark).collect()
}

impl ReportedChange<'_> {
    /// What became of a unit, also in words.
    fn fate(&self, UnitId { layer, unit }: UnitId) -> (UnitFate, String) {
        let removed = self.history.removed.get(layer.index()).and_then(|rules| rules[unit]);
        if let Some((fate, words)) = removed.map(what_became) {
            return (fate, words.to_owned());
        }
        let stays = self.staying.iter().find(|stays| stays.layer == layer && stays.units.contains(&unit));
        match stays.map(|stays| &stays.why) {
            None => (UnitFate::Kept, "kept".to_owned()),
            Some(why) => {
                let fate = match why {
                    Why::Aligned(_) => UnitFate::Aligned,
                    Why::Coupled(_) | Why::Pinned(_) => UnitFate::Tied,
                    _ => UnitFate::Kept,
                };
                (fate, format!("kept: {}", one_line(&why.to_string())))
            }
        }
    }
}

fn decided_by(unit: &Unit) -> String {
    let by = unit.by.map_or("nothing", |by| by.in_words);
    if unit.trusted { format!("{by}: the solver says so, no proof confirms it") } else { by.to_owned() }
}

/// What becomes of the units that a rule removes.
pub fn what_became(rule: Rule) -> (UnitFate, &'static str) {
    match rule {
        Rule::Inactive => (UnitFate::Removed, "removed: always 0"),
        Rule::Constant => (UnitFate::Removed, "removed: always the same, a bias stands for it"),
        Rule::Collapsed => (UnitFate::Removed, "removed: the network is constant"),
        Rule::Dead => (UnitFate::Removed, "removed: nothing reads it"),
        Rule::Negligible => (UnitFate::Removed, "removed: too small to matter, within the tolerance"),
        Rule::Merged => (UnitFate::Merged, "merged: a combination of other units that are always on"),
        Rule::Folded => (UnitFate::Merged, "folded: its whole layer is linear, and part of the next"),
        Rule::Linear => (UnitFate::Merged, "merged: linear, and what it passes on takes another way"),
        Rule::Multiple => (UnitFate::Merged, "merged: a multiple of another unit"),
        Rule::Opposite => (UnitFate::Merged, "merged: another unit, turned round, and a linear function"),
    }
}
