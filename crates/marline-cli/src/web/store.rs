//! What was seen of the program: figures, events and the last look, as the JSON of docs/WEB.md.
//!
//! The field names are the JSON names. Fields may be added; a reader ignores those that it does not
//! know.

use super::events::{Event, Eye, path_key};
use super::history::{Column, FOLD, Fold, MAX_ENTRIES, MAX_PATHS, Row, Series, Span, Table, Times};
use super::why::Why;
use crate::control::Status;
use crate::control::status::{FlowStatus, PathStatus, Quantiles};
use marline_apps::live::status::LiveStatus;
use marline_proto::path::PathState;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Instant;

/// Version of the JSON. It rises when an old reader would misunderstand a new program.
pub(super) const VERSION: u32 = 1;
/// Most events that are kept: some 0.6 MB.
const MAX_EVENTS: usize = 2000;

/// Figures of a path.
pub(super) const PATH_COLUMNS: [Column; 9] = [
    ("sent_bps", Fold::Mean),
    ("received_bps", Fold::Mean),
    ("rtt_ms", Fold::Worst),
    ("loss", Fold::Worst),
    ("queue_bytes", Fold::Worst),
    ("datagram_bytes", Fold::Mean),
    ("cost", Fold::Worst),
    ("budget_used", Fold::Worst),
    ("state", Fold::Worst),
];
/// Figures of a live entry.
pub(super) const LIVE_COLUMNS: [Column; 10] = [
    ("sent_bps", Fold::Mean),
    ("received_bps", Fold::Mean),
    ("delay_p50_ms", Fold::Mean),
    ("delay_p95_ms", Fold::Mean),
    ("delay_p99_ms", Fold::Mean),
    ("given_up_per_s", Fold::Worst),
    ("repaired_per_s", Fold::Mean),
    ("redundancy", Fold::Mean),
    ("target_bps", Fold::Mean),
    ("capacity_bps", Fold::Mean),
];

/// One look, as the page shows it.
#[derive(Debug, Serialize)]
pub(super) struct Now<'a> {
    version: u32,
    /// Unix time, seconds.
    at: f64,
    why: &'a Why,
    /// What `marline status --json` prints, without single flows, listed clients and published
    /// ports; of a server with very many sessions, without the last ones.
    status: &'a Status,
    /// Sessions that are not in `status` for their number.
    left_out: usize,
    flows: Vec<FlowGroup>,
    /// The newest figures of each path, in the order of the columns of the history.
    paths: Vec<Newest>,
    /// The same of live entries.
    live: Vec<Newest>,
    /// Number of the newest event.
    events: u64,
}

/// The newest figures of a path or live entry.
#[derive(Debug, Serialize)]
struct Newest {
    key: String,
    row: Vec<Option<f32>>,
}

/// Flows that are alike.
#[derive(Debug, Serialize)]
struct FlowGroup {
    kind: String,
    scheduler: String,
    priority: u8,
    count: u64,
    sent_bytes: u64,
    delivered_bytes: u64,
    backlog_bytes: u64,
    retransmitted_bytes: u64,
    repair_bytes: u64,
    lost_messages: u64,
    /// Of the slowest one.
    delay_ms: Option<Quantiles>,
}

/// All that was seen.
#[derive(Debug)]
pub struct Store {
    times: Times,
    paths: Table<{ PATH_COLUMNS.len() }>,
    live: Table<{ LIVE_COLUMNS.len() }>,
    /// What the counters were at the last look, by key.
    counted: HashMap<String, [u64; 4]>,
    eye: Eye,
    events: VecDeque<Event>,
    /// When the last look was: by the host's clock, which may be set, and by one that is not.
    last: Option<(f64, Instant)>,
}

impl Default for Store {
    fn default() -> Self {
        Store {
            times: Times::default(),
            paths: Table::new(&PATH_COLUMNS, MAX_PATHS),
            live: Table::new(&LIVE_COLUMNS, MAX_ENTRIES),
            counted: HashMap::new(),
            eye: Eye::default(),
            events: VecDeque::new(),
            last: None,
        }
    }
}

impl Store {
    /// Notes what has happened by this Unix time, seconds, without its figures.
    pub fn glance(&mut self, status: &Status, at: f64) {
        for event in self.eye.look(status, at) {
            if self.events.len() >= MAX_EVENTS {
                self.events.pop_front();
            }
            self.events.push_back(event);
        }
    }

