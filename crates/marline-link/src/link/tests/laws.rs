//! Processes against their mathematics, through the whole link.

use super::*;
use marline_base::Rng;

const N: u32 = 400_000;

/// Mean time in the system (in ms) for Poisson arrivals that keep the server busy for `load`,
/// given the mean service time in ms.
fn mean_sojourn(link: &mut Link, load: f64, service_ms: f64) -> f64 {
    let mut rng = Rng::new(99).stream("arrivals");
    let (mut time, mut sum) = (0.0, 0.0);
    for _ in 0..N {
        time += rng.exponential() * service_ms / load;
        let offered = Instant::from_nanos((time * 1e6) as u64);
        sum += departure(link.offer(offered, 1_500))
            .since(offered)
            .as_secs_f64()
            * 1e3;
    }
    sum / f64::from(N)
}

/// Mean wait before transmission (in ms) of Poisson arrivals at a link that takes 1 ms for each,
/// over ten seconds' warm-up and a hundred seconds.
fn mean_wait(seed: u64, load: f64) -> f64 {
    let mut link = link("rate=12mbit");
    let mut rng = Rng::new(seed).stream("arrivals");
    let (mut time, mut sum, mut packets) = (0.0, 0.0, 0.0);
    while time < 110_000.0 {
        time += rng.exponential() / load;
        let offered = Instant::from_nanos((time * 1e6) as u64);
        let sojourn = departure(link.offer(offered, 1_500)).since(offered);
        if time > 10_000.0 {
            sum += sojourn.as_secs_f64() * 1e3 - 1.0;
            packets += 1.0;
        }
    }
    sum / packets
}

#[test]
fn a_constant_rate_is_an_m_d_1_queue() {
    // Pollaczek and Khinchine for a constant service time s: W = s·ρ/(2(1 − ρ)).
    for load in [0.3, 0.7, 0.9] {
        let expected = load / (2.0 * (1.0 - load));
        let waits: Vec<f64> = (0..20).map(|seed| mean_wait(seed, load)).collect();
        let n = waits.len() as f64;
        let mean = waits.iter().sum::<f64>() / n;
        let squares: f64 = waits.iter().map(|w| (w - mean) * (w - mean)).sum();
        let error = libm::sqrt(squares / (n - 1.0) / n);
        // Student's t with 19 degrees of freedom exceeds 3.88 once in a thousand times.
        assert!(
            libm::fabs(mean - expected) < 3.88 * error,
            "load {load}: {mean} ± {error}, not {expected}"
        );
        assert!(error < 0.03 * expected, "load {load}: {error}");
    }
}

#[test]
fn gamma_service_is_an_m_g_1_queue() {
    // W = s + ρ·s·(1 + c²)/(2(1 − ρ)) with the coefficient of variation c.
    let load = 0.6;
    let expected = 1.0 + load * (1.0 + 1.5 * 1.5) / (2.0 * (1.0 - load));
    let mut link = link("service=1ms,service-sd=1500us,service-dist=gamma");
    let got = mean_sojourn(&mut link, load, 1.0);
    assert!(libm::fabs(got / expected - 1.0) < 0.04, "{got} {expected}");
}

#[test]
fn a_varying_rate_carries_its_mean() {
    let mut link = link("rate=40mbit,rate-sd=8mbit,rate-every=25ms");
    let packets = 200_000;
    let last = (0..packets)
        .map(|_| departure(link.offer(ms(0), 1_500)))
        .last()
        .unwrap();
    // 60 s are 2400 draws: six standard errors are 8/40/√2400·6 = 2.4 %.
    let mbps = f64::from(packets) * 0.012 / last.as_secs_f64();
    assert!(libm::fabs(mbps - 40.0) < 1.0, "{mbps}");
}

#[test]
fn a_trace_carries_its_bytes_in_every_loop() {
    let mut link = link_on_trace("3\n3\n7\n19\n20\n", "trace=t");
    // 5 opportunities in 20 ms; packets of 300 bytes share each between five.
    for packet in 1..=25 * 400_u64 {
        let departs = departure(link.offer(ms(0), 300));
        let opportunity = (packet - 1) / 5;
        let within = [3, 3, 7, 19, 20][(opportunity % 5) as usize];
        assert_eq!(departs, ms(opportunity / 5 * 20 + within));
    }
}

