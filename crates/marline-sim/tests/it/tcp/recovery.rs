//! What is lost, what only looks lost, and what is late.

use marline_sim::tcp::{Segment, TcpConfig, TcpCounters, TcpReceiver, TcpSender};
use marline_sim::{Duration, Instant};

use super::pipe::{Pipe, link, secs};

/// A connection through a link that goes dark, held back by its receive window and not by losses.
fn through_darkness(mode: &str) -> (TcpCounters, Option<u64>) {
    let forth = format!("rate=20mbit,delay=20ms,outage=2s+600ms,outage-mode={mode}");
    let mut pipe = Pipe::new(link(&forth), link("delay=20ms"), 1);
    let config = TcpConfig {
        window: 128 << 10,
        limit: Some(10_000_000),
        ..TcpConfig::new("new-reno")
    };
    pipe.open(&config, 1);
    pipe.run(secs(20));
    let sender = &pipe.flows[0].sender;
    assert!(sender.is_done());
    (*sender.counters(), sender.view().ssthresh)
}

#[test]
fn a_time_out_of_a_slow_network_changes_nothing() {
    let (counters, ssthresh) = through_darkness("hold");
    assert!(counters.timeouts >= 1, "{counters:?}");
    assert_eq!(counters.spurious_timeouts, 1);
    assert_eq!((counters.lost, ssthresh), (0, None));
    // Only the probe and the first segment were sent again.
    assert!(
        counters.retransmitted <= 1 + counters.timeouts,
        "{counters:?}"
    );
}

#[test]
fn a_time_out_after_a_lost_flight_starts_again_slowly() {
    let (counters, ssthresh) = through_darkness("drop");
    assert!(counters.timeouts >= 1, "{counters:?}");
    assert_eq!(counters.spurious_timeouts, 0);
    assert!(ssthresh.is_some());
    // The flight of 128 KiB was lost, and nothing else.
    assert!((80..100).contains(&counters.retransmitted), "{counters:?}");
}

/// Ten segments, of which the network loses those in `lost`; what is sent next, and when.
fn after_a_lossy_flight(lost: &[usize]) -> (TcpSender, TcpReceiver, Instant, Segment) {
    let config = TcpConfig {
        limit: Some(14_480),
        ..TcpConfig::new("new-reno")
    };
    let mut sender = TcpSender::new(&config, Instant::ZERO, 1).unwrap();
    let mut receiver = TcpReceiver::new(&config).unwrap();
    let flight: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(Instant::ZERO)).collect();
    assert_eq!(flight.len(), 10);
    let mut now = Instant::from_millis(40);
    for (n, segment) in flight.iter().enumerate() {
        if !lost.contains(&n) {
            receiver.handle_segment(now, segment);
            sender.handle_ack(now, &receiver.poll_ack(now).unwrap());
        }
    }
    loop {
        if let Some(segment) = sender.poll_transmit(now) {
            return (sender, receiver, now, segment);
        }
        now = sender.poll_timeout().unwrap();
        sender.handle_timeout(now);
    }
}

#[test]
fn a_gap_is_filled_at_once_after_three_later_arrivals() {
    let (sender, _, now, segment) = after_a_lossy_flight(&[2]);
    assert_eq!((now, segment.seq), (Instant::from_millis(40), 2 * 1_448));
    assert_eq!(sender.counters().lost, 1);
    // Two segments acknowledged in order and two beyond the gap let ten grow to fourteen; the third
    // beyond it halves them.
    assert_eq!(sender.window(), 7 * 1_448);
}

#[test]
fn a_gap_before_two_arrivals_waits_for_a_quarter_of_a_round_trip() {
    let (_, _, now, segment) = after_a_lossy_flight(&[7]);
    // RFC 8985 §6.2: RACK.rtt + min_RTT / 4 after it was sent.
    assert_eq!((now, segment.seq), (Instant::from_millis(50), 7 * 1_448));
}

#[test]
fn a_lost_tail_is_probed_and_counts_as_a_loss() {
    let (mut sender, mut receiver, now, segment) = after_a_lossy_flight(&[9]);
    // RFC 8985 §7.2: two round trips and 200 ms for a lone segment, but no later than the time-out
    // of a round trip and 200 ms after the last acknowledgement.
    assert_eq!((now, segment.seq), (Instant::from_millis(280), 9 * 1_448));
    let window = sender.window();
    let now = now + Duration::from_millis(40);
    receiver.handle_segment(now, &segment);
    receiver.handle_timeout(now);
    sender.handle_ack(now, &receiver.poll_ack(now).unwrap());
    assert!(sender.is_done());
    assert_eq!(
        (sender.counters().probes, sender.counters().timeouts),
        (1, 0)
    );
    assert!(
        sender.window() <= window / 2 + 1_448,
        "{} of {window}",
        sender.window()
    );
}

#[test]
fn the_wait_for_an_acknowledgement_after_a_lost_one_is_no_round_trip() {
    let config = TcpConfig {
        limit: Some(2 * 1_448),
        ..TcpConfig::new("new-reno")
    };
    let trip = Duration::from_millis(40);
    let mut now = Instant::ZERO;
    let mut sender = TcpSender::new(&config, now, 1).unwrap();
    let mut receiver = TcpReceiver::new(&config).unwrap();
    while let Some(segment) = sender.poll_transmit(now) {
        receiver.handle_segment(now + trip / 2, &segment);
    }
    receiver.poll_ack(now + trip / 2).expect("it gets lost");
    let again = loop {
        if let Some(segment) = sender.poll_transmit(now) {
            break segment;
        }
        now = sender.poll_timeout().unwrap();
        sender.handle_timeout(now);
    };
    assert!(now > Instant::ZERO + 10 * trip, "it waited for {now:?}");
    receiver.handle_segment(now + trip / 2, &again);
    let ack = receiver.poll_ack(now + trip / 2).unwrap();
    sender.handle_ack(now + trip, &ack);
    assert!(sender.is_done());
    assert_eq!(sender.srtt(), Some(trip));
}

#[test]
fn reordering_is_learnt() {
    for controller in ["new-reno", "cubic", "bbr"] {
        let forth = "rate=20mbit,delay=30ms,jitter=8ms,jitter-dist=uniform,overtake=yes";
        let mut pipe = Pipe::new(link(forth), link("delay=20ms"), 1);
        let config = TcpConfig {
            window: 256 << 10,
            ..TcpConfig::new(controller)
        };
        pipe.open(&config, 1);
        pipe.run(secs(30));
        let counters = *pipe.flows[0].sender.counters();
        assert!(counters.lost <= 10, "{controller}: {counters:?}");
        assert_eq!(counters.spurious, counters.lost, "{controller}");
        let payload = 20e6 / 8.0 * 20.0 * 1_448.0 / 1_500.0;
        let used = pipe.released(0, secs(10), secs(30)) as f64 / payload;
        assert!(used >= 0.95, "{controller}: {used}");
    }
}
