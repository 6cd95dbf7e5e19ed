//! Paths: a line each.

use crate::commands::page::{Page, Row};
use crate::control::forecast::CalibrationStatus;
use crate::control::status::{FlowStatus, PathStatus};
use crate::control::words::{
    brief, bytes, figure, mbps, percent, shortened, some, spoken, unknown,
};
use marline_proto::path::PathState;

/// Columns that the widest figures beside a path's name take, with a gap of one between them.
const FIGURES: usize = 57;
/// A suspect or dead path is asked at least this often, seconds (`SUSPECT_INTERVAL` of
/// `marline-proto`), so that one that answers has done so within this time and a round trip.
const ASKED: f64 = 0.2;

pub(super) fn push(page: &mut Page, paths: &[PathStatus], flows: &[FlowStatus]) {
    if paths.is_empty() {
        page.line("no path");
        return;
    }
    let head = [
        "path", "state", "for", "rtt ms", "loss %", "Mb/s", "sent", "received",
    ];
    let room = page.layout.width.saturating_sub(FIGURES);
    let rows = paths.iter().map(|path| row(path, paths, flows, room));
    let rows = rows.collect();
    page.table(&head, 2, rows);
    if page.layout.details {
        page.gap();
        paths.iter().for_each(|path| page.line(&details(path)));
    }
}

fn row(path: &PathStatus, all: &[PathStatus], flows: &[FlowStatus], room: usize) -> Row {
    let PathStatus {
        name, state, for_s, ..
    } = path;
    let cells = vec![
        shortened(name, room),
        state.name().to_owned(),
        brief(*for_s),
        path.rtt_ms.map_or_else(unknown, figure),
        path.loss.map_or_else(unknown, percent),
        path.rate_bps.map_or_else(unknown, mbps),
        bytes(path.sent_bytes),
        bytes(path.received_bytes),
    ];
    let mut notes = Vec::new();
    if cells[0] != *name {
        notes.push(name.clone());
    }
    if *state != PathState::Active {
        notes.push(why(path));
    }
    notes.extend(terms(path));
    notes.extend(spilled(path, all, flows));
    Row {
        cells,
        note: notes.join("; "),
    }
}

/// Why the path is in its state.
pub(super) fn why(path: &PathStatus) -> String {
    let answers_within = ASKED + 2.0 * path.rtt_ms.unwrap_or(0.0) / 1e3;
    match (path.state, path.silent_s) {
        (PathState::Suspect, Some(silent)) if silent > answers_within => no_answer(silent),
        (PathState::Dead, Some(silent)) => no_answer(silent),
        _ => path.reason.clone(),
    }
}

fn no_answer(silent: f64) -> String {
    format!("no answer for {}", spoken(silent))
}

/// What is unusual about the path.
fn terms(path: &PathStatus) -> Vec<String> {
    let mut terms = Vec::new();
    if path.cost > 0 {
        terms.push(format!("cost {}", path.cost));
    }
    // What people take for granted needs no word.
    if let Some(carrier) = path.carrier.as_ref().filter(|carrier| *carrier != "quic") {
        terms.push(format!("carried by {carrier}"));
    }
    if let Some(budget) = &path.budget {
        terms.push(format!(
            "{} of {} used in {}",
            bytes(budget.used_bytes),
            bytes(budget.limit_bytes),
            budget.month
        ));
    }
    terms
}

/// For whom a path is open that is dearer than the cheapest one in use, if for anybody.
fn spilled(path: &PathStatus, all: &[PathStatus], flows: &[FlowStatus]) -> Option<String> {
    let in_use = |path: &&PathStatus| path.state == PathState::Active;
    let cheapest = all.iter().filter(in_use).map(|path| path.cost).min()?;
    if !in_use(&path) || path.cost == cheapest {
        return None;
    }
    let may = |flow: &&FlowStatus| flow.spill_cost.is_some_and(|most| path.cost <= most);
    let flows = flows.iter().filter(may);
    let waits: Vec<f64> = flows.filter_map(|flow| flow.spill_wait_ms).collect();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    (!waits.is_empty()).then(|| {
        let flows = some(waits.len() as u64, "flow");
        format!("open to {flows}: cheaper paths would hold them up for {longest:.0} ms")
    })
}

