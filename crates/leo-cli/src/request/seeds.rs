//! Seeds, as people write them.

use std::str::FromStr;

/// Some seeds, each once.
#[derive(Clone, Debug, PartialEq)]
pub struct Seeds(pub Vec<u64>);

/// More networks than anyone trains at once.
pub const MOST_SEEDS: u64 = 100_000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("{text:?} is not a whole number"));
        let mut seeds = match text.split_once("..") {
            Some((first, end)) => {
                let (first, end) = (number(first)?, number(end)?);
                if first >= end || end - first > MOST_SEEDS {
                    return Err(format!("a range goes from a seed up to a larger one, by at most {MOST_SEEDS}"));
                }
                (first..end).collect()
            }
            None => text.split(',').map(number).collect::<Result<Vec<_>, _>>()?,
        };
        seeds.sort_unstable();
        seeds.dedup();
        Ok(Self(seeds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_a_list() {
        assert_eq!("0..31".parse(), Ok(Seeds((0..31).collect())));
        assert_eq!("8, 3,8".parse(), Ok(Seeds(vec![3, 8])));
        for wrong in ["", "a", "3..3", "5..1", "0..=4", "0..99999999999", "-1", "1,,2"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
    }
}
