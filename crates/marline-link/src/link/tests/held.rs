//! Delays that are drawn again and held, and order under jitter.

use super::*;

/// The delays in ms of packets that are offered every 10 ms to an empty link.
fn delays(link: &mut Link, packets: u64) -> Vec<f64> {
    (0..packets)
        .map(|i| {
            let offered = ms(i * 10);
            let at = link.offer(offered, 1_500).arrival().unwrap();
            at.since(offered).as_secs_f64() * 1e3
        })
        .collect()
}

fn mean_and_variance(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    (
        mean,
        values.map(|x| (x - mean) * (x - mean)).sum::<f64>() / n,
    )
}

#[test]
fn a_held_delay_stays_for_its_time_and_is_then_drawn_anew() {
    // The live streaming paper's 80 ± 40 ms, held for 200 ms: 20 packets each.
    let text = "delay=80ms,jitter=40ms,jitter-dist=uniform,jitter-hold=200ms,overtake";
    let got = delays(&mut link(text), 20 * 20_000);
    let mut levels = Vec::new();
    for slot in got.chunks(20) {
        assert!(slot.iter().all(|delay| *delay == slot[0]), "{slot:?}");
        levels.push(slot[0]);
    }
    // Uniform over 80 ms: mean 80, variance 80²/12, fourth central moment 80⁴/80; the standard
    // errors over 20 000 levels are 0.163 and 3.4; six of them.
    let (mean, variance) = mean_and_variance(levels.iter().copied());
    assert!(libm::fabs(mean - 80.0) < 0.98, "{mean}");
    assert!(libm::fabs(variance - 6_400.0 / 12.0) < 20.3, "{variance}");
    let covariance: f64 = (levels.iter().zip(&levels[1..]))
        .map(|(a, b)| (a - mean) * (b - mean))
        .sum();
    let correlation = covariance / variance / 20_000.0;
    assert!(libm::fabs(correlation) < 0.043, "{correlation}");
}

#[test]
fn held_delays_are_correlated_as_long_as_they_are_held() {
    // Two packets d apart see the same level with probability 1 − d/hold, and independent levels
    // otherwise, so that this is the autocorrelation.
    let got = delays(
        &mut link("delay=80ms,jitter=10ms,jitter-hold=200ms,overtake"),
        400_000,
    );
    let (mean, variance) = mean_and_variance(got.iter().copied());
    for lag in [5, 10, 15, 20, 30] {
        let sum: f64 = (got.iter().zip(&got[lag..]))
            .map(|(a, b)| (a - mean) * (b - mean))
            .sum();
        let correlation = sum / got.len() as f64 / variance;
        let expected = (1.0 - lag as f64 / 20.0).max(0.0);
        // 20 000 levels: six standard errors are 6/√20000.
        assert!(
            libm::fabs(correlation - expected) < 0.043,
            "lag {lag}: {correlation} {expected}"
        );
    }
}

#[test]
fn with_order_kept_a_shorter_level_waits_for_the_longer_one() {
    let text = "delay=80ms,jitter=40ms,jitter-dist=uniform,jitter-hold=200ms";
    let free = delays(&mut link(&[text, ",overtake"].concat()), 2_000);
    let kept = delays(&mut link(text), 2_000);
    let mut last = 0.0_f64;
    for (i, (free, kept)) in free.iter().zip(&kept).enumerate() {
        let sent = i as f64 * 10.0;
        last = last.max(sent + free);
        assert!(libm::fabs(sent + kept - last) < 1e-6, "packet {i}");
    }
    assert!(
        free.iter()
            .zip(&kept)
            .any(|(free, kept)| kept - free > 30.0)
    );
}

#[test]
fn every_outage_is_a_handover_to_another_delay() {
    for mode in ["drop", "hold"] {
        let text = "delay=50ms,jitter=20ms,jitter-dist=uniform,jitter-hold=outage,overtake,\
                    outage=1s+100ms/1s,outage-mode=";
        let mut link = link(&[text, mode].concat());
        let mut levels = Vec::new();
        for second in 0..2_000 {
            // Cells are left at whole seconds and entered a tenth later.
            let [first, last] = [150, 999].map(|t| {
                let offered = ms(second * 1_000 + t);
                link.offer(offered, 1_500).arrival().unwrap().since(offered)
            });
            assert_eq!(first, last, "{mode}");
            levels.push(first.as_secs_f64() * 1e3);
        }
        let (mean, variance) = mean_and_variance(levels.iter().copied());
        // Uniform from 30 to 70 ms: six standard errors of 2000 draws.
        assert!(libm::fabs(mean - 50.0) < 1.55, "{mode}: {mean}");
        assert!(
            libm::fabs(variance - 1_600.0 / 12.0) < 16.0,
            "{mode}: {variance}"
        );
        assert!(levels.windows(2).all(|pair| pair[0] != pair[1]), "{mode}");
    }
}

#[test]
fn a_copy_of_a_held_delay_has_the_same() {
    let mut link = link("delay=50ms,jitter=20ms,jitter-hold=1s,dup=100%");
    for i in 0..100 {
        let Verdict::Delivered { at, copy, .. } = link.offer(ms(i * 100), 100) else {
            panic!("nothing is lost");
        };
        assert_eq!(copy, Some(at));
    }
}

#[test]
fn uniform_jitter_reorders_as_computed() {
    let text = "delay=80ms,jitter=40ms,jitter-dist=uniform,overtake";
    let got = arrivals(&mut link(text), (0..200_000).map(|i| i * 10_000));
    let overtaken = got.windows(2).filter(|pair| pair[1] < pair[0]).count();
    // The difference of two uniform delays over a width w is triangular, so that a packet sent d
    // later overtakes with probability (1 − d/w)²/2: w = 80 ms, d = 10 ms.
    let expected = 0.5 * 0.875 * 0.875;
    // Neighbours share a packet, which only lowers the variance: six standard errors of
    // independent pairs.
    let share = overtaken as f64 / 199_999.0;
    assert!(libm::fabs(share - expected) < 0.0066, "{share} {expected}");
}
