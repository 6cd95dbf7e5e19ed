//! Marline sessions over modelled links in virtual time.
//!
//! | module | what |
//! | --- | --- |
//! | [`scenario`] | what an experiment is |
//! | [`run`](mod@run) | one run of it, or many at once |
//! | [`workload`] | applications, one file each |
//! | [`measure`] | what is measured, by name |
//! | [`results`] | what runs yield, and summaries over seeds |
//! | [`batch`] | all runs of an experiment, stopped and taken up again |
//! | [`report`] | results as tables, CSV and pages of plots |
//! | [`repro`] | results held against what was published |
//! | [`experiments`] | the scenario files that come with the program |
//! | [`field`] | a bench of links that nobody chose |
//! | [`law`](mod@law) | what the paths' laws are worth, by what became of packets |
//! | [`model`] | schedulers without a protocol, for what can be proved |
//! | [`World`] | two sessions in a test's own hands |
//!
//! Everything runs real `marline-proto` sessions over `marline-link` links. The clock jumps from
//! event to event; ties are broken by insertion order, so a run is a function of its inputs and
//! its seed.

pub mod batch;
mod cross;
mod engine;
pub mod experiments;
pub mod field;
pub mod hostile;
pub mod law;
pub mod measure;
pub mod model;
pub mod report;
pub mod repro;
pub mod results;
pub mod run;
pub mod scenario;
pub mod tcp;
pub mod traces;
pub mod workload;
mod world;

pub use engine::{Cable, End};
pub use marline_base::{Duration, Instant, Rate, Rng};
pub use world::{World, WorldConfig};
