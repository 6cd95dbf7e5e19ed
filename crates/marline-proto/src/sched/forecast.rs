/// What a scheduler expects of a unit that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Probability, 0..=1, that it arrives by its deadline.
    pub on_time: f64,
    /// Repair symbols that it means to add, as a fraction of the source symbols.
    pub redundancy: f64,
}
