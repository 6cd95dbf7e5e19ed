//! Flows: a line for each kind and scheduler, and on request a paragraph for each flow.

use super::paths::promises;
use crate::commands::page::{Page, Row};
use crate::control::status::{FlowStatus, Quantiles};
use crate::control::words::{bytes, figure, number, percent, shortened, unknown};
use std::collections::BTreeMap;

/// Most columns of a scheduler's name in the table: what the widest figures leave of 80.
const SCHEDULER: usize = 15;

pub(super) fn push(page: &mut Page, flows: &[FlowStatus]) {
    if flows.is_empty() {
        page.line("no open flow");
        return;
    }
    let mut groups: BTreeMap<(&str, &str), Vec<&FlowStatus>> = BTreeMap::new();
    for flow in flows {
        let key = (&*flow.kind, &*flow.scheduler);
        groups.entry(key).or_default().push(flow);
    }
    let head = [
        "flows",
        "scheduler",
        "open",
        "sent",
        "arrived",
        "delivered",
        "p95 ms",
        "extra %",
        "lost",
    ];
    let rows = groups.iter().map(|(key, flows)| group(*key, flows));
    page.table(&head, 2, rows.collect());
    if page.layout.details {
        page.gap();
        flows.iter().for_each(|flow| page.line(&details(flow)));
    }
}

/// Flows of a kind with one scheduler.
fn group((kind, scheduler): (&str, &str), flows: &[&FlowStatus]) -> Row {
    // Figures of a peer may be anything.
    let sum = |figure: fn(&FlowStatus) -> u64| {
        flows
            .iter()
            .fold(0_u64, |sum, flow| sum.saturating_add(figure(flow)))
    };
    let sent = sum(|flow| flow.sent_bytes);
    let extra: f64 = flows
        .iter()
        .map(|flow| flow.redundancy * flow.sent_bytes as f64)
        .sum();
    let slowest = flows
        .iter()
        .filter_map(|flow| Some(flow.delay_ms?.p95))
        .reduce(f64::max);
    let cells = vec![
        kind.to_owned(),
        shortened(scheduler, SCHEDULER),
        number(flows.len() as u64),
        bytes(sent),
        bytes(sum(|flow| flow.acked_bytes)),
        bytes(sum(|flow| flow.delivered_bytes)),
        slowest.map_or_else(unknown, figure),
        match sent {
            0 => unknown(),
            sent => percent(extra / sent as f64),
        },
        number(sum(|flow| flow.lost_messages)),
    ];
    let note = String::new();
    Row { cells, note }
}

fn details(flow: &FlowStatus) -> String {
    let mut parts = vec![format!(
        "flow {}: {}, {}, priority {}; sent {}, arrived {}, waiting {}; delivered {}",
        flow.id,
        flow.kind,
        flow.scheduler,
        flow.priority,
        bytes(flow.sent_bytes),
        bytes(flow.acked_bytes),
        bytes(flow.backlog_bytes),
        bytes(flow.delivered_bytes),
    )];
    if let Some(Quantiles {
        p50,
        p95,
        p99,
        worst,
    }) = flow.delay_ms
    {
        parts.push(format!(
            "delay p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms, worst {worst:.1} ms"
        ));
    }
    parts.push(format!(
        "redundancy {} %, sent again {}",
        percent(flow.redundancy),
        bytes(flow.retransmitted_bytes)
    ));
    if let Some(tau) = flow.coding_interval {
        parts.push(format!("tau {tau}"));
    }
    if flow.repairs_sent > 0 {
        parts.push(format!(
            "repairs sent {}, used {}, wasted {}",
            flow.repairs_sent, flow.repairs_used, flow.repairs_wasted
        ));
    }
    if flow.repairs_received > 0 {
        parts.push(format!(
            "repairs received {}, symbols recovered {}",
            flow.repairs_received, flow.symbols_recovered
        ));
    }
    if flow.lost_messages > 0 {
        parts.push(format!("lost {}", flow.lost_messages));
    }
    if let Some(units) = &flow.units {
        parts.push(format!(
            "units sent {}, complete {}, given up {}",
            units.sent,
            units.complete.saturating_add(units.complete_late),
            units.lost.saturating_add(units.cancelled)
        ));
    }
    if let Some(calibration) = &flow.calibration {
        parts.push(promises(calibration));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::page::Layout;
    use crate::control::status::tests::example;

    fn text(flows: &[FlowStatus], details: bool) -> String {
        let mut page = Page::new(Layout { width: 80, details });
        push(&mut page, flows);
        page.into_text()
    }

    #[test]
    fn five_hundred_flows_are_a_line() {
        let flow = example().sessions.remove(0).flows.remove(0);
        let mut flows = vec![flow.clone(); 500];
        flows[7].delay_ms.as_mut().unwrap().p95 = 77.7;
        flows.push(FlowStatus {
            kind: "packets".into(),
            sent_bytes: 0,
            ..flow
        });
        let text = text(&flows, false);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let words: Vec<_> = lines[2].split_whitespace().collect();
        let expected = "stream min-rtt 500 500.0 kB 450.0 kB 1.5 GB 77.7 12.5 1000";
        assert_eq!(words.join(" "), expected);
        assert!(lines.iter().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn the_widest_figures_take_80_columns_at_most() {
        let mut flow = example().sessions.remove(0).flows.remove(0);
        (flow.kind, flow.scheduler) = ("packets".into(), "a scheduler of a long name".into());
        (flow.sent_bytes, flow.acked_bytes) = (999_999_999, 999_949_999);
        (flow.delivered_bytes, flow.lost_messages) = (999_949_999, u64::MAX);
        flow.delay_ms.as_mut().unwrap().p95 = 999_999.0;
        flow.redundancy = 9_999.0;
        let text = text(&vec![flow; 100_000], false);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    }

    #[test]
    fn details_say_what_repairs_were_good_for() {
        let mut flow = example().sessions.remove(0).flows.remove(0);
        let shown = text(std::slice::from_ref(&flow), true).replace("\n    ", " ");
        for part in [
            "flow 4: stream, min-rtt, priority 3; sent 1.0 kB, arrived 900 B, waiting 10 B",
            "tau 23; repairs sent 22, used 13, wasted 7; repairs received 59, symbols recovered 41",
            "units sent 31, complete 41, given up 26",
            "1200 promises, promised on time 98.1 %, on time 97.8 %",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        (flow.coding_interval, flow.repairs_sent) = (None, 0);
        flow.repairs_received = 0;
        let shown = text(&[flow], true);
        assert!(
            !shown.contains("tau") && !shown.contains("repairs"),
            "{shown}"
        );
    }
}