    /// Takes down the figures of a look, once a second: at this Unix time, seconds, which is
    /// `now`. Where the host's clock was set back, histories begin again: their times rise.
    pub fn look(&mut self, status: &Status, at: f64, now: Instant) {
        self.glance(status, at);
        let last = self.last.replace((at, now));
        let passed = last.map_or(0.0, |(_, last)| {
            now.saturating_duration_since(last).as_secs_f64()
        });
        let passed = passed.max(0.1);
        let first = last.is_none();
        if last.is_some_and(|(last, _)| at < last) {
            let Store {
                times, paths, live, ..
            } = Store::default();
            (self.times, self.paths, self.live) = (times, paths, live);
        }
        let mut counted = HashMap::new();
        let mut paths = Vec::new();
        for session in &status.sessions {
            for path in &session.paths {
                let key = path_key(status.role, session, path);
                let now = [path.sent_bytes, path.received_bytes, 0, 0];
                let per_second = self.per_second(format!("p{key}"), now, passed, &mut counted);
                paths.push((key, path.name.clone(), path_row(path, per_second)));
            }
        }
        let mut live = Vec::new();
        for entry in &status.live {
            let now = [entry.sent.given_up, entry.sent.repaired, 0, 0];
            let name = &entry.name;
            let per_second = self.per_second(format!("l{name}"), now, passed, &mut counted);
            live.push((name.clone(), name.clone(), live_row(entry, per_second)));
        }
        self.counted = counted;
        if first {
            // Since when the counters count is not known.
            return;
        }
        let complete = self.times.push(at);
        self.paths.push(&paths, complete);
        self.live.push(&live, complete);
    }

    fn per_second(
        &self,
        key: String,
        now: [u64; 4],
        passed: f64,
        counted: &mut HashMap<String, [u64; 4]>,
    ) -> [f64; 4] {
        let before = self.counted.get(&key).copied();
        counted.insert(key, now);
        let mut per_second = [f64::NAN; 4];
        if let Some(before) = before {
            for ((value, now), before) in per_second.iter_mut().zip(now).zip(before) {
                // A path that was dialled again counts from 0.
                *value = now.checked_sub(before).unwrap_or(now) as f64 / passed;
            }
        }
        per_second
    }

    /// Events after the one of this number, oldest first.
    pub fn events_after(&self, seq: u64) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.seq > seq)
    }

    /// Number of the newest event.
    pub fn newest(&self) -> u64 {
        self.events.back().map_or(0, |event| event.seq)
    }

    /// The last figures of a path, by the name of their column.
    pub fn path_figures(&self, key: &str, column: &str) -> Vec<f32> {
        let at = PATH_COLUMNS.iter().position(|(name, _)| *name == column);
        let series = self.paths.get(key);
        let rows = series.into_iter().flat_map(|series| series.of(Span::Fine));
        rows.filter_map(|row| row.get(at?).copied()).collect()
    }

    /// A look as JSON.
    pub(super) fn now(&self, mut status: Status, at: f64) -> Vec<u8> {
        let why = Why::of(&status);
        let flows = groups(&mut status);
        // There may be any number of them, and the page shows none.
        status.clients.clear();
        status.published.clear();
        let mut paths = 0;
        let fits = |session: &&crate::control::status::SessionStatus| {
            paths += session.paths.len();
            paths <= MAX_PATHS
        };
        let kept = status.sessions.iter().take_while(fits).count();
        let left_out = status.sessions.len() - kept;
        status.sessions.truncate(kept);
        let now = Now {
            version: VERSION,
            at,
            why: &why,
            status: &status,
            left_out,
            flows,
            paths: newest(&self.paths),
            live: newest(&self.live),
            events: self.newest(),
        };
        serde_json::to_vec(&now).unwrap_or_default()
    }

    /// How many parts [`Store::history`] has.
    pub(super) fn parts(&self) -> usize {
        self.paths.series().len() + self.live.series().len() + 2
    }

    /// A history as JSON, in parts, so that it need not be held as a whole; `last` says which is
    /// the last one.
    pub(super) fn history(&self, span: Span, part: usize, last: bool) -> Vec<u8> {
        let (paths, live) = (self.paths.series(), self.live.series());
        let end = self.times.of(span).back().copied();
        let mut text = Vec::new();
        if part == 0 {
            let (name, step) = match span {
                Span::Fine => ("10m", 1),
                Span::Coarse => ("24h", FOLD),
            };
            let names = |columns: &[Column]| -> Vec<&str> {
                columns.iter().map(|(name, _)| *name).collect()
            };
            let head = serde_json::json!({
                "version": VERSION,
                "span": name,
                "step_s": step,
                "at": self.times.of(span),
                "path_columns": names(&PATH_COLUMNS),
                "live_columns": names(&LIVE_COLUMNS),
            });
            text = head.to_string().into_bytes();
            text.pop();
            text.extend(b",\"series\":[");
        } else if let Some(series) = paths.get(part - 1) {
            put_series(&mut text, "path", series, span, end, part > 1);
        } else if let Some(series) = live.get(part - 1 - paths.len()) {
            put_series(&mut text, "live", series, span, end, part > 1);
        }
        if last {
            text.extend(b"]}");
        }
        text
    }
}

