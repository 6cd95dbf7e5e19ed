//! What benches over drawn links have in common: their seed, and how their runs are made.

use super::Args;
use crate::commands::{CliError, runs, stop};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::Write as _;
use std::sync::atomic::AtomicBool;
