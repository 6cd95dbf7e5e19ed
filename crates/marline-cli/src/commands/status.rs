//! `marline status`: asks a running client or server, and prints a table or JSON.

use super::{CliError, output, runtime};
use crate::control::client::{AskError, ask};
use crate::control::forecast::CalibrationStatus;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::{FlowStatus, PathStatus, Role, SessionStatus, Status};
use crate::control::{is_private, usual_paths};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use marline_apps::live::status::LiveStatus;
use marline_apps::live::{Content, Wholeness};
use marline_apps::tun::status::TunnelStatus;
use std::fmt::Write;
use std::path::PathBuf;

/// Show the paths and flows of a running client or server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
In the table of flows, tau: one packet that this end sends in so many is a repair symbol now (- while none are due).
Repairs used recovered something at the other end before it arrived, wasted ones reached it for nothing; those
received came from the other end.

Examples:
  marline status                       the client of this user, or its server if there is no client
  marline status --json | jq '.sessions[].paths[] | {name, state, rtt_ms}'
  marline status --control /run/marline/server.sock")]
pub(super) struct Args {
    /// Control socket of the instance to ask.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    match request(args.control.as_ref(), &Request::Status)? {
        Outcome::Status { status } if args.json => output::json(&status),
        Outcome::Status { status } => output::line(table(&status).trim_end()),
        other => Err(CliError::runtime(format!("unexpected answer: {other:?}"))),
    }
}

/// Asks the instance at `control`, or else this user's client, or else this user's server.
pub(super) fn request(control: Option<&PathBuf>, request: &Request) -> Result<Outcome, CliError> {
    let candidates = match control {
        Some(path) => vec![path.clone()],
        None => [Role::Client, Role::Server].map(usual_paths).concat(),
    };
    let runtime = runtime()?;
    let (mut asked, mut foreign) = (Vec::new(), Vec::new());
    for path in &candidates {
        let folder = path.parent().filter(|_| control.is_none());
        if folder.is_some_and(|folder| matches!(is_private(folder), Ok(false))) {
            // Nobody knows who put it there, so it is not believed.
            foreign.push(path.display().to_string());
            continue;
        }
        asked.push(path.display().to_string());
        match runtime.block_on(ask(path, request.clone())) {
            Err(AskError::NotRunning(_)) => {}
            Ok(Outcome::Error { message, hint }) => {
                let error = CliError::runtime(message);
                return Err(match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                });
            }
            Ok(outcome) => return Ok(outcome),
            Err(error) => return Err(CliError::runtime(error)),
        }
    }
    let mut message = format!("no running marline answers at {}", asked.join(", "));
    if !foreign.is_empty() {
        let foreign = foreign.join(", ");
        message += &format!("; not asked, because others may write there: {foreign}");
    }
    Err(CliError::runtime(message).hint(
        "start `marline client` or `marline server`, or name its socket with `--control PATH`",
    ))
}

fn table(status: &Status) -> String {
    let mut text = String::new();
    let role = match status.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{role} {}, up {}",
        status.version,
        duration(status.uptime_s)
    );
    if status.sessions.is_empty() {
        text.push_str("no session\n");
    }
    for session in &status.sessions {
        push_session(&mut text, session);
    }
    if !status.live.is_empty() {
        push_live(&mut text, &status.live);
    }
    if let Some(tunnel) = &status.tunnel {
        push_tunnel(&mut text, tunnel);
    }
    text
}

