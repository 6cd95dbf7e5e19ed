use crate::{
    Bucket, Capacity, Codel, Delay, Link, LinkConfig, Loss, Outage, OutageMode, Outages,
    QueueLimit, RateDist, Redraw, ServiceTime, VaryingRate,
};
use alloc::string::{String, ToString};
use core::time::Duration;
use marline_base::{Instant, Rate};
use proptest::prelude::*;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn error(text: &str) -> String {
    match text.parse::<LinkConfig>() {
        Err(error) => error.to_string(),
        Ok(config) => Link::new(config, 1).unwrap_err().to_string(),
    }
}

#[test]
fn every_key_means_what_it_says() {
    let config: LinkConfig = "rate=20mbit, delay=15ms, jitter=3ms, loss=1%, queue=200ms, seed=7, \
                              outage=10s+2s, outage=20s+500ms, codel, dup=0.1%, mtu=1400, \
                              overtake=yes, outage-mode=hold"
        .parse()
        .unwrap();
    let outage = |start, length| Outage {
        start: Instant::from_millis(start),
        length: ms(length),
    };
    assert_eq!(
        config,
        LinkConfig {
            capacity: Capacity::Constant(Rate::from_mbps(20)),
            delay: Delay::Normal {
                mean: ms(15),
                sd: ms(3),
                min: Duration::ZERO
            },
            redraw: Redraw::EachPacket,
            overtaking: true,
            loss: Loss::Independent(0.01),
            queue: QueueLimit::Time(ms(200)),
            codel: Some(Codel::default()),
            outages: Outages::Scheduled([outage(10_000, 2_000), outage(20_000, 500)].into()),
            outage_mode: OutageMode::Hold,
            duplicate: 0.001,
            mtu: Some(1_400),
            replay: None,
            seed: Some(7),
        }
    );
    let config: LinkConfig =
        "rate=40Mbit/s,rate-sd=8mbit,rate-every=25ms,rate-phase=6.25ms,queue=100p"
            .parse()
            .unwrap();
    assert_eq!(
        config.capacity,
        Capacity::Varying(VaryingRate {
            dist: RateDist::Normal,
            mean: Rate::from_mbps(40),
            sd: Rate::from_mbps(8),
            min: Rate::ZERO,
            every: ms(25),
            phase: Duration::from_micros(6_250),
        })
    );
    assert_eq!(config.queue, QueueLimit::Packets(100));
    let config: LinkConfig = "service=10ms,service-sd=2ms,service-dist=gamma,queue=64kB"
        .parse()
        .unwrap();
    assert_eq!(
        config.capacity,
        Capacity::Service(ServiceTime::Gamma {
            mean: ms(10),
            sd: ms(2)
        })
    );
    assert_eq!(config.queue, QueueLimit::Bytes(64_000));
    let config: LinkConfig = "delay=20ms,jitter=5ms,jitter-dist=uniform,loss=2%,burst=5"
        .parse()
        .unwrap();
    assert_eq!(
        config.delay,
        Delay::Uniform {
            min: ms(15),
            max: ms(25)
        }
    );
    assert_eq!(config.loss, Loss::in_bursts(0.02, 5.0));
    let held = |text: &str| text.parse::<LinkConfig>().unwrap().redraw;
    assert_eq!(
        held("delay=80ms,jitter=40ms,jitter-dist=uniform,jitter-hold=200ms"),
        Redraw::Every(ms(200))
    );
    assert_eq!(held("jitter=1ms,jitter-hold=outage"), Redraw::AfterOutage);
    assert_eq!("".parse(), Ok(LinkConfig::default()));
}

#[test]
fn traces_come_from_the_callers_reader() {
    let config = LinkConfig::parse_with("trace=a.down", |path| {
        Ok(alloc::format!("1\n{}", path.len()))
    })
    .unwrap();
    let Capacity::Trace(trace) = &config.capacity else {
        panic!("{config:?}");
    };
    assert_eq!((trace.name(), trace.period()), ("a.down", ms(6)));
    assert_eq!(config.to_string(), "trace=a.down");
    let unreadable = LinkConfig::parse_with("trace=a.down", |_| Err("not there".into()));
    assert_eq!(
        unreadable.unwrap_err().to_string(),
        "trace=a.down: not there"
    );
    let bad = LinkConfig::parse_with("trace=a.down", |_| Ok("x".into()));
    assert!(
        bad.unwrap_err()
            .to_string()
            .contains("trace a.down, line 1: \"x\"")
    );
}

