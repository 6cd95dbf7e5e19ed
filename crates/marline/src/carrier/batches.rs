//! Does the way lose batches of packets that the kernel or the driver is to cut (GSO)?
//!
//! Some drivers and hypervisors take such batches and lose them whole, while every single packet
//! passes. QUIC's acknowledgements show it: packets sent alone come, before and after batches of
//! which nothing does. Large packets lost for another reason, as on a path that has shrunk, look
//! the same; so then everything is sent singly for a while, and only if packets that are as long as
//! those that were lost arrive now, that is kept, for as long as the connection lives.
//!
//! A peer can make this end believe so, by what it acknowledges. That costs this end a call of the
//! kernel for each packet to that peer, as before batches were known, and nothing to others.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::lock;

/// What was sent that is remembered, batches and single packets: several times what it takes to
/// judge. A path that has more under way than this is not stuck.
const REMEMBERED: usize = 64;
/// Times that batches alone were lost between two single packets that came. Each may be an outage
/// that ended just then, or a full queue; six in a row, without one packet of a batch that came,
/// are neither.
const GAPS: usize = 6;
/// How long everything is sent singly to see if that helps: some losses of the session's, each
/// noticed and sent again.
const TRIAL: Duration = Duration::from_secs(10);
/// Long packets that must come then, where none did before.
const PROOF: u32 = 3;

/// The destinations to which packets are sent one by one. Clones share them; there is at most one
/// for each connection of a socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Singly(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    all: Mutex<BTreeSet<SocketAddr>>,
    /// There is one. Most sockets never have any, and their packets take no lock.
    any: AtomicBool,
}

impl Singly {
    /// Are packets to `destination` sent one by one?
    pub(super) fn has(&self, destination: SocketAddr) -> bool {
        self.0.any.load(Ordering::Relaxed) && lock(&self.0.all).contains(&destination)
    }

    fn set(&self, destination: SocketAddr, singly: bool) {
        let mut all = lock(&self.0.all);
        match singly {
            true => all.insert(destination),
            false => all.remove(&destination),
        };
        self.0.any.store(!all.is_empty(), Ordering::Relaxed);
    }
}

/// How one connection sends to its peer. What was found ends with it.
#[derive(Debug)]
pub(super) struct Sending {
    singly: Singly,
    remote: SocketAddr,
}

impl Sending {
    pub(super) const fn new(singly: Singly, remote: SocketAddr) -> Self {
        Self { singly, remote }
    }

    fn set(&self, singly: bool) {
        self.singly.set(self.remote, singly);
    }

    /// The destinations of the socket.
    pub(super) fn socket(&self) -> Singly {
        self.singly.clone()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// What was sent by one call, and whether any of it came.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    /// Mean length (bytes) of the packets of a batch; `None` for a single packet.
    batch: Option<u64>,
    came: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Batches are sent, and watched.
    Watching,
    /// Everything is sent singly since then. `came` counts what arrived of packets of this length
    /// (bytes) or more, which were lost in batches.
    Trying {
        since: Instant,
        length: u64,
        came: u32,
    },
    /// Everything is sent singly.
    Decided,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Nothing,
    Singly,
    InBatches,
    Decided,
}

/// Judges one connection by what QUIC sends and what is acknowledged.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    sending: Arc<Sending>,
    evidence: Evidence,
}

impl Judge {
    pub(super) fn new(sending: Arc<Sending>) -> Self {
        Self {
            sending,
            evidence: Evidence::default(),
        }
    }

    pub(super) fn sending(&self) -> &Sending {
        &self.sending
    }

    /// A call sent `bytes`, up to the packet of this number; a packet has `mtu` bytes at most.
    pub(super) fn sent(&mut self, now: Instant, bytes: u64, number: u64, mtu: u16) {
        let turn = self.evidence.sent(now, bytes, number, mtu);
        self.act(turn);
    }

    /// A packet of `bytes` that was sent at `sent` has come.
    pub(super) fn came(&mut self, sent: Instant, bytes: u64) {
        self.evidence.came(sent, bytes);
    }

    /// That was all of one acknowledgement.
    pub(super) fn acknowledged(&mut self, now: Instant) {
        let turn = self.evidence.weigh(now);
        self.act(turn);
    }

