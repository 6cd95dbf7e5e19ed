//! The analysis of the streaming code against simulated frames and published numbers.

use marline_fec::analysis::{Frame, Invalid, Path, approximation, coded_path, interval};

use crate::random::Random;

/// Loss and slots of each path.
type Shares = [(f64, u32)];

fn paths(paths: &Shares) -> Vec<Path> {
    let path = |(loss, slots): &(f64, u32)| Path {
        loss: *loss,
        slots: *slots,
        slot_time: 1.0,
    };
    paths.iter().map(path).collect()
}

fn frame(shares: &Shares, coded: usize) -> Frame {
    Frame::new(&paths(shares), coded).expect("a frame")
}

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b} ± {tolerance}");
}

/// What simulated frames show.
#[derive(Default)]
struct Simulated {
    /// How often each S came, the last for all longer ones.
    counts: [u64; 8],
    periods: u64,
    sum: f64,
    sum_of_squares: f64,
    sum_of_fourths: f64,
    waited: f64,
    slots: u64,
}

impl Simulated {
    fn mean(&self) -> f64 {
        self.sum / self.periods as f64
    }

    fn second_moment(&self) -> f64 {
        self.sum_of_squares / self.periods as f64
    }

    /// Standard errors of both.
    fn errors(&self) -> (f64, f64) {
        let n = self.periods as f64;
        let of = |mean: f64, square: f64| ((square - mean * mean) / n).sqrt();
        (
            of(self.mean(), self.second_moment()),
            of(self.second_moment(), self.sum_of_fourths / n),
        )
    }
}

/// Plays `periods` decoding periods, slot by slot. Slots of all paths last 1 and begin together.
fn simulate(shares: &Shares, coded: usize, periods: u64, seed: u64) -> Simulated {
    let random = &mut Random::new(seed);
    let lost = |random: &mut Random, loss: f64| {
        ((random.next() >> 11) as f64) < loss * (1_u64 << 53) as f64
    };
    let longest = shares.iter().map(|share| share.1).max().expect("a path");
    let slots: u64 = shares.iter().map(|share| u64::from(share.1)).sum();
    let mut seen = Simulated::default();
    // Arrival times of packets that wait for the first lost one, in frames and slots.
    let mut waiting: Vec<f64> = Vec::new();
    for _ in 0..periods {
        waiting.clear();
        let (mut lacking, mut s) = (0_i64, 0_u64);
        loop {
            let mut frame_lacks = 0;
            for slot in 0..longest {
                for (path, (loss, n)) in shares.iter().enumerate() {
                    if slot >= *n {
                        continue;
                    }
                    let gone = lost(random, *loss);
                    if path == coded && slot == n - 1 {
                        frame_lacks -= i64::from(!gone);
                        continue;
                    }
                    frame_lacks += i64::from(gone);
                    if gone || !waiting.is_empty() || lacking > 0 {
                        waiting.push((s * u64::from(longest)) as f64 + f64::from(slot));
                    }
                }
            }
            seen.slots += slots;
            if lacking == 0 && waiting.is_empty() {
                break;
            }
            s += 1;
            lacking += frame_lacks;
            if lacking <= 0 {
                let end = (s * u64::from(longest)) as f64 - 1.0;
                seen.waited += waiting.iter().map(|at| end - at).sum::<f64>();
                break;
            }
        }
        seen.periods += 1;
        seen.counts[(s as usize).min(7)] += 1;
        seen.sum += s as f64;
        seen.sum_of_squares += (s * s) as f64;
        seen.sum_of_fourths += (s * s) as f64 * (s * s) as f64;
    }
    seen
}

/// Frames of one, two and four paths, with the coded packet on any.
const FRAMES: [(&Shares, usize); 7] = [
    (&[(0.05, 10)], 0),
    (&[(0.2, 2), (0.0, 2)], 0),
    (&[(0.2, 2), (0.0, 2)], 1),
    (&[(0.1, 4), (0.02, 6)], 0),
    (&[(0.1, 4), (0.02, 6)], 1),
    (&[(0.15, 3), (0.0, 0), (0.01, 5)], 2),
    (&[(0.05, 2), (0.1, 2), (0.02, 2), (0.03, 2)], 1),
];

#[test]
fn the_law_and_its_moments_are_those_of_simulated_frames() {
    for (seed, (shares, coded)) in (0..).zip(FRAMES) {
        let frame = frame(shares, coded);
        let seen = simulate(shares, coded, 400_000, seed);
        let law = frame.distribution(6);
        for (k, probability) in law.iter().enumerate() {
            let n = seen.periods as f64;
            let error = (probability * (1.0 - probability) / n).sqrt();
            close(seen.counts[k] as f64 / n, *probability, 4.0 * error + 1e-9);
        }
        let (mean, second) = seen.errors();
        close(seen.mean(), frame.mean(), 4.0 * mean);
        close(seen.second_moment(), frame.second_moment(), 4.0 * second);
    }
}

