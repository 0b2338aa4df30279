//! Numbers for people: three digits or so.

use std::cmp::Ordering;
use std::ops::Range;

/// What people write as it is: neither very small nor very large.
const PLAIN_RANGE: Range<f64> = 1e-3..1e6;

/// How many digits numbers have that are measured or proved.
const MEASURED_DIGITS: i32 = 3;
/// How many digits bounds have that were given: what people write down themselves is mostly shorter.
const GIVEN_DIGITS: i32 = 6;
/// The most digits, a point among them, of a number that is shown as it is.
const MOST_DIGITS: usize = 10;

/// Three digits, or all those before the point, in plain notation as long as that is short.
pub fn short(number: f64) -> String {
    with_digits(number, MEASURED_DIGITS)
}

fn with_digits(number: f64, digits: i32) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if !PLAIN_RANGE.contains(&number.abs()) {
        let text = format!("{number:.*e}", usize::try_from(digits - 1).unwrap_or(0));
        return match text.split_once('e') {
            Some((digits, power)) => format!("{}e{power}", without_zeros(digits)),
            None => text,
        };
    }
    without_zeros(&format!("{number:.*}", usize::try_from(-last_place(number, digits)).unwrap_or(0))).to_owned()
}

/// The place of the last of so many digits that are shown: 0 for ones, -1 for tenths, and so on.
fn last_place(number: f64, digits: i32) -> i32 {
    let place = number.abs().log10().floor() as i32 - (digits - 1);
    if PLAIN_RANGE.contains(&number.abs()) { place.min(0) } else { place }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// What the rounding of doubles may add to a bound: too little to spend a digit on.
const ROUNDING_TOLERANCE: f64 = 1e-12;

/// A lower bound: three digits that are no larger, but for the last bits.
pub fn lower(number: f64) -> String {
    towards(number, Ordering::Less, MEASURED_DIGITS)
}

/// An upper bound: three digits that are no smaller, but for the last bits.
pub fn upper(number: f64) -> String {
    towards(number, Ordering::Greater, MEASURED_DIGITS)
}

/// The least number of some that were given: as it is if that is short, and otherwise in six digits that are no larger.
pub fn least(number: f64) -> String {
    as_it_is(number).unwrap_or_else(|| towards(number, Ordering::Less, GIVEN_DIGITS))
}

/// The greatest number of some that were given: as it is if that is short, and otherwise in six digits that are no
/// smaller.
pub fn greatest(number: f64) -> String {
    as_it_is(number).unwrap_or_else(|| towards(number, Ordering::Greater, GIVEN_DIGITS))
}

/// The fewest digits that are read back as this number, if they are few.
fn as_it_is(number: f64) -> Option<String> {
    if number == 0.0 {
        return Some("0".to_owned());
    }
    let is_plain = PLAIN_RANGE.contains(&number.abs());
    let text = if is_plain { format!("{number}") } else { format!("{number:e}") };
    let digits = text.split('e').next().unwrap_or_default().trim_start_matches(['-', '0', '.']);
    (digits.len() <= MOST_DIGITS).then_some(text)
}

fn towards(number: f64, side: Ordering, digits: i32) -> String {
    let text = with_digits(number, digits);
    let shown: f64 = text.parse().unwrap_or(number);
    let is_near = (shown - number).abs() <= ROUNDING_TOLERANCE * number.abs();
    if is_near || shown.partial_cmp(&number) == Some(side) || !number.is_finite() {
        return text;
    }
    // Rounding went to the wrong side, by at most half a unit of the last digit.
    let unit = 10f64.powi(last_place(number, digits));
    with_digits(if side == Ordering::Less { number - unit / 2.0 } else { number + unit / 2.0 }, digits)
}

/// A part of something, in hundredths.
pub fn percent(part: usize, whole: usize) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Seconds, in milliseconds if they are few.
pub fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", 1e3 * seconds) } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let numbers = [0.0, 1.0, -2.5, 123.456, 0.00123456, 2.894e-7, 1e300, 999_999.0, -1234.5, 0.1];
        let shown = ["0", "1", "-2.5", "123", "0.00123", "2.89e-7", "1e300", "999999", "-1234", "0.1"];
        assert_eq!(numbers.map(short), shown);
    }

    #[test]
    fn bounds_are_rounded_outward() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let number = (random.f64() - 0.5) * 10f64.powi(random.i32(-12..12));
            let [below, above] = [lower(number), upper(number)].map(|text| text.parse::<f64>().unwrap_or(f64::NAN));
            assert!(below <= number && number <= above, "{below} {number} {above}");
            assert!((above - below) <= 0.0101 * number.abs(), "{below} {number} {above}");
        }
        assert_eq!([lower(0.0), upper(0.0), lower(f64::NEG_INFINITY)], ["0", "0", "-inf"]);
        assert_eq!([lower((-2.0_f64).next_down()), upper(1e-17), upper(0.1 + 1e-9)], ["-2", "1e-17", "0.101"]);
        let (third, mean) = (1.0 / 3.0, 0.1307 / 0.3081);
        let given =
            [1.01 + f64::EPSILON, third, f64::from(0.1_f32), -third, 1e7, 1e-9, 123_456.789_012_345, 0.30000001];
        let shown = ["1.01", "0.333334", "0.100001", "-0.333333", "1e7", "1e-9", "123457", "0.30000001"];
        assert_eq!(given.map(greatest), shown);
        assert_eq!(
            [least(-mean), least(third), least(-0.0), least(f64::NEG_INFINITY)],
            ["-0.424213", "0.333333", "0", "-inf"]
        );
        assert_eq!([upper(1234.2), upper(2.891e-7), lower(-1234.2)], ["1235", "2.9e-7", "-1235"]);
    }
}
