//! Statistics for people and for programs.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use marline_lab::emulate::{DirectionStats, Lateness, Stats};
use marline_link::Reason;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// One direction since the last line: rate, queue, drops.
pub(super) fn line(before: &DirectionStats, now: &DirectionStats, time: Duration) -> String {
    let bits = (now.sent_bytes - before.sent_bytes) as f64 * 8.0;
    let dropped = now.link.dropped_total() - before.link.dropped_total();
    format!(
        "{:.2} Mb/s, queue {:.1} kB, {dropped} dropped",
        bits / time.as_secs_f64().max(1e-9) / 1e6,
        now.queued_bytes as f64 / 1e3,
    )
}

pub(super) fn table(stats: &Stats) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["", "up", "down"]);
    let mut row = |name: &str, value: &dyn Fn(&DirectionStats) -> u64| {
        let (up, down) = (value(&stats.up), value(&stats.down));
        table.add_row([name.to_owned(), up.to_string(), down.to_string()]);
    };
    row("datagrams offered", &|d| d.link.offered);
    row("bytes offered", &|d| d.link.offered_bytes);
    row("datagrams sent", &|d| d.sent);
    row("bytes sent", &|d| d.sent_bytes);
    for reason in Reason::ALL {
        row(&format!("dropped: {reason}"), &|d| {
            d.link.dropped_for(reason)
        });
    }
    row("cut: the link went dark", &|d| d.cut);
    row("dropped: too much on the way", &|d| d.overflow);
    row("refused by the system", &|d| d.send_errors);
    row("sent twice", &|d| d.link.copied);
    row("on their way", &|d| d.in_flight as u64);
    for column in 1..=2 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let Lateness {
        count,
        p50,
        p99,
        max,
    } = stats.lateness;
    if count == 0 {
        return format!("{table}\n");
    }
    format!("{table}\nsent after their time: p50 {p50:.1?}, p99 {p99:.1?}, worst {max:.1?}\n")
}

/// The final statistics as JSON. Bytes count with IP and UDP headers.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    up: Side,
    down: Side,
    clients: usize,
    refused: u64,
    lateness_us: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Serialize)]
struct Side {
    offered: u64,
    offered_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    dropped: BTreeMap<&'static str, u64>,
    copied: u64,
    cut: u64,
    overflow: u64,
    send_errors: u64,
    queued_bytes: u64,
    in_flight: usize,
}

impl From<&DirectionStats> for Side {
    fn from(stats: &DirectionStats) -> Self {
        let DirectionStats {
            link,
            sent,
            sent_bytes,
            cut,
            overflow,
            send_errors,
            queued_bytes,
            in_flight,
        } = *stats;
        Self {
            offered: link.offered,
            offered_bytes: link.offered_bytes,
            sent,
            sent_bytes,
            dropped: Reason::ALL
                .map(|reason| (reason.name(), link.dropped_for(reason)))
                .into(),
            copied: link.copied,
            cut,
            overflow,
            send_errors,
            queued_bytes,
            in_flight,
        }
    }
}

impl From<&Stats> for Report {
    fn from(stats: &Stats) -> Self {
        let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
        let Lateness { p50, p99, max, .. } = stats.lateness;
        Self {
            up: (&stats.up).into(),
            down: (&stats.down).into(),
            clients: stats.clients,
            refused: stats.refused,
            lateness_us: [
                ("p50", micros(p50)),
                ("p99", micros(p99)),
                ("max", micros(max)),
            ]
            .into(),
        }
    }
}
