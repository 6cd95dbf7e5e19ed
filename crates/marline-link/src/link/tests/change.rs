//! Parameters that change while the link is at work.

use super::*;
use crate::Reason;

fn config(text: &str) -> LinkConfig {
    text.parse().unwrap()
}

#[test]
fn what_waits_leaves_first_and_the_rest_follows_at_the_new_rate() {
    let mut link = link("rate=12mbit,delay=20ms");
    let before = arrivals(&mut link, [0, 0, 0]);
    assert_eq!(before, [21_000, 22_000, 23_000].map(Some));
    link.reconfigure(us(1_500), config("rate=120mbit,delay=30ms"))
        .unwrap();
    assert_eq!(link.queued_packets(us(1_500)), 2);
    assert_eq!(
        arrivals(&mut link, [1_500, 1_500]),
        [33_100, 33_200].map(Some)
    );
}

#[test]
fn a_shorter_delay_keeps_order_unless_it_may_overtake() {
    for (overtake, expected) in [("no", 81_000), ("yes", 23_000)] {
        let text = ["rate=12mbit,delay=80ms,overtake=", overtake].concat();
        let mut link = link(&text);
        assert_eq!(arrivals(&mut link, [0]), [Some(81_000)]);
        link.reconfigure(ms(2), config(&text.replace("80ms", "20ms")))
            .unwrap();
        assert_eq!(arrivals(&mut link, [2_000]), [Some(expected)]);
    }
}

#[test]
fn a_handover_is_darkness_and_another_delay() {
    // Dark for 3 s, then back with three times the delay.
    let mut link = link("rate=12mbit,delay=20ms,queue=100p,outage=10s+3s");
    let sent: Vec<u64> = (0..20).map(|i| 9_995_000 + i * 500).collect();
    let got = arrivals(&mut link, sent);
    assert_eq!(got.iter().flatten().count(), 5);
    assert_eq!(got[4], Some(10_020_000));
    assert_eq!(arrivals(&mut link, [12_999_999]), [None]);
    let mut after = link.config().clone();
    after.delay = crate::Delay::Constant(Duration::from_millis(60));
    link.reconfigure(ms(13_000), after).unwrap();
    assert_eq!(
        arrivals(&mut link, [13_000_000, 13_000_000]),
        [13_061_000, 13_062_000].map(Some)
    );
}

#[test]
fn an_outage_that_is_called_off_ends_at_once() {
    let mut link = link("rate=12mbit,outage=5ms+1s");
    // Three are served by 5 ms, two are cut.
    let got = arrivals(&mut link, [2_000; 5]);
    assert_eq!(got.iter().flatten().count(), 3);
    assert_eq!(arrivals(&mut link, [6_000]), [None]);
    link.reconfigure(ms(7), config("rate=12mbit")).unwrap();
    assert!(!link.is_dark(ms(7)));
    assert_eq!(arrivals(&mut link, [7_000]), [Some(8_000)]);
}

#[test]
fn outages_can_be_added_ahead() {
    let mut link = link("rate=12mbit");
    assert_eq!(arrivals(&mut link, [0, 0]), [1_000, 2_000].map(Some));
    link.reconfigure(
        ms(1),
        config("rate=12mbit,outage=3ms+5ms,outage=500us+100us"),
    )
    .unwrap();
    assert_eq!(
        arrivals(&mut link, [1_000, 1_000, 7_999, 8_000]),
        [Some(3_000), None, None, Some(9_000)]
    );
    assert_eq!(link.counters().dropped_for(Reason::Outage), 2);
}

#[test]
fn a_smaller_queue_drains_before_it_takes_more() {
    let mut link = link("rate=12mbit,queue=10p");
    arrivals(&mut link, [0; 10]);
    link.reconfigure(ms(0), config("rate=12mbit,queue=3p"))
        .unwrap();
    assert_eq!(
        arrivals(&mut link, [6_999, 7_000, 8_000, 8_000]),
        [None, None, Some(11_000), None]
    );
    assert_eq!(link.counters().delivered, 11);
}

#[test]
fn a_trace_takes_over_where_the_queue_ends() {
    let mut link = link("rate=12mbit");
    arrivals(&mut link, [0; 7]);
    let trace = LinkConfig::parse_with("trace=t", |_| Ok("2\n5\n".into())).unwrap();
    link.reconfigure(ms(0), trace).unwrap();
    // Seven packets leave by 7 ms; opportunities are at 2, 5, 7, 10, 12 ms.
    assert_eq!(arrivals(&mut link, [0, 0]), [10_000, 12_000].map(Some));
    link.reconfigure(ms(0), config("rate=12mbit")).unwrap();
    assert_eq!(arrivals(&mut link, [0]), [Some(13_000)]);
}

#[test]
fn unchanged_processes_are_undisturbed() {
    let verdicts = |change: Option<&str>| {
        let mut link = link("loss=20%,burst=3,delay=50ms,jitter=5ms,overtake");
        let mut got = Vec::new();
        for i in 0..4_000 {
            if let Some(text) = change
                && i == 1_000
            {
                link.reconfigure(ms(i), config(text)).unwrap();
            }
            got.push(link.offer(ms(i), 1_500).arrival().map(|at| at.since(ms(i))));
        }
        got
    };
    let plain = verdicts(None);
    let other_delay = verdicts(Some("loss=20%,burst=3,delay=90ms,jitter=5ms,overtake"));
    assert_eq!(plain[..1_000], other_delay[..1_000]);
    let lost = |verdicts: &[Option<Duration>]| -> Vec<bool> {
        verdicts.iter().map(Option::is_none).collect()
    };
    assert_eq!(lost(&plain), lost(&other_delay));
    let other_loss = verdicts(Some("loss=5%,delay=50ms,jitter=5ms,overtake"));
    for (one, other) in plain.iter().zip(&other_loss) {
        assert!(one.is_none() || other.is_none() || one == other);
    }
    // The same draws would have given the same differences from the mean.
    let shifted = |i: usize| other_delay[i].map(|d| d - Duration::from_millis(40));
    assert!((1_000..1_100).any(|i| plain[i].is_some() && shifted(i) != plain[i]));
    assert_eq!(
        other_delay,
        verdicts(Some("loss=20%,burst=3,delay=90ms,jitter=5ms,overtake"))
    );
}

#[test]
fn a_wrong_change_changes_nothing() {
    let mut link = link("rate=12mbit,delay=20ms");
    let error = link
        .reconfigure(ms(0), config("rate=1bit,delay=10ms"))
        .unwrap_err();
    assert_eq!(error.key(), "rate");
    assert_eq!(link.config(), &config("rate=12mbit,delay=20ms"));
    assert_eq!(arrivals(&mut link, [0]), [Some(21_000)]);
}
