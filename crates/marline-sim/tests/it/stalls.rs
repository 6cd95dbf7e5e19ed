//! What flows that nobody reads cost the others: nothing but their share of the link.

use marline_proto::wire::{FlowId, FlowKind, close_code};
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End, Instant};

use crate::kit::{Lab, Outbox, ms, secs};

const LINK: &str = "rate=100mbit,delay=20ms,queue=100ms";
/// More than any window, so that a stalled flow stays full.
const ENDLESS: u64 = 1 << 30;

fn lab(config: &Config) -> Lab {
    let mut lab = Lab::new(1, config);
    lab.path(LINK);
    lab.run_for(secs(1));
    lab
}

/// Opens a flow whose bytes go from `from`, and lets nobody read them once `read` are.
fn stall(lab: &mut Lab, from: End, read: u64) -> FlowId {
    let request = Outbox::stream(100);
    let flow = match from {
        End::Client => lab.stream(End::Client, ENDLESS),
        End::Server => {
            let flow = lab.open(End::Client, &FlowOptions::new(FlowKind::Stream), request);
            lab.reply(End::Client, flow, Outbox::stream(ENDLESS));
            flow
        }
    };
    let reader = from.other();
    let limit = lab.now() + secs(5);
    lab.run_until(limit, |lab| {
        let inbox = lab.inbox_mut(reader, flow);
        inbox.is_some_and(|inbox| {
            inbox.paused = inbox.read >= read;
            inbox.paused
        })
    });
    flow
}

/// How long a request of 100 bytes and its response of 200,000 take.
fn request(lab: &mut Lab) -> Duration {
    let begun = lab.now();
    let options = FlowOptions::new(FlowKind::Stream);
    let flow = lab.open(End::Client, &options, Outbox::stream(100));
    lab.reply(End::Client, flow, Outbox::stream(200_000));
    lab.run_until(begun + secs(60), |lab| {
        lab.inbox(End::Client, flow).finished
    });
    assert!(lab.inbox(End::Client, flow).finished, "no response\n{lab}");
    lab.now().since(begun)
}

fn unread(lab: &Lab, end: End) -> u64 {
    let session = match end {
        End::Client => &lab.world.client,
        End::Server => &lab.world.server,
    };
    session.stats().flows.iter().map(|flow| flow.unread).sum()
}

#[test]
fn flows_that_stall_from_their_start_delay_no_other() {
    let config = Config::default();
    let alone = request(&mut lab(&config));
    for (from, flows) in [
        (End::Client, 5),
        (End::Client, 1_000),
        (End::Server, 5),
        (End::Server, 1_000),
    ] {
        let mut lab = lab(&config);
        for _ in 0..flows {
            stall(&mut lab, from, 0);
        }
        lab.run_for(secs(10));
        let held = unread(&lab, from.other());
        assert!(held <= flows * (32 << 10), "{held} bytes of {flows} flows");
        let beside = request(&mut lab);
        assert!(
            beside <= alone.mul_f64(1.5),
            "{flows} from {from:?}: {beside:?}, alone {alone:?}"
        );
    }
}

#[test]
fn flows_that_stall_after_they_were_read_delay_no_other_much() {
    let config = Config::default();
    let alone = request(&mut lab(&config));
    for (from, flows, read) in [
        (End::Client, 5, 5_000_000),
        (End::Server, 5, 5_000_000),
        (End::Client, 60, 1_000_000),
        (End::Server, 60, 1_000_000),
    ] {
        let mut lab = lab(&config);
        for _ in 0..flows {
            stall(&mut lab, from, read);
        }
        lab.run_for(secs(6));
        let held = unread(&lab, from.other());
        assert!(held <= (32 << 20) + flows * (32 << 10), "{held} bytes");
        let beside = request(&mut lab);
        assert!(
            beside <= alone * 3,
            "{flows} from {from:?}: {beside:?}, alone {alone:?}"
        );
    }
}

#[test]
fn a_long_fat_link_is_filled_within_three_seconds() {
    let mut lab = Lab::new(1, &Config::default());
    lab.path("rate=100mbit,delay=150ms,queue=300ms");
    lab.run_for(secs(1));
    let flow = lab.stream(End::Client, ENDLESS);
    lab.run_for(ms(2_500));
    let before = lab.inbox(End::Server, flow).read;
    lab.run_for(ms(500));
    let rate = (lab.inbox(End::Server, flow).read - before) as f64 * 8.0 / 0.5e6;
    assert!(rate > 95.0, "{rate:.1} Mb/s in the third second");
}

#[test]
fn the_longest_stalled_yields_when_its_memory_is_needed_and_not_before() {
    let config = Config {
        session_window: 2 << 20,
        ..Config::default()
    };
    let mut lab = lab(&config);
    let first = stall(&mut lab, End::Client, 3_000_000);
    let second = stall(&mut lab, End::Client, 3_000_000);
    lab.run_for(secs(20));
    let reset = |lab: &Lab, flow| lab.inbox(End::Server, flow).reset;
    assert_eq!((reset(&lab, first), reset(&lab, second)), (None, None));
    // What it reads it needs room for.
    let busy = lab.stream(End::Client, ENDLESS);
    let since = lab.now();
    lab.run_until(since + secs(20), |lab| {
        lab.inbox(End::Server, busy).read > 1_000_000
    });
    if let Some(inbox) = lab.inbox_mut(End::Server, first) {
        inbox.paused = false;
    }
    lab.pump();
    assert_eq!(reset(&lab, first), Some(close_code::YIELDED));
    assert_eq!(reset(&lab, second), None, "one was enough");
    assert!(
        lab.outbox(End::Client, first).cut_short,
        "its writer learns of it"
    );
    lab.run_for(secs(1));
    assert!(lab.flows_closed.contains_key(&(End::Server, first)));
}

#[test]
fn a_finished_stream_that_nobody_reads_lingers_as_long_as_its_reader_s_side_allows() {
    for (linger, left) in [(None, true), (Some(secs(10)), false)] {
        let server = Config {
            linger,
            ..Config::default()
        };
        let mut lab = Lab::with(1, Config::default(), server);
        lab.path(LINK);
        lab.run_for(ms(100));
        let flow = lab.stream(End::Client, 20_000);
        lab.run_until(lab.now() + secs(1), |lab| {
            let inbox = lab.inbox_mut(End::Server, flow);
            inbox.is_some_and(|inbox| {
                inbox.paused = true;
                true
            })
        });
        lab.run_for(secs(9));
        let held = |lab: &Lab| unread(lab, End::Server) > 0;
        assert!(held(&lab), "{linger:?}: too early");
        lab.run_until(Instant::ZERO + secs(30), |_| false);
        assert_eq!(held(&lab), left, "{linger:?}");
    }
}
