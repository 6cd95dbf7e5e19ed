//! One `--live` entry of a running program, and all of them.

use super::LiveName;
use super::meter::{Meter, Sum};
use crate::live::status::{LiveDelay, LiveStatus};
use crate::proxy::PacketFlow;
use marline_base::Rate;
use marline_base::text::Problem;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// One entry.
#[derive(Debug)]
pub(super) struct Entry {
    id: u64,
    pub(super) name: LiveName,
    latency: Option<Duration>,
    needed_rate: watch::Sender<Option<Rate>>,
    /// Why it has none, if it has none.
    untargeted: Option<Problem>,
    flows: Mutex<Flows>,
    complained: AtomicBool,
}

#[derive(Debug, Default)]
struct Flows {
    running: Vec<Arc<Meter>>,
    ended: Sum,
}

impl Entry {
    pub(super) fn new(
        id: usize,
        name: LiveName,
        latency: Option<Duration>,
        needed_rate: Option<Rate>,
        untargeted: Option<Problem>,
    ) -> Arc<Self> {
        Arc::new(Entry {
            id: id as u64,
            name,
            latency,
            needed_rate: watch::Sender::new(needed_rate),
            untargeted,
            flows: Mutex::default(),
            complained: AtomicBool::new(false),
        })
    }

    fn flows(&self) -> MutexGuard<'_, Flows> {
        self.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rate that is needed at the moment, and its changes.
    pub(super) fn needed_rate(&self) -> watch::Receiver<Option<Rate>> {
        self.needed_rate.subscribe()
    }

    /// Why a target would hold for nothing, if it would.
    fn aimless(&self) -> Option<Problem> {
        if self.untargeted.is_some() {
            return self.untargeted.clone();
        }
        let flows = self.flows();
        let none = !flows.running.is_empty() && !flows.running.iter().any(|f| f.is_watched());
        let name = &self.name;
        none.then(|| Problem {
            message: format!(
                "what live {name} is sent travels as objects, which have no target rate"
            ),
            hint: Some("with `objects=off` it travels as datagrams, which have one".into()),
        })
    }

    /// A datagram of a local program was dropped while it had no flow; an earlier one may have
    /// counted it.
    pub(super) fn refuse(&self, counted: bool) {
        let sent = &mut self.flows().ended.sent;
        sent.datagrams += u64::from(!counted);
        sent.refused += 1;
    }

    /// Says once that the other end closed a flow, which an entry without its like there does at
    /// once.
    pub(super) fn complain_of_end(&self) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "live {}: the server closed the flow; has it a --live of that name?",
                self.name
            );
        }
    }

    /// Counts a flow from now until what is returned is dropped, which must be before the flow is.
    pub(super) fn begin<P: PacketFlow>(self: &Arc<Self>, flow: &Arc<P>) -> Running {
        let meter = Arc::new(Meter::new(flow));
        self.flows().running.push(Arc::clone(&meter));
        Running {
            entry: Arc::clone(self),
            meter,
        }
    }

    fn status(&self) -> LiveStatus {
        let (mut sum, running) = {
            let flows = self.flows();
            (flows.ended.clone(), flows.running.clone())
        };
        for meter in &running {
            meter.add_to(&mut sum);
        }
        sum.sent.redundancy = match sum.source_bytes {
            0 => 0.0,
            source => sum.repeated_bytes as f64 / source as f64,
        };
        sum.sent.delay_ms = LiveDelay::of(&sum.delays);
        let target_bps = self.needed_rate.borrow().map(Rate::as_bps);
        LiveStatus {
            id: self.id,
            name: self.name.to_string(),
            flows: running.len() as u64,
            latency_ms: self.latency.map(|latency| latency.as_secs_f64() * 1e3),
            target_bps,
            excess_bps: target_bps.and_then(|target| excess(sum.sent.rate_bps, target)),
            watched: sum.watched,
            capacity_bps: sum.capacity.map(Rate::as_bps),
            sent: sum.sent,
            received: sum.received,
        }
    }
}

/// What is sent beyond the target. A constant bit rate is so within some percent only, counted by
/// whole seconds and datagrams: a twentieth is no excess.
fn excess(sent_bps: u64, target_bps: u64) -> Option<u64> {
    let excess = sent_bps.saturating_sub(target_bps);
    (excess > target_bps / 20).then_some(excess)
}

/// A flow that is being counted.
#[derive(Debug)]
pub(super) struct Running {
    entry: Arc<Entry>,
    meter: Arc<Meter>,
}

impl Deref for Running {
    type Target = Meter;

