//! Live entries: what goes in and comes out, what is given up, and which path or limit is the
//! cause.

use super::paths::why;
use crate::commands::page::Page;
use crate::control::status::PathStatus;
use crate::control::words::{content, mbps, percent, rate, some};
use marline_apps::live::status::{LiveReceived, LiveSent, LiveStatus};
use marline_apps::live::{Content, Wholeness};
use marline_proto::path::PathState;

/// A path that loses more than this share is said to lose.
const LOSSY: f64 = 0.01;

/// `paths`: those of all sessions.
pub(super) fn push(page: &mut Page, entry: &LiveStatus, paths: &[&PathStatus]) {
    page.line(&head(entry));
    let LiveStatus { sent, received, .. } = entry;
    if sent.datagrams > 0 {
        page.note(&sending(sent));
    }
    if received.datagrams > 0 {
        page.note(&receiving(received));
    }
    if sent.datagrams == 0 && received.datagrams == 0 {
        page.note("nothing yet");
    }
    for trouble in limits(entry).into_iter().chain(causes(entry, paths)) {
        page.note(&trouble);
    }
}

fn head(entry: &LiveStatus) -> String {
    let target = match entry.target_bps {
        Some(target) => Some(format!("target {}", rate(target))),
        None => entry.watched.then(|| "target auto".to_owned()),
    };
    let latency = entry.latency_ms.map(|ms| format!("latency {ms:.0} ms"));
    let parts: Vec<String> = [target, latency, Some(some(entry.flows, "flow"))]
        .into_iter()
        .flatten()
        .collect();
    format!("live {}: {}", entry.name, parts.join(", "))
}

fn sending(sent: &LiveSent) -> String {
    let mut text = format!(
        "in {}, sent {} datagrams",
        rate(sent.rate_bps),
        sent.datagrams
    );
    if let Some(content) = content(sent.content) {
        text += &format!(" of {content}");
    }
    text += &format!(
        "; lost there {}, late {}, twice {}; repaired {}, redundancy {} %",
        sent.lost,
        sent.late,
        sent.duplicated,
        sent.repaired,
        percent(sent.redundancy)
    );
    text + &faults("input", sent.content, &sent.input)
}

fn receiving(received: &LiveReceived) -> String {
    let mut text = format!(
        "out {}, delivered {} datagrams",
        rate(received.rate_bps),
        received.datagrams
    );
    if let Some(content) = content(received.content) {
        text += &format!(" of {content}");
    }
    text += &format!(
        "; lost {}, late {}, reordered {}, twice {}",
        received.lost, received.late, received.reordered, received.duplicated
    );
    text + &faults("output", received.content, &received.output)
}

/// What the content's own numbers say.
fn faults(what: &str, content: Content, found: &Wholeness) -> String {
    let mut text = String::new();
    if matches!(content, Content::Rtp | Content::RtpMpegTs) {
        text += &format!(
            "; {what} RTP lost {}, late {}, twice {}",
            found.lost, found.late, found.duplicated
        );
    }
    if matches!(content, Content::MpegTs | Content::RtpMpegTs) {
        text += &format!("; {what} TS breaks {}", found.continuity_errors);
    }
    text
}

/// Whether the paths carry what is needed, and whether more is sent than was said.
fn limits(entry: &LiveStatus) -> Vec<String> {
    let mut limits = Vec::new();
    if let (Some(excess), Some(target)) = (entry.excess_bps, entry.target_bps) {
        limits.push(format!(
            "the encoder sends {}, {} more than its target of {}",
            rate(entry.sent.rate_bps),
            mbps(excess),
            mbps(target)
        ));
    }
    match entry.capacity_bps {
        Some(_) => limits.extend(below(entry)),
        // Nobody knows where nobody looks; and beyond its target nothing is promised.
        None if entry.watched && entry.excess_bps.is_none() && entry.sent.datagrams > 0 => {
            limits.push("the paths carry enough".to_owned());
        }
        None => {}
    }
    limits
}

/// That the paths carry less than is needed, if so.
fn below(entry: &LiveStatus) -> Option<String> {
    let carried = rate(entry.capacity_bps?);
    Some(match entry.target_bps {
        Some(target) => format!("the paths carry {carried} of the {} needed", mbps(target)),
        None => format!("the paths carry {carried}, which is less than comes in"),
    })
}

