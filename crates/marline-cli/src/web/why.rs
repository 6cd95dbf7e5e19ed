//! Why it is slow now, in one sentence: the first rule that applies, the gravest first.

use crate::control::Status;
use crate::control::status::{ClientStatus, FlowStatus, PathStatus, SessionStatus};
use crate::control::words::{bytes, figure, rate, some, spoken};
use marline_proto::path::PathState;
use serde::Serialize;

/// Share of lost packets from which on a path is named for it: a TCP flow alone is slow then.
const LOSSY: f64 = 0.05;
/// A round trip this many times its best, and this much longer (ms), is a queue that stands.
const BLOATED: (f64, f64) = (3.0, 50.0);
/// Bytes that wait here before paths are called full: some tens of milliseconds at 20 Mb/s.
const WAITING: u64 = 128 << 10;
/// A link that is dead for this long, seconds, comes last while others carry: what else is slow is
/// named before it. Five minutes: who was going to see to it has seen it by then.
const FOR_GOOD: f64 = 300.0;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Nothing is wrong.
    Fine,
    /// It works, and something is worse than it could be.
    Slow,
    /// Nothing gets through.
    Down,
}

/// What is slow, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Why {
    /// How bad it is.
    pub level: Level,
    /// One sentence.
    pub text: String,
}

impl Why {
    /// What the status shows.
    pub fn of(status: &Status) -> Self {
        let is_below = |live: &&_| below(live).is_some();
        let entry = status.live.iter().find(is_below).and_then(below);
        let worst = worst_session(status);
        match (worst, entry) {
            (Some(why), _) if why.level == Level::Down => why,
            (Some(why), Some(entry)) => slow(format!("{entry} {}", why.text)),
            (None, Some(entry)) => slow(entry),
            (Some(why), None) => why,
            (None, None) => fine(status),
        }
    }
}

/// What is worst, and whose it is where there are several sessions. A client that has left is no
/// reason to call a server down that others use.
fn worst_session(status: &Status) -> Option<Why> {
    let sessions = &status.sessions;
    let found: Vec<_> = sessions
        .iter()
        .filter_map(|one| Some((one, session(one)?)))
        .collect();
    let is_down = |(_, why): &(_, Why)| why.level == Level::Down;
    let all_down = found.iter().filter(|one| is_down(one)).count() == sessions.len();
    // The first of those that are alike.
    let worst = found.into_iter().rev();
    let (session, mut why) = worst.max_by_key(|(_, why)| why.level)?;
    if sessions.len() > 1 {
        why.text = format!("{}: {}", whose(status, session), why.text);
        if !all_down {
            why.level = Level::Slow;
        }
    }
    Some(why)
}

/// A session by its client's name in the server's list, or by its number.
fn whose(status: &Status, session: &SessionStatus) -> String {
    let named = |client: &&ClientStatus| client.key == session.peer && !client.name.is_empty();
    match status.clients.iter().find(named) {
        Some(client) => format!("Client {}", client.name),
        None => format!("Session {}", session.id),
    }
}

/// The paths that carry: the active ones, and those on standby where no path is active.
fn in_use(paths: &[PathStatus]) -> impl Iterator<Item = &PathStatus> + Clone {
    let is_any = |state: PathState| paths.iter().any(|path| path.state == state);
    let state = match is_any(PathState::Active) {
        true => PathState::Active,
        false => PathState::Standby,
    };
    paths.iter().filter(move |path| path.state == state)
}

fn slow(text: String) -> Why {
    Why {
        level: Level::Slow,
        text,
    }
}

fn down(text: String) -> Option<Why> {
    Some(Why {
        level: Level::Down,
        text,
    })
}

fn fine(status: &Status) -> Why {
    let sessions = status.sessions.iter();
    let paths: Vec<_> = sessions
        .flat_map(|session| in_use(&session.paths))
        .collect();
    let trips = paths.iter().filter_map(|path| path.rtt_ms);
    let best = trips.fold(f64::INFINITY, f64::min);
    let text = match (status.sessions.len(), paths.len()) {
        (0, _) => "No client is connected.".to_owned(),
        (sessions, links) => {
            let links = some(links as u64, "link");
            let clients = match sessions {
                1 => String::new(),
                more => format!(" of {}", some(more as u64, "client")),
            };
            match best.is_finite() {
                true => format!(
                    "Nothing is slow: {links}{clients} in use, round trip {} ms at best.",
                    figure(best)
                ),
                false => format!("Nothing is slow: {links}{clients} in use."),
            }
        }
    };
    Why {
        level: Level::Fine,
        text,
    }
}

fn below(live: &marline_apps::live::status::LiveStatus) -> Option<String> {
    let carried = live.capacity_bps?;
    let needed = live.target_bps.unwrap_or(live.sent.rate_bps);
    Some(format!(
        "Live {} needs {}, and the links carry {}.",
        live.name,
        rate(needed),
        rate(carried)
    ))
}

