//! Two sessions and what lies between them, for tests that use both by hand.

use std::ops::{Index, IndexMut};

use marline_base::{Duration, Instant, Rng};
use marline_proto::path::PathParams;
use marline_proto::wire::PathId;
use marline_proto::{Config, Event, PathError, Session, Side};

use crate::engine::{Cable, End, Engine};

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The client's session.
    pub client: Config,
    /// The server's session.
    pub server: Config,
    /// Feeds every random draw.
    pub seed: u64,
}

/// Two sessions and the links between them in virtual time: the engine of the scenarios with one
/// pair of sessions, both in the caller's hands, and a link of its own for every path.
#[derive(Debug)]
pub struct World {
    /// The client's session.
    pub client: Session,
    /// The server's session.
    pub server: Session,
    engine: Engine,
}

/// Both sessions as the engine wants them.
struct Both<'a>(&'a mut Session, &'a mut Session);

impl Index<usize> for Both<'_> {
    type Output = Session;

    fn index(&self, index: usize) -> &Session {
        if index == 0 { self.0 } else { self.1 }
    }
}

impl IndexMut<usize> for Both<'_> {
    fn index_mut(&mut self, index: usize) -> &mut Session {
        if index == 0 { self.0 } else { self.1 }
    }
}

impl World {
    /// A world without paths.
    ///
    /// # Panics
    /// If a session refuses its configuration: a mistake of the experiment.
    pub fn new(config: WorldConfig) -> Self {
        let rng = Rng::new(config.seed);
        let session = |side, own: &Config, peer: &Config, name| {
            let seed = rng.stream(name).next_u64();
            Session::new(Instant::ZERO, side, own.clone(), peer.params(), seed)
                .unwrap_or_else(|error| panic!("the {name} session's configuration: {error}"))
        };
        Self {
            client: session(Side::Client, &config.client, &config.server, "client"),
            server: session(Side::Server, &config.server, &config.client, "server"),
            engine: Engine::new(1, rng),
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.engine.now()
    }

    /// The session at one end.
    pub fn session(&mut self, end: End) -> &mut Session {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    /// Lays a path between the two ends, present on both at once.
    ///
    /// # Errors
    /// As [`Session::add_path`].
    ///
    /// # Panics
    /// If the link refuses its configuration: a mistake of the experiment.
    pub fn add_path(&mut self, cable: &Cable, params: &PathParams) -> Result<PathId, PathError> {
        let now = self.now();
        let id = self.client.next_path_id().max(self.server.next_path_id());
        self.client.add_path(now, id, params)?;
        self.server.add_path(now, id, params)?;
        let link = self.engine.add_link(cable, 0);
        let link = link.unwrap_or_else(|error| panic!("the link of path {}: {error}", id.0));
        self.engine.connect(0, id, link);
        Ok(id)
    }

    /// Lets a path run over other links from now on, as after a change of network beneath its
    /// carrier. What is on its way still arrives unless `lose` says otherwise.
    ///
    /// # Panics
    /// As [`World::add_path`].
    pub fn rewire(&mut self, path: PathId, cable: &Cable, lose: bool) {
        if let Some(link) = self.engine.link_of(0, path) {
            let replaced = self.engine.replace_link(link, cable, lose);
            replaced.unwrap_or_else(|error| panic!("the link of path {}: {error}", path.0));
        }
    }

    /// Cuts a path's wire in one or both directions, or restores it. What waits in the queue of a
    /// link that is cut is lost; what has left it arrives.
    pub fn set_dark(&mut self, path: PathId, up: bool, down: bool) {
        if let Some(link) = self.engine.link_of(0, path) {
            self.engine.set_dark(link, up, down);
        }
    }

    /// Puts an address translator at the client's end of a path's link: it forgets the path so long
    /// after the client sent last, and what the server sends is lost until the client sends again.
    pub fn set_nat(&mut self, path: PathId, remembers: Duration) {
        if let Some(link) = self.engine.link_of(0, path) {
            self.engine.set_nat(link, remembers);
        }
    }

    /// Lets the sessions send after each datagram that they receive, and not only when all that
    /// arrive at an instant were handed over.
    pub fn set_one_by_one(&mut self, one_by_one: bool) {
        self.engine.set_one_by_one(one_by_one);
    }

    /// Steps taken so far; each handles one instant's events.
    pub fn steps(&self) -> u64 {
        self.engine.steps()
    }

    /// Datagrams that the sessions have sent so far.
    pub fn datagrams(&self) -> u64 {
        self.engine.datagrams()
    }

    /// Moves the clock to the next event (no further than `limit`) and lets the sessions act.
    /// Returns false once the clock stands at `limit` with nothing left to do there.
    ///
    /// # Panics
    /// If the sessions' timers let no time pass: they ask for the same instant again and again.
    pub fn step(&mut self, limit: Instant) -> bool {
        self.touch_both();
        self.advance(limit)
    }

    /// The caller may have used either session.
    fn touch_both(&mut self) {
        self.engine.touch(0);
        self.engine.touch(1);
    }

    fn advance(&mut self, limit: Instant) -> bool {
        let mut both = Both(&mut self.client, &mut self.server);
        self.engine.flush(&mut both);
        let more = self.engine.advance(&mut both, limit);
        self.engine.flush(&mut both);
        more
    }

    /// Runs until `limit`, handing every event of either session to `on_event`.
    pub fn run_until(&mut self, limit: Instant, mut on_event: impl FnMut(&mut Self, End, Event)) {
        self.touch_both();
        loop {
            let more = self.advance(limit);
            for end in [End::Client, End::Server] {
                while let Some(event) = self.session(end).poll_event() {
                    // The receiver of the event may use either session.
                    self.touch_both();
                    on_event(self, end, event);
                }
            }
            if !more {
                break;
            }
        }
    }
}
