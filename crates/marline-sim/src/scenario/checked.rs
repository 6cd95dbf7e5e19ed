//! From the tree of a scenario with every axis set to the checked [`Scenario`].

use marline_base::Duration;
use marline_proto::wire::FlowKind;

use super::around::Around;
use super::cells::Axis;
use super::links::ReadFile;
use super::plan::{Scenario, SessionPlan, Watch};
use super::reader::{LONGEST, Reader};
use super::tree::Node;
use super::{
    block_model, changes, cross, expect, handovers, links, model, object_model, page_model,
    schedulers, sessions,
};
use crate::results::DRAW;

/// At most this an end may take from an event to what that makes it send.
const LONGEST_TURN: Duration = Duration::from_secs(1);
/// Most repeats of a run.
const MOST_SEEDS: u64 = 10_000;

/// Reads the whole scenario; `axes` are those of the file, which expectations speak of, or `None`
/// when the experiment was altered and they hold no more.
pub(super) fn read(
    top: &Reader<'_>,
    axes: Option<&[Axis]>,
    files: &ReadFile<'_>,
) -> Option<Scenario> {
    let title = top.text("title").unwrap_or_else(|| "Untitled".into());
    let about = top.text("about").unwrap_or_default();
    let of_objects = top.inner("object-model");
    let of_pages = top.inner("page-model");
    let (duration, warmup) = match of_objects.is_some() || of_pages.is_some() {
        // They count objects and loads.
        true => (Some(Duration::ZERO), Duration::ZERO),
        false => {
            let duration = top.need_span("duration", "\"60s\"");
            (duration, top.time("warmup").unwrap_or(Duration::ZERO))
        }
    };
    if let (Some(duration), Some(node)) = (duration, top.get("warmup"))
        && warmup >= duration
    {
        let mend = "give less than `duration`, or nothing is measured";
        top.wrong("warmup", node, "is not shorter than the run", mend);
    }
    let seeds = seeds(top);
    let links = links::read(top, files);
    let around = Around {
        links: &links,
        duration: duration.unwrap_or(LONGEST),
        cut: matches!(top.get("duration"), Some(node) if node.place.is_flag()),
        files,
    };
    let of_blocks = top.inner("block-model");
    let of_model = top.inner("model");
    if of_blocks.is_some()
        && of_objects.is_none()
        && let Some(node) = top.get("model")
    {
        let mend = "write one of the two";
        top.wrong("model", node, "has no place beside [block-model]", mend);
    }
    let models = [&of_objects, &of_pages, &of_blocks, &of_model];
    let mut turn = Duration::ZERO;
    let (sessions, cross, changes, handovers) = match models.into_iter().flatten().next() {
        Some(_) => Default::default(),
        None => {
            turn = top
                .time_in("turn", Duration::ZERO..=LONGEST_TURN)
                .unwrap_or(turn);
            let sessions = sessions::read(top, &around);
            unique_workloads(top, &sessions);
            let cross = cross::read(top, &around);
            let changes = changes::read(top, &around);
            let handovers = handovers::read(top, &around, &changes);
            (sessions, cross, changes, handovers)
        }
    };
    let lasts = duration.unwrap_or(LONGEST);
    let blocks = of_blocks
        .as_ref()
        .map(|reader| block_model::read(top, reader, &links, lasts, warmup));
    let objects = of_objects
        .as_ref()
        .map(|reader| object_model::read(top, reader, &links));
    let pages = of_pages
        .as_ref()
        .map(|reader| page_model::read(top, reader, &links, files));
    let check = match (&of_objects, &of_pages, &of_blocks, &of_model) {
        (Some(_), ..) => object_model::check,
        (None, Some(_), ..) => page_model::check,
        (None, None, Some(_), _) => block_model::check,
        (None, None, None, Some(_)) => schedulers::check_named,
        (None, None, None, None) => schedulers::check,
    };
    let model = of_model.map(|reader| model::read(top, &reader, &links, lasts, warmup));
    let compared = compared(top, &sessions, check);
    top.get("vary");
    top.get(DRAW);
    let expectations = match axes {
        Some(axes) => expect::read(top, axes, &compared),
        None => {
            top.get("expect");
            Vec::new()
        }
    };
    top.finish();
    let scenario = Scenario {
        title,
        about,
        duration: duration?,
        warmup,
        turn,
        schedulers: compared,
        seeds,
        links: links.into_iter().map(|link| link.plan).collect(),
        sessions,
        cross,
        changes,
        handovers,
        blocks: match blocks {
            Some(blocks) => Some(blocks?),
            None => None,
        },
        objects: match objects {
            Some(objects) => Some(objects?),
            None => None,
        },
        pages: match pages {
            Some(pages) => Some(pages?),
            None => None,
        },
        model: match model {
            Some(model) => Some(model?),
            None => None,
        },
        expectations,
        watch: Watch::default(),
    };
    // What is wrong with a workload would be wrong with its measures once more.
    if top.sink.is_empty() {
        expect::measures(top, &scenario);
    }
    Some(scenario)
}

