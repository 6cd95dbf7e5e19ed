//! How live entries fare, again and again: one line that is rewritten where there is a terminal,
//! else a line of the log now and then.

use crate::commands::line;
use marline_apps::live::status::{LiveReceived, LiveSent, LiveStatus};
use marline_apps::live::{Board, Content, Wholeness};
use marline_apps::proxy::Tasks;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

const ON_TERMINAL: Duration = Duration::from_secs(1);
const IN_LOG: Duration = Duration::from_secs(10);

/// Shows the entries of `board` until the tasks drain.
pub(in crate::commands) async fn show(board: Board, tasks: Tasks) {
    let terminal = line::possible();
    let mut ticks = interval(if terminal { ON_TERMINAL } else { IN_LOG });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = board.status();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = tasks.draining() => break,
        }
        let now = board.status();
        if terminal {
            let entries: Vec<String> = now.iter().map(text).collect();
            line::show(&entries.join("  |  "));
        } else {
            // What is quiet needs no line.
            let moved = |(old, new): &(&LiveStatus, &LiveStatus)| {
                old.sent.datagrams != new.sent.datagrams
                    || old.received.datagrams != new.received.datagrams
            };
            for (_, entry) in before.iter().zip(&now).filter(moved) {
                tracing::info!("live {}", text(entry));
            }
        }
        before = now;
    }
    line::clear();
}

fn text(entry: &LiveStatus) -> String {
    let LiveStatus {
        name,
        sent,
        received,
        target_bps,
        capacity_bps,
        ..
    } = entry;
    let mut text = format!("{name}:");
    // A client's main direction is what it sends, and a server's what it receives; both have some
    // of the other.
    if sent.datagrams > 0 {
        push_sent(&mut text, sent);
    }
    if let Some(capacity) = capacity_bps {
        let _ = write!(text, " PATHS CARRY {:.1}", mbps(*capacity));
        if let Some(target) = target_bps {
            let _ = write!(text, " OF {:.1}", mbps(*target));
        }
        text.push_str(" Mb/s");
    }
    if received.datagrams > 0 {
        push_received(&mut text, received);
    }
    if sent.datagrams + received.datagrams == 0 {
        text.push_str(" nothing yet");
    }
    text
}

fn mbps(bps: u64) -> f64 {
    bps as f64 / 1e6
}

// Writing to a string cannot fail.

fn push_sent(text: &mut String, sent: &LiveSent) {
    let _ = write!(
        text,
        " in {:.1} Mb/s, given up {}, lost {}, late {}, repaired {}, duplicated {}, redundancy {:.0} %",
        mbps(sent.rate_bps),
        sent.given_up + sent.refused,
        sent.lost,
        sent.late,
        sent.repaired,
        sent.duplicated,
        sent.redundancy * 100.0
    );
    push_content(text, "input", sent.content, &sent.input);
}

fn push_received(text: &mut String, received: &LiveReceived) {
    let _ = write!(
        text,
        " out {:.1} Mb/s, lost {}, late {}, reordered {}, duplicated {}",
        mbps(received.rate_bps),
        received.lost,
        received.late,
        received.reordered,
        received.duplicated
    );
    push_content(text, "output", received.content, &received.output);
}

fn push_content(text: &mut String, what: &str, content: Content, found: &Wholeness) {
    if matches!(content, Content::Rtp | Content::RtpMpegTs) {
        let _ = write!(
            text,
            ", {what} RTP lost {} late {} duplicated {}",
            found.lost, found.late, found.duplicated
        );
    }
    if matches!(content, Content::MpegTs | Content::RtpMpegTs) {
        let _ = write!(text, ", {what} TS breaks {}", found.continuity_errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    #[test]
    fn the_line_says_what_there_is_to_say() {
        let live = example().live.remove(0);
        assert_eq!(
            text(&live),
            "cam: in 9.9 Mb/s, given up 7, lost 8, late 9, repaired 21, duplicated 10, redundancy 13 %, input TS breaks 1 \
             PATHS CARRY 7.5 OF 10.0 Mb/s out 0.1 Mb/s, lost 3, late 2, reordered 5, duplicated 4, \
             output RTP lost 12 late 13 duplicated 14"
        );
        // What is needed is measured, and is what comes in.
        let measured = LiveStatus {
            target_bps: None,
            ..live.clone()
        };
        assert!(text(&measured).contains("breaks 1 PATHS CARRY 7.5 Mb/s out"));
        let quiet = LiveStatus {
            sent: LiveSent::default(),
            received: LiveReceived::default(),
            capacity_bps: None,
            ..live
        };
        assert_eq!(text(&quiet), "cam: nothing yet");
    }
}
