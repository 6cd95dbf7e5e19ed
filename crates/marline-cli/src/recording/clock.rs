//! The difference of both ends' clocks.

use super::draft::Draft;

/// Clocks are compared at the beginning and at the end of a session that lasts longer (ms).
const LONG_MS: f64 = 30_000.0;
/// Two clocks that are set by the network run no more differently than this.
const MOST_DRIFT: f64 = 200e-6;

/// The least delay there and back of one path in a stretch of time.
#[derive(Clone, Copy, Debug)]
struct Least {
    up: f64,
    down: f64,
}

/// Shifts delays so that each session's quickest path is as quick there as back, and no packet
/// takes less than no time.
pub(super) fn agree(drafts: &mut [Draft]) {
    let sessions = drafts
        .iter()
        .flat_map(|draft| draft.delays.iter().flatten());
    let mut sessions: Vec<u64> = sessions.map(|(session, ..)| *session).collect();
    sessions.sort_unstable();
    sessions.dedup();
    for session in sessions {
        level(drafts, session);
        let everywhere = (f64::MIN, f64::MAX);
        let quickest = (drafts.iter())
            .filter_map(|draft| least(draft, session, everywhere))
            .min_by(|a, b| (a.up + a.down).total_cmp(&(b.up + b.down)));
        if let Some(Least { up, down }) = quickest {
            let ahead = (up - down) / 2.0;
            shift(drafts, session, |_| ahead);
        }
        // What would have come before it was sent went the other way more quickly.
        for index in 0..drafts.len() {
            let draft = &mut drafts[index..=index];
            if let Some(Least { up, down }) = least(&draft[0], session, everywhere) {
                let ahead = up.min(0.0) - down.min(0.0);
                shift(draft, session, |_| ahead);
            }
        }
    }
}

/// Takes out what the clocks run differently by: then delays grow in one direction by what they
/// shrink by in the other, on every path.
fn level(drafts: &mut [Draft], session: u64) {
    let of_session = |draft: &Draft| -> Vec<f64> {
        let all = draft.delays.iter().flatten();
        let own = all.filter(|(one, ..)| *one == session);
        own.map(|(_, at, _)| *at).collect()
    };
    let times: Vec<f64> = drafts.iter().flat_map(of_session).collect();
    let first = times.iter().copied().fold(f64::MAX, f64::min);
    let last = times.iter().copied().fold(f64::MIN, f64::max);
    let length = last - first;
    if length.is_nan() || length < LONG_MS {
        return;
    }
    let third = length / 3.0;
    let drifts = drafts.iter().filter_map(|draft| {
        let early = least(draft, session, (first, first + third))?;
        let late = least(draft, session, (last - third, last))?;
        let (up, down) = (late.up - early.up, late.down - early.down);
        // Only what both directions show.
        let opposite = up * down < 0.0;
        Some(match opposite {
            true => up.abs().min(down.abs()) * up.signum() / (2.0 * third),
            false => 0.0,
        })
    });
    let drift = drifts.min_by(|a, b| a.abs().total_cmp(&b.abs()));
    if let Some(drift) = drift.filter(|drift| drift.abs() <= MOST_DRIFT) {
        shift(drafts, session, |at| drift * (at - first));
    }
}

fn least(draft: &Draft, session: u64, (from, until): (f64, f64)) -> Option<Least> {
    let [up, down] = [0, 1].map(|way| {
        let own = draft.delays[way].iter();
        let own = own.filter(|(one, at, _)| *one == session && (from..=until).contains(at));
        own.map(|(_, _, delay)| *delay).min_by(f64::total_cmp)
    });
    Some(Least {
        up: up?,
        down: down?,
    })
}

/// Subtracts `ahead` (ms, by the time of sending) from delays up, and adds it to those down.
fn shift(drafts: &mut [Draft], session: u64, ahead: impl Fn(f64) -> f64) {
    for draft in drafts {
        for (way, sign) in [-1.0, 1.0].into_iter().enumerate() {
            for (one, at, delay) in &mut draft.delays[way] {
                if *one == session {
                    *delay += sign * ahead(*at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(name: &str, up: &[(f64, f64)], down: &[(f64, f64)]) -> Draft {
        let of = |delays: &[(f64, f64)]| delays.iter().map(|&(at, ms)| (0, at, ms)).collect();
        Draft {
            name: name.to_owned(),
            ways: Default::default(),
            delays: [of(up), of(down)],
        }
    }

    fn delays(draft: &Draft, way: usize) -> Vec<f64> {
        let all = draft.delays[way].iter();
        all.map(|(_, _, ms)| (ms * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn the_quickest_path_is_as_quick_there_as_back_and_the_others_follow() {
        // The peer is 1000 ms ahead; the first path takes 10 ms each way, the second 30 and 50.
        let mut drafts = [
            draft("a", &[(0.0, 1_010.0), (1.0, 1_015.0)], &[(0.0, -990.0)]),
            draft("b", &[(0.0, 1_030.0)], &[(0.0, -950.0)]),
        ];
        agree(&mut drafts);
        assert_eq!(delays(&drafts[0], 0), [10.0, 15.0]);
        assert_eq!(delays(&drafts[0], 1), [10.0]);
        assert_eq!(
            (delays(&drafts[1], 0), delays(&drafts[1], 1)),
            (vec![30.0], vec![50.0])
        );
    }

    #[test]
    fn nothing_takes_less_than_no_time() {
        // 30 ms and 0 look like 15 and 15; beside it 5 and 40 look like -10 and 55.
        let mut drafts = [
            draft("a", &[(0.0, 30.0)], &[(0.0, 0.0)]),
            draft("b", &[(0.0, 5.0)], &[(0.0, 40.0)]),
        ];
        agree(&mut drafts);
        assert_eq!(
            (delays(&drafts[1], 0), delays(&drafts[1], 1)),
            (vec![0.0], vec![45.0])
        );
    }

    #[test]
    fn clocks_that_run_differently_are_levelled_and_queues_are_not() {
        // 50 ppm over two minutes; a queue of 8 ms that stays grew in the second half.
        let at = |n: u32| f64::from(n) * 1_000.0;
        let drift = |n: u32| 50e-6 * at(n);
        let up: Vec<_> = (0..120).map(|n| (at(n), 20.0 + drift(n))).collect();
        let down: Vec<_> = (0..120).map(|n| (at(n), 20.0 - drift(n))).collect();
        let mut drafts = [draft("a", &up, &down)];
        agree(&mut drafts);
        let flat = |delay: &f64| (delay - 20.0).abs() < 0.1;
        assert!(delays(&drafts[0], 0).iter().all(flat));
        assert!(delays(&drafts[0], 1).iter().all(flat));

        let queue = |n: u32| 20.0 + if n < 60 { 0.0 } else { 8.0 };
        let up: Vec<_> = (0..120).map(|n| (at(n), queue(n))).collect();
        let down: Vec<_> = (0..120).map(|n| (at(n), 20.0)).collect();
        let mut drafts = [draft("a", &up, &down)];
        agree(&mut drafts);
        assert_eq!(delays(&drafts[0], 0)[119], 28.0);
    }
}
