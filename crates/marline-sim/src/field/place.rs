//! Where a session is: its links, and the scenario of a run there.

use marline_base::{Duration, Instant, Rng};
use marline_link::{Capacity, LinkConfig, Outages};
use marline_proto::Config;

use super::load::{Facts, FieldLoad};
use super::network::{Network, RoundTrip, direction};
use super::profile::Profile;
use crate::scenario::{
    Change, DATAGRAM, LinkPlan, OVERHEAD, PathPlan, Scenario, SessionPlan, Setting, Watch,
};

/// What a queue holds at a link's mean rate, as `marline link` has it by default.
pub(super) const QUEUE: Duration = Duration::from_millis(200);
/// What an uplink has of the downlink's rate. Recorded pairs of phones have 0.4, 0.8 and 1.2
/// (`link/lte/*.up`), homes much less.
pub(super) const UP_SHARE: f64 = 0.5;
/// A link with less than this share of the better one's mean is useless: half of the 20:1 that is
/// still worth a try.
const USELESS: f64 = 0.025;

/// A link before a run's seed has drawn what varies in it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldLink {
    /// Its name.
    pub name: String,
    /// What it belongs to.
    pub network: Network,
    /// Rates from clients to servers.
    pub up: Profile,
    /// Rates from servers to clients.
    pub down: Profile,
    /// Round trips at the beginning.
    pub trip: RoundTrip,
    /// Share of packets that is lost, in either direction.
    pub loss: f64,
    /// What the queues hold at the mean rate: up, down.
    pub queues: [Duration; 2],
    /// When it has other round trips, ascending.
    pub moves: Vec<Move>,
}

/// Other round trips from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Since when.
    pub at: Duration,
    /// What they are.
    pub trip: RoundTrip,
}

/// How long runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// All of a run.
    pub duration: Duration,
    /// What is not measured at its beginning.
    pub warmup: Duration,
}

/// A place: links, and what is known of them.
#[derive(Clone, Debug)]
pub struct Place {
    /// What it belongs to: `wifi-cell`, `drawn`, …
    pub set: String,
    /// Its name in the set.
    pub name: String,
    /// How its runs are made.
    pub way: Way,
}

/// How a place's runs are made.
#[derive(Clone, Debug)]
pub enum Way {
    /// Of links whose rates a seed draws.
    Drawn(Vec<FieldLink>, Length),
    /// As a scenario file says.
    Written(Box<Scenario>),
}

impl Place {
    /// Its name with the set's, which stands for it in random streams and tables.
    pub fn full(&self) -> String {
        format!("{}/{}", self.set, self.name)
    }

    /// The links' names.
    pub fn links(&self) -> Vec<&str> {
        match &self.way {
            Way::Drawn(links, _) => links.iter().map(|link| &*link.name).collect(),
            Way::Written(scenario) => scenario.links.iter().map(|link| &*link.name).collect(),
        }
    }

    /// The means of the links downwards (kb/s).
    fn means(&self) -> Vec<f64> {
        match &self.way {
            Way::Drawn(links, _) => links.iter().map(|link| link.down.mean()).collect(),
            Way::Written(scenario) => {
                let mean = |link: &LinkPlan| {
                    let rate = link.down.capacity.mean_rate();
                    rate.map_or(0.0, |rate| rate.as_bps() as f64 / 1e3)
                };
                scenario.links.iter().map(mean).collect()
            }
        }
    }

    /// Are all of its links but one useless? There bonding can win nothing, and means over places
    /// leave it out.
    pub fn is_one_link(&self) -> bool {
        let means = self.means();
        let better = means.iter().copied().fold(0.0, f64::max);
        means
            .iter()
            .filter(|mean| **mean >= better * USELESS)
            .count()
            < 2
    }

    /// What loads need to know of it.
    pub fn facts(&self) -> Facts {
        let better = self.means().into_iter().fold(0.0, f64::max);
        let low = match &self.way {
            Way::Drawn(links, _) => links.iter().map(|link| link.down.quantile(0.1)).sum(),
            Way::Written(_) => 0.0,
        };
        let written = match &self.way {
            Way::Written(scenario) => scenario.sessions[0].workloads.clone(),
            Way::Drawn(..) => Vec::new(),
        };
        Facts {
            better,
            low,
            written,
        }
    }