fn push_session(text: &mut String, session: &SessionStatus) {
    let SessionStatus {
        id,
        peer,
        state,
        paths,
        flows,
        flows_opened,
    } = session;
    let _ = writeln!(
        text,
        "\nsession {id} with {peer}: {state}, {flows_opened} flows opened so far"
    );
    let mut table = new_table(&[
        "path",
        "name",
        "state",
        "rtt ms",
        "loss %",
        "cwnd",
        "in flight",
        "queue",
        "rate",
        "sent",
        "received",
        "reason",
    ]);
    for path in paths {
        table.add_row(path_row(path));
    }
    align(&mut table, 3..=10);
    let _ = writeln!(text, "{table}");
    push_forecasts(text, session);
    if flows.is_empty() {
        text.push_str("no open flow\n");
        return;
    }
    let mut table = new_table(&[
        "flow",
        "kind",
        "scheduler",
        "delivered",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "worst ms",
        "redundancy %",
        "retransmitted",
        "tau",
        "repairs sent/used/wasted",
        "repairs received/symbols recovered",
        "lost",
        "units sent/complete/given up",
    ]);
    for flow in flows {
        table.add_row(flow_row(flow));
    }
    align(&mut table, 3..=14);
    let _ = writeln!(text, "{table}");
}

/// What is expected of the paths, and how often promises made with it came true.
fn push_forecasts(text: &mut String, session: &SessionStatus) {
    let mut table = new_table(&[
        "forecast of",
        "mean",
        "deviation",
        "mode",
        "outage %",
        "promises",
        "promised on time %",
        "on time %",
    ]);
    for path in &session.paths {
        if let Some(forecast) = &path.forecast {
            let rate = |bps: u64| format!("{:.1} Mb/s", bps as f64 / 1e6);
            let mut row = vec![
                format!("path {}", path.id),
                rate(forecast.mean_bps),
                rate(forecast.sd_bps),
                forecast.mode.clone(),
                format!("{:.1}", forecast.outage * 100.0),
            ];
            row.extend(kept(&forecast.calibration));
            table.add_row(row);
        }
    }
    for flow in &session.flows {
        if let Some(calibration) = &flow.calibration {
            let mut row = vec![format!("flow {}", flow.id)];
            row.extend((0..4).map(|_| unknown()));
            row.extend(kept(calibration));
            table.add_row(row);
        }
    }
    if table.is_empty() {
        return;
    }
    align(&mut table, 1..=2);
    align(&mut table, 4..=7);
    let _ = writeln!(text, "{table}");
}

/// How many promises, what they promised, and how many were kept.
fn kept(calibration: &CalibrationStatus) -> [String; 3] {
    let percent = |share: Option<f64>| share.map_or_else(unknown, |p| format!("{:.1}", p * 100.0));
    [
        calibration.promises.to_string(),
        percent(calibration.promised),
        percent(calibration.kept),
    ]
}

/// Counts are in datagrams; both directions of an entry share a row.
fn push_live(text: &mut String, live: &[LiveStatus]) {
    let mut table = new_table(&[
        "live",
        "flows",
        "target",
        "paths carry",
        "in",
        "given up",
        "lost/late/twice there",
        "repaired",
        "redundancy %",
        "out",
        "lost",
        "late",
        "reordered",
        "duplicated",
        "input faults",
        "output faults",
    ]);
    for entry in live {
        table.add_row(live_row(entry));
    }
    align(&mut table, 1..=13);
    let _ = writeln!(text, "\n{table}");
}

fn push_tunnel(text: &mut String, tunnel: &TunnelStatus) {
    let TunnelStatus {
        device,
        addresses,
        mtu,
        standing,
        dropped_packets,
    } = tunnel;
    let _ = write!(text, "\ntunnel {device}: ");
    if !addresses.is_empty() {
        let _ = write!(text, "{}, MTU {mtu}, ", addresses.join(", "));
    }
    text.push_str(standing.as_str());
    if *dropped_packets > 0 {
        let _ = write!(text, "; {dropped_packets} packets of the server dropped");
    }
    text.push('\n');
}

