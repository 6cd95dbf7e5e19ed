//! The sending end: what leaves when.

mod acked;
mod losses;
mod timers;

use std::mem;

use marline_base::{Duration, Instant, Rate};
use marline_proto::congestion::{Controller, Params, View};
use marline_proto::path::delivery::DeliverySampler;
use marline_proto::path::pacer::Pacer;

use super::config::{TcpConfig, TcpConfigError};
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::segment::Segment;
use losses::Declared;
use timers::Probe;

/// What a connection's sending end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpCounters {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Bytes sent on the wire, headers included.
    pub sent_bytes: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Times that a segment was declared lost.
    pub lost: u64,
    /// Declared losses that proved to be reordering.
    pub spurious: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Time-outs after which an original arrived.
    pub spurious_timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Payload bytes delivered, selectively acknowledged ones included.
    pub delivered: u64,
}

/// The sending end of a connection. The module's documentation states the calling contract.
///
/// Memory: about 100 bytes for each segment in the receive window.
#[derive(Debug)]
pub struct TcpSender {
    mss: u32,
    header: u32,
    limit: Option<u64>,
    rate: Option<Rate>,
    started: Instant,
    controller: Box<dyn Controller>,
    sampler: DeliverySampler,
    /// Only if the controller names a rate; else acknowledgements are the clock.
    pacer: Option<Pacer>,
    board: Scoreboard,
    rtt: Rtt,
    rack: Rack,
    /// SND.NXT, SND.UNA, and the end of what the receiver takes.
    next: u64,
    unacked: u64,
    edge: u64,
    /// Recovery lasts until everything before this is acknowledged.
    recovery: Option<u64>,
    /// The first retransmission of a recovery leaves whatever the window says (RFC 5681 §3.2).
    rescue: bool,
    declared: Declared,
    reordering_until: Option<Instant>,
    /// What the retransmission time-out counts from, and how often it has doubled.
    armed: Instant,
    backoff: u32,
    /// Number of the first transmission after a time-out whose cause is not known yet.
    timed_out: Option<u64>,
    resend_first: bool,
    last_sent: Instant,
    probe: Option<Probe>,
    probe_due: bool,
    /// When pacer or application let the next segment go, if only they hold it back.
    wake: Option<Instant>,
    counters: TcpCounters,
}

impl TcpSender {
    /// The sending end of a connection that has just been set up.
    ///
    /// # Errors
    ///
    /// When a parameter is out of its range; the error names it.
    pub fn new(config: &TcpConfig, now: Instant, seed: u64) -> Result<Self, TcpConfigError> {
        let entry = config.check()?;
        let mss = u64::from(config.mss);
        let params = Params {
            mtu: mss,
            rate: config.controller_rate,
            paced: false,
            seed,
        };
        let controller = (entry.new)(now, &params);
        let pacer = controller
            .pacing_rate()
            .map(|rate| Pacer::new(now, mss, rate));
        Ok(Self {
            mss: config.mss,
            header: config.header,
            limit: config.limit,
            rate: config.rate,
            started: now,
            controller,
            sampler: DeliverySampler::new(now),
            pacer,
            board: Scoreboard::default(),
            rtt: Rtt::new(now),
            rack: Rack::new(),
            next: 0,
            unacked: 0,
            edge: config.window,
            recovery: None,
            rescue: false,
            declared: Declared::default(),
            reordering_until: None,
            armed: now,
            backoff: 0,
            timed_out: None,
            resend_first: false,
            last_sent: now,
            probe: None,
            probe_due: false,
            wake: None,
            counters: TcpCounters::default(),
        })
    }

