//! What assertions say about the inputs, one variable at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::VnnlibError;
use super::syntax::SExpression;
use leo_network::Enclosure;
use leo_network::Shape;

/// The variables that a file declares: the elements of one input, and names that are not inputs.
#[derive(Default)]
pub(super) struct Variables {
    /// The input tensor of version 2, and its shape.
    tensor: Option<(String, Vec<usize>)>,
    /// Which `X_i` version 1 has declared.
    scalars: BTreeSet<usize>,
    /// Names of other tensors: outputs and hidden values.
    others: Vec<String>,
}

/// What a word stands for.
enum Variable {
    Input(usize),
    Other,
}

impl Variables {
    /// How many inputs there are.
    pub(super) fn inputs(&self) -> Result<usize, VnnlibError> {
        match &self.tensor {
            Some((_, shape)) => Ok(shape.iter().product()),
            None => match self.scalars.iter().enumerate().find(|&(position, &input)| position != input) {
                Some((missing, _)) => Err(VnnlibError::Undeclared { input: missing }),
                None => Ok(self.scalars.len()),
            },
        }
    }

    /// Version 1: `(declare-const X_0 Real)`.
    pub(super) fn declare_scalar(&mut self, name: &str) -> Result<(), String> {
        let Some(number) = name.strip_prefix("X_") else { return Ok(()) };
        match number.parse() {
            Ok(input) if self.scalars.insert(input) => Ok(()),
            Ok(_) => Err(format!("{name} is declared twice")),
            Err(_) => Err(format!("{name:?} is declared, which is no X_ with a number")),
        }
    }

    /// Version 2: `(declare-network f (declare-input X float32 [1,5]) (declare-output Y float32 [1,2]))`.
    pub(super) fn declare_network(&mut self, declarations: &[SExpression<'_>]) -> Result<(), String> {
        if self.tensor.is_some() {
            return Err("declares a second network; a domain is about one".to_owned());
        }
        for declaration in declarations {
            let SExpression::List(parts) = declaration else { return Err("a declaration is missing".to_owned()) };
            match parts.as_slice() {
                [SExpression::Word("declare-input"), SExpression::Word(name), _, SExpression::Index(shape), ..] => {
                    if self.tensor.is_some() {
                        return Err("declares a second input; Leo takes networks with one".to_owned());
                    }
                    if Shape::new(shape.clone()).is_err() {
                        return Err(format!("the input {name:?} has the shape {shape:?}, which is empty or too large"));
                    }
                    self.tensor = Some(((*name).to_owned(), shape.clone()));
                }
                [SExpression::Word("declare-output" | "declare-hidden"), SExpression::Word(name), ..] => {
                    self.others.push((*name).to_owned());
                }
                _ => return Err("a declaration that is neither input, output nor hidden".to_owned()),
            }
        }
        Ok(())
    }

    /// What a word, with the index after it if there is one, stands for.
    fn lookup(&self, word: &str, index: Option<&[usize]>) -> Result<Variable, String> {
        let undeclared = || format!("{word:?} is neither a number nor a declared variable");
        if let Some((name, shape)) = &self.tensor {
            if name == word {
                let index = index.unwrap_or(&[]);
                let flat =
                    flatten(shape, index).ok_or_else(|| format!("{word}{index:?} lies outside {word}{shape:?}"))?;
                return Ok(Variable::Input(flat));
            }
            return self.others.iter().any(|other| other == word).then_some(Variable::Other).ok_or_else(undeclared);
        }
        match word.split_once('_') {
            Some(("X", number)) => match number.parse() {
                Ok(input) if self.scalars.contains(&input) => Ok(Variable::Input(input)),
                _ => Err(undeclared()),
            },
            Some(("Y", _)) => Ok(Variable::Other),
            _ => Err(undeclared()),
        }
    }
}

/// The position of an element in row-major order. One index into several axes counts along that order.
fn flatten(shape: &[usize], index: &[usize]) -> Option<usize> {
    if let ([flat], true) = (index, shape.len() > 1) {
        return (*flat < shape.iter().product()).then_some(*flat);
    }
    if index.len() != shape.len() {
        return None;
    }
    index.iter().zip(shape).try_fold(0, |flat, (&i, &extent)| (i < extent).then_some(flat * extent + i))
}

/// A set of inputs: a box around all that an assertion allows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InputRegion {
    /// Bounds on some inputs; the others are free.
    pub(super) bounds: BTreeMap<usize, (f64, f64)>,
    /// Why the assertion may allow less than the box, if it may.
    pub(super) inexact: Option<Inexact>,
}

/// Why constraints form no box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Inexact {
    Disjunction,
    NotABound,
}

impl Inexact {
    pub(super) fn at(self, line: usize) -> VnnlibError {
        match self {
            Self::Disjunction => VnnlibError::Disjunction { line },
            Self::NotABound => VnnlibError::NotABound { line },
        }
    }
}

impl InputRegion {
    /// All inputs.
    pub(super) fn everything() -> Self {
        Self { bounds: BTreeMap::new(), inexact: None }
    }

