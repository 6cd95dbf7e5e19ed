//! What a workload sends: one reader a kind.

use marline_base::Duration;
use marline_base::text::{Problem, units};
use marline_proto::congestion::Congestion;
use marline_proto::wire::FlowKind;

use super::links::ReadFile;
use super::plan::{Load, SizeLaw};
use super::reader::Reader;
use super::recorded::recorded;
use super::web;
use crate::engine::End;
use crate::traces::{FrameTrace, OffloadTrace};

/// A kind of workload, for lists and defaults.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What `kind` says.
    pub name: &'static str,
    /// What it is, in a line.
    pub help: &'static str,
    /// Keys of its own, as one would write them.
    pub keys: &'static str,
    /// The end that sends, or asks, unless `from` says otherwise.
    pub from: End,
    /// The flow that carries it unless `flow` says otherwise.
    pub flow: FlowKind,
    pub(super) read: fn(&Reader<'_>, &ReadFile<'_>) -> Option<Load>,
}

macro_rules! kind {
    ($name:literal $from:ident $flow:ident $read:path, $keys:literal, $help:literal) => {
        Kind {
            name: $name,
            help: $help,
            keys: $keys,
            from: End::$from,
            flow: FlowKind::$flow,
            read: $read,
        }
    };
}

/// Every kind of workload.
pub const KINDS: &[Kind] = &[
    kind!("constant" Server Packets constant,
        r#"rate = "10mbit", size = 1200"#,
        "Units of one size at a constant rate: a live stream, voice"),
    kind!("backlogged" Server Stream backlogged,
        r#"bytes = "10MB" (or without end)"#,
        "As much as the session takes: a download"),
    kind!("batches" Server Stream batches,
        r#"size = "100kB", rate = "10mbit" (or as much as goes), before = "30s", pause = "2s", reopen = true"#,
        "Something for long, then batches one by one, on the same flow or new ones"),
    kind!("bursts" Client Stream bursts,
        r#"request = "20kB", reply = "1kB", burst = 5, every = "40ms", pause = "1s""#,
        "Bursts of requests, each answered: an offload of augmented reality"),
    kind!("blocks" Server Packets blocks,
        r#"size = "50kB", every = "100ms", deadline = "50ms", phase = "0ms" (or drawn)"#,
        "Blocks at fixed intervals, worth nothing after their deadline"),
    kind!("objects" Server Stream objects,
        r#"size = "lognormal:20kB/5kB", every = "200ms", random = true"#,
        "Objects at fixed or random intervals"),
    kind!("video" Server Stream video,
        r#"frames = "frames.csv", playout = "200ms""#,
        "Frames of a video, each discarded when it misses its playout"),
    kind!("offload" Client Stream offload,
        r#"trace = "offload.csv", or request = "20kB", reply = "1kB", think = "10ms""#,
        "Requests one by one, each waiting for the reply to the last"),
    kind!("web" Client Stream web::read,
        r#"objects = [{ name = "html", size = "30kB" }, …], or pages = "pages.json", page = "news", reopen = true"#,
        "A web page whose objects ask for each other"),
    kind!("tcp" Server Packets tcp,
        r#"congestion = "cubic", bytes = "10MB" (or without end), beyond = "8ms""#,
        "A TCP connection from end to end inside the session"),
];

