//! Whole sessions over modelled links, in virtual time.
mod ablation;
mod batch;
mod begin;
mod coding;
mod field;
mod handover;
mod hostile;
#[allow(dead_code, reason = "a kit has more tools than any one job needs")]
mod kit;
mod live;
mod observers;
mod paths;
mod random;
mod scenario;
mod sim;
mod stalls;
mod target;
mod tcp;
mod units;
