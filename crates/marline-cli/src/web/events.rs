//! What happened between two looks at the program, in words.

use crate::control::Status;
use crate::control::status::{PathStatus, Role, SessionStatus};
use crate::control::words::{bytes, rate, some, spoken};
use marline_apps::live::status::LiveStatus;
use marline_proto::path::PathState;
use serde::Serialize;
use std::collections::BTreeMap;

/// Longest text of an event, characters: a peer's words may be a part of it.
const MAX_TEXT: usize = 240;
/// Share of a budget from which on it is said that it runs out.
const BUDGET_WARNS: f64 = 0.8;
/// A look is late by this much at most, seconds: what happened before it is dated by how long it
/// has lasted, unless that is longer.
const LATE: f64 = 2.0;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Counted from 1.
    pub seq: u64,
    /// Unix time, seconds.
    pub at: f64,
    /// `up`, `suspect`, `dead`, `back`, `standby`, `removed`, `size`, `outage`, `budget` or
    /// `target`.
    pub kind: &'static str,
    /// Key of the path or live entry; `None` for the whole session.
    pub key: Option<String>,
    /// What happened, why, and what it cost.
    pub text: String,
}

/// A path that is often in doubt for less than a look is named for it this often, seconds.
const MOMENTS: f64 = 60.0;

/// What a path is called in histories: on a client by its name, which outlives its session.
pub(crate) fn path_key(role: Role, session: &SessionStatus, path: &PathStatus) -> String {
    match role {
        Role::Client => path.name.clone(),
        Role::Server => format!("{}/{}", session.id, path.id),
    }
}

#[derive(Debug, Clone)]
struct PathSeen {
    name: String,
    state: PathState,
    for_s: f64,
    datagram_bytes: Option<u64>,
    budget_used: f64,
    /// When it was first in doubt, and what had been lost by then.
    doubt: Option<Doubt>,
    /// What datagrams it took before it took smaller ones.
    shrunk: Option<u64>,
    /// When a doubt that came and went between two looks was last reported (Unix time, s).
    moment: f64,
}

#[derive(Debug, Clone, Copy)]
struct Doubt {
    since: f64,
    lost_packets: u64,
    given_up: u64,
}

/// What the last look saw.
#[derive(Debug, Default)]
pub(super) struct Eye {
    paths: BTreeMap<String, PathSeen>,
    sessions: BTreeMap<u64, String>,
    below: BTreeMap<String, bool>,
    events: u64,
}

/// Collects what one look finds.
struct Found {
    at: f64,
    events: Vec<Event>,
}

impl Found {
    fn add(&mut self, at: f64, kind: &'static str, key: Option<&str>, text: String) {
        self.events.push(Event {
            seq: 0,
            at,
            kind,
            key: key.map(str::to_owned),
            text: text.chars().take(MAX_TEXT).collect(),
        });
    }
}

impl Eye {
    /// What has happened since the last look, now that it is this Unix time, seconds.
    pub(super) fn look(&mut self, status: &Status, at: f64) -> Vec<Event> {
        let mut found = Found {
            at,
            events: Vec::new(),
        };
        let given_up = status.live.iter().map(|live| live.sent.given_up).sum();
        let mut paths = BTreeMap::new();
        for session in &status.sessions {
            for path in &session.paths {
                let key = path_key(status.role, session, path);
                let before = self.paths.remove(&key);
                let now = seen(path, &key, before, given_up, &mut found);
                paths.insert(key, now);
            }
        }
        for (key, gone) in &self.paths {
            found.add(
                at,
                "removed",
                Some(key),
                format!("{} is no path any more", gone.name),
            );
        }
        self.paths = paths;
        self.sessions(status, &mut found);
        self.live(&status.live, &mut found);
        for event in &mut found.events {
            self.events += 1;
            event.seq = self.events;
        }
        found.events
    }

    fn sessions(&mut self, status: &Status, found: &mut Found) {
        let of = match status.role {
            Role::Client => |_: &SessionStatus| "the session".to_owned(),
            Role::Server => |session: &SessionStatus| format!("session {}", session.id),
        };
        let is_out = |state: &str| matches!(state, "stalled" | "connecting");
        let mut now = BTreeMap::new();
        for session in &status.sessions {
            let (state, name) = (&session.state, of(session));
            // A client's session to come has a number of its own.
            let key = match status.role {
                Role::Client => 0,
                Role::Server => session.id,
            };
            match self.sessions.get(&key).map(String::as_str) {
                Some(before) if !is_out(before) && is_out(state) => {
                    let text = match state.as_str() {
                        "stalled" => format!("outage: {name} has no path that works"),
                        _ => format!("outage: {name} is over; a new one is dialled"),
                    };
                    found.add(found.at, "outage", None, text);
                }
                Some(before) if is_out(before) && state == "established" => {
                    found.add(found.at, "back", None, format!("{name} works"));
                }
                _ => {}
            }
            now.insert(key, state.clone());
        }
        self.sessions = now;
    }

