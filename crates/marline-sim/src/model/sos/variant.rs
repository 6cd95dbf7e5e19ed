use std::fmt;
use std::str::FromStr;

use marline_proto::sched::Gauss;
use marline_proto::sched::sos::{EPSILON, Lane, Moments, Split, Width, redundant, split};

use super::path::Way;

/// Who plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// No scheduler: every path carries the whole object, any n packets of it suffice. No schedule
    /// is better.
    Bound,
    /// Each packet where it arrives first on average.
    Edpf,
    /// Each packet where the expected latest of all arrivals grows least.
    SEdpf,
    /// The same if deviations of packets add up instead of variances: what the paper's comparison
    /// seems to have been with.
    SEdpfLinear,
    /// The best of all splits, found by trying.
    BestSplit,
    /// The paper's: *w* by Hoeffding's bound, from 0 to the 95th percentile.
    Sos,
    /// The same from the least of 5000 packets instead of 0.
    SosSeen,
    /// Sums by the central limit theorem with their skewness, and the tails of all paths together.
    Clt,
    /// *w* as if sums were normal, each path for itself: what these two are for is seen beside it.
    Normal,
    /// The paper's SOS-FEC.
    Fec,
    /// SOS-FEC with the widths of [`Self::Clt`].
    CltFec,
    /// As paths have room, then coded symbols that could help, until enough are known to have
    /// arrived.
    Rateless,
}

const NAMES: [(&str, Variant); 12] = [
    ("bound", Variant::Bound),
    ("edpf", Variant::Edpf),
    ("s-edpf", Variant::SEdpf),
    ("s-edpf-linear", Variant::SEdpfLinear),
    ("best-split", Variant::BestSplit),
    ("sos", Variant::Sos),
    ("sos-seen", Variant::SosSeen),
    ("sos-clt", Variant::Clt),
    ("sos-normal", Variant::Normal),
    ("sos-fec", Variant::Fec),
    ("sos-fec-clt", Variant::CltFec),
    ("sos-rateless", Variant::Rateless),
];

/// What variants know.
pub(super) struct Means<'a> {
    pub(super) ways: &'a [Way],
    pub(super) gamma: f64,
}

/// What a variant does.
pub(super) enum Plan {
    /// This number of packets on each path at once.
    Static {
        packets: Vec<u32>,
        bound: Option<f64>,
    },
    /// As paths have room.
    Rateless(Vec<Lane>),
}

impl Variant {
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

    pub(super) fn plan(self, means: &Means<'_>, n: u32) -> Plan {
        let lanes = |width: Width| means.lanes(width);
        let promised = |split: Split| Plan::Static {
            packets: split.packets.to_vec(),
            bound: Some(split.bound),
        };
        let silent = |packets| Plan::Static {
            packets,
            bound: None,
        };
        match self {
            Self::Bound | Self::BestSplit => silent(vec![n; means.ways.len()]),
            Self::Edpf => silent(means.one_by_one(n, |ways, packets, i| {
                means_of(ways, packets, i).swap_remove(i).mean
            })),
            Self::SEdpf => {
                silent(means.one_by_one(n, |ways, packets, i| latest(&means_of(ways, packets, i))))
            }
            Self::SEdpfLinear => silent(means.one_by_one(n, |ways, packets, i| {
                let mut sums = means_of(ways, packets, i);
                for (j, sum) in sums.iter_mut().enumerate() {
                    sum.var *= f64::from(packets[j] + u32::from(i == j));
                }
                latest(&sums)
            })),
            Self::Sos => promised(split(&lanes(Width::Hoeffding), n)),
            Self::SosSeen => promised(split(
                &means.lanes_from(Width::Hoeffding, |way| way.least),
                n,
            )),
            Self::Clt => promised(split(&lanes(Width::Clt), n)),
            Self::Normal => promised(split(&lanes(Width::Normal), n)),
            Self::Fec => promised(redundant(&lanes(Width::Hoeffding), n, means.gamma)),
            Self::CltFec => promised(redundant(&lanes(Width::Clt), n, means.gamma)),
            Self::Rateless => Plan::Rateless(lanes(Width::Normal)),
        }
    }
}

impl Means<'_> {
    fn lanes(&self, width: Width) -> Vec<Lane> {
        self.lanes_from(width, |way| way.moments.min)
    }

    /// With this for the least time of each path.
    fn lanes_from(&self, width: Width, least: impl Fn(&Way) -> f64) -> Vec<Lane> {
        let scale = width.scale(EPSILON, self.ways.len());
        let lane = |way: &Way| {
            let moments = Moments {
                min: least(way),
                ..way.moments
            };
            scale.lane(&moments, way.delay, 0.0)
        };
        self.ways.iter().map(lane).collect()
    }

    /// Packet by packet to the path that is best by this measure, given what went before.
    fn one_by_one(&self, n: u32, measure: impl Fn(&[Way], &[u32], usize) -> f64) -> Vec<u32> {
        let mut packets = vec![0; self.ways.len()];
        for _ in 0..n {
            let measured = (0..packets.len()).map(|i| (i, measure(self.ways, &packets, i)));
            if let Some((best, _)) = measured.min_by(|a, b| a.1.total_cmp(&b.1)) {
                packets[best] += 1;
            }
        }
        packets
    }
}

/// When the last packets of each path arrive if path `i` gets one more, as normal variables; a path
/// without packets is done at once.
fn means_of(ways: &[Way], packets: &[u32], i: usize) -> Vec<Gauss> {
    let sum = |(j, way): (usize, &Way)| {
        let n = f64::from(packets[j] + u32::from(i == j));
        Gauss {
            mean: if n > 0.0 {
                way.delay + n * way.moments.mean
            } else {
                0.0
            },
            var: n * way.moments.deviation * way.moments.deviation,
        }
    };
    ways.iter().enumerate().map(sum).collect()
}

fn latest(sums: &[Gauss]) -> f64 {
    match sums {
        [] => 0.0,
        [one] => one.mean,
        [rest @ .., last] => {
            let first = rest.iter().copied().reduce(|a, b| a.max(b, 0.0));
            first.map_or(last.mean, |first| first.expected_max(*last))
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, variant)| variant == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, variant)| *variant)
            .ok_or_else(|| format!("no variant `{text}`; there are {}", Self::NAMES.join(", ")))
    }
}
