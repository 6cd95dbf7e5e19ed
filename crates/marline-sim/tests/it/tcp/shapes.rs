//! The windows of the controllers have the shapes that their publications draw.

use marline_proto::congestion::Phase;
use marline_sim::tcp::TcpConfig;
use marline_sim::{Duration, Instant, Rate};

use super::pipe::{Pipe, Point, secs};

const RTT: Duration = Duration::from_millis(50);
const MSS: f64 = 1_448.0;
const WIRE: u64 = 1_500;

fn trace(controller: &str, rate: Rate, bdps: f64, seconds: u64) -> Vec<Point> {
    let mut pipe = Pipe::constant(rate, RTT, bdps, 1).with_trace();
    pipe.open(&TcpConfig::new(controller), 1);
    pipe.run(secs(seconds));
    std::mem::take(&mut pipe.flows[0].trace)
}

/// The congestion avoidance between reductions: last window before each, and the points after it.
fn teeth(trace: &[Point]) -> Vec<(f64, &[Point])> {
    let entries: Vec<usize> = (1..trace.len())
        .filter(|&i| trace[i].view.phase == Phase::Recovery)
        .filter(|&i| trace[i - 1].view.phase != Phase::Recovery)
        .collect();
    entries
        .windows(2)
        .map(|pair| {
            let tooth = &trace[pair[0]..pair[1]];
            let peak = trace[pair[0] - 1].window as f64 / MSS;
            let start = tooth.iter().position(|p| p.view.phase == Phase::Avoidance);
            (peak, &tooth[start.unwrap_or(tooth.len())..])
        })
        .collect()
}

#[test]
fn new_reno_draws_a_sawtooth() {
    let rate = Rate::from_mbps(20);
    let trace = trace("new-reno", rate, 1.0, 60);
    let teeth = teeth(&trace);
    let service = rate.time_for(WIRE).as_secs_f64();
    // What the pipe and its queue hold, in packets.
    let full = 2.0 * RTT.as_secs_f64() / service;
    // The first one or two end slow start.
    let (_, steady) = teeth.split_at(2);
    assert!(steady.len() >= 5, "{} teeth", steady.len());
    for (peak, tooth) in steady {
        assert!((peak - full).abs() <= 2.0, "peak {peak}, full {full}");
        let first = tooth[0];
        let start = first.window as f64 / MSS;
        assert!((start / peak - 0.5).abs() < 0.01, "{start} after {peak}");
        // A window of w packets takes w service times, in which it grows by one packet: from a to
        // b, (b² - a²) / 2 of them.
        for point in *tooth {
            let window = point.window as f64 / MSS;
            let expected = service * (window * window - start * start) / 2.0;
            let took = point.now.since(first.now).as_secs_f64();
            let slack = 0.03 * expected + 2.0 * window * service;
            assert!(
                (took - expected).abs() <= slack,
                "{window}: {took} s, not {expected} s"
            );
        }
    }
}

#[test]
fn cubic_grows_concave_to_the_plateau_and_convex_beyond() {
    let trace = trace("cubic", Rate::from_mbps(100), 1.0, 120);
    let (mut before, mut beyond) = (0, 0);
    let mut w_max: Option<f64> = None;
    for (n, (peak, tooth)) in teeth(&trace).into_iter().enumerate() {
        // RFC 9438 §4.7: fast convergence.
        let plateau = match w_max {
            Some(w_max) if peak < w_max => peak * 1.7 / 2.0,
            _ => peak,
        };
        w_max = Some(plateau);
        let Some(first) = tooth.first().filter(|_| n >= 2) else {
            continue;
        };
        let start = first.window as f64 / MSS;
        assert!((start / peak - 0.7).abs() < 0.01, "{start} after {peak}");
        // Figures 1 and 2, from the first acknowledgement of the stage.
        let k = ((plateau - start) / 0.4).cbrt();
        for point in tooth {
            let t = point.now.since(first.now).as_secs_f64();
            let expected = 0.4 * (t - k).powi(3) + plateau;
            let window = point.window as f64 / MSS;
            assert!(
                (window - expected).abs() <= 0.01 * expected,
                "tooth {n}, {t} s of K = {k} s: {window}, not {expected}"
            );
            if t < k {
                before += 1;
            } else {
                beyond += 1;
            }
        }
    }
    assert!(before > 100_000 && beyond > 100_000, "{before}, {beyond}");
}