    /// All inputs, where the assertion may allow fewer.
    fn superset(reason: Inexact) -> Self {
        Self { inexact: Some(reason), ..Self::everything() }
    }

    fn at_most(input: usize, bound: f64) -> Self {
        Self { bounds: BTreeMap::from([(input, (f64::NEG_INFINITY, bound))]), inexact: None }
    }

    fn at_least(input: usize, bound: f64) -> Self {
        Self { bounds: BTreeMap::from([(input, (bound, f64::INFINITY))]), inexact: None }
    }

    /// Whether it certainly holds no inputs. Bounds that cross by less than rounding could make them are no proof of
    /// that.
    fn is_empty(&self) -> bool {
        self.bounds.values().any(|(lo, hi)| lo - hi > 1e-9 * lo.abs().max(hi.abs()))
    }

    /// Leaves only what `other` allows too.
    pub(super) fn intersect(&mut self, other: Self) {
        for (input, (lo, hi)) in other.bounds {
            let bounds = self.bounds.entry(input).or_insert((f64::NEG_INFINITY, f64::INFINITY));
            *bounds = (bounds.0.max(lo), bounds.1.min(hi));
        }
        self.inexact = self.inexact.or(other.inexact);
    }

    /// The smallest box around both.
    fn hull(&mut self, other: &Self) {
        self.bounds.retain(|input, (lo, hi)| {
            other.bounds.get(input).is_some_and(|&(other_lo, other_hi)| {
                (*lo, *hi) = (lo.min(other_lo), hi.max(other_hi));
                true
            })
        });
    }

    /// The inputs that an assertion allows.
    pub(super) fn of(assertion: &SExpression<'_>, variables: &Variables) -> Result<Self, String> {
        let SExpression::List(parts) = assertion else {
            return Err("an assertion should be in parentheses".to_owned());
        };
        let Some((SExpression::Word(operator), operands)) = parts.split_first() else {
            return Err("an assertion without an operator".to_owned());
        };
        match *operator {
            "and" => {
                let mut all = Self::everything();
                for operand in operands {
                    all.intersect(Self::of(operand, variables)?);
                }
                Ok(all)
            }
            "or" => {
                let regions = operands.iter().map(|operand| Self::of(operand, variables));
                Ok(Self::union(&regions.collect::<Result<Vec<_>, _>>()?))
            }
            "<=" | "<" | ">=" | ">" | "=" | "==" | "!=" => {
                let forms = Form::sequence(operands, variables)?;
                if forms.len() < 2 {
                    return Err(format!("{operator} compares fewer than two things"));
                }
                let mut all = Self::everything();
                for pair in forms.windows(2) {
                    all.intersect(Self::comparison(operator, pair[0].clone().minus(&pair[1]).finite()?));
                }
                Ok(all)
            }
            other => Err(format!("{other:?} is not a connective or comparison that Leo reads")),
        }
    }

    fn union(regions: &[Self]) -> Self {
        let mut inhabited = regions.iter().filter(|region| !region.is_empty());
        let Some(first) = inhabited.next() else {
            // Every case contradicts itself; the first one's bounds say how.
            return regions.first().cloned().unwrap_or_else(Self::everything);
        };
        let mut hull = first.clone();
        inhabited.for_each(|region| hull.hull(region));
        let covered = regions.iter().any(|region| region.inexact.is_none() && region.bounds == hull.bounds);
        hull.inexact = (!covered).then(|| {
            // If the boxes are one and the same, it is their own inexactness that shows.
            let same = regions.iter().find(|region| region.bounds == hull.bounds);
            same.and_then(|region| region.inexact).unwrap_or(Inexact::Disjunction)
        });
        hull
    }

    /// The inputs for which `form` compares to zero as `operator` says.
    fn comparison(operator: &str, mut form: Form) -> Self {
        form.coefficients.retain(|_, coefficient| !coefficient.is_zero());
        if form.others {
            return Self::everything();
        }
        if form.nonlinear || form.coefficients.len() > 1 {
            return Self::superset(Inexact::NotABound);
        }
        let Some((&input, &coefficient)) = form.coefficients.first_key_value() else { return Self::everything() };
        // Adding zero turns a negative zero into a plain one.
        let bound = form.constant.negative().over(coefficient).plus(Enclosure::ZERO);
        match (operator, coefficient.lo > 0.0) {
            ("<=" | "<", true) | (">=" | ">", false) => Self::at_most(input, bound.hi),
            ("<=" | "<", false) | (">=" | ">", true) => Self::at_least(input, bound.lo),
            ("=" | "==", _) => {
                let mut point = Self::at_most(input, bound.hi);
                point.intersect(Self::at_least(input, bound.lo));
                point
            }
            // "!=" leaves out one value, whose neighbours stay: the closure is everything.
            _ => Self::everything(),
        }
    }
}

/// `sum of coefficients * inputs + constant`, or the knowledge that an expression is none.
#[derive(Clone)]
struct Form {
    coefficients: BTreeMap<usize, Enclosure>,
    constant: Enclosure,
    /// Whether it depends on anything but inputs.
    others: bool,
    /// Whether inputs are multiplied with one another.
    nonlinear: bool,
}

