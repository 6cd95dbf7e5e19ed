//! What an experiment is: links, sessions, workloads, what changes on the way, and what is expected.
//!
//! A [`Scenario`] is checked: every name resolves, every number lies in its range. One run of it is
//! a scheduler and a seed.

mod plan;

pub use plan::{
    Change, CrossPlan, CrossSource, Expectation, FlowPlan, LinkPlan, Load, PathPlan, Scenario,
    SessionPlan, Setting, SizeLaw, WorkloadPlan,
};
