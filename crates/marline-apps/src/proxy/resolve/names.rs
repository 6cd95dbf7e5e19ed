//! Names to addresses: each is asked for once at a time, however many clients want it; answers are
//! kept for a short while; and what one client asks for holds up no other ([`Shares`]).

use super::cache::Cache;
use super::question::{Failure, Found, PATIENCE, Question};
use super::shares::{Share, Shares};
use marline::support::lock;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// A resolver that takes as long as it likes and cannot be stopped.
pub(super) trait Ask: Send + Sync + fmt::Debug + 'static {
    /// Asks for a name and returns at once. What happens to `answer` is the answer.
    fn ask(&self, name: Arc<str>, answer: Answer);

    /// A number that is another when answers may be others.
    fn settings(&self) -> u64;
}

/// A resolver that clients share. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Resolver(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ask: Box<dyn Ask>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    cache: Cache,
    shares: Shares,
    wanted: HashMap<Question, Wanted>,
    next: u64,
    /// Somebody is starting what may be started.
    starting: bool,
}

/// Who waits for a name, which may have been asked for.
#[derive(Debug, Default)]
struct Wanted {
    asked: Option<Asked>,
    waiters: BTreeMap<u64, Waiter>,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    since: Instant,
    /// Who holds the place.
    by: Share,
}

#[derive(Debug)]
struct Waiter {
    share: Share,
    found: oneshot::Sender<Found>,
}

/// A client's use of the resolver.
#[derive(Debug, Clone)]
pub(super) struct Names {
    resolver: Resolver,
    share: Share,
}

impl Resolver {
    pub(super) fn new(ask: impl Ask) -> Self {
        Resolver(Arc::new(Inner {
            ask: Box::new(ask),
            state: Mutex::new(State {
                cache: Cache::default(),
                shares: Shares::new(),
                wanted: HashMap::new(),
                next: 0,
                starting: false,
            }),
        }))
    }

    pub(super) fn of(&self, share: Share) -> Names {
        Names {
            resolver: self.clone(),
            share,
        }
    }

    /// Asks for what may be asked for now.
    fn start(&self) {
        loop {
            let next = {
                let mut state = lock(&self.0.state);
                // An answer that comes while another is asked for, or at once, goes on in the loop
                // that runs already.
                if std::mem::replace(&mut state.starting, true) {
                    return;
                }
                let next = state.next();
                state.starting = next.is_some();
                next
            };
            let Some(question) = next else {
                return;
            };
            let name = Arc::clone(&question.name);
            let answer = Answer {
                resolver: self.clone(),
                to: Some(question),
            };
            self.0.ask.ask(name, answer);
            lock(&self.0.state).starting = false;
        }
    }

    fn answered(&self, question: &Question, found: Found) {
        let settings = self.0.ask.settings();
        {
            let mut state = lock(&self.0.state);
            let Some(wanted) = state.wanted.remove(question) else {
                return;
            };
            for (id, waiter) in wanted.waiters {
                state.shares.leave(waiter.share, id);
                // It may have gone at this very moment.
                let _ = waiter.found.send(found.clone());
            }
            state.cache.under(settings);
            if let Some(asked) = wanted.asked {
                state.shares.give_back(asked.by);
                if question.settings == settings && found != Err(Failure::NotAsked) {
                    state.cache.put(Arc::clone(&question.name), found);
                }
            }
        }
        self.start();
    }
}

impl State {
    /// Begins to wait for a name. Returns the number of this waiting, and where the answer comes.
    fn wait(
        &mut self,
        question: &Question,
        share: Share,
    ) -> Result<(u64, oneshot::Receiver<Found>), Failure> {
        let asked = self.wanted.get(question).and_then(|wanted| wanted.asked);
        if asked.is_some_and(|asked| asked.since.elapsed() >= PATIENCE) {
            return Err(Failure::Silent);
        }
        let id = self.next;
        self.next += 1;
        // Also when it waits in another client's queue, which may be long.
        if asked.is_none() && !self.shares.queue(share, id, question.clone()) {
            return Err(Failure::TooMany);
        }
        let (sender, found) = oneshot::channel();
        let wanted = self.wanted.entry(question.clone()).or_default();
        wanted.waiters.insert(
            id,
            Waiter {
                share,
                found: sender,
            },
        );
        Ok((id, found))
    }

    fn leave(&mut self, question: &Question, id: u64) {
        let Some(wanted) = self.wanted.get_mut(question) else {
            return;
        };
        if let Some(waiter) = wanted.waiters.remove(&id) {
            self.shares.leave(waiter.share, id);
        }
        if wanted.waiters.is_empty() && wanted.asked.is_none() {
            self.wanted.remove(question);
        }
    }

    /// The next question that is to be asked, which has its place now.
    fn next(&mut self) -> Option<Question> {
        while let Some((share, question)) = self.shares.next() {
            let Some(wanted) = self.wanted.get_mut(&question) else {
                continue;
            };
            // Another client's turn came first, and its answer is for all.
            if wanted.asked.is_some() {
                continue;
            }
            wanted.asked = Some(Asked {
                since: Instant::now(),
                by: share,
            });
            self.shares.take(share);
            return Some(question);
        }
        None
    }
}

impl Names {
    /// The addresses of `name`. When this is dropped, its place in the queue is given back; what
    /// was asked keeps its place among the questions until it is answered.
    pub(super) async fn look_up(&self, name: &str) -> Found {
        let inner = &self.resolver.0;
        let question = Question {
            name: name.into(),
            settings: inner.ask.settings(),
        };
        let (id, found) = {
            let mut state = lock(&inner.state);
            state.cache.under(question.settings);
            if let Some(found) = state.cache.get(name) {
                return found;
            }
            state.wait(&question, self.share)?
        };
        let _waits = Waits {
            resolver: &self.resolver,
            question,
            id,
        };
        self.resolver.start();
        match timeout(PATIENCE, found).await {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(Failure::NotAsked),
            Err(_) => Err(Failure::Silent),
        }
    }
}

/// Ends the waiting when it is dropped.
struct Waits<'a> {
    resolver: &'a Resolver,
    question: Question,
    id: u64,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        lock(&self.resolver.0.state).leave(&self.question, self.id);
    }
}

/// Takes an answer. Dropped without one, it says that nobody was asked.
#[derive(Debug)]
pub(super) struct Answer {
    resolver: Resolver,
    to: Option<Question>,
}

impl Answer {
    /// Gives the answer to all who wait for it.
    pub(super) fn give(mut self, found: io::Result<Vec<SocketAddr>>) {
        self.hand_over(match found {
            Ok(found) => Ok(found.into()),
            Err(error) => Err(Failure::Resolver(error.to_string().into())),
        });
    }

    fn hand_over(&mut self, found: Found) {
        if let Some(question) = self.to.take() {
            self.resolver.answered(&question, found);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.hand_over(Err(Failure::NotAsked));
    }
}

#[cfg(test)]
pub(super) mod tests;
