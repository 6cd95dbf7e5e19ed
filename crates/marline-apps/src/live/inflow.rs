//! A local sender's datagrams while they wait: until it is known what they are, and until there is
//! a session.

use super::entry::Entry;
use super::inspect::{Content, Inspector};
use super::rtp::Header;
use crate::proxy::associations::IDLE;
use bytes::Bytes;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// How long a sender's datagrams are dropped after its flow could not be opened or was closed by
/// the server.
const RETRY: Duration = Duration::from_millis(500);

/// Bytes of one sender that wait for a session, as many as may be in flight in one; beyond that the
/// oldest are dropped.
const MOST: usize = 8 << 20;
/// What each datagram costs besides its bytes.
const COST: usize = 128;

/// A medium is recognised within this time from a sender's first datagram and by this number of
/// them, or not at all: RTP needs two packets in sequence.
const RECOGNISE: Duration = Duration::from_millis(50);
const FIRST: usize = 4;

/// A datagram of a local program, and when it came.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    pub(super) at: Instant,
    pub(super) datagram: Bytes,
    /// A flow has counted it.
    pub(super) counted: bool,
}

impl Arrived {
    pub(super) fn now(datagram: Bytes) -> Self {
        Arrived {
            at: Instant::now(),
            datagram,
            counted: false,
        }
    }

    fn cost(&self) -> usize {
        self.datagram.len() + COST
    }
}

/// The source of a sender's datagrams, in the order in which they came.
#[derive(Debug)]
pub(super) struct Inflow {
    /// Datagrams that were inspected, waited for a session, or were in flight when one ended.
    early: VecDeque<Arrived>,
    /// What they cost.
    held: usize,
    rest: mpsc::Receiver<Arrived>,
}

impl Inflow {
    pub(super) const fn new(rest: mpsc::Receiver<Arrived>) -> Self {
        Inflow {
            early: VecDeque::new(),
            held: 0,
            rest,
        }
    }

    fn push(&mut self, arrived: Arrived) {
        self.held += arrived.cost();
        self.early.push_back(arrived);
    }

    /// Waits for the next datagram and leaves it where it is; `None` when no more will come. Cancel
    /// safe.
    pub(super) async fn first(&mut self) -> Option<&mut Arrived> {
        if self.early.is_empty() {
            let arrived = self.rest.recv().await?;
            self.push(arrived);
        }
        self.early.front_mut()
    }

    /// Takes the [`first`](Self::first) away.
    pub(super) fn pop(&mut self) -> Option<Arrived> {
        let first = self.early.pop_front()?;
        self.held -= first.cost();
        Some(first)
    }

    /// Puts back, before all others, datagrams that were sent and did not arrive, each with how
    /// long it has waited.
    pub(super) fn put_back(&mut self, sent: Vec<(Bytes, Duration)>) {
        let now = Instant::now();
        for (datagram, waited) in sent.into_iter().rev() {
            let arrived = Arrived {
                at: now.checked_sub(waited).unwrap_or(now),
                datagram,
                counted: true,
            };
            self.held += arrived.cost();
            self.early.push_front(arrived);
        }
    }

    /// Do the first datagrams say that they are RTP or MPEG-TS?
    pub(super) async fn is_medium(&mut self) -> bool {
        let mut inspector = Inspector::default();
        while self.early.len() < FIRST {
            let first = self.early.front().map(|first| first.at);
            let until = first.unwrap_or_else(Instant::now) + RECOGNISE;
            let Ok(Some(arrived)) = timeout_at(until, self.rest.recv()).await else {
                return false;
            };
            inspector.look(&arrived.datagram);
            let may_be = Header::parse(&arrived.datagram).is_some();
            self.push(arrived);
            match inspector.content {
                Content::Opaque if may_be => {}
                content => return content != Content::Opaque,
            }
        }
        false
    }

    /// Keeps what arrives, no longer than for `budget` and no more than [`MOST`], until `there`.
    /// False when the sender is gone.
    pub(super) async fn hold(
        &mut self,
        there: impl Future<Output = ()>,
        budget: Duration,
        entry: &Entry,
    ) -> bool {
        let mut there = pin!(there);
        loop {
            while let Some(first) = self.early.front()
                && (first.at.elapsed() > budget || self.held > MOST)
            {
                self.drop_first(entry);
            }
            tokio::select! {
                biased;
                () = &mut there => return true,
                arrived = timeout(IDLE, self.rest.recv()) => match arrived {
                    Ok(Some(arrived)) => self.push(arrived),
                    Ok(None) | Err(_) => break,
                },
            }
        }
        while !self.early.is_empty() {
            self.drop_first(entry);
        }
        false
    }

    fn drop_first(&mut self, entry: &Entry) {
        if let Some(first) = self.pop() {
            entry.refuse(first.counted);
        }
    }

