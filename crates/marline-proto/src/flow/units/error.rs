/// A peer's units break the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitError {
    /// Frames of a unit, or units of an object, contradict each other.
    Contradiction,
    /// More than the flow's credit.
    Credit,
    /// A number too far from those that are not settled, or more objects at once.
    Span,
    /// In too many pieces.
    Fragments,
    /// A repair symbol beyond what was allowed.
    Repairs,
}