/// The kind that a table names.
pub(super) fn kind(reader: &Reader<'_>) -> Option<&'static Kind> {
    let names: Vec<_> = KINDS.iter().map(|kind| (kind.name, kind)).collect();
    reader.needed("kind", "\"constant\"");
    reader.word("kind", &names)
}

/// Sizes of units, requests and objects.
const MOST: u64 = 1 << 30;

fn constant(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    let rate = reader.need_rate("rate", "\"10mbit\"");
    let size = reader.bytes("size", 8..=16 << 20).unwrap_or(1_200);
    Some(Load::Constant {
        rate: rate?,
        size: size as u32,
    })
}

fn backlogged(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    Some(Load::Backlogged {
        size: reader.bytes("size", 8..=1 << 20).unwrap_or(16 << 10) as u32,
        bytes: reader.bytes("bytes", 1..=1 << 50),
    })
}

fn batches(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    reader.needed("size", "\"100kB\"");
    let rate = match reader.get("rate") {
        Some(_) => Some(reader.need_rate("rate", "\"10mbit\"")?),
        None => None,
    };
    Some(Load::Batches {
        size: reader.bytes("size", 8..=16 << 20)?,
        rate,
        before: reader.time("before").unwrap_or(Duration::from_secs(30)),
        pause: reader.span("pause").unwrap_or(Duration::from_secs(2)),
        reopen: reader.flag("reopen").unwrap_or(false),
    })
}

fn bursts(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    let request = need_law(reader, "request");
    let reply = law(reader, "reply").unwrap_or(SizeLaw::Constant(1_000));
    let burst = reader.number("burst").unwrap_or(5.0);
    if let Some(node) = reader.get("burst")
        && !(1.0..=1e6).contains(&burst)
    {
        let mend = "write the mean number of requests, at least 1 and at most 1000000";
        reader.wrong("burst", node, format!("{burst} is out of range"), mend);
    }
    let every = reader.need_span("every", "\"40ms\"");
    let pause = reader.need_span("pause", "\"1s\"");
    Some(Load::Bursts {
        request: request?,
        reply,
        burst,
        every: every?,
        pause: pause?,
    })
}

fn blocks(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    reader.needed("size", "\"50kB\"");
    let size = reader.bytes("size", 8..=MOST);
    let every = reader.need_span("every", "\"100ms\"");
    let deadline = reader.need_span("deadline", "\"50ms\"");
    let phase = reader.time("phase");
    Some(Load::Blocks {
        size: size?,
        every: every?,
        deadline: deadline?,
        phase,
    })
}

fn objects(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    let size = need_law(reader, "size");
    let every = reader.need_span("every", "\"200ms\"");
    let random = reader.flag("random").unwrap_or(false);
    Some(Load::Objects {
        size: size?,
        every: every?,
        random,
    })
}

fn video(reader: &Reader<'_>, files: &ReadFile<'_>) -> Option<Load> {
    let playout = reader.need_span("playout", "\"200ms\"");
    reader.needed("frames", "\"frames.csv\"");
    let trace = recorded(reader, "frames", files, FrameTrace::parse)?;
    let frames = trace.frames().iter().map(|frame| (frame.at, frame.size));
    Some(Load::Video {
        frames: frames.collect(),
        period: trace.period(),
        playout: playout?,
    })
}

fn offload(reader: &Reader<'_>, files: &ReadFile<'_>) -> Option<Load> {
    let one = (
        reader.bytes("request", 1..=MOST),
        reader.bytes("reply", 1..=MOST).unwrap_or(1_000),
        reader.time("think").unwrap_or(Duration::ZERO),
    );
    if reader.get("trace").is_none() {
        reader.needed("request", "\"20kB\"` or `trace = \"offload.csv\"");
        let steps = [(one.0?, one.1, one.2)];
        return Some(Load::Offload {
            steps: steps.into(),
        });
    }
    for key in ["request", "reply", "think"] {
        if let Some(node) = reader.get(key) {
            reader.wrong(
                key,
                node,
                "the trace says it already",
                "remove it, or the trace",
            );
        }
    }
    let trace = recorded(reader, "trace", files, OffloadTrace::parse)?;
    let steps = trace.requests().iter();
    let steps = steps.map(|one| (u64::from(one.size), u64::from(one.reply), one.pause));
    Some(Load::Offload {
        steps: steps.collect(),
    })
}

fn tcp(reader: &Reader<'_>, _: &ReadFile<'_>) -> Option<Load> {
    Some(Load::Tcp {
        congestion: tcp_congestion(reader),
        bytes: reader.bytes("bytes", 1..=1 << 50),
        beyond: reader.time("beyond").unwrap_or(Duration::ZERO),
    })
}

/// The key `congestion` of a TCP endpoint; `cubic` without it.
pub(super) fn tcp_congestion(reader: &Reader<'_>) -> String {
    let Some(name) = reader.text("congestion") else {
        return "cubic".into();
    };
    if let Some(node) = reader.get("congestion") {
        match name.parse::<Congestion>() {
            Err(Problem { message, hint }) => {
                reader.wrong("congestion", node, message, hint.unwrap_or_default());
            }
            Ok(congestion) if congestion.rate().is_some() => {
                reader.wrong(
                    "congestion",
                    node,
                    "TCP has no fixed rate",
                    "write \"cubic\"",
                );
            }
            Ok(_) => {}
        }
    }
    name
}

fn need_law(reader: &Reader<'_>, key: &'static str) -> Option<SizeLaw> {
    reader.needed(key, "\"20kB\"");
    law(reader, key)
}

const A_LAW: &str = "give a size (\"20kB\"), \"uniform:10kB/30kB\", \"lognormal:MEAN/SD\" or \
                     \"exponential:MEAN\"";

fn law(reader: &Reader<'_>, key: &'static str) -> Option<SizeLaw> {
    let size = |text: &str| {
        let bytes = text.parse().ok().or_else(|| units::size(text))?;
        (1..=MOST).contains(&bytes).then_some(bytes)
    };
    reader.parse(key, A_LAW, |text| {
        let Some((law, sizes)) = text.split_once(':') else {
            return size(text).map(SizeLaw::Constant);
        };
        let two = || {
            let (a, b) = sizes.split_once('/')?;
            Some((size(a)?, size(b)?))
        };
        match law {
            "uniform" => two()
                .filter(|(a, b)| a <= b)
                .map(|(a, b)| SizeLaw::Uniform(a, b)),
            "lognormal" => two().map(|(mean, sd)| SizeLaw::LogNormal(mean as f64, sd as f64)),
            "exponential" => size(sizes).map(|mean| SizeLaw::Exponential(mean as f64)),
            _ => None,
        }
    })
}
