//! `[block-model]`: blocks by their deadline over the links without a protocol.

use marline_base::Duration;
use marline_link::{Capacity, Delay};

use super::beside::{self, refuse_beside};
use super::links::Written;
use super::reader::Reader;
use crate::model::hop::{Experiment, Variant};

/// The keys of scenarios with sessions, which the model has none of.
const NOT_HERE: [&str; 10] = [
    "sessions",
    "paths",
    "workloads",
    "cross",
    "changes",
    "handovers",
    "turn",
    "congestion",
    "settings",
    "model",
];
/// Stands for a phase that each run draws.
const DRAWN: &str = "drawn";
/// Most packets of a block.
const MOST_PACKETS: u64 = 20_000;
/// Most blocks of a run.
const MOST_BLOCKS: u128 = 1_000_000;

/// Reads `[block-model]`; the caller finishes `top`.
pub(super) fn read(
    top: &Reader<'_>,
    reader: &Reader<'_>,
    links: &[Written],
    duration: Duration,
    warmup: Duration,
) -> Option<Experiment> {
    refuse_beside(top, &NOT_HERE, "block-model");
    let packet = reader.whole("packet", 64..=65_535).unwrap_or(1_500) as u32;
    reader.needed("size", "\"145kB\", the size of a block");
    let block = reader.bytes("size", 1..=MOST_PACKETS * u64::from(packet));
    let every = reader.need_span("every", "\"25ms\", the time between blocks");
    let deadline = reader.need_span("deadline", "\"35ms\"");
    let phase = match reader.text("phase").as_deref() {
        Some(DRAWN) => None,
        _ => reader.time("phase"),
    };
    let queue = reader.time("queue");
    let reliability = reader.number("reliability").unwrap_or(0.98);
    if let Some(node) = reader.get("reliability")
        && !(0.0..1.0).contains(&reliability)
    {
        let mend = "write a probability such as 0.98";
        reader.wrong("reliability", node, "is not a probability below 1", mend);
    }
    if let (Some(every), Some(node)) = (every, reader.get("every"))
        && duration.as_nanos() / every.as_nanos().max(1) > MOST_BLOCKS
    {
        let mend = format!("write a longer time, or a shorter `duration`: {MOST_BLOCKS} at most");
        reader.wrong("every", node, "asks for too many blocks", mend);
    }
    reader.finish();
    if let Some(table) = top.inner("links") {
        for link in links {
            let up = &link.plan.up;
            let fits = matches!(up.delay, Delay::Constant(_))
                && !matches!(up.capacity, Capacity::Unlimited | Capacity::Service(_));
            if !fits {
                let key = table.key(&link.plan.name);
                let mend = "write rate = \"40mbit\", rate-sd = \"8mbit\", delay = \"12.5ms\"";
                let message = "needs a rate and a constant delay for [block-model]";
                table.wrong_at(&table.place, &key, message, mend);
            }
        }
    }
    Some(Experiment {
        links: links.iter().map(|link| link.plan.up.clone()).collect(),
        packet,
        block: block?,
        every: every?,
        phase,
        deadline: deadline?,
        reliability,
        duration,
        warmup,
        queue,
    })
}

/// What is wrong with a variant's name, and the hint.
pub(super) fn check(name: &str) -> Result<String, (String, String)> {
    beside::variant::<Variant>(name, &Variant::NAMES, "block-model")
}

#[cfg(test)]
mod tests {
    use crate::scenario::Document;

    const TEXT: &str = r#"
duration = "4s"
warmup = "1s"
schedulers = ["bound", "hybrid"]
links.a = { rate = "40mbit", rate-sd = "8mbit", rate-every = "25ms", delay = "12.5ms" }
links.b = { rate = "40mbit", delay = "12.5ms" }

[block-model]
size = "110kB"
every = "25ms"
deadline = "35ms"
phase = "drawn"
"#;

    fn mistakes(text: &str) -> String {
        let document = Document::parse("blocks.toml", text).unwrap();
        let found = document.scenarios(&|_| Err("no files".into()));
        found.map_or_else(|mistakes| mistakes.to_string(), |_| String::new())
    }

    #[test]
    fn runs_yield_what_is_announced() {
        let document = Document::parse("blocks.toml", TEXT).unwrap();
        let (_, scenario) = document
            .scenarios(&|_| Err("no files".into()))
            .unwrap()
            .remove(0);
        assert_eq!(scenario.blocks.as_ref().unwrap().phase, None);
        for variant in &scenario.schedulers {
            crate::run::check(&scenario, variant).unwrap();
            let run = crate::run::run(&scenario, variant, 3);
            assert_eq!(crate::scenario::unknown_values(&scenario, &run), [""; 0]);
            assert_eq!(run.fractions["blocks.block_lateness"].trials, 120);
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(mistakes(TEXT), "");
        let wrong = mistakes(&TEXT.replace("\"hybrid\"", "\"hybird\""));
        assert!(
            wrong.contains("hybird") && wrong.contains("`hybrid`"),
            "{wrong}"
        );
        let wrong = mistakes(&TEXT.replace(
            "delay = \"12.5ms\" }\nlinks.b",
            "service = \"1ms\" }\nlinks.b",
        ));
        assert!(!wrong.is_empty());
        let wrong = mistakes(&TEXT.replace("\"25ms\"\ndeadline", "\"1us\"\ndeadline"));
        assert!(wrong.contains("too many blocks"), "{wrong}");
        let wrong = mistakes(&TEXT.replace("phase =", "reliability = 1.5\nphase ="));
        assert!(wrong.contains("reliability"), "{wrong}");
        let wrong = mistakes(&format!("{TEXT}\n[[workloads]]\nkind = \"constant\"\n"));
        assert!(wrong.contains("block-model"), "{wrong}");
    }
}
