//! The numbers that proofs are carried out with.
//!
//! The whole checker is written once, for numbers of either kind: doubles, whose rounding is bounded by
//! [`crate::sound`], or [`Exact`] ones, which are never rounded, so that all bounds on rounding are 0.

use std::cmp::Ordering;
use std::fmt::Debug;

use leo_network::{Scalar, product_and_error, quotient_and_error, sum_and_error};

use crate::exact::Exact;

/// Doubles, or exact numbers.
pub trait Number: Scalar + Debug + PartialEq + PartialOrd + 'static {
    /// Whether results of arithmetic are rounded.
    const ROUNDS: bool;

    /// A double. What is not finite is not known.
    fn of(number: f64) -> Self;

    /// Adds another number to this one.
    fn add(&mut self, other: &Self);

    /// The product of two numbers.
    fn times(&self, other: &Self) -> Self;

    /// The quotient of two numbers.
    fn over(&self, other: &Self) -> Self;

    /// This number with the other sign.
    fn negative(&self) -> Self;

    /// A number that is no less than what was rounded to this one: infinite, if that is not known.
    fn up(self) -> Self;

    /// A sum, and an upper bound of what rounding took from it: 0 only if that is nothing.
    fn sum_and_error(&self, other: &Self) -> (Self, Self);

    /// A product, and an upper bound of what rounding took from it: 0 only if that is nothing.
    fn product_and_error(&self, other: &Self) -> (Self, Self);

    /// A quotient, and an upper bound of what rounding took from it: 0 only if that is nothing.
    fn quotient_and_error(&self, other: &Self) -> (Self, Self);

    /// Whether it is a number, and known.
    fn is_finite(&self) -> bool;

    /// About how large it is, compared with another.
    fn share_of(&self, whole: &Self) -> f64;

    /// A double that is no less: 0 for 0, and more than 0 for anything that is.
    fn rounded_up(&self) -> f64;

    /// This number, exactly, if it is finite.
    fn exactly(&self) -> Option<Exact>;

    /// How many words of 64 bits these numbers have on average: what one costs in a product.
    fn words(_numbers: &[Self]) -> f64 {
        1.0
    }

    /// A number of a few digits that is no less; 0 for 0. Numbers that are rounded are short as they are.
    fn shortened_up(&self) -> Self {
        self.clone()
    }

    /// A number of a few digits that is no more.
    fn shortened_down(&self) -> Self {
        self.negative().shortened_up().negative()
    }

    /// A number of a few digits that is no less ([`Self::shortened_up`]), and how much more it is at the most.
    fn shortened(&self) -> (Self, Self) {
        let short = self.shortened_up();
        let excess = short.minus(self).shortened_up();
        (short, excess)
    }

    /// The sum of two numbers.
    fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.add(other);
        sum
    }

    /// How much larger this number is than another.
    fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negative())
    }

    /// Its absolute value.
    fn abs(&self) -> Self {
        if *self < Self::default() { self.negative() } else { self.clone() }
    }

    /// Whether it is 0.
    fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it is more than 0.
    fn is_positive(&self) -> bool {
        *self > Self::default()
    }

    /// The larger one of two numbers; nothing is known of it if nothing is known of one of them.
    fn larger(&self, other: &Self) -> Self {
        match self.partial_cmp(other) {
            Some(Ordering::Less) => other.clone(),
            Some(_) => self.clone(),
            None => Self::of(f64::INFINITY),
        }
    }

    /// The smaller one of two numbers; nothing is known of it if nothing is known of one of them.
    fn smaller(&self, other: &Self) -> Self {
        match self.partial_cmp(other) {
            Some(Ordering::Greater) => other.clone(),
            Some(_) => self.clone(),
            None => Self::of(f64::INFINITY),
        }
    }

    /// What a ReLU makes of it.
    fn positive_part(&self) -> Self {
        self.larger(&Self::default())
    }
}

impl Number for f64 {
    const ROUNDS: bool = true;

    fn of(number: f64) -> Self {
        number
    }

    fn add(&mut self, other: &Self) {
        *self += other;
    }

    fn times(&self, other: &Self) -> Self {
        self * other
    }

    fn over(&self, other: &Self) -> Self {
        self / other
    }

    fn negative(&self) -> Self {
        -self
    }

    fn up(self) -> Self {
        if self.is_nan() { Self::INFINITY } else { self.next_up() }
    }

    fn sum_and_error(&self, other: &Self) -> (Self, Self) {
        sum_and_error(*self, *other)
    }

    fn product_and_error(&self, other: &Self) -> (Self, Self) {
        product_and_error(*self, *other)
    }

    fn quotient_and_error(&self, other: &Self) -> (Self, Self) {
        quotient_and_error(*self, *other)
    }

    fn is_finite(&self) -> bool {
        Self::is_finite(*self)
    }

    fn share_of(&self, whole: &Self) -> f64 {
        self / whole
    }

    fn rounded_up(&self) -> f64 {
        *self
    }

    fn exactly(&self) -> Option<Exact> {
        Self::is_finite(*self).then(|| Exact::of(*self))
    }

    fn abs(&self) -> Self {
        Self::abs(*self)
    }

    fn larger(&self, other: &Self) -> Self {
        if self.is_nan() || other.is_nan() { Self::NAN } else { self.max(*other) }
    }

    fn smaller(&self, other: &Self) -> Self {
        if self.is_nan() || other.is_nan() { Self::NAN } else { self.min(*other) }
    }
}
