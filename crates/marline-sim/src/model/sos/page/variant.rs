use std::fmt;
use std::str::FromStr;

use marline_proto::sched::Gauss;
use marline_proto::sched::sos::{EPSILON, Lane, Scale, Width, split};

use super::super::path::Way;

/// Who divides packets among paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Edpf,
    SEdpf,
    Sos(Width),
    /// Whichever path can take a packet gets the next one, and the last packets of what is urgent
    /// are coded.
    Rateless,
}

/// Who plans, and in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    rule: Rule,
    /// What the page cannot be shown without goes first.
    pub(super) priority: bool,
    /// Nothing else is asked for: no order of objects is earlier.
    pub(super) alone: bool,
}

const ALONE: &str = "edpf-alone";

const NAMES: [(&str, Rule, bool); 11] = [
    (ALONE, Rule::Edpf, true),
    ("edpf", Rule::Edpf, false),
    ("edpf-priority", Rule::Edpf, true),
    ("s-edpf", Rule::SEdpf, false),
    ("s-edpf-priority", Rule::SEdpf, true),
    ("sos", Rule::Sos(Width::Hoeffding), false),
    ("sos-priority", Rule::Sos(Width::Hoeffding), true),
    ("sos-clt", Rule::Sos(Width::Clt), false),
    ("sos-clt-priority", Rule::Sos(Width::Clt), true),
    ("sos-rateless", Rule::Rateless, false),
    ("sos-rateless-priority", Rule::Rateless, true),
];

impl Variant {
    /// Are packets not divided among paths before they can leave?
    pub(super) fn is_rateless(self) -> bool {
        self.rule == Rule::Rateless
    }

    /// Every variant's name.
    pub const NAMES: [&'static str; NAMES.len()] = {
        let mut names = [""; NAMES.len()];
        let mut i = 0;
        while i < NAMES.len() {
            names[i] = NAMES[i].0;
            i += 1;
        }
        names
    };
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(name, rule, priority)| {
            (*rule, *priority, *name == ALONE) == (self.rule, self.priority, self.alone)
        });
        f.write_str(name.map_or("", |(name, ..)| name))
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, ..)| *name == text);
        found
            .map(|(name, rule, priority)| Variant {
                rule: *rule,
                priority: *priority,
                alone: *name == ALONE,
            })
            .ok_or_else(|| format!("no variant `{text}`; there are {}", Self::NAMES.join(", ")))
    }
}

/// A variant over given paths.
pub(super) struct Planner<'a> {
    pub(super) variant: Variant,
    ways: &'a [Way],
    scale: Scale,
}

impl<'a> Planner<'a> {
    pub(super) fn new(variant: Variant, ways: &'a [Way]) -> Self {
        let width = match variant.rule {
            Rule::Sos(width) => width,
            _ => Width::Clt,
        };
        Self {
            variant,
            ways,
            scale: width.scale(EPSILON, ways.len()),
        }
    }

    /// The paths of the next `n` packets of an object, in their order, with `ahead` packets before
    /// them on each path, to which they are added.
    pub(super) fn place(&self, ahead: &mut [u32], n: u32) -> Vec<usize> {
        match self.variant.rule {
            Rule::Edpf => self.one_by_one(ahead, n, |ahead, i| {
                let way = &self.ways[i];
                way.delay + f64::from(ahead[i] + 1) * way.moments.mean
            }),
            Rule::Rateless => Vec::new(),
            Rule::SEdpf => self.one_by_one(ahead, n, |ahead, i| self.latest(ahead, i)),
            Rule::Sos(_) => {
                let lane = |(way, ahead): (&Way, &u32)| -> Lane {
                    self.scale.lane(&way.moments, way.delay, f64::from(*ahead))
                };
                let lanes: Vec<Lane> = self.ways.iter().zip(ahead.iter()).map(lane).collect();
                let split = split(&lanes, n);
                let mut places = Vec::with_capacity(n as usize);
                for (i, packets) in split.packets.iter().enumerate() {
                    places.extend(std::iter::repeat_n(i, *packets as usize));
                    ahead[i] += packets;
                }
                places
            }
        }
    }

    /// May a packet that `path` takes now be there before the one that `other` took at `since`, if
    /// that one takes a deviation longer than usual?
    pub(super) fn overtakes(&self, path: usize, now: f64, other: usize, since: f64) -> bool {
        let (own, other) = (&self.ways[path], &self.ways[other]);
        let usual = (since + other.moments.mean).max(now);
        let late = usual + other.moments.deviation + other.delay;
        now + own.moments.mean + own.delay < late
    }

    fn one_by_one(
        &self,
        ahead: &mut [u32],
        n: u32,
        measure: impl Fn(&[u32], usize) -> f64,
    ) -> Vec<usize> {
        let mut places = Vec::with_capacity(n as usize);
        for _ in 0..n {
            let measured = (0..ahead.len()).map(|i| (i, measure(ahead, i)));
            if let Some((best, _)) = measured.min_by(|a, b| a.1.total_cmp(&b.1)) {
                ahead[best] += 1;
                places.push(best);
            }
        }
        places
    }

    /// The expected latest arrival of all packets if path `i` gets one more.
    fn latest(&self, ahead: &[u32], i: usize) -> f64 {
        let sum = |(j, way): (usize, &Way)| {
            let n = f64::from(ahead[j] + u32::from(i == j));
            let deviation = way.moments.deviation;
            Gauss {
                mean: if n > 0.0 {
                    way.delay + n * way.moments.mean
                } else {
                    0.0
                },
                var: n * deviation * deviation,
            }
        };
        let mut sums = self.ways.iter().enumerate().map(sum);
        let Some(first) = sums.next() else { return 0.0 };
        let all: Vec<Gauss> = sums.collect();
        match all.split_last() {
            None => first.mean,
            Some((last, rest)) => {
                let before = rest.iter().fold(first, |a, b| a.max(*b, 0.0));
                before.expected_max(*last)
            }
        }
    }
}
