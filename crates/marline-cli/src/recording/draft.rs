//! What is known of a path while its lines are read.

use super::format::Way;

/// A path while its lines are read.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) name: String,
    pub(super) ways: [Vec<(u64, Way)>; 2],
    /// Session, time sent and delay.
    pub(super) delays: [Vec<(u64, f64, f64)>; 2],
}