/// One series as JSON: its rows from the first that it has seen to the one at `end`.
fn put_series<const N: usize>(
    text: &mut Vec<u8>,
    what: &str,
    series: &Series<N>,
    span: Span,
    end: Option<f64>,
    follows: bool,
) {
    if follows {
        text.push(b',');
    }
    let rows: Vec<Vec<Option<f32>>> = series.of(span).iter().map(known).collect();
    let one = serde_json::json!({
        "of": what,
        "key": series.key,
        "name": series.name,
        "end": end,
        "rows": rows,
    });
    text.extend(one.to_string().into_bytes());
}

/// What is not known is `null`; four digits are enough for a line.
fn known<const N: usize>(row: &Row<N>) -> Vec<Option<f32>> {
    let rounded = |value: f32| {
        let (value, size) = (f64::from(value), f64::from(value.abs()));
        match size > 0.0 {
            true => {
                let unit = 10_f64.powi(3 - size.log10().floor() as i32);
                ((value * unit).round() / unit) as f32
            }
            false => 0.0,
        }
    };
    row.iter()
        .map(|value| value.is_finite().then(|| rounded(*value)))
        .collect()
}

fn newest<const N: usize>(table: &Table<N>) -> Vec<Newest> {
    let there = table.series().iter().filter(|series| series.absent == 0);
    let newest = there.filter_map(|series| {
        Some(Newest {
            key: series.key.clone(),
            row: known(series.of(Span::Fine).back()?),
        })
    });
    newest.collect()
}

/// Takes the flows out of the status and sums them up by what they are.
fn groups(status: &mut Status) -> Vec<FlowGroup> {
    let mut groups: BTreeMap<(u8, String, String), FlowGroup> = BTreeMap::new();
    for session in &mut status.sessions {
        for flow in std::mem::take(&mut session.flows) {
            let key = (flow.priority, flow.kind.clone(), flow.scheduler.clone());
            groups
                .entry(key)
                .or_insert_with(|| FlowGroup::like(&flow))
                .add(&flow);
        }
    }
    groups.into_values().collect()
}

impl FlowGroup {
    fn like(flow: &FlowStatus) -> Self {
        FlowGroup {
            kind: flow.kind.clone(),
            scheduler: flow.scheduler.clone(),
            priority: flow.priority,
            count: 0,
            sent_bytes: 0,
            delivered_bytes: 0,
            backlog_bytes: 0,
            retransmitted_bytes: 0,
            repair_bytes: 0,
            lost_messages: 0,
            delay_ms: None,
        }
    }

    fn add(&mut self, flow: &FlowStatus) {
        self.count += 1;
        for (sum, more) in [
            (&mut self.sent_bytes, flow.sent_bytes),
            (&mut self.delivered_bytes, flow.delivered_bytes),
            (&mut self.backlog_bytes, flow.backlog_bytes),
            (&mut self.retransmitted_bytes, flow.retransmitted_bytes),
            (&mut self.repair_bytes, flow.repair_bytes),
            (&mut self.lost_messages, flow.lost_messages),
        ] {
            *sum = sum.saturating_add(more);
        }
        let slower = |known: Quantiles, new: &Quantiles| known.p95 >= new.p95;
        match (self.delay_ms, flow.delay_ms) {
            (Some(known), Some(new)) if slower(known, &new) => {}
            (_, Some(new)) => self.delay_ms = Some(new),
            (_, None) => {}
        }
    }
}

fn figure(value: Option<f64>) -> f32 {
    value.map_or(f32::NAN, |value| value as f32)
}

fn path_row(path: &PathStatus, [sent, received, ..]: [f64; 4]) -> Row<9> {
    let state = PathState::ALL.iter().position(|state| *state == path.state);
    let used = path
        .budget
        .as_ref()
        .map(|budget| budget.used_bytes as f64 / budget.limit_bytes.max(1) as f64);
    [
        (sent * 8.0) as f32,
        (received * 8.0) as f32,
        figure(path.rtt_ms),
        figure(path.loss),
        path.queue_bytes as f32,
        figure(path.datagram_bytes.map(|bytes| bytes as f64)),
        path.cost as f32,
        figure(used),
        figure(state.map(|state| state as f64)),
    ]
}

