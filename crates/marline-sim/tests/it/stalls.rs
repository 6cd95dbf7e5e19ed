//! What flows that nobody reads cost the others: nothing but their share of the link.

use bytes::Bytes;
use marline_proto::flow::{BlockTerms, ObjectOptions};
use marline_proto::wire::{FlowId, FlowKind, close_code};
use marline_proto::{Config, FlowOptions};
use marline_sim::{Duration, End, Instant};

use crate::kit::{Lab, Outbox, ms, pattern, secs, tau};

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
    request_of(lab, 200_000)
}

fn request_of(lab: &mut Lab, response: u64) -> Duration {
    let begun = lab.now();
    let options = FlowOptions::new(FlowKind::Stream);
    let flow = lab.open(End::Client, &options, Outbox::stream(100));
    lab.reply(End::Client, flow, Outbox::stream(response));
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
    // Less than the reserves of 1000 flows, which are not taken out of it.
    let config = Config {
        session_window: 8 << 20,
        ..Config::default()
    };
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
        // Beyond their reserves, what streams begin with once that much has arrived in a round
        // trip: of half the memory at most.
        let beyond = (flows * (224 << 10)).min(4 << 20);
        let most = flows * (32 << 10) + beyond;
        assert!(held <= most, "{held} bytes of {flows} flows");
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

/// So early that none of them has yielded: the last one has what they have left.
#[test]
fn flows_that_have_just_stalled_leave_room_for_another() {
    let config = Config {
        session_window: 4 << 20,
        flow_window: 2 << 20,
        ..Config::default()
    };
    let response = 2_000_000;
    let alone = request_of(&mut lab(&config), response);
    for from in [End::Client, End::Server] {
        let mut lab = lab(&config);
        let begun = lab.now();
        let flows = [(); 3].map(|()| stall(&mut lab, from, 3_000_000));
        lab.run_for(ms(500));
        let beside = request_of(&mut lab, response);
        assert!(lab.now().since(begun) < secs(5), "they may have yielded");
        let yielded = flows.map(|flow| lab.outbox(from, flow).cut_short);
        assert_eq!(yielded, [false; 3]);
        assert!(
            beside <= alone * 3,
            "from {from:?}: {beside:?}, alone {alone:?}"
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

/// A server that counted a whole window for each decoder would be out of memory with a short
/// request of 90 clients each, and give up theirs.
#[test]
fn a_short_request_with_a_repair_symbol_holds_little() {
    let mut lab = lab(&Config::default());
    lab.finish_replies = false;
    let mut repairs = 0;
    for opened in 1..=20 {
        let options = FlowOptions {
            scheduler: Some(tau("tau-3")),
            ..FlowOptions::new(FlowKind::Stream)
        };
        let flow = lab.open(End::Client, &options, Outbox::stream(3_000));
        lab.run_for(ms(200));
        let server = &lab.world.server;
        let counters = server.flow_counters(flow).expect("it is not answered yet");
        repairs += counters.received_repairs;
        let held = server.held();
        assert!(
            held <= opened * (64 << 10),
            "{held} bytes of {opened} flows"
        );
    }
    assert!(repairs > 0, "no decoder was needed");
}

/// Sends a block, or an object, of this size on a new flow that nobody reads.
fn claim(lab: &mut Lab, kind: FlowKind, size: usize) -> FlowId {
    let now = lab.now();
    let client = &mut lab.world.client;
    let opened = client.open_flow(&FlowOptions::new(kind));
    let flow = opened.unwrap_or_else(|error| panic!("{error}"));
    let data: Bytes = (0..size as u64).map(|at| pattern(0, at)).collect();
    let sent = match kind {
        FlowKind::Objects => client.send_object(now, flow, &data, &ObjectOptions::default()),
        _ => client
            .write_block(now, flow, &data, BlockTerms::default())
            .map(|accepted| accepted.number),
    };
    sent.unwrap_or_else(|error| panic!("{error}"));
    // Long enough for what is sent to arrive, and much shorter than a stall.
    lab.run_for(ms(500));
    flow
}

/// Opens streams and reads them until their windows have grown; then nobody reads them.
fn stall_together(lab: &mut Lab, streams: usize) {
    let mut flows = Vec::new();
    for _ in 0..streams {
        flows.push(lab.stream(End::Client, ENDLESS));
    }
    lab.run_for(secs(1));
    for flow in flows {
        if let Some(inbox) = lab.inbox_mut(End::Server, flow) {
            inbox.paused = true;
        }
    }
    lab.run_for(ms(500));
}

/// A peer may claim whole windows of blocks and objects at once.
#[test]
fn of_blocks_and_objects_that_overdraw_the_memory_the_largest_are_given_up_at_once() {
    let config = Config {
        session_window: 256 << 10,
        flow_window: 256 << 10,
        ..Config::default()
    };
    // Streams that stall hold the windows that they were given: the more streams, the more that is.
    for (streams, left) in [
        (0, [false, true, true, true, true]),
        (4, [false, false, true, true, true]),
        (7, [false, false, false, true, true]),
        (12, [false, false, false, false, true]),
    ] {
        let mut lab = lab(&config);
        let begun = lab.now();
        let sizes = [
            (FlowKind::Blocks, 150 << 10),
            (FlowKind::Objects, 120 << 10),
            (FlowKind::Blocks, 80 << 10),
            (FlowKind::Blocks, 60 << 10),
            // Below the reserve.
            (FlowKind::Blocks, 20 << 10),
        ];
        lab.read_new = false;
        let flows = sizes.map(|(kind, size)| claim(&mut lab, kind, size));
        lab.read_new = true;
        stall_together(&mut lab, streams);
        assert!(lab.now().since(begun) < secs(5), "none is stalled yet");
        let server = &lab.world.server;
        let kept = flows.map(|flow| !server.is_given_up(flow));
        assert_eq!(kept, left, "beside {streams} streams\n{lab}");
    }
}

/// An application that keeps some of a flow hears of its end later than the session does.
#[test]
fn a_flow_that_is_given_up_while_some_of_it_is_kept_is_forgotten_when_its_reader_goes() {
    let mut lab = lab(&Config::default());
    lab.finish_replies = false;
    lab.read_new = false;
    let flow = lab.stream(End::Client, ENDLESS);
    lab.run_for(ms(500));
    let now = lab.now();
    let server = &mut lab.world.server;
    let unread = server.held();
    assert!(server.retain(now, flow, 10_000));
    assert_eq!(server.held(), unread + 10_000);
    assert!(server.give_up_stalled());
    // Until nothing more comes of it.
    lab.run_for(secs(1));
    let now = lab.now();
    let server = &mut lab.world.server;
    server.retain(now, flow, 10_000);
    server.stop(flow, 0);
    lab.run_for(secs(1));
    let server = &lab.world.server;
    assert!(server.flow_info(flow).is_none(), "{lab}");
    assert_eq!(server.held(), 0);
}