fn live_row(entry: &LiveStatus) -> Vec<String> {
    let rate = |bps: u64| format!("{:.1} Mb/s", bps as f64 / 1e6);
    // Nobody knows what is needed, or whether the paths carry it, where nobody looks.
    let watched = |word: &str| if entry.watched { word } else { "-" }.to_owned();
    let LiveStatus { sent, received, .. } = entry;
    vec![
        entry.name.clone(),
        entry.flows.to_string(),
        entry.target_bps.map_or_else(|| watched("auto"), rate),
        entry.capacity_bps.map_or_else(|| watched("enough"), rate),
        rate(sent.rate_bps),
        (sent.given_up + sent.refused).to_string(),
        format!("{}/{}/{}", sent.lost, sent.late, sent.duplicated),
        sent.repaired.to_string(),
        format!("{:.1}", sent.redundancy * 100.0),
        rate(received.rate_bps),
        received.lost.to_string(),
        received.late.to_string(),
        received.reordered.to_string(),
        received.duplicated.to_string(),
        faults(sent.content, &sent.input),
        faults(received.content, &received.output),
    ]
}

/// What the content's own numbers say.
fn faults(content: Content, found: &Wholeness) -> String {
    let rtp = || {
        format!(
            "{} lost, {} late, {} twice",
            found.lost, found.late, found.duplicated
        )
    };
    let breaks = || format!("{} TS breaks", found.continuity_errors);
    match content {
        Content::Opaque => unknown(),
        Content::MpegTs => breaks(),
        Content::Rtp => rtp(),
        Content::RtpMpegTs => format!("{}, {}", rtp(), breaks()),
    }
}

fn new_table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(head);
    table
}

fn align(table: &mut Table, columns: std::ops::RangeInclusive<usize>) {
    for index in columns {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn path_row(path: &PathStatus) -> Vec<String> {
    let cost = (path.cost > 0).then(|| format!("cost {}", path.cost));
    // What people take for granted needs no word.
    let carrier = path.carrier.clone().filter(|carrier| carrier != "quic");
    let notes: Vec<String> = cost.into_iter().chain(carrier).collect();
    let name = match notes[..] {
        [] => path.name.clone(),
        _ => format!("{} ({})", path.name, notes.join(", ")),
    };
    vec![
        path.id.to_string(),
        name,
        path.state.name().to_owned(),
        path.rtt_ms.map_or_else(unknown, |rtt| format!("{rtt:.1}")),
        path.loss
            .map_or_else(unknown, |loss| format!("{:.1}", loss * 100.0)),
        bytes(path.cwnd_bytes),
        bytes(path.in_flight_bytes),
        bytes(path.queue_bytes),
        path.rate_bps
            .map_or_else(unknown, |rate| format!("{:.1} Mb/s", rate as f64 / 1e6)),
        bytes(path.sent_bytes),
        bytes(path.received_bytes),
        reason(path),
    ]
}

/// Why the path is in its state, how long its datagrams may be, and what is left of its budget.
fn reason(path: &PathStatus) -> String {
    let mut text = path.reason.clone();
    if let Some(longest) = path.datagram_bytes {
        let _ = write!(text, "; datagrams of {longest} B");
    }
    if let Some(budget) = &path.budget {
        let (used, limit) = (bytes(budget.used_bytes), bytes(budget.limit_bytes));
        let _ = write!(text, "; {used} of {limit} used in {}", budget.month);
    }
    text
}

fn flow_row(flow: &FlowStatus) -> Vec<String> {
    let delay = |pick: fn(&crate::control::status::Quantiles) -> f64| {
        flow.delay_ms
            .as_ref()
            .map_or_else(unknown, |delay| format!("{:.1}", pick(delay)))
    };
    vec![
        flow.id.to_string(),
        flow.kind.clone(),
        flow.scheduler.clone(),
        bytes(flow.delivered_bytes),
        delay(|delay| delay.p50),
        delay(|delay| delay.p95),
        delay(|delay| delay.p99),
        delay(|delay| delay.worst),
        format!("{:.1}", flow.redundancy * 100.0),
        bytes(flow.retransmitted_bytes),
        flow.coding_interval
            .map_or_else(unknown, |tau| tau.to_string()),
        repairs(flow),
        repairs_received(flow),
        flow.lost_messages.to_string(),
        units(flow),
    ]
}

/// Blocks or objects of this end: sent, complete at the other end, and given up.
fn units(flow: &FlowStatus) -> String {
    flow.units.map_or_else(unknown, |units| {
        let complete = units.complete + units.complete_late;
        let given_up = units.lost + units.cancelled;
        format!("{}/{complete}/{given_up}", units.sent)
    })
}

/// Repair symbols: sent, used, wasted.
fn repairs(flow: &FlowStatus) -> String {
    match flow.repairs_sent {
        0 => unknown(),
        sent => format!("{sent}/{}/{}", flow.repairs_used, flow.repairs_wasted),
    }
}

/// Repair symbols of the other end that arrived here, and symbols that came out of them before they
/// arrived.
fn repairs_received(flow: &FlowStatus) -> String {
    match flow.repairs_received {
        0 => unknown(),
        received => format!("{received}/{}", flow.symbols_recovered),
    }
}

fn unknown() -> String {
    "-".to_owned()
}

fn bytes(count: u64) -> String {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1000, "kB"),
    ];
    for (size, unit) in UNITS {
        if count >= size {
            return format!("{:.1} {unit}", count as f64 / size as f64);
        }
    }
    format!("{count} B")
}