#[test]
fn losses_take_their_share_and_use_capacity() {
    let mut link = link("rate=12mbit,loss=5%");
    let lost = arrivals(&mut link, core::iter::repeat_n(0, N as usize))
        .iter()
        .filter(|at| at.is_none())
        .count();
    let share = lost as f64 / f64::from(N);
    assert!(libm::fabs(share - 0.05) < 0.0021, "{share}");
    assert_eq!(departure_after_all(&mut link), ms(u64::from(N) + 1));
}

fn departure_after_all(link: &mut Link) -> Instant {
    // Lost packets use capacity too; offer until one is delivered and count back.
    for extra in 0.. {
        if let Verdict::Delivered { departs, .. } = link.offer(ms(0), 1_500) {
            return departs - Duration::from_millis(extra);
        }
    }
    unreachable!("the loop ends by returning")
}

#[test]
fn copies_come_at_their_share_and_not_before_the_first() {
    let mut link = link("delay=10ms,jitter=3ms,dup=2%");
    let mut copies = 0;
    let mut last = Instant::ZERO;
    for i in 0..100_000 {
        let Verdict::Delivered { at, copy, .. } = link.offer(us(i * 100), 100) else {
            panic!("nothing is lost");
        };
        assert!(at >= last);
        last = copy.unwrap_or(at);
        assert!(last >= at);
        copies += u32::from(copy.is_some());
    }
    assert_eq!(u64::from(copies), link.counters().copied);
    // Six standard errors: 6·√(0.02·0.98·100000) = 266.
    assert!((1_734..=2_266).contains(&copies), "{copies}");
}

#[test]
fn order_is_kept_unless_overtaking_is_allowed() {
    let inversions = |text| {
        let mut link = link(text);
        let got = arrivals(&mut link, (0..10_000).map(|i| i * 1_000));
        let delays: f64 = (got.iter().flatten().zip(0..))
            .map(|(at, i)| *at as f64 - f64::from(i) * 1e3)
            .sum();
        let inversions = got.windows(2).filter(|pair| pair[1] < pair[0]).count();
        (inversions, delays / 1e4)
    };
    let (kept, delayed) = inversions("delay=20ms,jitter=5ms");
    let (free, plain) = inversions("delay=20ms,jitter=5ms,overtake");
    assert_eq!(kept, 0);
    // Neighbours 1 ms apart with sd 5 ms: P(X₁ + 1 < X₀) = Φ(−1/(5√2)) = 0.444.
    assert!((4_200..4_680).contains(&free), "{free}");
    assert!(libm::fabs(plain - 20_000.0) < 300.0, "{plain}");
    // Keeping order costs delay: every packet waits for the slowest before it.
    assert!(delayed > plain + 1_000.0, "{delayed} {plain}");
}

#[test]
fn components_do_not_shift_each_other() {
    let losses = |text| {
        let mut link = link(text);
        let got = arrivals(&mut link, (0..5_000).map(|i| i * 1_000));
        got.iter().map(Option::is_none).collect::<Vec<bool>>()
    };
    let plain = losses("loss=10%");
    assert_eq!(plain, losses("loss=10%,delay=5ms,jitter=2ms"));
    assert_eq!(plain, losses("loss=10%,dup=30%"));
    assert_eq!(
        plain,
        losses("loss=10%,rate=30mbit,rate-sd=5mbit,rate-every=10ms")
    );
    assert_ne!(plain, losses("loss=10%,seed=2"));

    let delays = |text| {
        let mut link = link(text);
        arrivals(&mut link, (0..5_000).map(|i| i * 1_000))
    };
    let all = delays("delay=50ms,jitter=5ms,overtake");
    let some = delays("delay=50ms,jitter=5ms,overtake,loss=20%");
    assert!(some.iter().filter(|at| at.is_none()).count() > 900);
    for (all, some) in all.iter().zip(&some) {
        assert!(some.is_none() || some == all);
    }
}