    fn deref(&self) -> &Meter {
        &self.meter
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut flows = self.entry.flows();
        flows
            .running
            .retain(|meter| !Arc::ptr_eq(meter, &self.meter));
        // A flow that has ended has neither a rate nor a capacity.
        self.meter.watch(false);
        self.meter.add_to(&mut flows.ended);
        flows.ended.sent.rate_bps = 0;
        flows.ended.received.rate_bps = 0;
    }
}

/// All entries of a running program. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Vec<Arc<Entry>>>);

impl Board {
    pub(super) fn new(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        Board(Arc::new(entries.into_iter().collect()))
    }

    /// Is there no entry?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How each entry stands, in the order of the configuration.
    pub fn status(&self) -> Vec<LiveStatus> {
        self.0.iter().map(|entry| entry.status()).collect()
    }

    /// Gives an entry another target, or has it measured; without a name the only entry is meant.
    ///
    /// # Errors
    /// There is no such entry, or more than one and no name; or nothing of the entry has a target.
    pub fn set_needed_rate(&self, name: Option<&str>, rate: Option<Rate>) -> Result<(), Problem> {
        let names = || {
            let names: Vec<String> = self.0.iter().map(|e| e.name.to_string()).collect();
            names.join(", ")
        };
        let error = |message: String, hint: String| Problem {
            message,
            hint: Some(hint),
        };
        let entry = match (name, &self.0[..]) {
            (_, []) => {
                return Err(error(
                    "this instance has no live entry to which a target could be given".into(),
                    "start the client with --live udp://:PORT, or name its --control".into(),
                ));
            }
            (None, [only]) => only,
            (None, _) => {
                return Err(error(
                    "there are several live entries".into(),
                    format!("name one with --name: {}", names()),
                ));
            }
            (Some(name), entries) => {
                let found = entries.iter().find(|entry| entry.name.to_string() == name);
                found.ok_or_else(|| {
                    let hint = format!("there are: {}", names());
                    error(format!("there is no live entry `{name}`"), hint)
                })?
            }
        };
        match entry.aimless() {
            Some(why) => Err(why),
            None => {
                entry.needed_rate.send_replace(rate);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::io;

    /// Takes everything, and a target or not.
    struct Sink(bool);

    impl PacketFlow for Sink {
        async fn send(&self, _: Bytes) -> io::Result<()> {
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            None
        }

        fn set_needed_rate(&self, _: Option<Rate>) -> bool {
            self.0
        }
    }

    fn entry(untargeted: Option<Problem>) -> Arc<Entry> {
        Entry::new(0, LiveName::default(), None, None, untargeted)
    }

    #[test]
    fn a_target_that_would_hold_for_nothing_is_refused() {
        let why = Problem {
            message: "it has a deadline".into(),
            hint: None,
        };
        let rate = Some(Rate::from_mbps(8));
        let board = Board::new([entry(Some(why.clone()))]);
        assert_eq!(board.set_needed_rate(None, rate), Err(why));
        let entry = entry(None);
        let board = Board::new([Arc::clone(&entry)]);
        let set = || {
            board
                .set_needed_rate(None, rate)
                .map_err(|error| error.message)
        };
        assert_eq!(set(), Ok(()), "nothing was sent yet");
        let [objects, datagrams] = [Arc::new(Sink(false)), Arc::new(Sink(true))];
        let _first = entry.begin(&objects);
        assert!(set().unwrap_err().contains("travels as objects"));
        let second = entry.begin(&datagrams);
        second.watch(datagrams.set_needed_rate(rate));
        assert_eq!(set(), Ok(()), "one of the senders has a target");
    }

    #[test]
    fn an_encoder_above_its_target_is_told_from_one_that_wavers() {
        assert_eq!(excess(10_400_000, 10_000_000), None);
        assert_eq!(excess(12_000_000, 10_000_000), Some(2_000_000));
        assert_eq!(excess(0, 10_000_000), None);
    }

    #[test]
    fn what_nobody_looks_after_is_not_said_to_be_enough() {
        use marline::endpoint::RateReport;
        let entry = entry(None);
        let seen = || {
            let status = entry.status();
            (status.watched, status.capacity_bps)
        };
        assert_eq!(seen(), (false, None));
        let flow = Arc::new(Sink(true));
        let running = entry.begin(&flow);
        running.watch(true);
        assert_eq!(seen(), (true, None));
        let capacity = Rate::from_mbps(6);
        running.report(Some(RateReport::Below { capacity }));
        assert_eq!(seen(), (true, Some(6_000_000)));
        drop(running);
        assert_eq!(seen(), (false, None));
    }
}
