//! Schedulers in the model without a protocol, against what can be proved.

use marline_fec::analysis::{Frame, Path};
use marline_link::{Capacity, Delay, LinkConfig, Loss, ServiceTime};
use marline_sim::model::{Demand, Feedback, Model, ModelPath, Outcome};
use marline_sim::scenario::Document;
use marline_sim::{Duration, Rng};

use crate::kit::ms;

fn served(service: ServiceTime, delay: Duration, ahead: u32) -> ModelPath {
    ModelPath {
        name: "a".into(),
        link: LinkConfig {
            capacity: Capacity::Service(service),
            delay: Delay::Constant(delay),
            ..LinkConfig::default()
        },
        ahead,
    }
}

fn constant(service: Duration, delay: Duration) -> ModelPath {
    let service = ServiceTime::Normal {
        mean: service,
        sd: Duration::ZERO,
    };
    served(service, delay, 1_000)
}

fn model(paths: Vec<ModelPath>, feedback: Feedback, demand: Demand) -> Model {
    Model {
        paths,
        packet: 1_000,
        feedback,
        demand,
        block: None,
        warmup: Duration::ZERO,
        exhaustive: false,
    }
}

fn outcome(model: &Model, scheduler: &str, seed: u64) -> Outcome {
    let choice = scheduler.parse().expect("a scheduler");
    model.run(&choice, seed).expect("sound paths")
}

/// `units` packets that all wait at the start.
fn backlog(units: u32) -> Demand {
    Demand::Units {
        packets: 1,
        every: Duration::ZERO,
        random: false,
        units,
    }
}

/// When each packet is delivered in order (µs) if packet `k` goes where digit `k` of `code`, in the
/// base of the number of paths, says.
fn in_order(mut code: usize, packets: usize, paths: &[(u64, u64)]) -> Vec<u64> {
    let mut busy = vec![0; paths.len()];
    let mut last = 0;
    let mut times = Vec::new();
    for _ in 0..packets {
        let path = code % paths.len();
        code /= paths.len();
        let (service, delay) = paths[path];
        busy[path] += service;
        last = last.max(busy[path] + delay);
        times.push(last);
    }
    times
}

#[test]
fn no_assignment_of_packets_to_constant_links_delivers_earlier_in_order_than_edpf() {
    let mut rng = Rng::new(11);
    for seed in 0..40 {
        let count = 2 + rng.below(2) as usize;
        let packets: usize = if count == 2 { 11 } else { 7 };
        // Services of 0.5 to 5 ms, delays of 1 to 21 ms.
        let mut draw = || (500 + rng.below(4_500), 1_000 + rng.below(20_000));
        let paths: Vec<(u64, u64)> = (0..count).map(|_| draw()).collect();
        let all = (0..count.pow(packets as u32)).map(|code| in_order(code, packets, &paths));
        let best: u64 = all
            .map(|times| times.iter().sum())
            .min()
            .expect("one at least");
        let micros = Duration::from_micros;
        let constants = paths.iter().map(|(s, d)| constant(micros(*s), micros(*d)));
        let demand = backlog(packets as u32);
        let model = model(constants.collect(), Feedback::Perfect, demand);
        let got = outcome(&model, "edpf", seed).in_order;
        assert_eq!(got.count(), packets as u64);
        let sum = (got.mean() * packets as f64).round() as u64;
        assert_eq!(sum, best, "{paths:?}");
    }
}

#[test]
fn one_path_is_a_queue_with_exponential_service() {
    let load = 0.7;
    let service = ServiceTime::Gamma {
        mean: ms(10),
        sd: ms(10),
    };
    let model = model(
        vec![served(service, ms(5), 1_000_000)],
        Feedback::Perfect,
        Demand::Units {
            packets: 1,
            every: ms(10).div_f64(load),
            random: true,
            units: 200_000,
        },
    );
    let outcome = outcome(&model, "min-rtt", 1);
    // M/M/1: S / (1 − ρ), and the way.
    let expected = 5.0 + 10.0 / (1.0 - load);
    let mean = outcome.in_order.mean() / 1e3;
    assert!(
        (mean / expected - 1.0).abs() < 0.04,
        "{mean} ms, not {expected}"
    );
    assert_eq!(outcome.waits.count(), 0, "one path keeps the order");
}

#[test]
fn an_object_is_there_with_its_last_packet() {
    let model = model(
        vec![constant(ms(1), ms(5)), constant(ms(1), ms(5))],
        Feedback::Perfect,
        Demand::Units {
            packets: 10,
            every: ms(50),
            random: false,
            units: 100,
        },
    );
    let halves = outcome(&model, "edpf", 1);
    assert_eq!(halves.sent, [500, 500]);
    assert_eq!(halves.unit.count(), 100);
    // Five packets on each path.
    assert_eq!(
        (halves.unit.quantile(0.0), halves.unit.quantile(1.0)),
        (10_000, 10_000)
    );
    let copies = outcome(&model, "redundant", 1);
    assert_eq!(copies.unit.quantile(1.0), 15_000);
    assert_eq!(copies.sent.iter().sum::<u64>(), 2_000);
}

