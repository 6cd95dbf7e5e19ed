//! What live streams spend on redundancy, alone and beside each other.

use super::lossy::live_over;
use super::*;

/// 6 and 6 Mb/s that lose packets, 20 ms and the second one's delay (ms) away.
fn pair(delay: u64, loss: &str) -> String {
    format!(
        r#"
        delay = "10ms"
        rate = "6mbit"
        {loss}
        [links.b]
        delay = "{delay}ms"
        rate = "6mbit"
        {loss}
        "#
    )
}

fn mean(seeds: u64, of: impl Fn(u64) -> f64) -> f64 {
    (1..=seeds).map(of).sum::<f64>() / seeds as f64
}

/// What is lost and sent again is paid for when it leaves. If it were taken from the surplus as
/// well, as what the links lose and as what is sent twice, half of it would lie idle.
#[test]
fn repair_symbols_have_all_that_a_stream_leaves() {
    for (delay, most) in [(10, 30.0), (20, 42.0)] {
        let text = live_over(10, &pair(delay, "loss = \"2%\""));
        let run = |seed| run_of(&text, &["duration=30s", "warmup=8s"], seed);
        let p99 = mean(4, |seed| value(&run(seed), "live.in_order_delay.p99_ms"));
        // 27 and 39; with half of the surplus 39 and 47.
        assert!(p99 < most, "{delay}: {p99} ms");
    }
}

/// Streams of one session that share 10 Mb/s: their 99th percentile, the mean of all (ms), and
/// their redundancy.
fn streams(count: u64) -> (f64, f64) {
    let text = live_over(10, &pair(20, "loss = \"2%\"\nburst = 4"));
    let (head, stream) = text.split_at(text.find("[[workloads]]").expect("a workload"));
    let rate = format!("rate = \"{}kbit\"\n        size", 10_000 / count);
    let stream = stream.replace("rate = \"10mbit\"\n        size", &rate);
    let streams = (0..count).map(|n| stream.replace("\"live\"", &format!("\"live{n}\"")));
    let text = head.to_owned() + &streams.collect::<String>();
    let run = |seed| run_of(&text, &["duration=30s", "warmup=8s"], seed);
    let runs: Vec<_> = (1..=3).map(run).collect();
    let of = |measure: &str| {
        let names = (0..count).map(|n| format!("live{n}.{measure}"));
        let values = names.flat_map(|name| runs.iter().map(move |run| value(run, &name)));
        values.sum::<f64>() / (count as f64 * runs.len() as f64)
    };
    (of("in_order_delay.p99_ms"), of("redundancy"))
}

/// The surplus is what all streams leave, not what each one would leave alone.
#[test]
fn streams_beside_each_other_spend_one_surplus() {
    let (p99, redundancy) = streams(2);
    // 53 ms and 0.1, as one stream of 10 Mb/s has; with a surplus for each of them 62 ms and 0.13.
    assert!(p99 < 58.0, "{p99} ms");
    assert!((0.07..0.115).contains(&redundancy), "{redundancy}");
}

/// Four streams have four codes, and the next repair symbol of each comes later than what is sent
/// again.
#[test]
fn streams_that_leave_a_repair_symbol_now_and_then_send_none() {
    let (p99, redundancy) = streams(4);
    // 57 ms and 0.03; with repair symbols 62 ms and 0.1.
    assert!(p99 < 60.0 && redundancy < 0.06, "{p99} ms, {redundancy}");
}

/// A repair symbol over a path that is much longer mends nothing in time, and it would fill a path
/// that the stream does not need.
#[test]
fn a_much_longer_path_that_is_not_needed_is_left_alone() {
    let links = r#"
        rate = "28mbit"
        delay = "8ms"
        loss = "1%"
        [links.b]
        rate = "10mbit"
        delay = "55ms"
        loss = "1%"
        "#;
    let text = live_over(25, links);
    let run = |seed| run_of(&text, &["warmup=8s"], seed);
    let p99 = mean(4, |seed| value(&run(seed), "live.in_order_delay.p99_ms"));
    // 19 ms; with repair symbols over both 56.
    assert!(p99 < 40.0, "{p99} ms");
}

/// Without a budget of the user's a stream spends what losses are worth, half of its bytes though
/// it might; and that is worth more than nothing.
#[test]
fn by_itself_redundancy_follows_losses() {
    let links = |loss: &str| {
        format!(
            "delay = \"30ms\"\nrate = \"12mbit\"\nloss = \"{loss}\"\n\
            [links.b]\ndelay = \"30ms\"\nrate = \"12mbit\"\nloss = \"{loss}\"\n"
        )
    };
    let of = |loss: &str, set: &str, measure: &str| {
        let text = live_over(8, &links(loss)).replace("settings.repair-budget = \"50%\"", "");
        mean(4, |seed| {
            value(&run_of(&text, &["warmup=5s", set], seed), measure)
        })
    };
    let budget = |loss, budget: &str| {
        of(
            loss,
            &format!("settings.repair-budget={budget}"),
            "live.repairs",
        )
    };
    let repairs = |loss| of(loss, "warmup=5s", "live.repairs");
    let half = budget("2%", "50%");
    // A third of the bytes and more where they may be spent.
    assert!(half > 0.3, "{half}");
    for (loss, share) in [("1%", 0.01), ("2%", 0.02), ("5%", 0.05)] {
        let spent = repairs(loss);
        let worth = 0.03 + 3.0 * share;
        assert!(
            spent <= 1.2 * worth && spent >= 0.4 * worth,
            "{loss}: {spent}"
        );
    }
    let p95 = |set: &str| of("5%", set, "live.in_order_delay.p95_ms");
    let (with, without) = (p95("warmup=5s"), p95("settings.repair-budget=0%"));
    assert!(with < 0.9 * without, "{with} ms, {without} without");
}