/// `seeds = 10` for 1 to 10, or a list.
fn seeds(top: &Reader<'_>) -> Vec<u64> {
    let Some(nodes) = top.list("seeds") else {
        return vec![1];
    };
    if let [one] = nodes[..]
        && top.get("seeds").is_some_and(|node| std::ptr::eq(node, one))
    {
        return (1..=top.whole("seeds", 1..=MOST_SEEDS).unwrap_or(1)).collect();
    }
    if let (true, Some(node)) = (nodes.is_empty(), top.get("seeds")) {
        let mend = "write at least one, or how many repeats: seeds = 10";
        top.wrong("seeds", node, "is an empty list", mend);
    }
    let mut seeds: Vec<u64> = Vec::new();
    for node in nodes {
        match node.scalar().and_then(|text| text.parse().ok()) {
            Some(seed) if seeds.contains(&seed) => {
                top.wrong(
                    "seeds",
                    node,
                    format!("{seed} comes twice"),
                    "write each seed once",
                );
            }
            Some(seed) => seeds.push(seed),
            None => {
                let mend = "write whole numbers, or how many repeats: seeds = 10";
                top.wrong("seeds", node, "is not a list of seeds", mend);
            }
        }
    }
    seeds
}

/// Names in the measures are those of workloads, whatever their session.
fn unique_workloads(top: &Reader<'_>, sessions: &[SessionPlan]) {
    let mut names: Vec<&str> = Vec::new();
    for workload in sessions.iter().flat_map(|session| &session.workloads) {
        if names.contains(&workload.name.as_str())
            && let Some(node) = top.get("workloads").or_else(|| top.get("sessions"))
        {
            let message = format!("two workloads are called `{}`", workload.name);
            let mend = "give each a `name` of its own; without one it is called by its kind";
            top.wrong("workloads", node, message, mend);
        }
        names.push(&workload.name);
    }
}

/// What a scheduler's name stands for, or what is wrong with it and the hint.
type Check = fn(&str) -> Result<String, (String, String)>;

fn compared(top: &Reader<'_>, sessions: &[SessionPlan], check: Check) -> Vec<String> {
    let uses = |session: &SessionPlan| {
        let free = session
            .workloads
            .iter()
            .filter(|w| w.flow.scheduler.is_none());
        let uses = free.map(|w| (w.flow.kind, w.name.clone()));
        let own = session.scheduler.clone();
        uses.map(|(kind, name)| (own.clone(), kind, name))
            .collect::<Vec<_>>()
    };
    let uses: Vec<(Option<String>, FlowKind, String)> = sessions.iter().flat_map(uses).collect();
    let Some(nodes) = top.list("schedulers") else {
        top.missing(
            "schedulers",
            "`schedulers = [\"min-rtt\", \"edpf\"]` or `\"all\"`",
        );
        return Vec::new();
    };
    if nodes.is_empty() {
        top.missing("schedulers", "at least one, such as \"edpf\", or \"all\"");
    }
    let mut compared: Vec<String> = Vec::new();
    for node in nodes {
        let text = node.scalar().unwrap_or_default();
        if text == schedulers::ALL {
            let open = uses.iter().filter(|(own, _, _)| own.is_none());
            let kinds: Vec<FlowKind> = open.map(|(_, kind, _)| *kind).collect();
            let all = schedulers::all(&kinds);
            compared.extend(
                all.into_iter()
                    .filter(|name| !compared.contains(name))
                    .collect::<Vec<_>>(),
            );
            continue;
        }
        let name = one_scheduler(top, node, &text, &uses, check).unwrap_or(text);
        if compared.contains(&name) {
            top.wrong(
                "schedulers",
                node,
                format!("`{name}` comes twice"),
                "write it once",
            );
            continue;
        }
        compared.push(name);
    }
    // Those that sessions and workloads chose for themselves.
    for session in sessions {
        for workload in &session.workloads {
            let own = workload
                .flow
                .scheduler
                .as_ref()
                .or(session.scheduler.as_ref());
            if let Some(own) = own
                && !schedulers::serves(own, workload.flow.kind)
                && let Some(node) = top.get("workloads").or_else(|| top.get("sessions"))
            {
                let kind = workload.flow.kind;
                let (message, mend) = schedulers::unfit(own, kind, &workload.name);
                top.wrong("workloads", node, message, mend);
            }
        }
    }
    compared
}

fn one_scheduler(
    top: &Reader<'_>,
    node: &Node,
    text: &str,
    uses: &[(Option<String>, FlowKind, String)],
    check: Check,
) -> Option<String> {
    let name = match check(text) {
        Ok(name) => name,
        Err((message, mend)) => {
            top.wrong("schedulers", node, message, mend);
            return None;
        }
    };
    for (own, kind, workload) in uses {
        if own.is_none() && !schedulers::serves(&name, *kind) {
            let (message, mend) = schedulers::unfit(&name, *kind, workload);
            top.wrong("schedulers", node, message, mend);
        }
    }
    Some(name)
}