/// Two paths of different delay with random service; the near one would be loaded to 80 % alone.
fn unequal(feedback: Feedback) -> Model {
    let service = ServiceTime::Gamma {
        mean: ms(10),
        sd: ms(4),
    };
    let path = |delay| served(service, delay, 20);
    model(
        vec![path(ms(10)), path(ms(60))],
        feedback,
        Demand::Units {
            packets: 1,
            every: Duration::from_micros(12_500),
            random: false,
            units: 20_000,
        },
    )
}

#[test]
fn what_the_sender_knows_and_how_it_schedules_can_be_told_apart() {
    let perfect = unequal(Feedback::Perfect);
    let mean = |model: &Model, scheduler| outcome(model, scheduler, 5).in_order.mean() / 1e3;
    let (edpf, in_turn) = (mean(&perfect, "edpf"), mean(&perfect, "round-robin"));
    assert!(edpf < in_turn, "edpf {edpf} ms, round-robin {in_turn} ms");
    let late = mean(&unequal(Feedback::Delayed(ms(60))), "edpf");
    assert!(
        edpf < late,
        "with perfect feedback {edpf} ms, with late {late} ms"
    );
}

#[test]
fn a_model_run_is_a_function_of_its_seed() {
    let model = unequal(Feedback::Delayed(ms(10)));
    let sums = |seed| {
        let outcome = outcome(&model, "edpf", seed);
        (
            outcome.in_order.mean(),
            outcome.waits.mean(),
            outcome.sent,
            outcome.end,
        )
    };
    assert_eq!(sums(1), sums(1));
    assert_ne!(sums(1), sums(2));
}

/// Two saturated paths with a slot of 1 ms and these losses.
fn lossy(losses: [f64; 2], seconds: u64) -> Model {
    let paths = losses.map(|loss| {
        let mut path = constant(ms(1), ms(50));
        path.link.loss = Loss::Independent(loss);
        path.ahead = 1;
        path
    });
    let until = Duration::from_secs(seconds);
    let feedback = Feedback::Paced(ms(50));
    model(paths.to_vec(), feedback, Demand::Saturated { until })
}

#[test]
fn decoding_periods_and_buffering_are_those_of_the_analysis() {
    for (tau, losses) in [(4, [0.1, 0.1]), (8, [0.1, 0.0]), (8, [0.0, 0.1])] {
        let outcome = outcome(&lossy(losses, 120), &format!("s-edpf:tau={tau}"), 3);
        let path = |loss| Path {
            loss,
            slots: tau / 2,
            slot_time: 1.0,
        };
        let coded = usize::from(losses[1] > losses[0]);
        let frame = Frame::new(&losses.map(path), coded).expect("a frame");
        let mean = outcome.periods.mean().expect("periods");
        assert!(
            (mean / frame.mean() - 1.0).abs() < 0.04,
            "{tau} {losses:?}: {mean} frames, not {}",
            frame.mean()
        );
        let second = outcome.periods.second_moment().expect("periods");
        assert!(
            (second / frame.second_moment() - 1.0).abs() < 0.1,
            "{second}"
        );
        // The bound is per slot; coded ones wait for nothing.
        let bound = frame.buffering_bound() * f64::from(tau) / f64::from(tau - 1);
        let buffering = outcome.buffering.mean() / 1e3;
        assert!(buffering < bound, "{buffering} ms, bound {bound} ms");
        assert!(buffering > 0.3 * bound, "{buffering} ms, bound {bound} ms");
    }
}

/// Two saturated paths of 10 Mb/s and 50 ms. The delays of one have a standard deviation of 100 ms
/// and let packets overtake each other.
fn scattered() -> Model {
    let mut paths = [(); 2].map(|()| {
        let mut path = constant(Duration::from_micros(1_200), ms(50));
        path.ahead = 1;
        path
    });
    paths[0].link.delay = Delay::Normal {
        mean: ms(50),
        sd: ms(100),
        min: ms(1),
    };
    paths[0].link.overtaking = true;
    let until = Duration::from_secs(20);
    let mut model = model(
        paths.to_vec(),
        Feedback::Paced(ms(50)),
        Demand::Saturated { until },
    );
    model.warmup = ms(2_000);
    model
}

/// An ideal decoder with the best of all constant leads of the shaky path has 58 ms in order at
/// τ = 4 and 84 ms at τ = 8, of which 11 ms and 31 ms are spent at the receiver.
#[test]
fn mend_holds_back_only_what_the_code_does_not_bring_sooner() {
    for (tau, in_order, buffering) in [(4, 62.0, 15.0), (8, 90.0, 36.0)] {
        let outcome = outcome(&scattered(), &format!("mend:tau={tau}"), 1);
        let mean = outcome.in_order.mean() / 1e3;
        assert!(mean < in_order, "tau {tau}: {mean} ms in order");
        let mean = outcome.buffering.mean() / 1e3;
        assert!(mean < buffering, "tau {tau}: {mean} ms at the receiver");
    }
}

