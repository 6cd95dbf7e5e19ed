//! The names of the values that runs of a scenario yield.

use marline_proto::wire::FlowKind;

use super::plan::{Load, Scenario, SessionPlan, WorkloadPlan};
use crate::measure::{CATALOGUE, Measure, Scope};
use crate::model::{self, hop, sos};
use crate::results::Run;

/// The measures that a workload yields.
fn of_workload(plan: &WorkloadPlan) -> Vec<Measure> {
    let own: &[Measure] = match plan.load {
        Load::Constant { .. } | Load::Backlogged { .. } | Load::Outside(_) => {
            match plan.flow.ordered || plan.flow.kind == FlowKind::Stream {
                true => &[Measure::InOrderDelay],
                false => &[Measure::PacketDelay],
            }
        }
        Load::Batches { .. } => &[Measure::BatchDelay],
        Load::Bursts { .. } | Load::Offload { .. } => &[Measure::ReplyDelay],
        Load::Blocks { .. } => &[Measure::BlockDelay, Measure::BlockLateness],
        Load::Objects { .. } => &[Measure::ObjectDelay],
        Load::Video { .. } => &[Measure::FrameDelay, Measure::FramesDiscarded],
        Load::Web { .. } => &[Measure::PageLoadTime, Measure::PageRenderTime],
        Load::Tcp { .. } => &[Measure::PacketDelay],
    };
    // What TCP loses it sends again.
    let units: &[Measure] = match plan.load {
        Load::Tcp { .. } => &[Measure::Refused],
        _ => &[Measure::Undelivered, Measure::Refused],
    };
    let all = [
        Measure::OutOfOrder,
        Measure::OutOfOrderWait,
        Measure::Goodput,
        Measure::Received,
        Measure::Redundancy,
        Measure::Retransmissions,
        Measure::Repairs,
        Measure::RepairsUsed,
    ];
    let silence: &[Measure] = match plan.load {
        Load::Backlogged { .. } => &[Measure::Silence],
        _ => &[],
    };
    let rest = units.iter().chain(silence).chain(&all);
    own.iter().chain(rest).copied().collect()
}

/// What a session's path is called in the measures.
pub(crate) fn path_name(scenario: &Scenario, session: &SessionPlan, path: usize) -> String {
    let link = session.paths[path].link;
    let earlier = session.paths[..path].iter().filter(|p| p.link == link);
    let mut name = scenario.links[link].name.clone();
    match earlier.count() {
        0 => {}
        n => name = format!("{name}-{}", n + 1),
    }
    match scenario.sessions.len() {
        1 => format!("path.{name}"),
        _ => format!("path.{}.{name}", session.name),
    }
}

/// The names of all values that runs of the scenario can yield, sorted: what an expectation may
/// name.
pub fn value_names(scenario: &Scenario) -> Vec<String> {
    if scenario.blocks.is_some() {
        return hop::value_names();
    }
    if scenario.objects.is_some() {
        return sos::value_names();
    }
    if scenario.pages.is_some() {
        return sos::page::value_names();
    }
    if let Some(own) = &scenario.model {
        return model::value_names(own);
    }
    let mut names = Vec::new();
    let mut add = |what: &str, measure: Measure| {
        let values = measure.entry().values();
        names.extend(values.into_iter().map(|v| format!("{what}.{v}")));
    };
    for session in &scenario.sessions {
        for workload in &session.workloads {
            let measures = of_workload(workload);
            measures.into_iter().for_each(|m| add(&workload.name, m));
        }
        for path in 0..session.paths.len() {
            let name = path_name(scenario, session, path);
            of_scope(Scope::Path).for_each(|m| add(&name, m));
        }
    }
    for link in &scenario.links {
        of_scope(Scope::Link).for_each(|m| add(&format!("link.{}", link.name), m));
    }
    for cross in &scenario.cross {
        of_scope(Scope::Cross).for_each(|m| add(&format!("cross.{}", cross.name), m));
    }
    names.sort();
    names.dedup();
    names
}

fn of_scope(scope: Scope) -> impl Iterator<Item = Measure> {
    let entries = CATALOGUE.iter().filter(move |e| e.scope == scope);
    entries.map(|e| e.measure)
}

/// Values of a run that [`value_names`] does not know: none, or the table lies.
pub fn unknown_values(scenario: &Scenario, run: &Run) -> Vec<String> {
    let names = value_names(scenario);
    let unknown = run
        .values
        .keys()
        .filter(|k| names.binary_search(k).is_err());
    unknown.cloned().collect()
}
