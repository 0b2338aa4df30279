//! VNN-LIB 1.0 and 2.0: the box of inputs that a verification property speaks of.
//!
//! A property asserts something about a network's inputs and outputs. Leo wants the inputs: what is asserted of
//! outputs, or of inputs and outputs together, is the property proper and is passed over, which can only leave more
//! inputs in. What is asserted of inputs must be a box. Where it is a union of boxes or anything else, the reader
//! says so, or takes the smallest box it can see around it when [asked](NonBox::Hull).
//!
//! Numbers are the doubles nearest to what the text says. Where bounds come from arithmetic with them, they are rounded
//! outward. Strict inequalities count as their closure.
//!
//! ```
//! use leo_formats::vnnlib::{NonBox, VnnlibError, domain};
//!
//! let property = "(declare-const X_0 Real)
//!                 (declare-const Y_0 Real)
//!                 (assert (or (and (<= 0 X_0) (<= X_0 1)) (and (<= 2 X_0) (<= X_0 3))))
//!                 (assert (>= Y_0 5))";
//! assert_eq!(domain(property.as_bytes(), NonBox::Refuse), Err(VnnlibError::Disjunction { line: 3 }));
//! let hull = domain(property.as_bytes(), NonBox::Hull)?;
//! assert_eq!((hull.hull().lo(), hull.hull().hi()), (&[0.0][..], &[3.0][..]));
//! # Ok::<(), VnnlibError>(())
//! ```

mod constraint;
mod syntax;

use std::collections::BTreeMap;

use constraint::{InputRegion, Variables};
use syntax::SExpression;

use leo_network::{Domain, DomainError};

/// What to do with input constraints that are not a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonBox {
    /// Refuse them.
    Refuse,
    /// Take a box around them.
    Hull,
}

/// What is wrong with a VNN-LIB file.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum VnnlibError {
    /// Not text.
    #[error("is not a VNN-LIB file: {0}")]
    NotText(&'static str),
    /// Not the language, or beyond what Leo reads of it.
    #[error("line {line}: {reason}")]
    Line {
        /// Where, counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A union of boxes.
    #[error(
        "line {line}: the inputs lie in a disjunction, a union of boxes and not one box; take its hull (--hull) or \
         split the file"
    )]
    Disjunction {
        /// The assertion.
        line: usize,
    },
    /// A constraint that ties several inputs together.
    #[error(
        "line {line}: a constraint on inputs that bounds no single one, so they form no box; leave it out (--hull) or \
         rewrite the file"
    )]
    NotABound {
        /// The assertion.
        line: usize,
    },
    /// No input is declared.
    #[error("declares no inputs")]
    NoInputs,
    /// A gap among the inputs.
    #[error("declares inputs beyond X_{input}, but not X_{input} itself")]
    Undeclared {
        /// Which one is missing.
        input: usize,
    },
    /// An input without a bound.
    #[error("input {input} has no {side} bound")]
    Unbounded {
        /// Which one.
        input: usize,
        /// `lower` or `upper`.
        side: &'static str,
    },
    /// The bounds contradict one another.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

/// The box of inputs in a VNN-LIB file.
///
/// # Errors
/// If the file is broken, or the inputs form no box and `otherwise` refuses that, or one of them is unbounded.
pub fn domain(bytes: &[u8], otherwise: NonBox) -> Result<Domain, VnnlibError> {
    let text = std::str::from_utf8(bytes).map_err(|_| VnnlibError::NotText(crate::file::looks_like(bytes)))?;
    let mut variables = Variables::default();
    let mut region = InputRegion::everything();
    for (line, command) in syntax::parse(text)? {
        let at = |reason: String| VnnlibError::Line { line, reason };
        let SExpression::List(parts) = &command else {
            return Err(at("a command in parentheses should stand here".to_owned()));
        };
        match parts.as_slice() {
            [SExpression::Word("declare-const" | "declare-fun"), SExpression::Word(name), ..] => {
                variables.declare_scalar(name).map_err(at)?;
            }
            [SExpression::Word("declare-network"), _, declarations @ ..] => {
                variables.declare_network(declarations).map_err(at)?;
            }
            [SExpression::Word("assert"), assertion] => {
                let asserted = InputRegion::of(assertion, &variables).map_err(at)?;
                match asserted.inexact {
                    Some(reason) if otherwise == NonBox::Refuse => return Err(reason.at(line)),
                    _ => region.intersect(asserted),
                }
            }
            [
                SExpression::Word(
                    "vnnlib-version" | "set-logic" | "set-info" | "set-option" | "check-sat" | "get-model" | "exit",
                ),
                ..,
            ] => {}
            [SExpression::Word(other), ..] => {
                return Err(at(format!("the command {other:?} is not one that Leo knows")));
            }
            _ => return Err(at("a command without a name".to_owned())),
        }
    }
    bounded(variables.inputs()?, &region.bounds)
}