impl Form {
    fn constant(value: f64) -> Self {
        Self { coefficients: BTreeMap::new(), constant: Enclosure::exactly(value), others: false, nonlinear: false }
    }

    /// The forms of several expressions; an index belongs to the word before it.
    fn sequence(expressions: &[SExpression<'_>], variables: &Variables) -> Result<Vec<Self>, String> {
        let mut forms = Vec::new();
        let mut rest = expressions;
        while let Some((first, after)) = rest.split_first() {
            let (index, after) = match after.split_first() {
                Some((SExpression::Index(index), after)) => (Some(index.as_slice()), after),
                _ => (None, after),
            };
            forms.push(Self::of(first, index, variables)?);
            rest = after;
        }
        Ok(forms)
    }

    fn of(expression: &SExpression<'_>, index: Option<&[usize]>, variables: &Variables) -> Result<Self, String> {
        let parts = match expression {
            SExpression::Word(word) => return Self::of_word(word, index, variables),
            SExpression::Index(_) => return Err("an index without a variable".to_owned()),
            SExpression::List(parts) => parts,
        };
        let Some((SExpression::Word(operator), operands)) = parts.split_first() else {
            return Err("an expression without an operator".to_owned());
        };
        let mut operands = Self::sequence(operands, variables)?.into_iter();
        let Some(first) = operands.next() else { return Err(format!("{operator} without operands")) };
        let form = match *operator {
            "+" => operands.fold(first, |sum, operand| sum.plus(&operand)),
            "-" if operands.len() == 0 => first.negative(),
            "-" => operands.fold(first, |difference, operand| difference.minus(&operand)),
            "*" => {
                // Numbers first, so that a long sum is multiplied once.
                let (numbers, rest): (Vec<Self>, Vec<Self>) =
                    std::iter::once(first).chain(operands).partition(|operand| operand.is_constant());
                numbers.iter().chain(&rest).fold(Self::constant(1.0), |product, operand| product.product(operand))
            }
            "/" => operands.fold(first, |quotient, operand| quotient.quotient(&operand)),
            other => return Err(format!("{other:?} is not arithmetic that Leo reads")),
        };
        form.finite()
    }

    /// This form, if all its numbers are finite.
    fn finite(self) -> Result<Self, String> {
        if self.constant.is_finite() && self.coefficients.values().all(|coefficient| coefficient.is_finite()) {
            Ok(self)
        } else {
            Err("a number that is not finite".to_owned())
        }
    }

    fn of_word(word: &str, index: Option<&[usize]>, variables: &Variables) -> Result<Self, String> {
        let numeric = word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
        if let (true, Ok(constant)) = (numeric, word.parse::<f64>()) {
            return if constant.is_finite() {
                Ok(Self::constant(constant))
            } else {
                Err(format!("{word} is not finite"))
            };
        }
        Ok(match variables.lookup(word, index)? {
            Variable::Input(input) => {
                Self { coefficients: BTreeMap::from([(input, Enclosure::exactly(1.0))]), ..Self::constant(0.0) }
            }
            Variable::Other => Self { others: true, ..Self::constant(0.0) },
        })
    }

    fn is_constant(&self) -> bool {
        self.coefficients.is_empty() && !self.others && !self.nonlinear
    }

    fn plus(mut self, other: &Self) -> Self {
        for (&input, &coefficient) in &other.coefficients {
            let sum = self.coefficients.entry(input).or_insert(Enclosure::ZERO);
            *sum = sum.plus(coefficient);
        }
        self.constant = self.constant.plus(other.constant);
        self.others |= other.others;
        self.nonlinear |= other.nonlinear;
        self
    }

    fn negative(mut self) -> Self {
        self.coefficients.values_mut().for_each(|coefficient| *coefficient = coefficient.negative());
        self.constant = self.constant.negative();
        self
    }

    fn minus(self, other: &Self) -> Self {
        self.plus(&other.clone().negative())
    }

    /// Every number replaced by what `operation` makes of it and the constant `other`.
    fn scaled(mut self, other: &Self, operation: fn(Enclosure, Enclosure) -> Enclosure) -> Self {
        let scale = |number: &mut Enclosure| *number = operation(*number, other.constant);
        self.coefficients.values_mut().for_each(scale);
        self.constant = operation(self.constant, other.constant);
        self
    }

    fn product(self, other: &Self) -> Self {
        if other.is_constant() {
            self.scaled(other, Enclosure::times)
        } else if self.is_constant() {
            other.clone().scaled(&self, Enclosure::times)
        } else {
            Self { others: self.others || other.others, nonlinear: true, ..Self::constant(0.0) }
        }
    }

    fn quotient(self, other: &Self) -> Self {
        if other.is_constant() {
            self.scaled(other, Enclosure::over)
        } else {
            Self { others: self.others || other.others, nonlinear: true, ..Self::constant(0.0) }
        }
    }
}
