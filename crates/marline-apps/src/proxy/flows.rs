//! The flows of one client, in one task: however many there are, together they have one turn.
//!
//! The runtime gives each task its turn. If each flow were a task, a client with a thousand flows
//! that all have something to do would have a thousand turns between two of another client.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use futures_util::Stream;
use futures_util::stream::FuturesUnordered;
use marline::identity::PublicKey;
use tokio::sync::mpsc;

/// All flows of a client keep their thread no longer than this, and one of them: as long as its
/// sessions do (`marline::endpoint`, `driver.rs`).
const TURN: Duration = Duration::from_micros(250);

/// The flows of each client, which may have several sessions. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct FlowsByClient(Arc<Mutex<BTreeMap<PublicKey, Weak<Flows>>>>);

impl FlowsByClient {
    /// Those of this client; without a key of its own a session has its own.
    pub(crate) fn of(&self, client: Option<PublicKey>) -> Arc<Flows> {
        let Some(client) = client else {
            return Arc::new(Flows::new());
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, flows| flows.strong_count() > 0);
        let known = all.get(&client).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let flows = Arc::new(Flows::new());
            all.insert(client, Arc::downgrade(&flows));
            flows
        })
    }
}

/// Runs what is done for the flows of one client.
#[derive(Debug)]
pub(crate) struct Flows(mpsc::UnboundedSender<Flow>);

impl Flows {
    /// None yet. They run until they end, also after this is dropped.
    pub(crate) fn new() -> Self {
        let (begin, begun) = mpsc::unbounded_channel();
        tokio::spawn(Run {
            begun,
            running: FuturesUnordered::new(),
            turn: Arc::new(Turn(Mutex::new(Instant::now()))),
        });
        Self(begin)
    }

    /// Runs what is done for one flow. Their number is bounded by who opens them.
    pub(crate) fn spawn(&self, flow: impl Future<Output = ()> + Send + 'static) {
        // Who receives ends only after this.
        let _ = self.0.send(Box::pin(flow));
    }
}

type Flow = Pin<Box<dyn Future<Output = ()> + Send>>;

/// When the client's turn ends.
#[derive(Debug)]
struct Turn(Mutex<Instant>);

impl Turn {
    fn begin(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + TURN;
    }

    fn is_over(&self) -> bool {
        Instant::now() >= *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A flow that waits for the next turn when this one is over.
struct InTurn {
    flow: Flow,
    turn: Arc<Turn>,
}

impl Future for InTurn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.turn.is_over() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // As with tasks of their own, what panics in one flow ends no other. It has been reported.
        let flow = &mut self.flow;
        catch_unwind(AssertUnwindSafe(|| flow.as_mut().poll(cx))).unwrap_or(Poll::Ready(()))
    }
}

/// The task.
struct Run {
    begun: mpsc::UnboundedReceiver<Flow>,
    running: FuturesUnordered<InTurn>,
    turn: Arc<Turn>,
}

impl Future for Run {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.turn.begin();
        let all_begun = loop {
            match self.begun.poll_recv(cx) {
                Poll::Ready(Some(flow)) => {
                    let turn = Arc::clone(&self.turn);
                    self.running.push(InTurn { flow, turn });
                }
                Poll::Ready(None) => break true,
                Poll::Pending => break false,
            }
        };
        // The set gives way by itself when two of it have asked for another turn.
        while let Some(()) = ready!(Pin::new(&mut self.running).poll_next(cx)) {}
        match all_begun {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::identity::Identity;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::task::yield_now;

    /// Flows that are busy for a tenth of a turn whenever they are asked.
    fn busy(flows: &Flows, number: usize, polls: &Arc<AtomicUsize>) {
        for _ in 0..number {
            let polls = Arc::clone(polls);
            flows.spawn(std::future::poll_fn(move |cx| {
                polls.fetch_add(1, Relaxed);
                let begun = Instant::now();
                while begun.elapsed() < TURN / 10 {}
                cx.waker().wake_by_ref();
                Poll::Pending
            }));
        }
    }

    #[tokio::test]
    async fn a_thousand_flows_have_no_more_turns_than_one() {
        let polls = Arc::new(AtomicUsize::new(0));
        let flows = Flows::new();
        busy(&flows, 1_000, &polls);
        // Another task, which asks for its next turn at once.
        let mut turns = 0;
        let other = std::future::poll_fn(move |cx| {
            turns += 1;
            cx.waker().wake_by_ref();
            match turns {
                20 => Poll::Ready(turns),
                _ => Poll::Pending,
            }
        });
        let turns = tokio::spawn(other).await.unwrap();
        // Each flow is busy for a tenth of a turn.
        let polls = polls.load(Relaxed);
        assert!(
            (1..=10 * (turns + 1)).contains(&polls),
            "{polls} in {turns}"
        );
    }

    #[test]
    fn sessions_of_a_client_share_a_turn_and_no_others_do() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let _entered = runtime.as_ref().unwrap().enter();
        let key = || Some(Identity::generate().unwrap().public_key());
        let (one, two, all) = (key(), key(), FlowsByClient::default());
        let first = all.of(one);
        assert!(Arc::ptr_eq(&first, &all.of(one)));
        for other in [two, None] {
            assert!(!Arc::ptr_eq(&first, &all.of(other)));
        }
        drop(first);
        all.of(two);
        assert_eq!(all.0.lock().unwrap().len(), 1, "who is gone is forgotten");
    }

    #[tokio::test]
    async fn what_panics_ends_no_other_flow() {
        let (done, flows) = (Arc::new(AtomicUsize::new(0)), Flows::new());
        flows.spawn(async { panic!("a fault of ours") });
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let done = Arc::clone(&done);
            flows.spawn(async move {
                done.fetch_add(1, Relaxed);
            });
        }
        while done.load(Relaxed) < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn each_runs_to_its_end_also_when_no_more_begin() {
        let (done, flows) = (Arc::new(AtomicUsize::new(0)), Flows::new());
        for delay in 0..100 {
            let done = Arc::clone(&done);
            flows.spawn(async move {
                tokio::time::sleep(Duration::from_millis(delay % 7)).await;
                yield_now().await;
                done.fetch_add(1, Relaxed);
            });
        }
        drop(flows);
        while done.load(Relaxed) < 100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
