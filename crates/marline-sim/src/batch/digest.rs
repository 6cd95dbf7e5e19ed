//! What makes two runs the same run.

use std::fmt::{self, Write};

use sha2::{Digest, Sha256};

use super::Job;
use crate::scenario::{Scenario, Watch};

/// A digest of all that a run depends on: the resolved scenario, the scheduler, the seed, and
/// `program`, which stands for the program and the files that the scenario names. Titles, bounds
/// and the lists of what else is run do not count.
pub fn digest(job: &Job<'_>, program: &str) -> String {
    let bare = Scenario {
        title: String::new(),
        about: String::new(),
        schedulers: Vec::new(),
        seeds: Vec::new(),
        expectations: Vec::new(),
        watch: Watch::default(),
        ..job.scenario.clone()
    };
    let mut hash = Hash(Sha256::new());
    let (scheduler, seed) = (job.scheduler, job.seed);
    // Writing to a hash cannot fail.
    let _ = write!(hash, "{program}\n{scheduler}\n{seed}\n{bare:?}");
    let bytes = hash.0.finalize();
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

struct Hash(Sha256);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}
