//! What holds for every configuration and every sequence of offers.

use super::*;
use crate::Reason;
use alloc::string::String;
use proptest::prelude::*;

const CAPACITIES: [&str; 9] = [
    "rate=unlimited",
    "rate=10mbit",
    "rate=300kbit",
    "rate=3mbit,bucket=5kB",
    "rate=10mbit,rate-sd=6mbit,rate-every=10ms,rate-phase=3ms",
    "service=2ms,service-sd=1ms",
    "service=2ms,service-sd=4ms,service-dist=lognormal",
    "trace=t",
    "trace=t.csv,trace-scale=1.5",
];
const DELAYS: [&str; 7] = [
    "delay=0",
    "delay=15ms",
    "delay=15ms,jitter=10ms",
    "delay=15ms,jitter=14ms,jitter-dist=uniform",
    "delay=15ms,jitter=14ms,jitter-dist=uniform,jitter-hold=20ms",
    "delay=15ms,jitter=14ms,jitter-dist=gamma,jitter-hold=outage",
    "delay=15ms,jitter=30ms,jitter-dist=gamma,delay-min=5ms",
];
const LOSSES: [&str; 3] = ["loss=0%", "loss=20%", "loss=20%,burst=4"];
const QUEUES: [&str; 4] = [
    "queue=unlimited",
    "queue=7p",
    "queue=9kB",
    "queue=30p,codel",
];
const OUTAGES: [&str; 6] = [
    "outage-mode=drop",
    "outage=40ms+30ms,outage=90ms+1ms",
    "outage=40ms+30ms,outage=90ms+1ms,outage-mode=hold",
    "outage=5ms+3ms/20ms",
    "outage=random:20ms+5ms",
    "outage=random:20ms+5ms,outage-mode=hold",
];
const OTHERS: [&str; 4] = ["", "dup=10%", "mtu=1000", "dup=50%,mtu=1400"];

fn pick(list: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(list)
}

fn configuration() -> impl Strategy<Value = String> {
    (
        pick(&CAPACITIES),
        pick(&DELAYS),
        pick(&LOSSES),
        pick(&QUEUES),
        pick(&OUTAGES),
        pick(&OTHERS),
    )
        .prop_map(|(a, b, c, d, e, f)| [a, b, c, d, e, f].join(","))
}

/// Pauses in µs and sizes.
fn offers() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let pause = prop_oneof![3 => Just(0), 3 => 0..2_000_u64, 1 => 0..60_000_u64];
    proptest::collection::vec((pause, 1..3_000_u32), 1..200)
}

fn make(text: &str, seed: u64) -> Link {
    let read = |path: &str| match path {
        "t" => Ok("1\n1\n4\n9\n30".into()),
        _ => Ok("t_ms,a_kbps\n0,9000\n7,0\n20,400\n50,30000\n52,1".into()),
    };
    let config = LinkConfig::parse_with(text, read).unwrap();
    Link::new(config, seed).unwrap()
}

fn run(link: &mut Link, offers: &[(u64, u32)]) -> Vec<(Instant, Verdict)> {
    let mut now = Instant::ZERO;
    offers
        .iter()
        .map(|&(pause, size)| {
            now += Duration::from_micros(pause);
            (now, link.offer(now, size))
        })
        .collect()
}

proptest! {
    #[test]
    fn the_same_seed_gives_the_same_verdicts(
        text in configuration(),
        offers in offers(),
        seed: u64,
    ) {
        let (mut one, mut other) = (make(&text, seed), make(&text, seed));
        prop_assert_eq!(run(&mut one, &offers), run(&mut other, &offers));
        prop_assert_eq!(one.counters(), other.counters());
    }

    #[test]
    fn order_is_kept_and_nothing_arrives_before_it_leaves(
        text in configuration(),
        offers in offers(),
        seed: u64,
    ) {
        let (mut left, mut arrived) = (Instant::ZERO, Instant::ZERO);
        for (now, verdict) in run(&mut make(&text, seed), &offers) {
            if let Verdict::Delivered { at, departs, copy } = verdict {
                prop_assert!(departs >= now && departs >= left);
                prop_assert!(at >= departs && at >= arrived);
                prop_assert!(copy.is_none_or(|copy| copy >= at));
                left = departs;
                arrived = copy.unwrap_or(at);
            }
        }
    }

    #[test]
    fn every_packet_is_accounted_for(text in configuration(), offers in offers(), seed: u64) {
        let mut link = make(&text, seed);
        let verdicts = run(&mut link, &offers);
        let counters = *link.counters();
        let bytes = |which: &dyn Fn(&Verdict) -> bool| -> u64 {
            let chosen = verdicts.iter().zip(&offers).filter(|((_, v), _)| which(v));
            chosen.map(|(_, (_, size))| u64::from(*size)).sum()
        };
        prop_assert_eq!(counters.offered, offers.len() as u64);
        prop_assert_eq!(counters.offered, counters.delivered + counters.dropped_total());
        prop_assert_eq!(counters.offered_bytes, bytes(&|_| true));
        prop_assert_eq!(counters.delivered_bytes, bytes(&|v| v.arrival().is_some()));
        for reason in Reason::ALL {
            let seen = verdicts.iter().filter(|(_, v)| *v == Verdict::Dropped(reason)).count();
            prop_assert_eq!(counters.dropped_for(reason), seen as u64);
        }
    }

    #[test]
    fn the_queue_keeps_its_limits_and_drains(
        text in configuration(),
        offers in offers(),
        seed: u64,
    ) {
        let mut link = make(&text, seed);
        let mut now = Instant::ZERO;
        for &(pause, size) in &offers {
            now += Duration::from_micros(pause);
            let before = link.queued_packets(now);
            let verdict = link.offer(now, size);
            let (packets, bytes) = (link.queued_packets(now), link.queued_bytes(now));
            prop_assert!(packets <= before + 1);
            if packets > 1 {
                prop_assert!(!text.contains("queue=7p") || packets <= 7);
                prop_assert!(!text.contains("queue=30p") || packets <= 30);
                prop_assert!(!text.contains("queue=9kB") || bytes <= 9_000);
            }
            if text.contains("queue=unlimited") {
                prop_assert!(verdict != Verdict::Dropped(Reason::QueueFull));
            }
            if !text.contains("codel") {
                prop_assert!(verdict != Verdict::Dropped(Reason::CoDel));
            }
        }
        let end = now + Duration::from_secs(3_600);
        prop_assert_eq!(link.queued_bytes(end), 0);
        link.offer(end, 1);
        prop_assert!(link.queued_packets(end) <= 1);
    }

    #[test]
    fn nothing_leaves_in_the_dark(text in configuration(), offers in offers(), seed: u64) {
        let mut watch = make(&text, seed);
        let mut delivered: Vec<Instant> = run(&mut make(&text, seed), &offers)
            .into_iter()
            .filter_map(|(_, verdict)| match verdict {
                Verdict::Delivered { departs, .. } => Some(departs),
                Verdict::Dropped(_) => None,
            })
            .collect();
        delivered.dedup();
        for departs in delivered {
            // A packet may leave at the very moment at which an outage begins or ends.
            let before = watch.is_dark(departs - Duration::from_nanos(1));
            prop_assert!(!(before && watch.is_dark(departs)));
        }
    }
}
