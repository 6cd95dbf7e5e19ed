//! `[[cross]]`: traffic of others on a link.

use marline_base::{Instant, Rate};

use super::around::Around;
use super::links::is_name;
use super::loads::tcp_congestion;
use super::plan::{CrossPlan, CrossSource};
use super::reader::Reader;
use super::sessions::link;
use super::workloads::{ENDS, active};
use crate::engine::End;

#[derive(Clone, Copy)]
enum Kind {
    Constant,
    Poisson,
    OnOff,
    Tcp,
}

const KINDS: &[(&str, Kind)] = &[
    ("constant", Kind::Constant),
    ("poisson", Kind::Poisson),
    ("on-off", Kind::OnOff),
    ("tcp", Kind::Tcp),
];

/// Reads the cross traffic of a scenario.
pub(super) fn read(top: &Reader<'_>, around: &Around<'_>) -> Vec<CrossPlan> {
    let mut all: Vec<CrossPlan> = Vec::new();
    for one in top.tables("cross").unwrap_or_default() {
        let Some(plan) = cross(&one, around) else {
            continue;
        };
        if all.iter().any(|other| other.name == plan.name) {
            let mend = "give each a `name` of its own";
            one.wrong_at(
                &one.place,
                &one.key("name"),
                format!("`{}` comes twice", plan.name),
                mend,
            );
        }
        all.push(plan);
    }
    all
}

fn cross(reader: &Reader<'_>, around: &Around<'_>) -> Option<CrossPlan> {
    reader.needed("kind", "\"poisson\"");
    let kind = reader.word("kind", KINDS)?;
    let name = reader.text("name").or_else(|| reader.text("kind"))?;
    if !is_name(&name) {
        let mend = "use small letters, digits and hyphens";
        reader.wrong_at(
            &reader.place,
            &reader.key("name"),
            format!("`{name}` is no name"),
            mend,
        );
    }
    let link = link(reader, around);
    let from = reader.word("from", ENDS).unwrap_or(End::Server);
    let starts = reader.moment("starts").unwrap_or(Instant::ZERO);
    let stops = reader.moment("stops");
    active(reader, around, starts, stops);
    let source = source(reader, kind);
    reader.finish();
    Some(CrossPlan {
        name,
        link: link?,
        from,
        starts,
        stops,
        source: source?,
    })
}

fn source(reader: &Reader<'_>, kind: Kind) -> Option<CrossSource> {
    if let Kind::Tcp = kind {
        return Some(CrossSource::Tcp {
            congestion: tcp_congestion(reader),
            bytes: reader.bytes("bytes", 1..=1 << 50),
        });
    }
    let rate: Option<Rate> = reader.need_rate("rate", "\"2mbit\"");
    let size = reader.bytes("size", 20..=65_535).unwrap_or(1_200) as u32;
    match kind {
        Kind::Constant => Some(CrossSource::Constant { rate: rate?, size }),
        Kind::Poisson => Some(CrossSource::Poisson { rate: rate?, size }),
        Kind::OnOff => {
            let on = reader.need_span("on", "\"500ms\"");
            let off = reader.need_span("off", "\"2s\"");
            Some(CrossSource::OnOff {
                rate: rate?,
                size,
                on: on?,
                off: off?,
            })
        }
        Kind::Tcp => None,
    }
}
