//! Marline as a library: several unreliable links twisted into one low-latency connection.
//!
//! The program `marline` is a thin shell around these modules.

mod accept;
mod access;
pub mod budget;
pub mod carrier;
pub mod cli;
pub mod config;
pub mod control;
pub mod demo;
pub mod emulate;
pub mod endpoint;
pub mod identity;
pub mod live;
mod lock;
mod lru;
pub mod metrics;
mod process;
pub mod proxy;
mod seldom;
pub mod tun;