    /// The next segment to send now, if there is one.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        self.wake = None;
        if self.timed_out.is_some() {
            // Only the first segment until an acknowledgement shows what the time-out meant.
            let resend = mem::take(&mut self.resend_first);
            let seq = self.board.first().filter(|_| resend)?.seq;
            return self.send_again(now, seq);
        }
        if mem::take(&mut self.probe_due) {
            let probe = self.send_probe(now);
            if probe.is_some() {
                return probe;
            }
        }
        let lost = self.board.first_lost();
        let len = match lost {
            Some(lost) => lost.len,
            None => self.next_len(now)?,
        };
        if !(self.rescue && lost.is_some()) {
            if self.board.in_flight() + u64::from(len) > self.controller.window() {
                return None;
            }
            self.wake = self
                .pacer
                .as_ref()
                .and_then(|pacer| pacer.next_send(now, u64::from(len)));
            if self.wake.is_some() {
                return None;
            }
        }
        match lost {
            Some(lost) => {
                self.rescue = false;
                self.send_again(now, lost.seq)
            }
            None => Some(self.send_new(now, len)),
        }
    }

    /// Length of the next new segment; `None` while the application has not written a full one, or
    /// the receiver does not take it. Only the last may be short.
    fn next_len(&mut self, now: Instant) -> Option<u32> {
        let end = self
            .limit
            .unwrap_or(u64::MAX)
            .min(self.next + u64::from(self.mss));
        let len = u32::try_from(end - self.next).ok().filter(|&len| len > 0)?;
        if end > self.edge {
            return None;
        }
        if let Some(rate) = self.rate {
            let written = self.started + rate.time_for(end);
            if written > now {
                self.wake = Some(written);
                return None;
            }
        }
        Some(len)
    }

    fn send_new(&mut self, now: Instant, len: u32) -> Segment {
        if self.board.is_empty() {
            self.armed = now;
        }
        let seq = self.next;
        self.next += u64::from(len);
        let snapshot = self.sampler.on_sent(now, self.board.in_flight());
        self.board.send(now, seq, len, snapshot);
        self.sent(now, seq, len)
    }

    fn send_again(&mut self, now: Instant, seq: u64) -> Option<Segment> {
        let len = self.board.find(seq)?.len;
        let snapshot = self.sampler.on_sent(now, self.board.in_flight());
        self.board.send_again(now, seq, snapshot);
        self.counters.retransmitted += 1;
        Some(self.sent(now, seq, len))
    }

    fn sent(&mut self, now: Instant, seq: u64, payload: u32) -> Segment {
        let size = payload + self.header;
        self.last_sent = now;
        self.counters.sent += 1;
        self.counters.sent_bytes += u64::from(size);
        let in_flight = self.board.in_flight();
        let room = in_flight + u64::from(self.mss) <= self.controller.window();
        let app_limited = room && !self.board.has_lost() && self.next_len(now).is_none();
        self.controller
            .on_sent(now, u64::from(payload), in_flight, app_limited);
        if app_limited {
            self.sampler.mark_app_limited(in_flight);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, u64::from(payload));
        }
        self.repace(now);
        Segment {
            seq,
            payload,
            size,
            stamp: now,
        }
    }

    /// Lets the pacer follow the controller.
    fn repace(&mut self, now: Instant) {
        if let (Some(pacer), Some(rate)) = (&mut self.pacer, self.controller.pacing_rate()) {
            pacer.set_rate(now, rate);
        }
    }

    /// The application writes this number of bytes beyond what [`TcpConfig::limit`] let it write
    /// before; without a limit it has written more than any network carries already.
    pub fn write(&mut self, bytes: u64) {
        self.limit = self.limit.map(|limit| limit.saturating_add(bytes));
    }

    /// Everything that there is to send has been acknowledged.
    pub fn is_done(&self) -> bool {
        self.limit == Some(self.unacked)
    }

    /// Bytes in flight by the sender's reckoning.
    pub const fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Congestion window (bytes of payload).
    pub fn window(&self) -> u64 {
        self.controller.window()
    }

    /// State of the congestion controller.
    pub fn view(&self) -> View {
        self.controller.view()
    }

    /// Smoothed round-trip time, once there is a sample.
    pub const fn srtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Bytes acknowledged in order.
    pub const fn acknowledged(&self) -> u64 {
        self.unacked
    }

    /// What has happened so far.
    pub const fn counters(&self) -> &TcpCounters {
        &self.counters
    }
}
