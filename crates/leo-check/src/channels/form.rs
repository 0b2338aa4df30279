//! Sums of elements of some values, each times a number, where those of channels that are gone are replaced by what
//! stands for them.

use leo_network::ValueId;

use super::expressions::Expressed;
use crate::checker::ProvedBounds;
use crate::number::Number;
use crate::range::Interval;
use crate::sound::Upper;

/// A linear function of the elements of a node's operands.
pub(super) struct LinearForm<'a, N> {
    facts: &'a ProvedBounds<'a, N>,
    operands: &'a [ValueId],
    /// For each operand, what stands for its channels that are gone.
    expressed: Vec<&'a Expressed<N>>,
    terms: Vec<FormTerm<N>>,
    /// Bounds of what else is added, above and, with the other sign, below.
    above: Upper<N>,
    below: Upper<N>,
}

/// An element of an operand, or the number 1, times a number, which was rounded by no more than an error.
struct FormTerm<N> {
    /// Which operand, and which of its elements; none for the number 1.
    at: Option<(usize, usize)>,
    factor: N,
    error: N,
}

impl<'a, N: Number> LinearForm<'a, N> {
    pub(super) fn new(
        facts: &'a ProvedBounds<'a, N>,
        operands: &'a [ValueId],
        expressed: Vec<&'a Expressed<N>>,
    ) -> Self {
        Self { facts, operands, expressed, terms: Vec::new(), above: Upper::default(), below: Upper::default() }
    }

    /// Adds an element of an operand, times two numbers, of which the first was rounded by no more than `error`.
    pub(super) fn add(&mut self, at: (usize, usize), first: (&N, &N), second: f64) {
        self.add_term(Some(at), first, second);
    }

    fn add_term(&mut self, at: Option<(usize, usize)>, (first, error): (&N, &N), second: f64) {
        let second = N::of(second);
        let (factor, rounded) = first.product_and_error(&second);
        let error = if error.is_zero() { rounded } else { error.times(&second.abs()).up().plus(&rounded).up() };
        if !factor.is_zero() || !error.is_zero() {
            self.terms.push(FormTerm { at, factor, error });
        }
    }

    /// Adds the product of two doubles.
    pub(super) fn add_constant(&mut self, a: f64, b: f64) {
        self.add_term(None, (&N::of(a), &N::default()), b);
    }

    /// Adds a number between two others, times a factor.
    pub(super) fn add_between(&mut self, factor: &N, lower: &N, upper: &N) {
        let (most, least) = if factor.is_positive() { (upper, lower) } else { (lower, upper) };
        self.above.add_product(factor, most);
        self.below.add_product(&factor.negative(), least);
    }

    /// Between what it lies.
    pub(super) fn bounds(mut self) -> Interval<N> {
        self.join();
        self.replace();
        self.join();
        let one = Interval { lower: N::of(1.0), upper: N::of(1.0) };
        for FormTerm { at, factor, error } in std::mem::take(&mut self.terms) {
            let at = at
                .map_or_else(|| one.clone(), |(operand, element)| self.facts.range(self.operands[operand]).at(element));
            self.add_between(&factor, &at.lower, &at.upper);
            self.add_error(&error, &at.lower.abs().larger(&at.upper.abs()));
        }
        Interval {
            lower: self.below.bound().limit.negative().shortened_down(),
            upper: self.above.bound().limit.shortened_up(),
        }
    }

    fn add_error(&mut self, error: &N, size: &N) {
        if !error.is_zero() {
            self.above.add_product(error, size);
            self.below.add_product(error, size);
        }
    }

    /// Makes one term of all that are about the same element.
    fn join(&mut self) {
        self.terms.sort_by_key(|term| term.at);
        let mut joined: Vec<FormTerm<N>> = Vec::with_capacity(self.terms.len());
        for term in self.terms.drain(..) {
            match joined.last_mut().filter(|last| last.at == term.at) {
                Some(last) => {
                    let (factor, rounded) = last.factor.sum_and_error(&term.factor);
                    last.factor = factor;
                    for error in [&term.error, &rounded] {
                        last.error = if error.is_zero() { last.error.clone() } else { last.error.plus(error).up() };
                    }
                }
                None => joined.push(term),
            }
        }
        joined.retain(|term| !term.factor.is_zero() || !term.error.is_zero());
        self.terms = joined;
    }

    /// Replaces elements of channels that are gone by what stands for them, where something does.
    fn replace(&mut self) {
        for term in std::mem::take(&mut self.terms) {
            let Some((operand, element)) = term.at else {
                self.terms.push(term);
                continue;
            };
            let value = self.operands[operand];
            let channels = self.facts.network().channels(value);
            let Some((expression, errors)) = self.expressed[operand].of.get(&channels.of(element)) else {
                self.terms.push(term);
                continue;
            };
            let (FormTerm { factor, error, .. }, position) = (term, channels.position(element));
            let missing = errors.at(position);
            self.add_between(&factor, &missing.lower, &missing.upper);
            self.add_error(&error, &self.facts.range(value).magnitude(element));
            let nothing = N::default();
            self.add_term(None, (&factor, &nothing), expression.constant);
            for &(channel, share) in &expression.terms {
                self.add((operand, channels.element(channel, position)), (&factor, &nothing), share);
            }
        }
    }
}