    fn live(&mut self, entries: &[LiveStatus], found: &mut Found) {
        let mut below = BTreeMap::new();
        for live in entries {
            let is_below = live.capacity_bps.is_some();
            let was = self.below.get(&live.name).copied().unwrap_or(false);
            let needed = rate(live.target_bps.unwrap_or(live.sent.rate_bps));
            if is_below && !was {
                let carried = rate(live.capacity_bps.unwrap_or_default());
                let text = format!(
                    "live {}: needs {needed}, the links carry {carried}",
                    live.name
                );
                found.add(found.at, "target", Some(&live.name), text);
            } else if was && !is_below {
                let text = format!("live {}: the links carry what it needs again", live.name);
                found.add(found.at, "target", Some(&live.name), text);
            }
            below.insert(live.name.clone(), is_below);
        }
        self.below = below;
    }
}

fn seen(
    path: &PathStatus,
    key: &str,
    before: Option<PathSeen>,
    given_up: u64,
    found: &mut Found,
) -> PathSeen {
    let name = &path.name;
    let began = match path.for_s {
        late if late <= LATE => found.at - late,
        _ => found.at,
    };
    let in_doubt = |state| matches!(state, PathState::Suspect | PathState::Dead);
    let mut doubt = before.as_ref().and_then(|before| before.doubt);
    if in_doubt(path.state) && doubt.is_none() {
        doubt = Some(Doubt {
            since: found.at - path.for_s,
            lost_packets: path.lost_packets,
            given_up,
        });
    }
    let mut moment = before
        .as_ref()
        .map_or(f64::NEG_INFINITY, |before| before.moment);
    match &before {
        None => found.add(
            found.at,
            "up",
            Some(key),
            format!("{name} is {}: {}", path.state.name(), path.reason),
        ),
        Some(before) if before.state != path.state => {
            let (kind, text) = match path.state {
                PathState::Suspect => ("suspect", format!("{name} is in doubt: {}", path.reason)),
                PathState::Dead => ("dead", format!("{name} is dead: {}", path.reason)),
                PathState::Standby => ("standby", format!("{name} stands by: {}", path.reason)),
                PathState::Active => match doubt.take() {
                    Some(doubt) => ("back", back(path, doubt, given_up, began)),
                    None => ("back", format!("{name} is in use: {}", path.reason)),
                },
                PathState::Validating => ("up", format!("{name} is tested: {}", path.reason)),
            };
            found.add(began, kind, Some(key), text);
        }
        Some(before) if path.state == PathState::Active && path.for_s + 0.01 < before.for_s => {
            if began - before.moment >= MOMENTS {
                moment = began;
                let text = format!("{name} was in doubt for a moment: {}", path.reason);
                found.add(began, "back", Some(key), text);
            }
        }
        Some(_) => {}
    }
    if !in_doubt(path.state) && path.state != PathState::Validating {
        doubt = None;
    }
    let known = before.as_ref().and_then(|before| before.datagram_bytes);
    let mut shrunk = before.as_ref().and_then(|before| before.shrunk);
    if let (Some(old), Some(new)) = (known, path.datagram_bytes) {
        // Every path begins with little and finds out that more fits.
        if new < old {
            shrunk = shrunk.or(Some(old));
            let text = format!("{name} takes datagrams of {new} B now, {old} B before");
            found.add(found.at, "size", Some(key), text);
        } else if shrunk.is_some_and(|usual| new >= usual) {
            shrunk = None;
            let text = format!("{name} takes datagrams of {new} B again");
            found.add(found.at, "size", Some(key), text);
        }
    }
    let budget_used = path.budget.as_ref().map_or(0.0, |budget| {
        budget.used_bytes as f64 / budget.limit_bytes.max(1) as f64
    });
    let used_before = before.as_ref().map_or(budget_used, |seen| seen.budget_used);
    if let Some(budget) = &path.budget {
        for (mark, what) in [(BUDGET_WARNS, "most"), (1.0, "all")] {
            if used_before < mark && budget_used >= mark {
                let limit = bytes(budget.limit_bytes);
                let text = format!(
                    "{name} has carried {what} of its {limit} in {}",
                    budget.month
                );
                found.add(found.at, "budget", Some(key), text);
            }
        }
    }
    PathSeen {
        name: name.clone(),
        state: path.state,
        for_s: path.for_s,
        datagram_bytes: path.datagram_bytes.or(known),
        budget_used,
        doubt,
        shrunk,
        moment,
    }
}

