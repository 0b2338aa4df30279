//! Whoever waits for something that takes time.

use std::fmt;

/// Is told how far something has come, may stop it, and may keep what it has found. Nothing that is proved depends on
/// what an observer does, and each of these may be left out: `()` observes nothing.
pub trait Observer: Sync {
    /// A step of `parts` parts begins.
    fn begin(&self, _step: Step, _parts: usize) {}

    /// `parts` more parts of the step are done.
    fn advance(&self, _parts: usize) {}

    /// Whether to stop as soon as there is a good place for it. This is asked often, and should be cheap. Steps that
    /// only sum up what is known may begin and end after it was said.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Whether [`keep`](Self::keep) does anything: what only a later search needs is not made otherwise.
    fn keeps(&self) -> bool {
        false
    }

    /// Keeps a checkpoint: all that a search has found, from which another one can go on. It is given in the end, also
    /// if the search was stopped.
    fn keep(&self, _checkpoint: &[u8]) {}
}

/// Nobody.
impl Observer for () {}

/// Something that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// A technique is tried on units of a layer, or bounds of them, which are its parts.
    Search {
        /// What is tried, in words.
        technique: &'static str,
        /// Which layer, counted from 1.
        layer: usize,
        /// Of how many.
        layers: usize,
        /// How many units are decided, up to this layer.
        decided: usize,
        /// How many units of this layer are undecided.
        left: usize,
    },
    /// Two networks are compared at points, in one part.
    Comparison,
    /// Bounds of a layer are checked, which are its parts.
    Bounds {
        /// Which layer, counted from 1.
        layer: usize,
        /// Of how many.
        layers: usize,
    },
    /// Points that show units on or off are checked, which are its parts.
    Points,
    /// The difference of two networks is bounded, in one part.
    Difference,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search { technique, layer, layers, decided, left } => {
                write!(formatter, "layers {layer}/{layers}, {technique}; {decided} units decided, {left} left here")
            }
            Self::Comparison => formatter.write_str("comparing"),
            Self::Bounds { layer, layers } => write!(formatter, "layers {layer}/{layers}, bounds"),
            Self::Points => formatter.write_str("points"),
            Self::Difference => formatter.write_str("differences"),
        }
    }
}
