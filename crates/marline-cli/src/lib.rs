//! The program `marline`.
//!
//! | folder | what |
//! | --- | --- |
//! | `commands/` | one file a subcommand |
//! | `config/` | what the user wrote, where, and what the program accepts |
//! | `control/` | the control socket: what a running program reports, and how it is changed |
//! | `metrics/` | the same for Prometheus |
//! | `platform/` | what systems do differently |
//! | `recording/` | how paths behaved, as a file, and links made of it |
//! | `qlog/` | what sessions do, packet by packet, as files |
//! | `web/` | the same as a page: history, events, why it is slow |
//! | `budget/` | what metered paths may carry in a month |

pub mod budget;
pub mod commands;
pub mod config;
pub mod control;
pub mod metrics;
pub mod platform;
pub mod qlog;
pub mod recording;
pub mod web;

pub use commands::{main, main_with};
