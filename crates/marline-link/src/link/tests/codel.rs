//! CoDel against the loop that RFC 8289 prints.

use super::*;
use crate::Reason;
use marline_base::Rng;

/// RFC 8289, section 5, word for word over a real queue of packets of 1500 bytes that take 600 µs
/// each. Times are in ns.
struct Book<'a> {
    times: &'a [u64],
    dropped: Vec<bool>,
    /// For each packet how many were before it, the one in transmission included.
    ahead: Vec<usize>,
    /// The queue holds the packets from `head` to `tail`.
    head: usize,
    tail: usize,
    /// Whether the queue is too short to drop from, given the packets behind this one and those
    /// that were ahead of it.
    short: fn(behind: usize, ahead: usize) -> bool,
    first_above: f64,
    drop_next: f64,
    count: u32,
    last_count: u32,
    dropping: bool,
}

const TARGET: f64 = 5e6;
const INTERVAL: f64 = 100e6;
const SERVICE: u64 = 600_000;

fn control_law(t: f64, count: u32) -> f64 {
    t + libm::floor(INTERVAL / libm::sqrt(f64::from(count)))
}

impl Book<'_> {
    fn arrive(&mut self, until: u64, in_transmission: usize) {
        while self.tail < self.times.len() && self.times[self.tail] <= until {
            self.ahead[self.tail] = self.tail - self.head + in_transmission;
            self.tail += 1;
        }
    }

    fn dodequeue(&mut self, now: f64) -> (Option<usize>, bool) {
        if self.head == self.tail {
            self.first_above = 0.0;
            return (None, false);
        }
        let packet = self.head;
        self.head += 1;
        let sojourn = now - self.times[packet] as f64;
        if sojourn < TARGET || (self.short)(self.tail - self.head, self.ahead[packet]) {
            self.first_above = 0.0;
        } else if self.first_above == 0.0 {
            self.first_above = now + INTERVAL;
        } else if now >= self.first_above {
            return (Some(packet), true);
        }
        (Some(packet), false)
    }

    fn drop(&mut self, packet: Option<usize>) {
        self.dropped[packet.unwrap()] = true;
    }

    fn dequeue(&mut self, now: f64) -> Option<usize> {
        let (mut packet, ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.drop(packet);
                self.count += 1;
                let ok_to_drop;
                (packet, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            self.drop(packet);
            packet = self.dodequeue(now).0;
            self.dropping = true;
            let delta = self.count - self.last_count;
            let recent = now - self.drop_next < 16.0 * INTERVAL;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = control_law(now, self.count);
            self.last_count = self.count;
        }
        packet
    }
}

fn by_the_book(times: &[u64], short: fn(usize, usize) -> bool) -> Vec<bool> {
    let mut book = Book {
        times,
        dropped: alloc::vec![false; times.len()],
        ahead: alloc::vec![0; times.len()],
        head: 0,
        tail: 0,
        short,
        first_above: 0.0,
        drop_next: 0.0,
        count: 0,
        last_count: 0,
        dropping: false,
    };
    let mut free = 0;
    while book.head < times.len() {
        if book.dequeue(free as f64).is_some() {
            free += SERVICE;
            book.arrive(free, 1);
        } else if let Some(&next) = times.get(book.head) {
            free = next;
            book.arrive(free, 0);
        }
    }
    book.dropped
}

fn by_the_link(times: &[u64]) -> Vec<bool> {
    let mut link = link("rate=20mbit,codel");
    times
        .iter()
        .map(|&t| link.offer(Instant::from_nanos(t), 1_500) == Verdict::Dropped(Reason::CoDel))
        .collect()
}

/// Poisson arrivals that ask for `load` times the link's rate.
fn poisson(load: f64) -> Vec<u64> {
    let mut rng = Rng::new(4).stream("arrivals");
    let mut time = 0.0;
    (0..60_000)
        .map(|_| {
            time += rng.exponential() * SERVICE as f64 / load;
            time as u64
        })
        .collect()
}

#[test]
fn it_drops_what_the_rfcs_loop_drops() {
    for load in [0.95, 1.02, 1.3] {
        let times = poisson(load);
        let ours = by_the_link(&times);
        let same_rule = by_the_book(&times, |_behind, ahead| ahead <= 1);
        let parted = ours.iter().zip(&same_rule).position(|(a, b)| a != b);
        assert_eq!(parted, None, "load {load}");

        // What is spared in short queues differs from the RFC in single packets, not in effect.
        let share = |d: &[bool]| d.iter().filter(|d| **d).count() as f64 / d.len() as f64;
        let the_rfcs_rule = by_the_book(&times, |behind, _ahead| behind <= 1);
        let (ours, theirs) = (share(&ours), share(&the_rfcs_rule));
        assert!(
            libm::fabs(ours - theirs) < 0.002,
            "load {load}: {ours} {theirs}"
        );
        assert!(load < 1.0 || ours > 0.01, "load {load}: {ours}");
    }
}

#[test]
fn it_holds_the_delay_where_drop_tail_lets_it_stand() {
    let mean_delay_ms = |text| {
        let mut link = link(text);
        let (mut sum, mut delivered) = (0.0, 0.0);
        for t in poisson(1.02) {
            let offered = Instant::from_nanos(t);
            if let Some(at) = link.offer(offered, 1_500).arrival() {
                sum += at.since(offered).as_secs_f64() * 1e3;
                delivered += 1.0;
            }
        }
        sum / delivered
    };
    let standing = mean_delay_ms("rate=20mbit,queue=200ms");
    let held = mean_delay_ms("rate=20mbit,queue=200ms,codel");
    assert!(standing > 150.0, "{standing}");
    assert!(held < standing / 4.0, "{held}");
}