fn session(session: &SessionStatus) -> Option<Why> {
    let SessionStatus { paths, flows, .. } = session;
    match session.state.as_str() {
        "established" => {}
        "closing" => return down("The session ends.".to_owned()),
        "stalled" => {
            return down(format!(
                "Nothing gets through: no link works.{}",
                reasons(paths)
            ));
        }
        _ => return down(format!("There is no session yet.{}", reasons(paths))),
    }
    let nothing_else = in_use(paths).next().is_none();
    let is_new = |path: &PathStatus| path.for_s < FOR_GOOD || nothing_else;
    let rules: [&dyn Fn() -> Option<String>; 6] = [
        &|| doubtful(paths, is_new),
        &|| full(paths, flows),
        &|| {
            let (path, loss) = worst(paths, |path| path.loss.filter(|loss| *loss >= LOSSY))?;
            let percent = figure(loss * 100.0);
            Some(format!("{} loses {percent} % of its packets.", path.name))
        },
        &|| {
            let (path, now) = worst(paths, |path| {
                let (now, best) = (path.rtt_ms?, path.rtt_min_ms?);
                (now > BLOATED.0 * best && now > best + BLOATED.1).then_some(now)
            })?;
            Some(format!(
                "A queue stands on {}: its round trip is {} ms, at best {} ms.",
                path.name,
                figure(now),
                figure(path.rtt_min_ms.unwrap_or_default())
            ))
        },
        &|| {
            let spent = |path: &&PathStatus| {
                let budget = path.budget.as_ref();
                budget.is_some_and(|budget| budget.used_bytes >= budget.limit_bytes)
            };
            let path = paths.iter().find(spent)?;
            let limit = bytes(path.budget.as_ref()?.limit_bytes);
            Some(format!(
                "{} stands by: its {limit} of this month are used up.",
                path.name
            ))
        },
        &|| doubtful(paths, |_| true),
    ];
    rules.iter().find_map(|rule| rule()).map(slow)
}

/// The first path that is dead or in doubt, of those that `counts` takes.
fn doubtful(paths: &[PathStatus], counts: impl Fn(&PathStatus) -> bool) -> Option<String> {
    let in_doubt = |path: &&PathStatus| matches!(path.state, PathState::Suspect | PathState::Dead);
    let path = paths.iter().filter(in_doubt).find(|path| counts(path))?;
    let mut left = in_use(paths);
    let left = match (left.next(), left.count()) {
        (None, _) => "no other is in use".to_owned(),
        (Some(one), 0) => format!("{} carries on", one.name),
        (Some(_), more) => format!("{} others carry on", more + 1),
    };
    let since = spoken(path.for_s);
    let what = match path.state {
        PathState::Dead => "dead",
        _ => "in doubt",
    };
    let (name, reason) = (&path.name, &path.reason);
    Some(format!(
        "{name} has been {what} for {since} ({reason}); {left}."
    ))
}

/// Flows wait because the links carry no more.
fn full(paths: &[PathStatus], flows: &[FlowStatus]) -> Option<String> {
    let waiting: Vec<u64> = flows.iter().map(|flow| flow.backlog_bytes).collect();
    let total: u64 = waiting.iter().sum();
    let number = waiting.iter().filter(|bytes| **bytes > 0).count();
    if total < WAITING {
        return None;
    }
    let used = in_use(paths);
    let carried: u64 = used.clone().filter_map(|path| path.rate_bps).sum();
    let links = match used.count() {
        0 => return None,
        1 => "The only link in use is full: it carries".to_owned(),
        2 => "Both links are full: together they carry".to_owned(),
        links => format!("All {links} links are full: together they carry"),
    };
    let flows = some(number as u64, "flow");
    let verb = if number == 1 { "waits" } else { "wait" };
    Some(format!(
        "{links} {}, and {flows} {verb} with {}.",
        rate(carried),
        bytes(total)
    ))
}