    fn act(&self, turn: Turn) {
        match turn {
            Turn::Nothing => {}
            Turn::Singly => self.sending.set(true),
            Turn::InBatches => self.sending.set(false),
            Turn::Decided => tracing::warn!(
                "{}: batches of packets are lost on the way, and single ones come: packets are \
                 sent one by one (no GSO)",
                self.sending.remote
            ),
        }
    }
}

#[derive(Clone, Debug)]
struct Evidence {
    state: State,
    /// In the order in which it was sent.
    sent: VecDeque<Sent>,
    /// When more was sent than can be told apart.
    mixed: Option<Instant>,
    /// The last packet's number.
    number: u64,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            state: State::Watching,
            sent: VecDeque::new(),
            mixed: None,
            number: 0,
        }
    }
}

impl Evidence {
    fn sent(&mut self, now: Instant, bytes: u64, number: u64, mtu: u16) -> Turn {
        let packets = number.saturating_sub(self.number).max(1);
        self.number = number;
        match self.state {
            State::Decided => return Turn::Nothing,
            State::Trying { since, .. } => {
                if now.saturating_duration_since(since) < TRIAL {
                    return Turn::Nothing;
                }
                // It was not the batches.
                *self = Self {
                    number,
                    ..Self::default()
                };
                return Turn::InBatches;
            }
            State::Watching => {}
        }
        // Numbers are left out now and then, for probes of the size and to catch peers that
        // acknowledge what was not sent; so a few alone say nothing.
        let batch = match (bytes > u64::from(mtu), packets) {
            (true, _) => Some(bytes / packets.max(2)),
            (false, 1) => None,
            (false, _) => return Turn::Nothing,
        };
        // Acknowledgements name the time: what was sent just then by another call cannot be told
        // apart.
        if self.mixed == Some(now) {
            return Turn::Nothing;
        }
        if let Some(last) = self.sent.back()
            && last.at == now
        {
            if last.batch.is_some() != batch.is_some() {
                self.sent.pop_back();
                self.mixed = Some(now);
            }
            return Turn::Nothing;
        }
        if self.sent.len() >= REMEMBERED {
            self.sent.pop_front();
        }
        let came = false;
        self.sent.push_back(Sent {
            at: now,
            batch,
            came,
        });
        Turn::Nothing
    }

    fn came(&mut self, sent: Instant, bytes: u64) {
        match &mut self.state {
            State::Watching => {}
            State::Trying {
                since,
                length,
                came,
            } => {
                if sent > *since && bytes >= *length {
                    *came += 1;
                }
                return;
            }
            State::Decided => return,
        }
        let Ok(index) = self.sent.binary_search_by(|it| it.at.cmp(&sent)) else {
            return;
        };
        match self.sent[index].batch {
            // Batches pass; what was before says nothing any more.
            Some(_) => drop(self.sent.drain(..=index)),
            None => self.sent[index].came = true,
        }
    }

