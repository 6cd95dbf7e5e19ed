//! Blocks by their deadline with a stated probability: the planning of HOP (Chiariotti et al., "The
//! HOP Protocol: Reliable Latency-Bounded End-to-End Multipath Communication", IEEE/ACM ToN 2021).
//!
//! A block of k packets is decoded from any k of the packets that are sent for it. How many of the
//! s packets of a path are on time has a distribution, because the path's capacity has one
//! ([`Lateness`](crate::sched::capacity::Lateness)); the block is late if they are less than k
//! together. Everything here chooses the number of packets for each path by that:
//!
//! | item | what |
//! | --- | --- |
//! | [`Sender`] | decides block by block, from the paths' estimators |
//! | [`Planner`] | plans blocks over paths: JUMP, LEAP, FLIP, priced, hybrid |
//! | [`Lane`] | a path as a search sees it |
//! | [`Count`] | how many packets are on time: distributions, sums, and P_e (eq. 3–6) |
//! | [`Order`] | which path gets the next packet (eq. 2), for every number of packets at once |
//! | [`jump()`] | the smallest schedule that is reliable enough (eq. 1) |
//! | [`leap()`] | the largest block that is reliable enough (eq. 7) |
//! | [`flip()`] | the shortest deadline that is reliable enough (eq. 9) |
//! | [`priced()`] | redundancy at a price: what is left over delays the next block |
//!
//! Where the paper's equations are wrong in print the reading used is given where they are used.

mod admission;
mod ahead;
mod arrivals;
mod beginning;
mod burst;
mod count;
mod flight;
mod flip;
mod interval;
mod jitter;
mod jump;
mod lane;
mod leap;
mod legacy;
mod losses;
mod order;
mod pacing;
mod planner;
mod priced;
mod promises;
pub(in crate::sched) mod scheduler;
mod sender;
#[cfg(test)]
mod tests;
mod unit;

pub use count::{Count, failure};
pub use flip::flip;
pub use jump::{Found, jump};
pub use lane::{Lane, Limits};
pub use leap::leap;
pub use order::Order;
pub use planner::{Demand, Planner, Schedule, Way};
pub use priced::{PRICE, priced};
pub use sender::{Block, Sender, SenderPath, Settings};