/// The path in use with the largest `of`.
fn worst(
    paths: &[PathStatus],
    of: impl Fn(&PathStatus) -> Option<f64>,
) -> Option<(&PathStatus, f64)> {
    let known = in_use(paths).filter_map(|path| Some((path, of(path)?)));
    known.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// What each path says, at most three of them.
fn reasons(paths: &[PathStatus]) -> String {
    let told = paths.iter().take(3);
    let told = told.map(|path| format!(" {}: {}.", path.name, path.reason));
    told.collect::<String>().chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    /// Two good links, nothing waits.
    fn good() -> Status {
        let mut status = example();
        let session = &mut status.sessions[0];
        let mut second = session.paths[0].clone();
        second.name = "wwan0".into();
        session.paths[1] = second;
        status.live.clear();
        status
    }

    fn why(change: impl FnOnce(&mut SessionStatus)) -> (Level, String) {
        let mut status = good();
        change(&mut status.sessions[0]);
        let Why { level, text } = Why::of(&status);
        (level, text)
    }

    #[test]
    fn the_gravest_cause_is_named() {
        type Change = fn(&mut SessionStatus);
        let cases: [(Level, &str, Change); 7] = [
            (
                Level::Fine,
                "Nothing is slow: 2 links in use, round trip 31.2 ms at best.",
                |_| {},
            ),
            (
                Level::Down,
                "Nothing gets through: no link works. wlan0: no carrier. wwan0: validated.",
                |s| {
                    s.state = "stalled".into();
                    s.paths[0].reason = "no carrier".into();
                },
            ),
            (
                Level::Slow,
                "wwan0 has been dead for 14 s (no feedback for 2 s); wlan0 carries on.",
                |s| {
                    let path = &mut s.paths[1];
                    (path.state, path.for_s) = (PathState::Dead, 14.0);
                    path.reason = "no feedback for 2 s".into();
                },
            ),
            (
                Level::Slow,
                "Both links are full: together they carry 40.0 Mb/s, and 1 flow waits with 1.0 MB.",
                |s| {
                    s.flows[0].backlog_bytes = 1_000_000;
                    s.paths[0].loss = Some(0.2);
                },
            ),
            (Level::Slow, "wwan0 loses 8.0 % of its packets.", |s| {
                s.paths[1].loss = Some(0.08);
            }),
            (
                Level::Slow,
                "A queue stands on wlan0: its round trip is 310.0 ms, at best 30.0 ms.",
                |s| s.paths[0].rtt_ms = Some(310.0),
            ),
            (Level::Down, "There is no session yet.", |s| {
                s.state = "connecting".into();
                s.paths.clear();
            }),
        ];
        for (level, text, change) in cases {
            assert_eq!(why(change), (level, text.to_owned()));
        }
    }

    /// `wlan0` is dead for `for_s` seconds, and `wwan0` is on standby.
    fn on_standby(s: &mut SessionStatus, for_s: f64) {
        let path = &mut s.paths[0];
        (path.state, path.for_s, path.reason) = (PathState::Dead, for_s, "no carrier".into());
        s.paths[1].state = PathState::Standby;
    }

    #[test]
    fn a_standby_path_that_carries_is_in_use() {
        let carries = "wlan0 has been dead for 14 s (no carrier); wwan0 carries on.";
        assert_eq!(why(|s| on_standby(s, 14.0)).1, carries);
        let (_, text) = why(|s| {
            s.paths.remove(0);
            s.paths[0].state = PathState::Standby;
        });
        let fine = "Nothing is slow: 1 link in use, round trip 31.2 ms at best.";
        assert_eq!(text, fine);
        let (_, text) = why(|s| {
            on_standby(s, 900.0);
            s.paths[1].loss = Some(0.08);
        });
        assert_eq!(text, "wwan0 loses 8.0 % of its packets.");
        let (_, text) = why(|s| {
            on_standby(s, 900.0);
            s.flows[0].backlog_bytes = 1_000_000;
        });
        let full =
            "The only link in use is full: it carries 20.0 Mb/s, and 1 flow waits with 1.0 MB.";
        assert_eq!(text, full);
    }

    #[test]
    fn a_link_that_is_dead_for_good_hides_no_other_reason() {
        let dead = |for_s: f64, alone: bool| {
            why(|s| {
                let path = &mut s.paths[1];
                (path.state, path.for_s) = (PathState::Dead, for_s);
                let state = if alone {
                    PathState::Suspect
                } else {
                    PathState::Active
                };
                (s.paths[0].state, s.paths[0].for_s) = (state, for_s);
                s.paths[0].loss = Some(0.08);
            })
            .1
        };
        assert!(dead(299.0, false).starts_with("wwan0 has been dead for"));
        assert_eq!(dead(300.0, false), "wlan0 loses 8.0 % of its packets.");
        assert!(dead(300.0, true).ends_with("no other is in use."));
        let (level, text) = why(|s| on_standby(s, 7200.0));
        assert_eq!(level, Level::Slow);
        assert!(text.starts_with("wlan0 has been dead for"), "{text}");
    }

    #[test]
    fn one_client_that_leaves_does_not_make_a_server_down() {
        let mut status = good();
        let mut left = status.sessions[0].clone();
        (left.id, left.peer, left.state) = (7, "client-key".into(), "stalled".into());
        left.paths.clear();
        status.sessions.push(left);
        let stalled = "Client van: Nothing gets through: no link works.";
        let expected = |level, text: &str| Why {
            level,
            text: text.to_owned(),
        };
        assert_eq!(Why::of(&status), expected(Level::Slow, stalled));
        status.sessions[1].state = "closing".into();
        status.sessions[1].peer = "another".into();
        let ends = "Session 7: The session ends.";
        assert_eq!(Why::of(&status), expected(Level::Slow, ends));
        status.sessions[0].state = "closing".into();
        assert_eq!(Why::of(&status).level, Level::Down);
    }

    #[test]
    fn a_live_entry_below_its_target_comes_with_its_cause() {
        let mut status = good();
        status.live = example().live;
        let below = "Live cam needs 10.0 Mb/s, and the links carry 7.5 Mb/s.";
        assert_eq!(Why::of(&status).text, below);
        status.sessions[0].paths[0].loss = Some(0.1);
        let text = Why::of(&status).text;
        assert_eq!(text, format!("{below} wlan0 loses 10.0 % of its packets."));
        status.sessions.clear();
        status.live.clear();
        assert_eq!(Why::of(&status).text, "No client is connected.");
    }
}
