//! The extents of an input's axes, where a file leaves some open and somebody says them.
//!
//! The file is read as if it declared these extents, and stays as it is. Only a first axis that is open is special: it
//! is the batch, which may be of any size, and 1 leaves it so.

use std::collections::HashSet;
use std::str::FromStr;

use super::DeclaredAxis;
use super::dims::Axis;
use leo_network::MAX_ELEMENTS;

/// How long the axes of an input are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenShape {
    /// Each axis, the batch included.
    Extents(Vec<usize>),
    /// Those axes that have a name in the file.
    Named(Vec<(String, usize)>),
}

impl FromStr for GivenShape {
    type Err = String;

    /// Reads `1,3,240,320`, or `H=240,W=320`.
    fn from_str(text: &str) -> Result<Self, String> {
        let extent = |text: &str| match text.trim().parse::<usize>() {
            Ok(extent) if (1..=MAX_ELEMENTS).contains(&extent) => Ok(extent),
            Ok(0) => Err("no axis has the size 0".to_owned()),
            _ => Err(format!("{text:?} is no size: sizes are whole numbers from 1 to {MAX_ELEMENTS}")),
        };
        let named = |entry: &str| {
            // Names of axes may be sums and quotients, such as `height/2`; what comes last is the number.
            let (name, number) = entry.rsplit_once('=').ok_or("either all sizes have a name, or none has")?;
            Ok((name.trim().to_owned(), extent(number)?))
        };
        match text.contains('=') {
            true => text.split(',').map(named).collect::<Result<_, String>>().map(Self::Named),
            false => text.split(',').map(extent).collect::<Result<_, String>>().map(Self::Extents),
        }
    }
}

impl GivenShape {
    /// How long each axis is that a file declares so, if that is a shape for it; or why not.
    fn extents(&self, declared: &[DeclaredAxis]) -> Result<Vec<usize>, String> {
        let named = match self {
            Self::Extents(extents) => {
                let (given, rank) = (extents.len(), declared.len());
                return match given == rank {
                    true => Ok(extents.clone()),
                    false => Err(format!("it has {rank} axes, and the shape that is given {given}")),
                };
            }
            Self::Named(named) => named,
        };
        let has = |name: &str| declared.iter().any(|axis| matches!(axis, DeclaredAxis::Named(own) if own == name));
        if let Some((name, _)) = named.iter().find(|(name, _)| !has(name)) {
            return Err(format!("it has no axis that is called {name:?}"));
        }
        let mut names = HashSet::new();
        if let Some((name, _)) = named.iter().find(|(name, _)| !names.insert(name)) {
            return Err(format!("its axis {name:?} is given twice"));
        }
        let of = |axis: &DeclaredAxis| match axis {
            DeclaredAxis::Fixed(extent) => Some(*extent),
            DeclaredAxis::Named(name) => named.iter().find(|(own, _)| own == name).map(|(_, extent)| *extent),
            DeclaredAxis::Any => None,
        };
        let axis = |(position, axis): (usize, &DeclaredAxis)| match of(axis) {
            Some(extent) => Ok(extent),
            None if position == 0 && declared.len() > 1 => Ok(1),
            None => Err(missing(position, axis, declared)),
        };
        declared.iter().enumerate().map(axis).collect()
    }
}

/// That an axis has no size, and how one would be given.
fn missing(position: usize, axis: &DeclaredAxis, declared: &[DeclaredAxis]) -> String {
    /// What is as good as any other size.
    const ANY: usize = 224;
    let called = match axis {
        DeclaredAxis::Named(name) => format!(" ({name:?})"),
        _ => String::new(),
    };
    let open = declared.iter().enumerate().filter(|(position, axis)| match axis {
        DeclaredAxis::Fixed(_) => false,
        _ => *position > 0 || declared.len() == 1,
    });
    let named = open.map(|(_, axis)| match axis {
        DeclaredAxis::Named(name) if !name.contains([',', '=']) => Some(format!("{name}={ANY}")),
        _ => None,
    });
    // Axes that have one name have one size, which is given once.
    let mut met = HashSet::new();
    let named = named.collect::<Option<Vec<_>>>();
    let named = named.map(|all| all.into_iter().filter(|name| met.insert(name.clone())).collect::<Vec<_>>());
    let example = named.unwrap_or_else(|| {
        let extent = |(position, axis): (usize, &DeclaredAxis)| match axis {
            DeclaredAxis::Fixed(extent) => extent.to_string(),
            _ => (if position == 0 { 1 } else { ANY }).to_string(),
        };
        declared.iter().enumerate().map(extent).collect()
    });
    let example = example.join(",");
    format!(
        "it has no fixed size along axis {position}{called}; give the shape with --shape, such as --shape {example}"
    )
}