/// The bounds as a domain, if every input has two.
fn bounded(inputs: usize, bounds: &BTreeMap<usize, (f64, f64)>) -> Result<Domain, VnnlibError> {
    if inputs == 0 {
        return Err(VnnlibError::NoInputs);
    }
    // Looked for before anything as long as the inputs is made: a declared shape costs a hostile file nothing.
    let unbounded = |input, side| VnnlibError::Unbounded { input, side };
    if let Some(missing) = (0..inputs).zip(bounds.keys()).find_map(|(input, &key)| (key != input).then_some(input)) {
        return Err(unbounded(missing, "lower"));
    }
    if bounds.len() < inputs {
        return Err(unbounded(bounds.len(), "lower"));
    }
    for (&input, &(lo, hi)) in bounds {
        if lo == f64::NEG_INFINITY {
            return Err(unbounded(input, "lower"));
        }
        if hi == f64::INFINITY {
            return Err(unbounded(input, "upper"));
        }
    }
    let (lo, hi) = bounds.values().copied().unzip();
    Ok(Domain::new(lo, hi)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A box in the first version of the language.
    const BOX: &str = "; a property\n\
        (declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n\
        (assert (<= X_0 0.5))\n(assert (>= X_0 -0.5))\n(assert (and (<= -1 X_1) (<= X_1 1e1)))\n(assert (>= Y_0 3))\n";

    fn bounds(text: &str, otherwise: NonBox) -> Result<(Vec<f64>, Vec<f64>), VnnlibError> {
        domain(text.as_bytes(), otherwise).map(|domain| (domain.hull().lo().to_vec(), domain.hull().hi().to_vec()))
    }

    #[test]
    fn version_1_boxes() {
        assert_eq!(bounds(BOX, NonBox::Refuse), Ok((vec![-0.5, -1.0], vec![0.5, 10.0])));
    }

    #[test]
    fn version_2_boxes() {
        let text = "(vnnlib-version <2.0>)\n\
             (declare-network acc\n (declare-input X Real [1,3])\n (declare-hidden H Real [4] \"h\")\n\
             (declare-output Y Real [])\n)\n(assert (<= (* -1.0 X[0,0]) 0.0))\n(assert (<= X [0, 0] 50.0))\n\
             (assert (and (<= (- 5) X[0,1]) (<= X[0,1] 5)))\n(assert (== X[0,2] 2.5))\n\
             (assert (or (<= Y -3.0) (>= Y 0.0)))\n";
        assert_eq!(bounds(text, NonBox::Refuse), Ok((vec![-0.0, -5.0, 2.5], vec![50.0, 5.0, 2.5])));
    }

    #[test]
    fn disjunctions_are_refused_or_hulled() {
        let two =
            format!("{BOX}(assert (or (and (>= X_0 0.1) (<= X_0 0.2) (>= Y_0 1)) (and (>= X_0 0.3) (<= X_0 0.4))))");
        assert_eq!(bounds(&two, NonBox::Refuse), Err(VnnlibError::Disjunction { line: 9 }));
        assert_eq!(bounds(&two, NonBox::Hull), Ok((vec![0.1, -1.0], vec![0.4, 10.0])));
    }

    #[test]
    fn a_disjunction_over_outputs_alone_is_no_obstacle() {
        let same = "(and (>= X_0 0) (<= X_0 0.25)";
        let text = format!("{BOX}(assert (or {same} (<= Y_0 1)) {same} (>= Y_0 2))))");
        assert_eq!(bounds(&text, NonBox::Refuse), Ok((vec![0.0, -1.0], vec![0.25, 10.0])));
    }

    #[test]
    fn constraints_over_several_inputs_are_refused_or_left_out() {
        for constraint in ["(<= (+ X_0 X_1) 1)", "(<= (* X_0 X_0) 1)"] {
            let text = format!("{BOX}(assert {constraint})");
            assert_eq!(bounds(&text, NonBox::Refuse), Err(VnnlibError::NotABound { line: 9 }));
            assert_eq!(bounds(&text, NonBox::Hull), bounds(BOX, NonBox::Refuse));
        }
        let mixed = format!("{BOX}(assert (<= Y_0 (+ X_0 X_1)))");
        assert_eq!(bounds(&mixed, NonBox::Refuse), bounds(BOX, NonBox::Refuse), "that is a property, not a domain");
    }

    #[test]
    fn rounding_takes_no_inputs_away() {
        // 0.3 / 3 rounds to just below 0.1, but the first case holds the point 0.1 all the same.
        let text =
            "(declare-const X_0 Real)(assert (or (and (>= X_0 0.1) (<= (* 3 X_0) 0.3)) (and (>= X_0 5) (<= X_0 6))))";
        assert_eq!(bounds(text, NonBox::Refuse), Err(VnnlibError::Disjunction { line: 1 }));
        assert_eq!(bounds(text, NonBox::Hull), Ok((vec![0.1], vec![6.0])));
        let derived = "(declare-const X_0 Real)(assert (<= (* 3 X_0) 1))(assert (>= (/ X_0 3) -1))";
        let (lo, hi) = bounds(derived, NonBox::Refuse).expect("a box");
        assert!(lo[0] <= -3.0 && 1.0 / 3.0 < hi[0] && hi[0] < 0.334, "{lo:?} {hi:?}");
    }

    #[test]
    fn broken_files_are_refused_with_their_line() {
        let refused = |text: &str| bounds(text, NonBox::Refuse).expect_err("must be refused").to_string();
        assert_eq!(refused("(assert (<= X_0 1)"), "line 1: a parenthesis that is not closed");
        assert!(refused("(declare-const X_0 Real)\n(assert (<= X_1 1))").starts_with("line 2: "));
        assert_eq!(refused("(declare-const X_0 Real)(assert (<= X_0 1))"), "input 0 has no lower bound");
        assert!(refused("(declare-const X_0 Real)(assert (<= X_0 nan))").starts_with("line 1: "));
        let reversed = refused("(declare-const X_0 Real)(assert (<= X_0 1))(assert (>= X_0 2))");
        assert_eq!(reversed, "input 0 has its lower bound 2 above its upper bound 1");
        assert!(refused(&"(".repeat(100_000)).contains("nested"));
        let huge = "(declare-network n (declare-input X real [4000000000,4000000000]))(assert (<= X[0,0] 1))";
        assert!(refused(huge).starts_with("line 1: "));
    }
}