    /// Refuses what comes for a while: a flow that cannot be opened is not asked for again with
    /// every datagram.
    pub(super) async fn refuse(mut self, entry: &Entry) {
        sleep(RETRY).await;
        self.rest.close();
        while self.first().await.is_some() {
            self.drop_first(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{Board, LiveName};
    use std::sync::Arc;

    fn entry() -> Arc<Entry> {
        Entry::new(0, LiveName::default(), None, None, None)
    }

    /// Datagrams taken and refused.
    fn counts(entry: &Arc<Entry>) -> (u64, u64) {
        let sent = Board::new([Arc::clone(entry)]).status().remove(0).sent;
        (sent.datagrams, sent.refused)
    }

    fn all(inflow: &mut Inflow) -> Vec<Bytes> {
        std::iter::from_fn(|| inflow.pop())
            .map(|arrived| arrived.datagram)
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_session_is_kept_for_the_budget_and_no_longer() {
        let (sender, rest) = mpsc::channel(4);
        let (mut inflow, entry) = (Inflow::new(rest), entry());
        let send = async {
            for number in 0..10 {
                let datagram = Bytes::copy_from_slice(&[number]);
                sender.send(Arrived::now(datagram)).await.unwrap();
                sleep(Duration::from_millis(100)).await;
            }
        };
        let there = sleep(Duration::from_millis(950));
        let budget = Duration::from_millis(350);
        let (there, ()) = tokio::join!(inflow.hold(there, budget, &entry), send);
        assert!(there);
        // At 900 ms, those from 600 on.
        assert_eq!(all(&mut inflow), [[6u8], [7], [8], [9]].map(|b| b.to_vec()));
        assert_eq!(counts(&entry), (6, 6));
        assert_eq!(inflow.held, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_for_a_session_is_bounded_and_the_oldest_goes() {
        let (sender, rest) = mpsc::channel(4);
        let (mut inflow, entry) = (Inflow::new(rest), entry());
        let long = Bytes::from(vec![0; 60_000]);
        let most = MOST / (long.len() + COST);
        let send = async {
            for _ in 0..most + 5 {
                sender.send(Arrived::now(long.clone())).await.unwrap();
            }
        };
        let there = sleep(Duration::from_secs(1));
        let budget = Duration::from_secs(60);
        let (there, ()) = tokio::join!(inflow.hold(there, budget, &entry), send);
        assert!(there);
        assert_eq!(all(&mut inflow).len(), most);
        assert_eq!(counts(&entry), (5, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_that_is_gone_is_not_waited_for() {
        let (sender, rest) = mpsc::channel(4);
        let (mut inflow, entry) = (Inflow::new(rest), entry());
        sender.send(Arrived::now(Bytes::new())).await.unwrap();
        let never = std::future::pending();
        assert!(!inflow.hold(never, IDLE, &entry).await);
        assert_eq!(counts(&entry), (1, 1));
    }

    #[test]
    fn what_did_not_arrive_comes_before_what_waits() {
        let (sender, rest) = mpsc::channel(1);
        let mut inflow = Inflow::new(rest);
        inflow.push(Arrived::now(Bytes::from_static(b"c")));
        let waited = Duration::from_millis(3);
        let sent = [b"a", b"b"].map(|data| (Bytes::from_static(data), waited));
        inflow.put_back(sent.to_vec());
        let counted: Vec<bool> = inflow.early.iter().map(|arrived| arrived.counted).collect();
        assert_eq!(counted, [true, true, false]);
        assert!(inflow.early[0].at.elapsed() >= waited);
        assert_eq!(all(&mut inflow), ["a", "b", "c"]);
        drop(sender);
    }

    fn rtp(sequence: u16) -> Vec<u8> {
        let [high, low] = sequence.to_be_bytes();
        vec![0x80, 96, high, low, 0, 0, 0, 0, 0, 0, 0, 8, 1]
    }

    async fn recognised(datagrams: &[Vec<u8>]) -> bool {
        let (sender, rest) = mpsc::channel(10);
        for datagram in datagrams {
            let datagram = Bytes::copy_from_slice(datagram);
            sender.send(Arrived::now(datagram)).await.unwrap();
        }
        let mut inflow = Inflow::new(rest);
        let is = inflow.is_medium().await;
        drop(sender);
        // Nothing of what was looked at is lost.
        for datagram in datagrams {
            inflow.first().await.unwrap();
            assert_eq!(inflow.pop().unwrap().datagram, datagram[..]);
        }
        assert!(inflow.first().await.is_none());
        is
    }

    #[tokio::test]
    async fn a_medium_is_recognised_by_its_first_datagrams() {
        let mut transport = vec![0x47; 188];
        transport[1..].fill(0);
        assert!(recognised(&[transport]).await);
        assert!(recognised(&[rtp(7), rtp(8), rtp(9)]).await);
        assert!(recognised(&[rtp(7), rtp(20), rtp(21)]).await);
        // Nothing more comes in time.
        assert!(!recognised(&[rtp(7)]).await);
        assert!(!recognised(&[]).await);
        let steps = [7, 20, 33, 46, 47].map(rtp);
        assert!(!recognised(&steps).await);
        // A handshake of SRT has the version of RTP, and no numbers.
        let handshake = [&[0x80, 0, 0, 0][..], &[0; 60]].concat();
        assert!(!recognised(&[handshake.clone(), handshake, vec![0; 100]]).await);
    }
}