fn live_row(live: &LiveStatus, [given_up, repaired, ..]: [f64; 4]) -> Row<10> {
    let delay = live.sent.delay_ms;
    [
        live.sent.rate_bps as f32,
        live.received.rate_bps as f32,
        figure(delay.map(|delay| delay.p50)),
        figure(delay.map(|delay| delay.p95)),
        figure(delay.map(|delay| delay.p99)),
        given_up as f32,
        repaired as f32,
        live.sent.redundancy as f32,
        figure(live.target_bps.map(|bps| bps as f64)),
        figure(live.capacity_bps.map(|bps| bps as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::Role;
    use crate::control::status::tests::example;
    use serde_json::Value;
    use std::time::Duration;

    const SECOND: Duration = Duration::from_secs(1);

    fn json(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    /// Two looks a second apart, between which 1 MB was sent on the first path.
    fn two_looks() -> (Store, Status) {
        let mut store = Store::default();
        let mut status = example();
        let start = Instant::now();
        store.look(&status, 1000.0, start);
        status.sessions[0].paths[0].sent_bytes += 1_000_000;
        status.live[0].sent.given_up += 5;
        store.look(&status, 1001.0, start + SECOND);
        (store, status)
    }

    #[test]
    fn a_look_is_the_status_with_figures_and_why() {
        let (store, status) = two_looks();
        let now = json(&store.now(status.clone(), 1001.0));
        assert_eq!(now["version"], 1);
        assert_eq!(now["why"]["level"], "slow");
        let mut expected = serde_json::to_value(&status).unwrap();
        expected["sessions"][0]["flows"] = Value::Array(Vec::new());
        for any_number in ["clients", "published"] {
            expected[any_number] = Value::Array(Vec::new());
        }
        assert_eq!(now["status"], expected);
        assert_eq!(now["flows"][0]["count"], 1);
        assert_eq!(now["flows"][0]["delivered_bytes"], 3_000_000);
        assert_eq!(now["paths"][0]["key"], "wlan0");
        assert_eq!(now["paths"][0]["row"][0], 8_000_000.0);
        assert_eq!(
            now["paths"][1]["row"][2],
            Value::Null,
            "no round trip is known"
        );
        assert_eq!(now["paths"][1]["row"][8], 4.0, "dead");
        assert_eq!(now["live"][0]["row"][5], 5.0);
        assert_eq!(now["events"], store.newest());
        assert_eq!(store.path_figures("wlan0", "sent_bps"), [8e6]);
    }

    #[test]
    fn a_clock_that_is_set_changes_no_rate_and_begins_the_history_again() {
        let mut store = Store::default();
        let mut status = example();
        let start = Instant::now();
        // Set ahead by an hour, then back by two.
        for (second, at) in [(0, 0.0), (1, 1.0), (2, 3602.0), (3, -3597.0), (4, -3596.0)] {
            status.sessions[0].paths[0].sent_bytes += 1_000_000;
            store.look(&status, 10_000.0 + at, start + SECOND * second);
            let rates = store.path_figures("wlan0", "sent_bps");
            assert!(rates.iter().all(|rate| *rate == 8e6), "{rates:?}");
        }
        assert_eq!(store.times.of(Span::Fine), &[6403.0, 6404.0]);
        assert_eq!(store.path_figures("wlan0", "sent_bps").len(), 2);
    }

    #[test]
    fn a_history_in_parts_is_one_document() {
        let (store, _) = two_looks();
        for span in [Span::Fine, Span::Coarse] {
            let parts = store.parts();
            let text: Vec<u8> = (0..parts)
                .flat_map(|part| store.history(span, part, part + 1 == parts))
                .collect();
            let history = json(&text);
            let columns = history["path_columns"].as_array().unwrap().len();
            assert_eq!(columns, PATH_COLUMNS.len());
            let series = history["series"].as_array().unwrap();
            let names: Vec<_> = series
                .iter()
                .map(|one| one["name"].as_str().unwrap())
                .collect();
            assert_eq!(names, ["wlan0", "wwan0", "cam"]);
            let rows = series[0]["rows"].as_array().unwrap().len();
            assert_eq!(rows, history["at"].as_array().unwrap().len());
        }
    }

    #[test]
    fn a_server_with_very_many_clients_shows_as_many_as_fit() {
        let mut status = example();
        status.role = Role::Server;
        let session = status.sessions[0].clone();
        status.sessions = (0..200)
            .map(|id| crate::control::status::SessionStatus {
                id,
                ..session.clone()
            })
            .collect();
        let mut store = Store::default();
        let start = Instant::now();
        store.look(&status, 1.0, start);
        store.look(&status, 2.0, start + SECOND);
        let now = json(&store.now(status, 2.0));
        assert_eq!(
            now["status"]["sessions"].as_array().unwrap().len(),
            MAX_PATHS / 2
        );
        assert_eq!(now["left_out"], 200 - MAX_PATHS / 2);
        assert_eq!(now["paths"].as_array().unwrap().len(), MAX_PATHS);
    }

    #[test]
    fn lines_have_four_digits() {
        let row = known(&[12_345_678.0, 0.012_345_6, -1.0, f32::NAN, 0.0]);
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(text, "[12350000.0,0.01235,-1.0,null,0.0]");
    }
}
