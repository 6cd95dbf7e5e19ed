use super::*;
use crate::flow::Symbol;
use crate::path::EmissionKind;
use crate::sched::tests::{Backlog, path};
use marline_base::{Duration, Rate};

/// Two paths of 10 Mb/s and 24 ms (a product of 25 packets) with windows of 50 packets; the
/// first is cheaper.
fn paths() -> [PathView; 2] {
    let mut paths = [path(0), path(1)];
    for (path, cost) in paths.iter_mut().zip([0, 1]) {
        path.window = 50 * 1_200;
        path.min_rtt = Duration::from_millis(24);
        path.srtt = path.min_rtt;
        path.cost = cost;
        path.rate = Rate::from_mbps(10);
    }
    paths
}

fn brim() -> Brim {
    Brim {
        threshold: 10.0,
        standing: Vec::new(),
    }
}

/// The path's packets arrive `queue_ms` later than they could.
fn stand(brim: &mut Brim, path: u64, queue_ms: u64) {
    for n in 0..200 {
        let late = if n < 100 { 0 } else { queue_ms };
        let feedback = Feedback {
            symbol: Symbol {
                unit: 0,
                offset: 0,
                len: 1_200,
            },
            path: PathId(path),
            kind: EmissionKind::Source,
            sent: Instant::from_millis(n),
            outcome: Outcome::Acked,
            arrived_us: Some(1_000 * (12 + n + late)),
            own_way: true,
        };
        brim.on_feedback(Instant::from_millis(24 + n), &feedback);
    }
}

fn sent(brim: &mut Brim, packets: u64) -> (usize, usize) {
    let mut backlog = Backlog::of(packets);
    let now = Instant::from_millis(230);
    brim.plan(&mut Plan::new(now, &mut paths(), &mut backlog));
    let on = |path| backlog.sent_on().iter().filter(|p| **p == path).count();
    (on(0), on(1))
}

#[test]
fn the_cheap_path_takes_its_whole_window_while_nothing_stands_in_it() {
    assert_eq!(sent(&mut brim(), 60), (50, 10));
}

#[test]
fn a_standing_queue_limits_the_path_at_once() {
    // 1.1 · 25 + 4 = 31.5 packets.
    let mut brim = brim();
    stand(&mut brim, 0, 6);
    assert_eq!(sent(&mut brim, 60), (32, 28));
}

#[test]
fn only_when_all_are_limited_and_much_waits_do_buffers_fill() {
    let mut one = brim();
    stand(&mut one, 0, 6);
    stand(&mut one, 1, 5);
    // 2 · 32 are below the brim; ten may wait.
    assert_eq!(sent(&mut one, 74), (32, 32));
    // Of 80, six leave more than ten behind them: where less stands.
    assert_eq!(sent(&mut one, 80), (32, 38));
    // Unless told otherwise none waits.
    one.threshold = 0.0;
    assert_eq!(sent(&mut one, 80), (32, 48));
}