/// What was given up, and which path or limit is the cause.
fn causes(entry: &LiveStatus, paths: &[&PathStatus]) -> Option<String> {
    let sent = &entry.sent;
    let all = sent.given_up.saturating_add(sent.refused);
    if all == 0 {
        return None;
    }
    let mut causes = Vec::new();
    if sent.refused > 0 {
        causes.push(format!(
            "{} refused, for want of a session or of room",
            sent.refused
        ));
    }
    if sent.given_up_waiting > 0 {
        let limit = match (below(entry), entry.excess_bps) {
            (_, Some(_)) => "the encoder sends more than its target".to_owned(),
            (Some(below), None) => below,
            (None, None) => "no path had room in time".to_owned(),
        };
        causes.push(format!(
            "{} waited too long to leave: {limit}",
            sent.given_up_waiting
        ));
    }
    let mut blamed: Vec<_> = sent.given_up_on.iter().collect();
    blamed.sort_by_key(|(_, datagrams)| std::cmp::Reverse(**datagrams));
    for (name, datagrams) in blamed {
        let state = paths.iter().find(|path| path.name == *name);
        let state = state.and_then(|path| blame(path, entry.latency_ms));
        let state = state.map_or_else(String::new, |state| format!(" ({state})"));
        causes.push(format!("{datagrams} lost or late over {name}{state}"));
    }
    Some(match causes.is_empty() {
        true => format!("given up {all}"),
        false => format!("given up {all}: {}", causes.join("; ")),
    })
}

/// What is wrong with a path now, for an entry that waits so long, in ms.
fn blame(path: &PathStatus, latency_ms: Option<f64>) -> Option<String> {
    if path.state != PathState::Active {
        return Some(format!("{}: {}", path.state.name(), why(path)));
    }
    let slow = |rtt: &f64| latency_ms.is_some_and(|latency| *rtt > latency);
    if let Some(rtt) = path.rtt_ms.filter(slow) {
        let latency = latency_ms.unwrap_or_default();
        return Some(format!(
            "its round trip of {rtt:.0} ms leaves no time to repair within {latency:.0} ms"
        ));
    }
    let loss = path.loss.filter(|loss| *loss > LOSSY)?;
    Some(format!("loses {} %", percent(loss)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::page::Layout;
    use crate::control::status::tests::example;

    fn shown(entry: &LiveStatus, paths: &[PathStatus]) -> String {
        let mut page = Page::new(Layout {
            width: 80,
            details: false,
        });
        push(&mut page, entry, &paths.iter().collect::<Vec<_>>());
        let text = page.into_text();
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        text.replace("\n    ", " ")
    }

    #[test]
    fn an_entry_says_what_each_end_sent_and_delivered_and_why_it_gives_up() {
        let mut status = example();
        let (mut entry, mut paths) = (status.live.remove(0), status.sessions.remove(0).paths);
        let text = shown(&entry, &paths);
        for part in [
            "live cam: target 10.0 Mb/s, latency 150 ms, 1 flow",
            "in 9.9 Mb/s, sent 9000 datagrams of MPEG-TS; lost there 8, late 9, twice 10;",
            "repaired 21, redundancy 13.0 %; input TS breaks 1",
            "out 0.1 Mb/s, delivered 70 datagrams of RTP; lost 3, late 2, reordered 5, twice 4;",
            "output RTP lost 12, late 13, twice 14",
            "the encoder sends 9.9 Mb/s, 2.0 more than its target of 10.0",
            "the paths carry 7.5 Mb/s of the 10.0 needed",
            "given up 7: 1 refused, for want of a session or of room; 2 waited too long to leave: the encoder \
             sends more than its target; 4 lost or late over wwan0 (dead: no answer for 14 s)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        entry.excess_bps = None;
        paths[1].state = PathState::Active;
        (paths[1].rtt_ms, paths[1].loss) = (Some(320.0), Some(0.12));
        let text = shown(&entry, &paths);
        let limit =
            "2 waited too long to leave: the paths carry 7.5 Mb/s of the 10.0 needed; 4 lost";
        assert!(text.contains(limit), "{text}");
        let slow = "(its round trip of 320 ms leaves no time to repair within 150 ms)";
        assert!(text.contains(slow), "{text}");
        paths[1].rtt_ms = Some(32.0);
        entry.capacity_bps = None;
        let text = shown(&entry, &paths);
        assert!(text.contains("over wwan0 (loses 12.0 %)"), "{text}");
        assert!(
            text.contains("to leave: no path had room in time"),
            "{text}"
        );
        assert!(text.contains("the paths carry enough"), "{text}");
    }

    #[test]
    fn enough_is_not_said_where_more_than_the_target_is_sent_or_nobody_looks() {
        let mut entry = example().live.remove(0);
        entry.capacity_bps = None;
        assert!(!shown(&entry, &[]).contains("enough"));
        (entry.excess_bps, entry.target_bps) = (None, None);
        let text = shown(&entry, &[]);
        assert!(
            text.contains("target auto") && text.contains("enough"),
            "{text}"
        );
        entry.watched = false;
        let text = shown(&entry, &[]);
        assert!(!text.contains("auto") && !text.contains("enough"), "{text}");
    }
}