    fn weigh(&mut self, now: Instant) -> Turn {
        match self.state {
            State::Watching => {}
            State::Trying { came, .. } if came >= PROOF => {
                self.state = State::Decided;
                self.sent = VecDeque::new();
                return Turn::Decided;
            }
            State::Trying { .. } | State::Decided => return Turn::Nothing,
        }
        // Batches after the single packet that came last, and the shortest of their packets.
        let (mut gaps, mut lost, mut shortest) = (0, 0, u64::MAX);
        let mut begun = false;
        for sent in &self.sent {
            match sent.batch {
                Some(length) if begun => {
                    lost += 1;
                    shortest = shortest.min(length);
                }
                None if sent.came => {
                    gaps += usize::from(lost > 0);
                    (begun, lost) = (true, 0);
                }
                _ => {}
            }
        }
        if gaps < GAPS {
            return Turn::Nothing;
        }
        self.sent = VecDeque::new();
        self.state = State::Trying {
            since: now,
            length: shortest,
            came: 0,
        };
        Turn::Singly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u16 = 1472;
    const REMOTE: ([u8; 4], u16) = ([192, 0, 2, 1], 4433);

    /// A connection in virtual time, one call of the kernel each millisecond.
    struct World {
        judge: Judge,
        singly: Singly,
        now: Instant,
        number: u64,
    }

    impl World {
        fn new() -> Self {
            let singly = Singly::default();
            let sending = Arc::new(Sending::new(singly.clone(), REMOTE.into()));
            Self {
                judge: Judge::new(sending),
                singly,
                now: Instant::now(),
                number: 0,
            }
        }

        fn singly(&self) -> bool {
            self.singly.has(REMOTE.into())
        }

        /// Sends packets at once, or one by one if that is how it is done now. Those come that
        /// `passes` lets through, by their number in the call and their length.
        fn send(&mut self, packets: u64, length: u64, passes: impl Fn(u64, u64) -> bool) {
            let calls = match self.singly() {
                true => vec![1; packets as usize],
                false => vec![packets],
            };
            for packets in calls {
                self.now += Duration::from_millis(1);
                self.number += packets;
                let bytes = packets * length;
                self.judge.sent(self.now, bytes, self.number, MTU);
                if passes(packets, length) {
                    for _ in 0..packets {
                        self.judge.came(self.now, length);
                    }
                    self.judge.acknowledged(self.now);
                }
            }
        }

        /// Pings and batches in turn, `times` over.
        fn alternate(&mut self, times: usize, passes: impl Fn(u64, u64) -> bool + Copy) {
            for _ in 0..times {
                self.send(1, 60, passes);
                self.send(10, 1400, passes);
            }
        }
    }

    /// Only single packets pass.
    fn alone(packets: u64, _: u64) -> bool {
        packets == 1
    }

    #[test]
    fn lost_batches_are_sent_singly_once_that_is_seen_to_help_and_only_to_that_peer() {
        let mut world = World::new();
        world.alternate(GAPS, alone);
        assert!(!world.singly());
        world.alternate(2, alone);
        assert!(world.singly());
        assert_eq!(world.judge.evidence.state, State::Decided);
        assert!(!world.singly.has(([192, 0, 2, 2], 4433).into()));
        // It is for good, and ends with the connection.
        world.now += 2 * TRIAL;
        world.alternate(5, |_, _| true);
        assert!(world.singly());
        let singly = world.singly.clone();
        drop(world);
        assert!(!singly.has(REMOTE.into()));
        assert!(!singly.0.any.load(Ordering::Relaxed));
    }

    #[test]
    fn a_path_that_takes_short_packets_alone_gets_its_batches_back() {
        let mut world = World::new();
        let narrow = |_, length| length <= 1272;
        world.alternate(GAPS + 1, narrow);
        assert!(world.singly(), "it is tried");
        world.now += TRIAL;
        world.alternate(1, narrow);
        assert!(!world.singly());
        // Pieces that fit pass in batches, and so that is not tried again.
        for _ in 0..20 {
            world.send(1, 60, narrow);
            world.send(10, 1200, narrow);
        }
        assert!(!world.singly());
    }

    #[test]
    fn losses_and_outages_are_no_reason() {
        // One batch in four passes.
        let mut world = World::new();
        for round in 0..100 {
            world.alternate(1, |packets, _| packets == 1 || round % 4 == 0);
            assert!(!world.singly(), "round {round}");
        }
        // Nothing passes, then everything does, again and again.
        let mut world = World::new();
        for round in 0..100 {
            world.alternate(5, |_, _| round % 2 == 0);
            assert!(!world.singly(), "round {round}");
        }
        // Nothing ever passes.
        let mut world = World::new();
        world.alternate(100, |_, _| false);
        assert!(!world.singly());
        assert!(world.judge.evidence.sent.len() <= REMEMBERED);
    }

    #[test]
    fn what_cannot_be_told_apart_says_nothing() {
        let mut world = World::new();
        for _ in 0..20 {
            // A ping and a batch in one moment.
            let number = world.number;
            world.now += Duration::from_millis(1);
            world.judge.sent(world.now, 60, number + 1, MTU);
            world.judge.sent(world.now, 14_000, number + 11, MTU);
            world.judge.sent(world.now, 60, number + 12, MTU);
            world.judge.came(world.now, 60);
            world.judge.acknowledged(world.now);
            // Several short packets, in one call or with numbers left out.
            world.now += Duration::from_millis(1);
            world.judge.sent(world.now, 400, number + 16, MTU);
            world.number = number + 16;
        }
        assert!(world.judge.evidence.sent.is_empty());
        assert!(!world.singly());
    }
}
