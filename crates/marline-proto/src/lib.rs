//! Marline's multipath session as a pure state machine: time, randomness and datagrams are
//! arguments; sockets, clocks and threads do not exist here.
//!
//! [`Session`] is the way in; its documentation states the calling contract. Beneath it, lowest
//! first:
//!
//! | module | what |
//! | --- | --- |
//! | [`ranges`] | sets of numbers as ranges: bytes received, packets acknowledged |
//! | [`wire`] | the format of datagrams |
//! | [`congestion`] | congestion controllers, one file each |
//! | [`law`] | when a packet arrives that is sent now, as a distribution |
//! | [`flow`] | sending and receiving halves of flows |
//! | [`path`] | one path: ledger of sent packets, estimators, pacing, state |
//! | [`sched`] | schedulers, one file each |
//! | [`observe`], [`stats`] | records and counters |

#![no_std]

extern crate alloc;

mod config;
pub mod congestion;
mod event;
pub mod flow;
pub mod law;
pub mod observe;
pub mod path;
pub mod ranges;
pub mod sched;
mod session;
pub mod stats;
pub mod wire;

pub use config::{Config, ConfigError};
pub use event::{CloseReason, Event};
pub use session::{
    Accepted, FlowInfo, FlowOptions, OpenError, PathError, Session, Side, Transmit, WakeReason,
    WriteError,
};
pub use wire::MAX_PATHS;
