use super::*;
use marline_base::Instant;
use marline_link::{Link, Verdict};

const STEP_MS: u64 = 20;

/// A direction that lasts `ms`, in which each window has these packets of 1142 bytes (1200
/// on the link), lost ones and delays.
fn way(ms: u64, of: impl Fn(u64) -> (u64, u64, f64)) -> WayRecord {
    let starts = (0..ms / STEP_MS).map(|number| number * STEP_MS);
    let windows = starts.clone().map(|at| {
        let (sent, lost, _) = of(at);
        let arrived = (sent - lost) * 1_142;
        Window {
            sent,
            lost,
            arrived,
            bulk: arrived,
        }
    });
    let delays = starts
        .filter(|at| of(*at).0 > of(*at).1)
        .map(|at| (at as f64, of(at).2));
    WayRecord {
        windows: windows.collect(),
        delays: delays.collect(),
    }
}

fn made(way: &WayRecord) -> LinkConfig {
    direction("test", STEP_MS, way, way, 58)
}

fn without_bulk(mut way: WayRecord) -> WayRecord {
    way.windows.iter_mut().for_each(|window| window.bulk = 0);
    way
}

#[test]
fn a_path_that_was_not_filled_replays_its_delays_and_has_no_limit() {
    // A swing of 30 ms over a second.
    let swing = |at: u64| 40.0 + 15.0 * (at as f64 / 159.0).sin();
    let config = made(&without_bulk(way(10_000, |at| (4, 0, swing(at)))));
    assert_eq!(config.capacity, Capacity::Unlimited);
    let mut link = Link::new(config, 1).unwrap();
    for ms in (1_000..9_000).step_by(7) {
        let Verdict::Delivered { at, .. } = link.offer(Instant::from_millis(ms), 1_000) else {
            panic!("nothing was lost");
        };
        let took = at.since(Instant::from_millis(ms)).as_secs_f64() * 1e3;
        assert!((took - swing(ms)).abs() < 1.5, "{ms}: {took}");
    }
}

#[test]
fn a_path_that_was_filled_has_its_rate_and_its_queue_is_made_again() {
    // 5 packets in 20 ms are 2.4 Mb/s; from second 4 to 8 a queue of 80 ms stands.
    let full = |at: u64| (4_000..8_000).contains(&at);
    let of = |at: u64| {
        if full(at) {
            (5, 0, 110.0)
        } else {
            (1, 0, 30.0)
        }
    };
    let config = made(&way(12_000, of));
    let Capacity::Rates(rates) = &config.capacity else {
        panic!("a rate: {config:?}");
    };
    let rate = rates.mean_rate().as_mbps_f64();
    assert!((2.2..2.6).contains(&rate), "{rate}");
    let mut link = Link::new(config, 1).unwrap();
    let mut delay = |ms| {
        let now = Instant::from_millis(ms);
        match link.offer(now, 1_200) {
            Verdict::Delivered { at, .. } => at.since(now).as_secs_f64() * 1e3,
            Verdict::Dropped(reason) => panic!("{reason}"),
        }
    };
    // The empty path, and 4 ms for the packet itself.
    assert!((30.0..36.0).contains(&delay(5_000)));
    let tenth = (0..10).map(|_| delay(6_000)).last().unwrap();
    assert!((64.0..76.0).contains(&tenth), "{tenth}");
}

#[test]
fn losses_come_where_they_were_and_a_silence_with_losses_is_dark() {
    // Every other window from second 2 to 3 had one packet, which was lost, the others none.
    let of = |at: u64| match at {
        2_000..3_000 => (
            u64::from((at / 20).is_multiple_of(2)),
            u64::from((at / 20).is_multiple_of(2)),
            0.0,
        ),
        4_000..5_000 => (10, 5, 20.0),
        _ => (10, 0, 20.0),
    };
    let mut link = Link::new(made(&without_bulk(way(6_000, of))), 1).unwrap();
    let mut lost = |from: u64, until: u64| {
        let offers = (from..until).map(|ms| link.offer(Instant::from_millis(ms), 100));
        offers.filter(|verdict| verdict.arrival().is_none()).count()
    };
    assert_eq!(lost(0, 2_000), 0);
    assert!(lost(2_000, 2_980) == 980, "dark throughout");
    assert_eq!(lost(3_000, 4_000), 0);
    let half = lost(4_000, 5_000);
    assert!((400..600).contains(&half), "{half}");
}

#[test]
fn jitter_is_no_queue() {
    // As of a link that draws each delay by itself, beside a long stream that is slower than it.
    let mut rng = marline_base::Rng::new(2);
    let drawn: Vec<f64> = (0..600).map(|_| 40.0 + 8.0 * rng.normal()).collect();
    let of = |at: u64| (5, 0, drawn[(at / STEP_MS) as usize].max(0.0));
    let config = made(&way(12_000, of));
    let replay = config.replay.unwrap();
    let least = drawn.iter().copied().fold(f64::MAX, f64::min);
    let kept = |at: u64| replay.period() > Duration::from_millis(at);
    assert!(kept(11_999));
    // The delays are those that were recorded, not the least of them.
    let mean = mean_delay(replay);
    assert!(mean > least + 15.0, "{mean} {least}");
}

#[test]
fn a_queue_that_comes_and_goes_quickly_is_made_again_and_not_replayed() {
    // It grows to 30 ms and is gone again ten times a second.
    let queue = |ms: u64| 0.6 * f64::min((ms % 100) as f64, 100.0 - (ms % 100) as f64);
    let mut way = way(12_000, |_| (5, 0, 0.0));
    let sampled = (0..12_000).step_by(4);
    way.delays = sampled.map(|ms| (ms as f64, 40.0 + queue(ms))).collect();
    let config = made(&way);
    assert_ne!(config.capacity, Capacity::Unlimited);
    // Of 15 ms, which are its mean.
    let mean = mean_delay(config.replay.unwrap());
    assert!((40.0..47.0).contains(&mean), "{mean}");
}

/// The mean of what packets take that leave every 20 ms in 12 s (ms).
fn mean_delay(replay: Replay) -> f64 {
    let config = LinkConfig {
        replay: Some(replay),
        ..LinkConfig::default()
    };
    let mut link = Link::new(config, 1).unwrap();
    let delays = (0..600_u64).map(|n| {
        let now = Instant::from_millis(n * STEP_MS);
        let at = link.offer(now, 100).arrival().unwrap();
        at.since(now).as_secs_f64() * 1e3
    });
    delays.sum::<f64>() / 600.0
}