#[test]
fn tables_of_rates_come_from_a_column_and_a_scale() {
    let read = |path: &str| {
        assert_eq!(path, "a#b/drive.CSV");
        Ok("t_ms,nr_kbps,lte_kbps\n0,100,20\n100,300,40\n".into())
    };
    let parse = |text| LinkConfig::parse_with(text, read);
    let config = parse("trace=a#b/drive.CSV#lte,trace-scale=0.5,queue=1s").unwrap();
    assert_eq!(config.capacity.mean_rate(), Some(Rate::from_kbps(15)));
    let shown = config.to_string();
    assert_eq!(
        shown,
        "trace=a#b/drive.CSV#lte_kbps,trace-scale=0.5,queue=1s"
    );
    assert_eq!(parse(&shown), Ok(config));
    let error = |text| parse(text).unwrap_err().to_string();
    assert!(error("trace=a#b/drive.CSV").contains("line 1: several columns of rates"));
    let scale = error("trace=a#b/drive.CSV#nr,trace-scale=0");
    assert!(scale.contains("trace-scale=0: give a factor above 0"));
    let opportunities = LinkConfig::parse_with("trace=a.down,trace-scale=2", |_| Ok("1".into()));
    assert_eq!(
        opportunities.unwrap_err().to_string(),
        "trace-scale=2: needs a trace of rates, such as trace=link.csv#down"
    );
}

#[test]
fn errors_name_key_value_and_mend() {
    for (text, parts) in [
        ("rat=1mbit", ["rat=1mbit", "known are rate, rate-sd"]),
        ("rate=20mb", ["rate=20mb:", "such as 20mbit"]),
        ("rate=20", ["rate=20:", "such as 20mbit"]),
        ("rate=0bit", ["rate=0 bit/s", "at least 1.0 kb/s"]),
        ("rate=1mbit,rate=2mbit", ["rate=2mbit", "given twice"]),
        ("rate=1mbit,service=1ms", ["rate=1mbit", "only one of"]),
        (
            "rate=1mbit,rate-sd=1kbit",
            ["rate-sd=1kbit", "needs rate and rate-every"],
        ),
        (
            "rate=1mbit,rate-every=1ms,rate-dist=cauchy",
            ["rate-dist=cauchy", "normal, uniform, gamma or lognormal"],
        ),
        (
            "rate=1mbit,rate-every=1ms,rate-dist=gamma",
            ["rate-sd=0", "must be more than 0 with rate-dist=gamma"],
        ),
        (
            "rate=1mbit,rate-every=1us",
            ["rate-every=1µs", "at least 100µs"],
        ),
        ("delay=15", ["delay=15:", "such as 15ms"]),
        ("delay=-1ms", ["delay=-1ms", "such as 15ms"]),
        ("delay=9999999s", ["delay=", "at most a day"]),
        ("delay-min=1ms", ["delay-min=1ms", "needs jitter"]),
        ("jitter-hold=1ms", ["jitter-hold=1ms", "needs jitter"]),
        (
            "jitter=1ms,jitter-hold=long",
            ["jitter-hold=long", "such as 200ms, or outage"],
        ),
        (
            "jitter=1ms,jitter-hold=0",
            ["jitter-hold=0", "more than zero"],
        ),
        ("trace-scale=2", ["trace-scale=2", "needs a trace of rates"]),
        (
            "jitter=1ms,jitter-dist=odd",
            ["jitter-dist=odd", "uniform or gamma"],
        ),
        (
            "delay=1ms,jitter=1ms,jitter-dist=gamma,delay-min=1ms",
            ["delay-min", "less than delay"],
        ),
        ("loss=150%", ["loss=1.5", "0% to 100%"]),
        ("loss=much", ["loss=much", "1% or 0.01"]),
        ("loss=ge:1/2", ["loss=ge:1/2", "four shares"]),
        ("loss=60%,burst=1", ["loss=60%", "burst / (burst + 1)"]),
        ("burst=3", ["burst=3", "needs loss"]),
        ("queue=200ms", ["queue=200ms", "needs a rate"]),
        ("queue=0p", ["queue=0", "more than zero"]),
        ("queue=lots", ["queue=lots", "(64kB)"]),
        ("codel=5ms", ["codel=5ms", "TARGET/INTERVAL"]),
        ("outage=10s", ["outage=10s", "10s+2s"]),
        ("outage=1s+0s", ["outage=0", "more than zero"]),
        ("outage=1s+2s/1s", ["outage=2s every 1s", "dark for ever"]),
        (
            "outage=1s+2s,outage=random:1s+1s",
            ["outage=random:1s+1s", "repeated"],
        ),
        ("outage-mode=wait", ["outage-mode=wait", "drop or hold"]),
        ("overtake=maybe", ["overtake=maybe", "yes or no"]),
        ("mtu=0", ["mtu=0", "from 1 to 65535"]),
        ("seed=-1", ["seed=-1", "whole number"]),
        ("trace=x", ["trace=x", "cannot be read here"]),
    ] {
        let error = error(text);
        for part in parts {
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}

fn time() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..5_000_u64).prop_map(Duration::from_millis),
        (1..10_000_000_000_u64).prop_map(Duration::from_nanos),
    ]
}

