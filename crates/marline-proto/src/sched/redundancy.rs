//! How much redundancy a stream is worth.
//!
//! Whatever is left over could go into copies and repair symbols, and on links that lose one packet
//! in three hundred half as many bytes again bring little; on a metered link they cost money, and
//! beside a download they take its place. What is lost decides.

use super::PathView;

/// Where nothing is lost: with the 7 % that heads take of a live stream's packets, 1.10 bytes are
/// on the wire for a byte (`marline repro field --cell load=live`, bytes on wire).
const LEAST: f64 = 0.03;
/// Repair symbols for each lost packet: one that mends it, and two because losses come in bursts
/// and take repair symbols, too. With what is sent again that is 1.12 bytes and three times the
/// loss (`marline repro field --cell set=misbehaving`, bytes on wire).
const PER_LOSS: f64 = 3.0;

/// Shortest round trip (s) that what is in flight is divided by: pacers send in bursts of a
/// millisecond, and a shorter round trip would take such a burst for a rate.
const SHORTEST: f64 = 1e-3;

/// Does it cost next to nothing to send `need` bytes/s over every one of `paths`? If the copies are
/// no more than [`LEAST`] of all that the session sends over them.
pub(super) fn is_negligible(paths: &[PathView], need: f64) -> bool {
    // What is in flight for a round trip (Little's law).
    let rate = |path: &PathView| path.in_flight as f64 / path.srtt.as_secs_f64().max(SHORTEST);
    let carried: f64 = paths.iter().map(rate).sum();
    let copies = paths.len().saturating_sub(1) as f64;
    copies * need <= LEAST * carried
}

/// Bytes of redundancy for a byte of data over `paths`: by the share that those lose that carry
/// something. A path that is not used earns none.
pub(super) fn share(paths: &[PathView]) -> f64 {
    let carried: f64 = paths.iter().map(|path| path.in_flight as f64).sum();
    let lost = paths.iter().map(|path| path.in_flight as f64 * path.loss);
    LEAST + PER_LOSS * lost.sum::<f64>() / carried.max(1.0)
}

#[cfg(test)]
mod tests {
    use marline_base::Duration;

    use super::*;
    use crate::sched::tests::path;

    #[test]
    fn a_path_that_carries_nothing_earns_none() {
        let mut paths = [path(0), path(1)];
        assert_eq!(share(&paths), LEAST);
        paths[1].loss = 0.5;
        paths[0].in_flight = 12_000;
        assert_eq!(share(&paths), LEAST);
        paths[0].loss = 0.01;
        assert_eq!(share(&paths), LEAST + 0.03);
        paths[1].in_flight = 12_000;
        assert_eq!(share(&paths), LEAST + PER_LOSS * 0.255);
    }

    #[test]
    fn what_costs_little_beside_the_rest_may_go_everywhere() {
        let mut paths = [path(0), path(1), path(2)];
        assert!(!is_negligible(&paths, 1.0), "nothing else is sent");
        for path in &mut paths {
            // 100 kB a second.
            path.srtt = Duration::from_millis(50);
            path.in_flight = 5_000;
        }
        // Two copies of each byte, and 9 kB a second are 3 %.
        assert!(is_negligible(&paths, 4_499.0));
        assert!(!is_negligible(&paths, 4_501.0));
        assert!(
            !is_negligible(&paths, f64::INFINITY),
            "nobody knows what it needs"
        );
    }
}
