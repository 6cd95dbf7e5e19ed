//! Scenario files: what they mean, and what is said of mistakes.

mod batch;
mod budget;
mod draws;
mod examples;
mod meaning;
mod mistakes;