fn rate() -> impl Strategy<Value = Rate> {
    (1_000..10_000_000_000_u64).prop_map(Rate::from_bps)
}

fn family() -> impl Strategy<Value = RateDist> {
    prop_oneof![
        Just(RateDist::Normal),
        Just(RateDist::Uniform),
        Just(RateDist::Gamma),
        Just(RateDist::LogNormal),
    ]
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        Just(Capacity::Unlimited),
        rate().prop_map(Capacity::Constant),
        (rate(), 1..1_000_000_u64)
            .prop_map(|(rate, depth)| Capacity::Bucket(Bucket { rate, depth })),
        (family(), rate(), rate(), rate(), 1..100_000_u64).prop_map(
            |(dist, mean, sd, min, every)| {
                Capacity::Varying(VaryingRate {
                    dist,
                    mean,
                    sd,
                    min,
                    every: Duration::from_micros(every * 100),
                    phase: Duration::from_micros(every * 7),
                })
            }
        ),
        (time(), time()).prop_map(|(mean, sd)| Capacity::Service(ServiceTime::Normal { mean, sd })),
        (time(), time()).prop_map(|(mean, sd)| Capacity::Service(ServiceTime::Gamma { mean, sd })),
        (time(), time())
            .prop_map(|(mean, sd)| Capacity::Service(ServiceTime::LogNormal { mean, sd })),
    ]
}

fn delay() -> impl Strategy<Value = Delay> {
    prop_oneof![
        time().prop_map(Delay::Constant),
        (time(), time(), time()).prop_map(|(mean, sd, min)| Delay::Normal { mean, sd, min }),
        (time(), time()).prop_map(|(min, half)| Delay::Uniform {
            min,
            max: min + 2 * half
        }),
        (time(), time(), time()).prop_map(|(more, sd, min)| Delay::Gamma {
            mean: min + more,
            sd,
            min
        }),
    ]
}

fn redraw() -> impl Strategy<Value = Redraw> {
    prop_oneof![
        Just(Redraw::EachPacket),
        Just(Redraw::AfterOutage),
        time().prop_map(Redraw::Every),
    ]
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        Just(Loss::None),
        (1e-9..1.0).prop_map(Loss::Independent),
        (0.0..1.0, 0.0..1.0, 0.0..1.0, 0.0..1.0).prop_map(
            |(to_bad, to_good, loss_in_bad, loss_in_good)| Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good
            }
        ),
    ]
}

fn outages() -> impl Strategy<Value = Outages> {
    let outage = || {
        (time(), time()).prop_map(|(start, length)| Outage {
            start: Instant::ZERO + start,
            length,
        })
    };
    prop_oneof![
        Just(Outages::Never),
        proptest::collection::vec(outage(), 1..4).prop_map(Outages::Scheduled),
        (outage(), time()).prop_map(|(first, more)| Outages::Periodic {
            first,
            every: first.length + more
        }),
        (time(), time()).prop_map(|(mean_lit, mean_dark)| Outages::Random {
            mean_lit,
            mean_dark
        }),
    ]
}

fn queue() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Unlimited),
        (1..1_u64 << 40).prop_map(QueueLimit::Bytes),
        (1..u32::MAX).prop_map(QueueLimit::Packets),
        time().prop_map(QueueLimit::Time),
    ]
}

proptest! {
    #[test]
    fn configurations_read_back_the_same(
        (capacity, delay, overtaking, loss) in (capacity(), delay(), any::<bool>(), loss()),
        redraw in redraw(),
        (queue, codel, outages) in (queue(), proptest::option::of((time(), time())), outages()),
        (hold, duplicate) in (any::<bool>(), 0.0..1.0),
        (mtu, seed) in (any::<Option<u32>>(), any::<Option<u64>>()),
    ) {
        let config = LinkConfig {
            capacity,
            delay,
            redraw: match delay {
                Delay::Constant(_) => Redraw::EachPacket,
                _ => redraw,
            },
            overtaking,
            loss,
            queue,
            codel: codel.map(|(target, interval)| Codel { target, interval }),
            outages,
            outage_mode: if hold { OutageMode::Hold } else { OutageMode::Drop },
            duplicate,
            mtu,
            replay: None,
            seed,
        };
        prop_assert_eq!(config.to_string().parse(), Ok(config));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,60}") {
        let _ = text.parse::<LinkConfig>();
    }

    #[test]
    fn any_values_are_read_or_refused(
        key in 0..LinkConfig::KEYS.len(),
        value in "[0-9a-zA-Z.:/+%-]{0,20}",
    ) {
        let text = alloc::format!("{}={value}", LinkConfig::KEYS[key].name);
        if let Ok(config) = text.parse::<LinkConfig>() {
            let _ = Link::new(config, 1);
        }
    }
}