fn duration(seconds: f64) -> String {
    let whole = std::time::Duration::from_secs(seconds.max(0.0) as u64);
    humantime::format_duration(whole).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    #[test]
    fn the_table_shows_what_the_status_says() {
        let text = table(&example());
        for expected in [
            "client 0.1.0, up 1m 1s",
            "session 0 with server-key: established, 5 flows opened so far",
            "31.2",
            "120.0 kB",
            "20.0 Mb/s",
            "wwan0 (cost 2)",
            "no feedback for 3 probe timeouts; 4.5 GB of 20.0 GB used in 2026-11",
            "min-rtt",
            "3.0 MB",
            "12.5",
            "7.5 Mb/s",
            "tunnel marline0: 10.77.0.2, fd77::2, MTU 1330, up; 61 packets of the server dropped",
            "1 TS breaks",
            "8/9/10",
            "12 lost, 13 late, 14 twice",
            "22/13/7",
            "59/41",
            "39.5 Mb/s",
            "95.3",
            "97.8",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        let mut status = example();
        let live = &mut status.live[0];
        (live.target_bps, live.capacity_bps) = (None, None);
        let row = |status: &Status| live_row(&status.live[0])[2..4].to_vec();
        assert_eq!(row(&status), ["auto", "enough"]);
        status.live[0].watched = false;
        assert_eq!(row(&status), ["-", "-"]);
        let dead = text.lines().find(|line| line.contains("wwan0")).unwrap();
        assert!(dead.contains("dead") && dead.contains('-'), "{dead}");
    }

    /// What stands in the right-aligned column of the only flow.
    fn of_flow(text: &str, column: &str) -> String {
        let mut lines = text.lines().skip_while(|line| !line.contains("scheduler"));
        let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
        let end = head.find(column).expect(column) + column.len();
        let cell = row[..end].rsplit(' ').next();
        cell.unwrap().to_owned()
    }

    #[test]
    fn a_flow_shows_its_coding_interval_and_what_repairs_were_good_for() {
        let mut status = example();
        let text = table(&status);
        let row = |text: &str| {
            [
                "tau",
                "repairs sent/used/wasted",
                "repairs received/symbols recovered",
            ]
            .map(|head| of_flow(text, head))
        };
        assert_eq!(row(&text), ["23", "22/13/7", "59/41"], "{text}");
        let flow = &mut status.sessions[0].flows[0];
        (
            flow.coding_interval,
            flow.repairs_sent,
            flow.repairs_received,
        ) = (None, 0, 0);
        let text = table(&status);
        assert_eq!(row(&text), ["-", "-", "-"], "{text}");
    }

    #[test]
    fn sizes_have_readable_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1500), "1.5 kB");
        assert_eq!(bytes(2_000_000_000_000), "2.0 TB");
    }
}
