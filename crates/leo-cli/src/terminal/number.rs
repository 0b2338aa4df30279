//! Numbers for people: three digits or so.

use std::cmp::Ordering;
use std::ops::Range;

/// What people write as it is: neither very small nor very large.
const PLAIN: Range<f64> = 1e-3..1e6;

/// Three digits, or all those before the point, in plain notation as long as that is short.
pub fn short(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if !PLAIN.contains(&number.abs()) {
        let text = format!("{number:.2e}");
        return match text.split_once('e') {
            Some((digits, power)) => format!("{}e{power}", without_zeros(digits)),
            None => text,
        };
    }
    without_zeros(&format!("{number:.*}", usize::try_from(-last_place(number)).unwrap_or(0))).to_owned()
}

/// The place of the last digit that is shown: 0 for ones, -1 for tenths, and so on.
fn last_place(number: f64) -> i32 {
    let place = number.abs().log10().floor() as i32 - 2;
    if PLAIN.contains(&number.abs()) { place.min(0) } else { place }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// What the rounding of doubles may add to a bound: too little to spend a digit on.
const LAST_BITS: f64 = 1e-12;

/// A lower bound: three digits that are no larger, but for the last bits.
pub fn lower(number: f64) -> String {
    towards(number, Ordering::Less)
}

/// An upper bound: three digits that are no smaller, but for the last bits.
pub fn upper(number: f64) -> String {
    towards(number, Ordering::Greater)
}

fn towards(number: f64, side: Ordering) -> String {
    let text = short(number);
    let shown: f64 = text.parse().unwrap_or(number);
    let is_near = (shown - number).abs() <= LAST_BITS * number.abs();
    if is_near || shown.partial_cmp(&number) == Some(side) || !number.is_finite() {
        return text;
    }
    // Rounding went to the wrong side, by at most half a unit of the last digit.
    let unit = 10f64.powi(last_place(number));
    short(if side == Ordering::Less { number - unit / 2.0 } else { number + unit / 2.0 })
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
        assert_eq!([upper(1234.2), upper(2.891e-7), lower(-1234.2)], ["1235", "2.9e-7", "-1235"]);
    }
}
