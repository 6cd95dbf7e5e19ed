use smallvec::SmallVec;

use super::Lane;

/// Steps of the search at most; eight are the most that were ever seen.
const STEPS: u32 = 32;

/// How many packets of an object go on each lane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// Packets on each lane.
    pub packets: SmallVec<[u32; 4]>,
    /// When the object has arrived with high probability, D_U (4); 0 without packets.
    pub bound: f64,
}

impl Split {
    /// Of these packets.
    pub(super) fn of(lanes: &[Lane], packets: SmallVec<[u32; 4]>) -> Self {
        let used = lanes.iter().zip(&packets).filter(|(_, n)| **n > 0);
        let bounds = used.map(|(lane, n)| lane.bound(*n));
        Self {
            bound: bounds.reduce(f64::max).unwrap_or(0.0),
            packets,
        }
    }
}

/// The split of `n` packets whose latest bound is earliest, without laws.
///
/// Bounds grow with every packet, so the best split is that of the n packets whose bounds are
/// earliest: everything up to some time t. The number of packets, with fractions, that have arrived
/// at t is convex in t, so that Newton's steps from a time that is too late come down to it without
/// crossing it; whole packets below it are certain, and the few that are missing, fewer than lanes,
/// are taken one by one in the order of their bounds. That is O(m log n + m²). The paper rounds
/// each number up or down instead, which misses the best split of three lanes in one case of
/// twenty.
pub(super) fn by_bounds(lanes: &[Lane], n: u32) -> Split {
    if lanes.is_empty() || n == 0 {
        return Split::of(lanes, SmallVec::from_elem(0, lanes.len()));
    }
    // What a flat lane does not get before its time, it takes at once.
    let flat = lanes.iter().enumerate().filter(|(_, lane)| lane.is_flat());
    let flat = flat.min_by(|a, b| a.1.delay().total_cmp(&b.1.delay()));
    let bounds = lanes.iter().map(|lane| lane.bound(n));
    let latest = bounds.reduce(f64::min).unwrap_or(0.0);
    let t = threshold(lanes, f64::from(n), latest);
    let mut left = n;
    let whole = |lane: &Lane| match lane.is_flat() {
        true => 0,
        false => {
            let packets = lane.whole(t, left);
            left -= packets;
            packets
        }
    };
    let mut packets: SmallVec<[u32; 4]> = lanes.iter().map(whole).collect();
    if let Some((index, lane)) = flat
        && t >= lane.delay()
    {
        packets[index] += left;
        left = 0;
    }
    for _ in 0..left {
        let next = lanes
            .iter()
            .zip(&packets)
            .map(|(lane, n)| lane.bound(n + 1));
        let Some((index, _)) = next.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) else {
            break;
        };
        packets[index] += 1;
    }
    Split::of(lanes, packets)
}

/// The time at which `n` packets, with fractions, have arrived on the lanes that are not flat;
/// `latest` if that is later.
fn threshold(lanes: &[Lane], n: f64, latest: f64) -> f64 {
    let mut t = latest;
    for _ in 0..STEPS {
        let (mut taken, mut slope) = (0.0, 0.0);
        for lane in lanes.iter().filter(|lane| !lane.is_flat()) {
            let (packets, growth) = lane.takes(t);
            taken += packets;
            slope += growth;
        }
        let excess = taken - n;
        if excess <= 0.25 || slope <= 0.0 {
            break;
        }
        t -= excess / slope;
    }
    t
}