/// Stretches of equal `key`: the key, its start and its end.
fn stretches<K: PartialEq + Copy>(
    trace: &[Point],
    key: impl Fn(&Point) -> K,
) -> Vec<(K, Instant, Instant)> {
    let mut found: Vec<(K, Instant, Instant)> = Vec::new();
    for point in trace {
        match found.last_mut() {
            Some((last, _, end)) if *last == key(point) => *end = point.now,
            _ => {
                if let Some((_, _, end)) = found.last_mut() {
                    *end = point.now;
                }
                found.push((key(point), point.now, point.now));
            }
        }
    }
    found
}

#[test]
fn bbr_cycles_through_its_gains() {
    let trace = trace("bbr", Rate::from_mbps(20), 4.0, 10);
    let cruise: Vec<Point> = trace
        .into_iter()
        .filter(|p| p.now > secs(2) && p.view.phase == Phase::ProbeBw)
        .collect();
    let gains = stretches(&cruise, |p| p.view.pacing_gain);
    assert!(gains.len() > 30);
    for turn in gains[1..gains.len() - 1].windows(3) {
        let names = [turn[0].0, turn[1].0, turn[2].0];
        let in_order = [[1.25, 0.75, 1.0], [0.75, 1.0, 1.25], [1.0, 1.25, 0.75]];
        assert!(in_order.contains(&names), "{names:?}");
        let (gain, from, to) = turn[0];
        // Six phases of gain one; each lasts as long as the smallest round-trip time and until the
        // next acknowledgement, that of draining no longer.
        let rtts = to.since(from).as_secs_f64() / 0.0506;
        let expected = if gain == 1.0 { 6.0..6.3 } else { 0.3..1.1 };
        assert!(expected.contains(&rtts), "gain {gain}: {rtts} round trips");
    }
}

#[test]
fn bbr_probes_the_round_trip_time_every_ten_seconds() {
    let trace = trace("bbr", Rate::from_mbps(20), 4.0, 60);
    let phases = stretches(&trace, |p| p.view.phase);
    let probes: Vec<_> = phases
        .iter()
        .filter(|(phase, _, _)| *phase == Phase::ProbeRtt)
        .collect();
    assert_eq!(probes.len(), 5);
    for pair in probes.windows(2) {
        let gap = pair[1].1.since(pair[0].1).as_secs_f64();
        assert!((10.0..10.5).contains(&gap), "{gap} s");
    }
    for (_, from, to) in probes {
        let length = to.since(*from).as_secs_f64();
        // 200 ms with four packets in flight, after a round trip in which the flight shrinks.
        assert!((0.2..0.32).contains(&length), "{length} s");
        let inside = trace.iter().filter(|p| p.now >= *from && p.now < *to);
        assert!(inside.clone().all(|p| p.window == 4 * 1_448));
    }
}

#[test]
fn bbr_keeps_the_queue_short() {
    let rate = Rate::from_mbps(20);
    let trace = trace("bbr", rate, 4.0, 40);
    let bdp = rate.bytes_in(RTT) as f64;
    let queues: Vec<f64> = trace
        .iter()
        .filter(|p| p.now > secs(2))
        .map(|p| p.queue as f64 / bdp)
        .collect();
    let mean = queues.iter().sum::<f64>() / queues.len() as f64;
    let most = queues.iter().copied().fold(0.0, f64::max);
    assert!(mean < 0.15, "mean queue {mean} BDP");
    assert!(most < 1.0, "queue of {most} BDP");
}
