//! `[[workloads]]`: applications, when they run and which flow carries them.

use marline_base::Instant;
use marline_proto::wire::FlowKind;

use super::around::Around;
use super::links::is_name;
use super::loads;
use super::plan::{FlowPlan, Load, WorkloadPlan};
use super::reader::Reader;
use super::schedulers;
use crate::engine::End;

/// Ends by name.
pub(super) const ENDS: &[(&str, End)] = &[("client", End::Client), ("server", End::Server)];

/// Reads a session's workloads.
pub(super) fn read(reader: &Reader<'_>, around: &Around<'_>) -> Option<Vec<WorkloadPlan>> {
    reader.get("workloads").or_else(|| {
        reader.missing("workloads", "at least one [[workloads]] with a `kind`");
        None
    })?;
    let list = reader.tables("workloads")?;
    if list.is_empty() {
        reader.missing("workloads", "at least one [[workloads]] with a `kind`");
    }
    list.iter().map(|one| workload(one, around)).collect()
}

fn workload(reader: &Reader<'_>, around: &Around<'_>) -> Option<WorkloadPlan> {
    let kind = loads::kind(reader)?;
    let name = reader.text("name").unwrap_or_else(|| kind.name.into());
    if !is_name(&name) || ["path", "link", "cross"].contains(&name.as_str()) {
        let mend = "use small letters, digits and hyphens, and not path, link or cross";
        reader.wrong_at(
            &reader.place,
            &reader.key("name"),
            format!("`{name}` is no name"),
            mend,
        );
    }
    let starts = reader.moment("starts").unwrap_or(Instant::ZERO);
    let stops = reader.moment("stops");
    active(reader, around, starts, stops);
    let from = reader.word("from", ENDS).unwrap_or(kind.from);
    let flow = flow(reader, kind.flow);
    let load = (kind.read)(reader, around.files);
    if let (Some(load), Some(node)) = (&load, reader.get("flow")) {
        match (load, flow.kind) {
            (Load::Tcp { .. }, kind) if kind != FlowKind::Packets => {
                let mend = "write flow = \"packets\", or nothing";
                reader.wrong("flow", node, "TCP travels as packets", mend);
            }
            // A workload that writes as much as is taken would write for ever what is refused at
            // once.
            (Load::Backlogged { .. }, FlowKind::Blocks) => {
                let mend = "write kind = \"blocks\", or another flow";
                reader.wrong(
                    "flow",
                    node,
                    "blocks are refused, so they make no backlog",
                    mend,
                );
            }
            _ => {}
        }
    }
    reader.finish();
    Some(WorkloadPlan {
        name,
        starts,
        stops,
        from,
        flow,
        load: load?,
    })
}

/// Notes times at which nothing can happen.
pub(super) fn active(
    reader: &Reader<'_>,
    around: &Around<'_>,
    starts: Instant,
    stops: Option<Instant>,
) {
    if let Some(node) = reader.get("starts")
        && around.never(starts)
    {
        let mend = "give a time before `duration`";
        reader.wrong("starts", node, "the run is over by then", mend);
    }
    if let Some(node) = reader.get("stops")
        && stops.is_some_and(|stops| stops <= starts)
    {
        reader.wrong(
            "stops",
            node,
            "it stops before it starts",
            "give a time after `starts`",
        );
    }
}

fn flow(reader: &Reader<'_>, default: FlowKind) -> FlowPlan {
    let kinds = FlowKind::ALL.map(|kind| (kind.name(), kind));
    let kind = reader.word("flow", &kinds).unwrap_or(default);
    let ordered = reader.flag("ordered");
    let lifetime = reader.span("lifetime");
    let queue = reader.bytes("queue", 1..=1 << 40);
    if kind == FlowKind::Stream {
        if let (Some(false), Some(node)) = (ordered, reader.get("ordered")) {
            let mend = "write flow = \"packets\" for messages in any order";
            reader.wrong("ordered", node, "a stream is always in order", mend);
        }
        if let (Some(_), Some(node)) = (lifetime, reader.get("lifetime")) {
            let mend = "write flow = \"packets\" for messages that may be given up";
            reader.wrong("lifetime", node, "a stream is never given up", mend);
        }
    }
    if kind != FlowKind::Packets
        && let (Some(_), Some(node)) = (queue, reader.get("queue"))
    {
        let mend = "write flow = \"packets\" for messages that may be refused";
        reader.wrong("queue", node, "only messages are refused for good", mend);
    }
    if kind.has_units()
        && let (Some(true), Some(node)) = (ordered, reader.get("ordered"))
    {
        let mend = "write flow = \"packets\" for messages in order";
        reader.wrong(
            "ordered",
            node,
            "blocks and objects come as they come",
            mend,
        );
    }
    if kind == FlowKind::Objects
        && let (Some(_), Some(node)) = (lifetime, reader.get("lifetime"))
    {
        let mend = "write flow = \"blocks\" for units with a deadline";
        reader.wrong("lifetime", node, "an object is never given up", mend);
    }
    FlowPlan {
        kind,
        ordered: ordered.unwrap_or(!kind.has_units()),
        priority: reader.whole("priority", 0..=7).unwrap_or(3) as u8,
        lifetime,
        queue,
        scheduler: schedulers::read(reader),
    }
}
