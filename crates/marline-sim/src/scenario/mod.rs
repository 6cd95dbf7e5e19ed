//! What an experiment is: links, sessions, workloads, what changes on the way, and what is
//! expected.
//!
//! A [`Scenario`] is checked: every name resolves, every number lies in its range. One run of it is
//! a scheduler and a seed.

mod around;
mod beside;
mod block_model;
mod called;
mod cells;
mod changes;
mod checked;
mod cross;
mod document;
mod dotted;
mod draw;
mod expect;
mod explain;
mod handovers;
mod links;
mod loads;
mod mistake;
mod model;
mod object_model;
mod page_model;
mod plan;
mod reader;
mod recorded;
mod replayed;
mod schedulers;
mod sessions;
mod tree;
mod values;
mod web;
mod workloads;

pub use cells::{Axis, Cell};
pub use document::Document;
pub use explain::explain;
pub use links::{DATAGRAM, OVERHEAD, ReadFile};
pub use loads::{KINDS, Kind};
pub use mistake::{Mistake, Mistakes, Place};
pub use plan::{
    CellPlan, Change, CrossPlan, CrossSource, Expectation, FlowPlan, HandoverPlan, LinkPlan, Load,
    Outside, PathPlan, Scenario, SessionPlan, Setting, SizeLaw, Watch, Watched, WebObject,
    WorkloadPlan,
};
pub use replayed::NewLink;
pub(crate) use values::path_name;
pub use values::{unknown_values, value_names};
