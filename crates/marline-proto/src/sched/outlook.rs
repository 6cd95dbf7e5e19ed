//! What a scheduler expects, and how often it was right.

use alloc::vec::Vec;

use crate::sched::capacity::{Calibration, CapacityForecast};
use crate::wire::PathId;

/// What a scheduler that forecasts expects of its paths, and what became of its promises.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// The paths about which something is known, by their numbers.
    pub paths: Vec<PathOutlook>,
    /// Promises that a unit is on time, and what its receiver said.
    pub units: Calibration,
}

/// What is expected of one path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathOutlook {
    /// The path.
    pub path: PathId,
    /// Its capacity from now on.
    pub capacity: CapacityForecast,
    /// How the forecast comes about, in a word.
    pub mode: &'static str,
    /// Promises that all packets of a unit that this path got are on time, as far as they are not
    /// lost, and what their arrivals said.
    pub calibration: Calibration,
}