/// A path is back: for how long it was in doubt, and what that cost.
fn back(path: &PathStatus, doubt: Doubt, given_up: u64, at: f64) -> String {
    let mut text = format!("{} is back after {}", path.name, spoken(at - doubt.since));
    // A path that was dialled again counts from 0.
    let lost = match path.lost_packets.checked_sub(doubt.lost_packets) {
        Some(lost) => lost,
        None => path.lost_packets,
    };
    let given_up = given_up.saturating_sub(doubt.given_up);
    let mut cost = Vec::new();
    if lost > 0 {
        cost.push(format!("{} lost on it", some(lost, "packet")));
    }
    if given_up > 0 {
        cost.push(format!("{} given up", some(given_up, "live datagram")));
    }
    match cost.is_empty() {
        true => text += ": nothing was lost",
        false => text += &format!(": {}", cost.join(", ")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    fn told(events: &[Event]) -> Vec<(&'static str, &str)> {
        events
            .iter()
            .map(|event| (event.kind, event.text.as_str()))
            .collect()
    }

    #[test]
    fn a_death_is_told_with_its_reason_and_what_it_cost() {
        let mut eye = Eye::default();
        let mut status = example();
        status.sessions[0].paths.truncate(1);
        status.live[0].capacity_bps = None;
        assert_eq!(
            told(&eye.look(&status, 100.0)),
            [("up", "wlan0 is active: validated")]
        );
        assert!(eye.look(&status, 101.0).is_empty());

        let turn = |status: &mut Status, state, reason: &str, for_s| {
            let path = &mut status.sessions[0].paths[0];
            (path.state, path.reason, path.for_s) = (state, reason.to_owned(), for_s);
        };
        turn(
            &mut status,
            PathState::Suspect,
            "no feedback for 200 ms",
            0.25,
        );
        let events = eye.look(&status, 102.0);
        assert_eq!(
            told(&events),
            [("suspect", "wlan0 is in doubt: no feedback for 200 ms")]
        );
        assert_eq!((events[0].at, events[0].seq), (101.75, 2));
        turn(&mut status, PathState::Dead, "no feedback for 2 s", 2.0);
        assert_eq!(
            told(&eye.look(&status, 104.0)),
            [("dead", "wlan0 is dead: no feedback for 2 s")]
        );
        turn(&mut status, PathState::Active, "validated", 0.0);
        status.sessions[0].paths[0].lost_packets += 35;
        status.live[0].sent.given_up += 3;
        assert_eq!(
            told(&eye.look(&status, 105.75)),
            [(
                "back",
                "wlan0 is back after 4.0 s: 35 packets lost on it, 3 live datagrams given up"
            )]
        );
        status.sessions[0].paths.clear();
        assert_eq!(
            told(&eye.look(&status, 106.0)),
            [("removed", "wlan0 is no path any more")]
        );
    }

    #[test]
    fn moments_of_doubt_are_told_once_a_minute() {
        let mut eye = Eye::default();
        let mut status = example();
        status.sessions[0].paths.truncate(1);
        let mut looks = |at: f64| {
            status.sessions[0].paths[0].for_s = 10.0;
            eye.look(&status, at - 0.25);
            status.sessions[0].paths[0].for_s = 0.1;
            eye.look(&status, at).len()
        };
        assert_eq!([10.0, 20.0, 69.0, 71.0].map(&mut looks), [1, 0, 0, 1]);
    }

    #[test]
    fn sizes_budgets_outages_and_targets_are_told_once() {
        let mut eye = Eye::default();
        let mut status = example();
        status.live[0].capacity_bps = None;
        eye.look(&status, 1.0);
        let session = &mut status.sessions[0];
        session.state = "stalled".into();
        session.paths[0].datagram_bytes = Some(1_252);
        session.paths[1].budget.as_mut().unwrap().used_bytes = 20_000_000_000;
        status.live[0].capacity_bps = Some(7_500_000);
        let expected = [
            ("size", "wlan0 takes datagrams of 1252 B now, 1434 B before"),
            ("budget", "wwan0 has carried most of its 20.0 GB in 2026-11"),
            ("budget", "wwan0 has carried all of its 20.0 GB in 2026-11"),
            ("outage", "outage: the session has no path that works"),
            (
                "target",
                "live cam: needs 10.0 Mb/s, the links carry 7.5 Mb/s",
            ),
        ];
        assert_eq!(told(&eye.look(&status, 2.0)), expected);
        assert!(eye.look(&status, 3.0).is_empty());
        let mut sized = |bytes| {
            status.sessions[0].paths[0].datagram_bytes = Some(bytes);
            eye.look(&status, 4.0).len()
        };
        // Half the way back is nothing to say; all of it is, and what grows beyond is not.
        assert_eq!([1_300, 1_434, 1_450].map(&mut sized), [0, 1, 0]);
    }

    #[test]
    fn what_a_peer_writes_is_cut() {
        let mut status = example();
        status.sessions[0].paths[0].reason = "ä".repeat(5000);
        let events = Eye::default().look(&status, 1.0);
        assert!(
            events
                .iter()
                .all(|event| event.text.chars().count() <= MAX_TEXT)
        );
    }
}
