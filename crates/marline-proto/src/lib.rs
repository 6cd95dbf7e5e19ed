//! Marline's multipath session as a pure state machine: time, randomness and datagrams are
//! arguments; sockets, clocks and threads do not exist here.

#![no_std]

extern crate alloc;

pub mod congestion;
pub mod wire;
