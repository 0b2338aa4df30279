//! How far a check has come, for whoever waits for it. Nothing that is proved depends on it.

/// Something that takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Bounds of a layer of ReLUs are proved, which are its parts.
    Bounds {
        /// Which layer, counted from 1.
        layer: usize,
        /// Of how many.
        layers: usize,
    },
    /// Points that show units on or off are looked at, which are its parts.
    Points,
    /// The difference of two networks is bounded, in one part.
    Difference,
}

/// Somebody who waits for a check.
pub trait Progress: Sync {
    /// A step begins, of so many parts.
    fn begins(&self, step: Step, parts: usize);

    /// So many parts more of it are done.
    fn done(&self, parts: usize);
}

/// Nobody.
impl Progress for () {
    fn begins(&self, _: Step, _: usize) {}

    fn done(&self, _: usize) {}
}
