//! What is compared: places, what is asked of them, and who answers.

use super::load::FieldLoad;
use super::place::Place;

/// Who is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contender {
    /// What the program chooses, over all links.
    Auto,
    /// This scheduler for all flows, over all links.
    Named(&'static str),
    /// What the program chooses, over one link alone.
    Alone(usize),
    /// The sender that knows rates.
    Ideal,
}

/// What bonding is compared with besides the single links.
pub(super) const RIVALS: [&str; 2] = ["edpf", "min-rtt"];

/// A place and what is asked of it.
#[derive(Clone, Debug)]
pub struct FieldCell {
    /// Index of the place.
    pub place: usize,
    /// What is asked.
    pub load: FieldLoad,
    /// Who answers.
    pub contenders: Vec<Contender>,
}

/// A bench that can be run.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// From which all follows that is drawn.
    pub seed: u64,
    /// Seeds of the runs of each cell and contender.
    pub seeds: Vec<u64>,
    /// It is only a look.
    pub quick: bool,
    /// What is not there, in words.
    pub missing: Vec<String>,
    /// All places.
    pub places: Vec<Place>,
    /// All cells.
    pub cells: Vec<FieldCell>,
}