/// P(S = k) by following the probability of each number of packets that the decoder lacks, frame by
/// frame: no closed form of the walk's returns, and no random numbers.
fn followed(shares: &Shares, coded: usize, longest: usize) -> Vec<f64> {
    let one_more = |law: &[f64], loss: f64| -> Vec<f64> {
        let at = |k: usize| law.get(k).copied().unwrap_or(0.0);
        let before = |k: usize| k.checked_sub(1).map_or(0.0, at);
        let of = |k| at(k) * (1.0 - loss) + before(k) * loss;
        (0..=law.len()).map(of).collect()
    };
    let slots = |coded_too: bool| {
        let mut law = vec![1.0];
        for (path, (loss, n)) in shares.iter().enumerate() {
            let n = n - u32::from(path == coded && !coded_too);
            law = (0..n).fold(law, |law, _| one_more(&law, *loss));
        }
        law
    };
    let (information, all) = (slots(false), slots(true));
    let mut law = vec![information[0]];
    // The first frame begins a period if it lacks information.
    let mut lacking = one_more(&information[1..], shares[coded].0);
    for _ in 1..=longest {
        // What is at 0 is done.
        law.push(std::mem::take(&mut lacking[0]));
        let mut next = vec![0.0; lacking.len() + all.len()];
        for (k, p) in lacking.iter().enumerate().skip(1) {
            for (lost, q) in all.iter().enumerate() {
                next[k + lost - 1] += p * q;
            }
        }
        lacking = next;
    }
    law
}

#[test]
fn the_law_is_that_of_what_the_decoder_lacks() {
    let unseen: [(&Shares, usize); 5] = [
        (&[(0.13, 3), (0.04, 7), (0.01, 2)], 0),
        (&[(0.13, 3), (0.04, 7), (0.01, 2)], 1),
        (&[(0.3, 1), (0.001, 9)], 0),
        (&[(0.05, 1), (0.1, 6)], 0),
        (&[(0.4, 2)], 0),
    ];
    for (shares, coded) in FRAMES.into_iter().chain(unseen) {
        let law = frame(shares, coded).distribution(60);
        for (a, b) in law.iter().zip(followed(shares, coded, 60)) {
            close(*a, b, 1e-13);
        }
    }
}

#[test]
fn the_law_adds_up_to_its_moments() {
    for (shares, coded) in FRAMES {
        let frame = frame(shares, coded);
        let law = frame.distribution(400);
        let moment = |power: i32| -> f64 {
            let terms = law
                .iter()
                .enumerate()
                .map(|(k, p)| p * (k as f64).powi(power));
            terms.sum()
        };
        close(moment(0), 1.0, 1e-9);
        close(moment(1), frame.mean(), 1e-7);
        close(moment(2), frame.second_moment(), 1e-4);
        close(law[0], frame.idle(), 1e-15);
    }
}

#[test]
fn the_closed_forms_are_exact_for_equal_paths() {
    for (interval, loss) in [(2, 0.3), (4, 0.1), (8, 0.1), (16, 0.02), (32, 0.01)] {
        let frame = frame(&[(loss, interval / 2), (loss, interval - interval / 2)], 1);
        for (k, probability) in frame.distribution(29).iter().enumerate() {
            let closed = approximation::probability(interval, loss, k as u32);
            close(closed, *probability, 1e-12);
        }
        close(approximation::mean(interval, loss), frame.mean(), 1e-9);
        close(
            approximation::second_moment(interval, loss),
            frame.second_moment(),
            1e-9,
        );
    }
}

/// On paths of unequal loss the paper's approximation, P(S = 1) exact and the tail from ε̄, is too
/// high: by 9.2 % and 25 % for τ = 4 and losses of 0.2 and 0.
#[test]
fn the_closed_forms_are_too_high_for_unequal_paths() {
    let frame = frame(&[(0.2, 2), (0.0, 2)], 1);
    let single = frame.distribution(1)[1] - approximation::probability(4, 0.1, 1);
    close(
        (approximation::mean(4, 0.1) + single) / frame.mean(),
        1.092,
        5e-4,
    );
    close(
        (approximation::second_moment(4, 0.1) + single) / frame.second_moment(),
        1.251,
        5e-4,
    );
}

/// Theorem 3 as printed, without its maximum with 1, for slots that last 1.
fn printed_bound(shares: &Shares, frame: &Frame) -> f64 {
    let pairs: f64 = shares.iter().map(|(_, n)| f64::from(n * n - n)).sum();
    pairs * frame.second_moment() / (2.0 * frame.interval() as f64 * (frame.mean() + frame.idle()))
}