/// The axes of an input that a file declares so, with what is given; how long each is, where one is not open as a batch
/// is; and whether that took what is given.
pub(super) fn axes_of(
    declared: &[DeclaredAxis],
    given: Option<&GivenShape>,
) -> Result<(Vec<Axis>, Vec<usize>, bool), String> {
    let given = given.map(|given| given.extents(declared)).transpose()?;
    let (rank, mut axes, mut extents, mut was_needed) = (declared.len(), Vec::new(), Vec::new(), false);
    for (position, axis) in declared.iter().enumerate() {
        let said = given.as_ref().map(|given| given[position]);
        let extent = match (axis, said) {
            (DeclaredAxis::Fixed(extent), Some(said)) if *extent != said => {
                return Err(format!("it has the size {extent} along axis {position}, and not {said}"));
            }
            (DeclaredAxis::Fixed(extent), _) => Some(*extent),
            // Some exporters write 0 or -1 for a batch of any size.
            (_, None | Some(1)) if position == 0 && (rank > 1 || said.is_none()) => None,
            (_, Some(said)) => {
                was_needed = true;
                Some(said)
            }
            (axis, None) => return Err(missing(position, axis, declared)),
        };
        axes.push(match (position, extent) {
            (_, None) => Axis::Batch(None),
            (0, Some(samples)) if samples > 1 && rank > 1 => Axis::Batch(Some(samples)),
            (_, Some(extent)) => Axis::Fixed(extent),
        });
        extents.push(extent.unwrap_or(1));
    }
    Ok((axes, extents, was_needed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(declared: &[DeclaredAxis], given: &str) -> Result<(Vec<Axis>, Vec<usize>, bool), String> {
        axes_of(declared, Some(&given.parse()?))
    }

    #[test]
    fn an_open_first_axis_stays_open() {
        use Axis::{Batch, Fixed};
        let open = [DeclaredAxis::Any, DeclaredAxis::Fixed(3), DeclaredAxis::Named("W".into())];
        assert_eq!(read(&open, "1,3,7"), Ok((vec![Batch(None), Fixed(3), Fixed(7)], vec![1, 3, 7], true)));
        assert_eq!(read(&open, "W=7"), read(&open, "1, 3, 7"));
        assert_eq!(read(&open, "4,3,7"), Ok((vec![Batch(Some(4)), Fixed(3), Fixed(7)], vec![4, 3, 7], true)));
        assert_eq!(read(&[DeclaredAxis::Any], "7"), Ok((vec![Fixed(7)], vec![7], true)));
        assert_eq!(read(&[DeclaredAxis::Any], "1"), Ok((vec![Fixed(1)], vec![1], true)));
        // What the file says anyway is no news.
        let known = [DeclaredAxis::Any, DeclaredAxis::Fixed(3)];
        assert_eq!(read(&known, "1,3"), Ok((vec![Batch(None), Fixed(3)], vec![1, 3], false)));
        assert_eq!(axes_of(&known, None), read(&known, "1,3"));
    }

    #[test]
    fn shapes_that_are_none_are_refused() {
        let open = [DeclaredAxis::Any, DeclaredAxis::Fixed(3), DeclaredAxis::Named("W".into())];
        for (given, why) in [
            ("", "\"\" is no size: sizes are whole numbers from 1 to 16777216"),
            ("1,3,0", "no axis has the size 0"),
            ("1,3,-7", "\"-7\" is no size: sizes are whole numbers from 1 to 16777216"),
            ("W=1e3", "\"1e3\" is no size: sizes are whole numbers from 1 to 16777216"),
            (
                "1,3,18446744073709551617",
                "\"18446744073709551617\" is no size: sizes are whole numbers from 1 to 16777216",
            ),
            ("W=7,3", "either all sizes have a name, or none has"),
            ("1,3", "it has 3 axes, and the shape that is given 2"),
            ("1,4,7", "it has the size 3 along axis 1, and not 4"),
            ("H=7", "it has no axis that is called \"H\""),
            ("W=7,W=8", "its axis \"W\" is given twice"),
        ] {
            assert_eq!(read(&open, given), Err(why.to_owned()), "{given}");
        }
        let wanted = |declared: &[DeclaredAxis]| axes_of(declared, None).map(drop);
        let no_size = "it has no fixed size along axis 2 (\"W\"); give the shape with --shape, such as --shape W=224";
        assert_eq!(wanted(&open), Err(no_size.to_owned()));
        let no_size = "it has no fixed size along axis 1; give the shape with --shape, such as --shape 1,224,224";
        assert_eq!(wanted(&[DeclaredAxis::Any, DeclaredAxis::Any, open[2].clone()]), Err(no_size.to_owned()));
    }
}
