//! `[model]`: a scheduler over the links without a protocol.

use marline_base::Duration;

use super::beside::refuse_beside;
use super::links::Written;
use super::reader::{LONGEST, Reader};
use crate::model::{BlockCode, Demand, Feedback, Model, ModelPath};

/// Most packets that one run writes.
const MOST_PACKETS: u64 = 100_000_000;
/// The keys of scenarios with sessions, which a model has none of.
const NOT_HERE: [&str; 9] = [
    "sessions",
    "paths",
    "workloads",
    "cross",
    "changes",
    "handovers",
    "turn",
    "congestion",
    "settings",
];

#[derive(Clone, Copy)]
enum Kind {
    Units,
    Bursts,
    Saturated,
}

/// Reads `[model]`; the caller finishes `top`.
pub(super) fn read(
    top: &Reader<'_>,
    reader: &Reader<'_>,
    links: &[Written],
    duration: Duration,
    warmup: Duration,
) -> Option<Model> {
    refuse_beside(top, &NOT_HERE, "model");
    let packet = reader.whole("packet", 16..=65_535).unwrap_or(1_500) as u32;
    let ahead = reader.whole("ahead", 1..=1_000_000).unwrap_or(1) as u32;
    let back = reader.time("feedback");
    let knows = [("pacing", true), ("arrivals", false)];
    let paced = reader.word("queue-known-by", &knows).unwrap_or(true);
    let feedback = match (back, paced) {
        (None, true) => Feedback::Perfect,
        (back, true) => Feedback::Paced(back.unwrap_or_default()),
        (back, false) => Feedback::Delayed(back.unwrap_or_default()),
    };
    let demand = demand(reader, duration);
    let block = block(reader);
    let exhaustive = reader.flag("exhaustive").unwrap_or(false);
    if let Some(node) = reader.get("exhaustive")
        && exhaustive
        && !matches!(demand, Some(Demand::Units { packets, .. }) if packets <= Model::MOST_EXHAUSTIVE)
    {
        let most = Model::MOST_EXHAUSTIVE;
        let mend = format!("write demand = \"units\" with packets = {most} at most");
        reader.wrong("exhaustive", node, "is not possible here", mend);
    }
    reader.finish();
    let mut paths = Vec::new();
    for link in links {
        let path = ModelPath {
            name: link.plan.name.clone(),
            link: link.plan.up.clone(),
            ahead,
        };
        paths.push(path);
    }
    let model = Model {
        paths,
        packet,
        feedback,
        demand: demand?,
        block,
        warmup,
        exhaustive,
    };
    if let Err(error) = model.check()
        && let Some(links) = top.inner("links")
    {
        links.wrong_at(
            &links.place,
            &links.key(&error.path),
            &error.reason,
            "write rate = \"10mbit\", or service = \"1ms\" for the time of one packet",
        );
    }
    Some(model)
}

fn demand(reader: &Reader<'_>, duration: Duration) -> Option<Demand> {
    let kinds = [
        ("units", Kind::Units),
        ("bursts", Kind::Bursts),
        ("saturated", Kind::Saturated),
    ];
    reader.needed("demand", "\"saturated\", or \"units\", or \"bursts\"");
    match reader.word("demand", &kinds)? {
        Kind::Saturated => Some(Demand::Saturated { until: duration }),
        Kind::Bursts => {
            reader.needed("packets", "20, the mean packets of a burst");
            reader.needed("every", "\"50ms\", the mean time between bursts");
            let packets = reader.number("packets")?;
            let every = reader.span("every")?;
            if !(1.0..=1e6).contains(&packets) {
                let node = reader.get("packets")?;
                reader.wrong("packets", node, "is out of range", "write 1 to 1000000");
                return None;
            }
            Some(Demand::Bursts {
                packets,
                every,
                until: duration,
            })
        }
        Kind::Units => {
            reader.needed("every", "\"1ms\", the time between units");
            let packets = reader.whole("packets", 1..=1_000_000).unwrap_or(1);
            let every = reader.time_in("every", Duration::from_nanos(1)..=LONGEST)?;
            let random = reader.flag("random").unwrap_or(false);
            let units = (duration.as_nanos() / every.as_nanos()).max(1) as u64;
            if units.saturating_mul(packets) > MOST_PACKETS {
                let node = reader.get("every")?;
                let mend = format!(
                    "write a longer time, or a shorter `duration`: {MOST_PACKETS} packets are the most"
                );
                reader.wrong("every", node, "asks for too many packets", mend);
                return None;
            }
            Some(Demand::Units {
                packets: packets as u32,
                every,
                random,
                units: units as u32,
            })
        }
    }
}

fn block(reader: &Reader<'_>) -> Option<BlockCode> {
    let block = reader.inner("block")?;
    block.needed("source", "32, the source packets of a block");
    block.needed("coded", "8, the coded packets of a block");
    let source = block.whole("source", 1..=100_000);
    let coded = block.whole("coded", 1..=100_000);
    block.finish();
    Some(BlockCode {
        source: source? as u32,
        coded: coded? as u32,
    })
}