#[test]
fn without_repair_symbols_a_loss_costs_a_round_trip() {
    let model = lossy([0.1, 0.0], 30);
    let coded = outcome(&model, "s-edpf:tau=4", 1);
    let plain = outcome(&model, "s-edpf:tau=off", 1);
    assert!(coded.coded > 0 && plain.coded == 0);
    assert!(coded.recovered > 0 && coded.again == 0 && plain.again > 0);
    assert!(
        coded.buffering.mean() < 1e3,
        "{} us",
        coded.buffering.mean()
    );
    assert!(
        plain.buffering.mean() > 80e3,
        "{} us",
        plain.buffering.mean()
    );
    // 2000 slots a second: one in 40 lost, and one in four coded.
    let rate = |outcome: &Outcome| outcome.delivered as f64 / 30.0;
    assert!(
        (rate(&plain) / 1_900.0 - 1.0).abs() < 0.02,
        "{}",
        rate(&plain)
    );
    assert!(
        (rate(&coded) / 1_500.0 - 1.0).abs() < 0.02,
        "{}",
        rate(&coded)
    );
}

#[test]
fn a_block_code_waits_for_its_block() {
    let mut model = lossy([0.0, 0.0], 10);
    model.paths.truncate(1);
    let block = marline_sim::model::BlockCode {
        source: 8,
        coded: 8,
    };
    model.block = Some(block);
    let clean = outcome(&model, "edpf", 1);
    assert_eq!(
        clean.buffering.mean(),
        0.0,
        "what is not lost waits for nothing"
    );
    model.paths[0].link.loss = Loss::Independent(0.05);
    let lossy = outcome(&model, "edpf", 1);
    // A lost packet comes with the eighth that arrives, some slots later; a third of the blocks
    // loses one.
    let mean = lossy.in_order.mean() - clean.in_order.mean();
    assert!((200.0..4_000.0).contains(&mean), "{mean} us");
    assert!((lossy.delivered as f64 / 5_000.0 - 1.0).abs() < 0.03);
}

#[test]
fn a_lone_path_has_no_better_assignment() {
    let mut model = unequal(Feedback::Perfect);
    model.demand = Demand::Units {
        packets: 3,
        every: ms(2_000),
        random: false,
        units: 500,
    };
    let both = model
        .best_assignment(1)
        .expect("sound paths")
        .expect("units");
    model.paths.truncate(1);
    let alone = model
        .best_assignment(1)
        .expect("sound paths")
        .expect("units");
    // 10 ms each behind each other, and 10 ms of the way: 20, 30, 40.
    assert!((alone - 30.0).abs() < 0.3, "{alone} ms");
    assert!(both <= alone, "{both} ms, not more than {alone} ms");
    let edpf = outcome(&model, "edpf", 1).in_order.mean() / 1e3;
    assert!((edpf / alone - 1.0).abs() < 0.05, "{edpf} ms");
}

const SCENARIO: &str = r#"
duration = "2s"
schedulers = ["edpf"]
links.a = { rate = "10mbit", delay = "10ms" }
links.b = { rate = "10mbit", delay = "20ms" }
[model]
demand = "units"
every = "10ms"
"#;

fn mistakes(text: &str) -> String {
    let document = Document::parse("model.toml", text).expect("TOML");
    let files = |_: &str| Err("no files here".to_owned());
    match document.scenarios(&files) {
        Ok(_) => String::new(),
        Err(mistakes) => mistakes.to_string(),
    }
}

#[test]
fn a_scenario_with_a_model_runs_without_a_protocol() {
    let document = Document::parse("model.toml", SCENARIO).expect("TOML");
    let files = |_: &str| Err("no files here".to_owned());
    let scenarios = document.scenarios(&files).expect("sound");
    let run = marline_sim::run::run(&scenarios[0].1, "edpf", 1);
    // 1500 bytes take 1.2 ms, and the way 10 ms.
    assert_eq!(run.values["stream.in_order_delay.mean_ms"], 11.2);
    assert_eq!(run.values["path.a.share"], 1.0);
    let unknown = marline_sim::scenario::unknown_values(&scenarios[0].1, &run);
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn mistakes_of_a_model_name_the_line_and_the_mend() {
    for (from, to, expected) in [
        ("demand = \"units\"", "", "demand"),
        ("every = \"10ms\"", "", "every"),
        (
            "rate = \"10mbit\", delay = \"20ms\"",
            "delay = \"20ms\"",
            "needs a rate",
        ),
        (
            "[model]",
            "[model]\npackets = 9\nexhaustive = true",
            "packets = 8",
        ),
        (
            "[model]",
            "[model]\nblock = { source = 0, coded = 1 }",
            "block.source",
        ),
        (
            "duration",
            "congestion = \"cubic\"\nduration",
            "beside [model]",
        ),
        ("[model]", "[model]\nahead = \"far\"", "ahead"),
    ] {
        let text = mistakes(&SCENARIO.replacen(from, to, 1));
        assert!(
            text.contains(expected) && text.contains("model.toml"),
            "{to}: {text}"
        );
    }
}
