//! Scenario files: what they mean, and what is said of mistakes.

mod meaning;
mod mistakes;