#[test]
fn the_mended_bound_holds_where_the_printed_one_does_not() {
    let quarters: &Shares = &[(0.1, 2), (0.1, 2), (0.1, 2), (0.1, 2)];
    let cases: [(&Shares, f64, f64); 3] = [
        (&[(0.1, 4), (0.1, 4)], 22.17, 25.67),
        (quarters, 7.39, 12.64),
        (&[(0.08, 4), (0.08, 4)], 5.06, 5.75),
    ];
    for (seed, (shares, printed, mended)) in (0..).zip(cases) {
        let frame = frame(shares, 0);
        close(printed_bound(shares, &frame), printed, 0.005);
        close(frame.buffering_bound(), mended, 0.005);
        let seen = simulate(shares, 0, 1_000_000, seed);
        let measured = seen.waited / seen.slots as f64;
        assert!(measured > printed, "measured {measured}, printed {printed}");
        assert!(measured < mended, "measured {measured}, mended {mended}");
        assert!(
            measured > 0.9 * mended,
            "the bound is close: {measured} of {mended}"
        );
    }
    // One path: both are the same.
    let single: &Shares = &[(0.1, 8)];
    let frame = frame(single, 0);
    close(
        frame.buffering_bound(),
        printed_bound(single, &frame),
        1e-12,
    );
}

#[test]
fn the_lossiest_path_takes_the_coded_packets() {
    assert_eq!(coded_path([0.01, 0.1, 0.05]), Some(1));
    assert_eq!(coded_path([0.1, 0.1]), Some(0));
    assert_eq!(coded_path([]), None);
    assert_eq!(coded_path([0.1, f64::NAN]), None);
    // It makes periods without a loss most frequent, and changes nothing beyond S = 1 (the proof
    // of Theorem 4).
    let shares = [(0.02, 3), (0.1, 3)];
    let (clean, lossy) = (frame(&shares, 0), frame(&shares, 1));
    assert!(lossy.idle() > clean.idle());
    let tails = clean
        .distribution(20)
        .into_iter()
        .zip(lossy.distribution(20));
    for (a, b) in tails.skip(2) {
        close(a, b, 1e-15);
    }
}

#[test]
fn intervals_are_the_longest_that_the_wait_allows() {
    for (information, coded) in [
        (0.1, 0.1),
        (0.05, 0.1),
        (0.05, 0.0),
        (0.02, 0.02),
        (0.01, 0.5),
        (0.003, 0.003),
    ] {
        let tau = interval(information, coded, 0.5).expect("something is lost");
        let wait = |tau: u32| {
            let frame = frame(&[(information, tau - 1), (coded, 1)], 1);
            frame.second_moment() / (2.0 * (frame.mean() + frame.idle()))
        };
        // Exactly, losses of the few packets of a short frame vary less than Poisson's.
        let (here, beyond) = (wait(tau), wait(tau + 2 + tau / 8));
        assert!(here < 0.5, "{information} {coded}: {tau}, {here} frames");
        assert!(
            beyond > 0.5,
            "{information} {coded}: {tau}, {beyond} frames"
        );
    }
}

#[test]
fn intervals_have_bounds() {
    assert_eq!(interval(0.9, 0.9, 0.5), Some(2));
    assert_eq!(interval(0.1, 1.0, 0.5), Some(2));
    assert_eq!(interval(0.1, f64::NAN, 0.5), Some(2));
    assert_eq!(interval(0.0, 0.5, 0.5), None);
    assert_eq!(interval(f64::NAN, 0.0, 0.5), None);
    assert_eq!(interval(1e-300, 0.0, 0.5), Some(u32::MAX));
}

#[test]
fn overload_and_nonsense_are_told() {
    let frame = frame(&[(0.25, 4)], 0);
    assert_eq!(frame.mean(), f64::INFINITY);
    assert_eq!(frame.second_moment(), f64::INFINITY);
    assert_eq!(frame.buffering_bound(), f64::INFINITY);
    assert_eq!(approximation::mean(4, 0.25), f64::INFINITY);
    let invalid = |shares: &Shares, coded| Frame::new(&paths(shares), coded).err();
    assert_eq!(invalid(&[], 0), Some(Invalid::NoCodedSlot { path: 0 }));
    assert_eq!(
        invalid(&[(0.1, 0)], 0),
        Some(Invalid::NoCodedSlot { path: 0 })
    );
    assert_eq!(
        invalid(&[(0.1, 2), (1.1, 1)], 0),
        Some(Invalid::Path { path: 1 })
    );
    assert_eq!(
        invalid(&[(f64::NAN, 2)], 0),
        Some(Invalid::Path { path: 0 })
    );
    assert_eq!(
        invalid(&[(0.1, 5000)], 0),
        Some(Invalid::TooLong { slots: 5000 })
    );
}