fn details(path: &PathStatus) -> String {
    let mut text = format!(
        "path {} {}: {}; round trip at least {} ms; window {}, in flight {}, waiting {}; packets \
         sent {}, lost {}; the other end sent {}, missing {}",
        path.id,
        path.name,
        path.reason,
        path.rtt_min_ms
            .map_or_else(unknown, |rtt| format!("{rtt:.1}")),
        bytes(path.cwnd_bytes),
        bytes(path.in_flight_bytes),
        bytes(path.queue_bytes),
        path.sent_packets,
        path.lost_packets,
        path.peer_sent_packets,
        path.missing_packets,
    );
    if let Some(longest) = path.datagram_bytes {
        text += &format!("; datagrams of {longest} B");
    }
    if let Some(forecast) = &path.forecast {
        text += &format!(
            "; forecast {} ± {} Mb/s ({}), outage {} %; {}",
            mbps(forecast.mean_bps),
            mbps(forecast.sd_bps),
            forecast.mode,
            percent(forecast.outage),
            promises(&forecast.calibration)
        );
    }
    if let Some(law) = &path.law
        && let Some(late) = law.deciles.last()
    {
        text += &format!(
            "; of {} packets followed {} % came in the last tenth of the time that the path's law gave them, \
             and {} were lost of {:.1} expected",
            law.packets,
            percent(*late),
            law.lost,
            law.expected_lost
        );
    }
    text
}

/// How many promises, what they promised, and how many were kept.
pub(super) fn promises(calibration: &CalibrationStatus) -> String {
    let percent = |share: Option<f64>| share.map_or_else(unknown, percent);
    format!(
        "{} promises, promised on time {} %, on time {} %",
        calibration.promises,
        percent(calibration.promised),
        percent(calibration.kept)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    fn dead() -> PathStatus {
        example().sessions.remove(0).paths.remove(1)
    }

    #[test]
    fn a_path_in_doubt_says_for_how_long_nobody_answers() {
        let mut path = dead();
        assert_eq!(why(&path), "no answer for 14 s");
        path.state = PathState::Suspect;
        path.reason = "answers again; on trial".into();
        (path.silent_s, path.rtt_ms) = (Some(1.2), Some(300.0));
        assert_eq!(why(&path), "no answer for 1.2 s");
        path.silent_s = Some(0.7);
        assert_eq!(why(&path), "answers again; on trial");
        path.state = PathState::Standby;
        (path.reason, path.silent_s) = ("over its budget of the month".into(), Some(9.0));
        assert_eq!(why(&path), "over its budget of the month");
        // It is not up: what its dial said.
        (path.state, path.silent_s) = (PathState::Dead, None);
        path.reason = "no route".into();
        assert_eq!(why(&path), "no route");
    }

    #[test]
    fn a_dear_path_says_for_whom_it_is_open() {
        let mut flow = example().sessions.remove(0).flows.remove(0);
        (flow.spill_cost, flow.spill_wait_ms) = (Some(2), Some(340.2));
        let [cheap, mut dear] = [0, 2].map(|cost| PathStatus {
            state: PathState::Active,
            cost,
            ..dead()
        });
        let said = |dear: &PathStatus, flow: &FlowStatus| {
            let all = [cheap.clone(), dear.clone()];
            spilled(dear, &all, std::slice::from_ref(flow))
        };
        let open = "open to 1 flow: cheaper paths would hold them up for 340 ms";
        assert_eq!(said(&dear, &flow).as_deref(), Some(open));
        let alone = spilled(
            &dear,
            std::slice::from_ref(&dear),
            std::slice::from_ref(&flow),
        );
        assert_eq!(alone, None, "it is the cheapest");
        dear.state = PathState::Dead;
        assert_eq!(said(&dear, &flow), None);
        dear.state = PathState::Active;
        flow.spill_cost = Some(1);
        assert_eq!(said(&dear, &flow), None);
    }

    #[test]
    fn the_widest_figures_and_a_name_that_is_cut_are_complete_in_80_columns() {
        let mut path = dead();
        path.name = "[2001:db8:1234:5678:9abc:def0:1234:5678]:43210".into();
        path.state = PathState::Validating;
        path.for_s = 119.0;
        (path.rtt_ms, path.loss) = (Some(999_999.0), Some(1.0));
        path.rate_bps = Some(u64::MAX);
        (path.sent_bytes, path.received_bytes) = (999_949_999, 999_999_999);
        let mut page = Page::new(crate::commands::page::Layout {
            width: 80,
            details: false,
        });
        push(&mut page, &[path.clone()], &[]);
        let text = page.into_text();
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        for part in [&*path.name, "cost 2", "4.5 GB of 20.0 GB used in 2026-11"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
