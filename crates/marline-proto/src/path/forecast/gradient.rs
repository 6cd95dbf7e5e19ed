//! Capacity from the growth of round-trip times (HOP eq. 10–16), as the paper measures it.
//!
//! The printed least-squares fit (16) squares the times and is a time itself; the slope of a line
//! is Σ(t−t̄)(τ−τ̄)/Σ(t−t̄)². And a true burst has one sending time for all packets, where (15) and
//! (16) are 0/0: then the departures' own line over the packets' numbers gives L/C.

/// A packet of a burst as the sender saw it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Echo {
    /// When it was sent (seconds).
    pub sent: f64,
    /// When its acknowledgement came (seconds).
    pub acked: f64,
    /// Its length (bits).
    pub bits: f64,
}

/// Capacity (bit/s) from a burst's echoes by the gradient of its round-trip times (15), (16):
/// C = G/(1 + ∂τ/∂t), with G the sending rate. `None` for less than three packets, or if they were
/// sent at one time, or if the times make no sense.
pub fn by_round_trips(echoes: &[Echo]) -> Option<f64> {
    let first = echoes.first()?;
    let last = echoes.last()?;
    let sent: f64 = echoes.iter().skip(1).map(|e| e.bits).sum();
    let rate = sent / (last.sent - first.sent);
    let slope = slope(echoes.iter().map(|e| (e.sent, e.acked - e.sent)))?;
    let capacity = rate / (1.0 + slope);
    (capacity.is_finite() && capacity > 0.0).then_some(capacity)
}

/// Capacity (bit/s) from a burst's echoes by their own spacing: the inverse slope of time over
/// bits.
pub fn by_departures(echoes: &[Echo]) -> Option<f64> {
    let mut bits = 0.0;
    let points = echoes.iter().map(|e| {
        bits += e.bits;
        (bits, e.acked)
    });
    let capacity = 1.0 / slope(points)?;
    (capacity.is_finite() && capacity > 0.0).then_some(capacity)
}

/// Slope of the least-squares line.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut n, mut mean_x, mut mean_y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in points {
        n += 1.0;
        let dx = x - mean_x;
        mean_x += dx / n;
        mean_y += (y - mean_y) / n;
        xx += dx * (x - mean_x);
        xy += dx * (y - mean_y);
    }
    (n > 2.0 && xx > 0.0).then(|| xy / xx)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// 20 packets of 12 000 bit, sent `gap` apart, over 40 Mb/s and 25 ms.
    fn burst(gap: f64) -> Vec<Echo> {
        let mut free = 0.0_f64;
        let packet = |i: usize| {
            let sent = i as f64 * gap;
            free = free.max(sent) + 12_000.0 / 40e6;
            Echo {
                sent,
                acked: free + 25e-3,
                bits: 12_000.0,
            }
        };
        (0..20).map(packet).collect()
    }

    #[test]
    fn a_queue_that_grows_shows_the_capacity() {
        // Sent at 120 Mb/s: each packet waits 0.2 ms longer than the one before.
        let capacity = by_round_trips(&burst(1e-4)).unwrap();
        assert!((capacity / 40e6 - 1.0).abs() < 1e-9, "{capacity}");
        let capacity = by_departures(&burst(1e-4)).unwrap();
        assert!((capacity / 40e6 - 1.0).abs() < 1e-9, "{capacity}");
        // Below capacity there is no queue: only the sending rate is seen.
        let capacity = by_round_trips(&burst(1e-3)).unwrap();
        assert!((capacity / 12e6 - 1.0).abs() < 1e-9, "{capacity}");
    }

    #[test]
    fn a_true_burst_has_no_gradient_but_a_spacing() {
        assert_eq!(by_round_trips(&burst(0.0)), None);
        let capacity = by_departures(&burst(0.0)).unwrap();
        assert!((capacity / 40e6 - 1.0).abs() < 1e-9, "{capacity}");
        assert_eq!(by_departures(&burst(0.0)[..2]), None);
        assert_eq!(by_round_trips(&[]), None);
    }
}