    /// What can be asked of it.
    pub fn loads(&self) -> &'static [FieldLoad] {
        match self.way {
            Way::Drawn(..) => FieldLoad::ANYWHERE,
            Way::Written(_) => FieldLoad::WRITTEN,
        }
    }

    /// The scenario of a run: all links, or one alone.
    pub fn scenario(&self, load: FieldLoad, alone: Option<usize>, seed: u64) -> Scenario {
        let workloads = load.workloads(&self.facts());
        let mut scenario = match &self.way {
            Way::Written(scenario) => Scenario::clone(scenario),
            Way::Drawn(links, length) => drawn(links, *length, &self.full(), seed),
        };
        let session = &mut scenario.sessions[0];
        session.workloads = workloads;
        if let Some(alone) = alone {
            session.paths.retain(|path| path.link == alone);
        }
        scenario
    }
}

fn drawn(links: &[FieldLink], length: Length, place: &str, seed: u64) -> Scenario {
    let rng = Rng::new(seed).stream("field rates").stream(place);
    let (mut plans, mut changes) = (Vec::new(), Vec::new());
    for (index, link) in links.iter().enumerate() {
        let (plan, mut moves) = link.plan(index, place, seed, &rng);
        plans.push(plan);
        changes.append(&mut moves);
    }
    changes.sort_by_key(|change| change.at);
    let path = |link| PathPlan {
        link,
        cost: 0,
        standby: false,
        joins: Instant::ZERO,
        leaves: None,
    };
    Scenario {
        title: place.to_owned(),
        about: String::new(),
        duration: length.duration,
        warmup: length.warmup,
        turn: Duration::ZERO,
        schedulers: Vec::new(),
        seeds: vec![seed],
        sessions: vec![SessionPlan {
            name: "main".to_owned(),
            config: Config::default(),
            paths: (0..plans.len()).map(path).collect(),
            workloads: Vec::new(),
            scheduler: None,
        }],
        links: plans,
        cross: Vec::new(),
        changes,
        handovers: Vec::new(),
        blocks: None,
        objects: None,
        pages: None,
        model: None,
        expectations: Vec::new(),
        watch: Watch::default(),
    }
}

impl FieldLink {
    /// The link in a run, and what happens to it on the way.
    fn plan(&self, index: usize, place: &str, seed: u64, rng: &Rng) -> (LinkPlan, Vec<Change>) {
        let side = |up: bool| -> (&Profile, (Capacity, Outages), Duration) {
            let (what, rates) = if up {
                ("up", &self.up)
            } else {
                ("down", &self.down)
            };
            // A trace's name stands for what is in it.
            let name = format!("{place} {} {what} {seed}", self.name);
            let mut rng = rng.stream(&format!("{} {what}", self.name));
            let served = rates.capacity(&name, self.network.grain(), &mut rng);
            (rates, served, self.queues[usize::from(!up)])
        };
        let sides = [side(true), side(false)];
        let config = |trip: RoundTrip, at: usize| {
            let (rates, (capacity, outages), queue) = &sides[at];
            LinkConfig {
                capacity: capacity.clone(),
                outages: outages.clone(),
                ..direction(trip, self.loss, rates.mean(), *queue)
            }
        };
        let change = |moved: &Move| Change {
            at: Instant::ZERO + moved.at,
            link: index,
            setting: Setting::Link {
                up: Box::new(config(moved.trip, 0)),
                down: Box::new(config(moved.trip, 1)),
            },
        };
        let plan = LinkPlan {
            name: self.name.clone(),
            up: config(self.trip, 0),
            down: config(self.trip, 1),
            overhead: OVERHEAD,
            datagram: DATAGRAM,
            handshake: None,
        };
        (plan, self.moves.iter().map(change).collect())
    }
}

/// How late a live stream's packets may be (ms), by the workload that is live in a scenario.
pub(super) fn lifetime_ms(scenario: &Scenario, workload: &str) -> f64 {
    let all = || scenario.sessions[0].workloads.iter();
    let found = all().find(|one| one.name == workload);
    let lifetime = found.and_then(|one| one.flow.lifetime);
    lifetime.unwrap_or(scenario.duration).as_secs_f64() * 1e3
}
