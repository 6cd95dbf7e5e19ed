//! `[object-model]`: objects over the links without a protocol.

use marline_base::Duration;
use marline_link::{Capacity, Delay, LinkConfig};

use super::beside::{self, refuse_beside};
use super::links::Written;
use super::plan::LinkPlan;
use super::reader::Reader;
use crate::model::sos::{Experiment, Variant};

/// The keys of scenarios with sessions, which the model has none of, and of time, which it counts
/// in objects.
const NOT_HERE: [&str; 14] = [
    "sessions",
    "paths",
    "workloads",
    "cross",
    "changes",
    "handovers",
    "congestion",
    "settings",
    "model",
    "block-model",
    "page-model",
    "duration",
    "warmup",
    "turn",
];
/// Most packets of an object, and of all objects of a run on each path.
const MOST_PACKETS: u64 = 30_000;
const MOST_IN_ALL: u64 = 100_000_000;

/// Reads `[object-model]`; the caller finishes `top`.
pub(super) fn read(top: &Reader<'_>, reader: &Reader<'_>, links: &[Written]) -> Option<Experiment> {
    refuse_beside(top, &NOT_HERE, "object-model");
    reader.needed("packets", "100, the packets of an object");
    let packets = reader.whole("packets", 1..=MOST_PACKETS);
    reader.needed("objects", "10000, how many a run sends");
    let objects = reader.whole("objects", 1..=1_000_000);
    if let (Some(packets), Some(objects), Some(node)) = (packets, objects, reader.get("objects"))
        && packets * objects > MOST_IN_ALL
    {
        let mend = format!("write fewer: {MOST_IN_ALL} packets of all objects at most");
        reader.wrong("objects", node, "are too many of this size", mend);
    }
    let gamma = reader.number("gamma").unwrap_or(0.5);
    if let Some(node) = reader.get("gamma")
        && !(0.0..=1.0).contains(&gamma)
    {
        let mend = "write a number such as 0.5";
        reader.wrong("gamma", node, "is not a number from 0 to 1", mend);
    }
    let feedback = reader.time("feedback").unwrap_or(Duration::from_millis(20));
    reader.finish();
    served(top, links, "object-model", |link| &link.up);
    Some(Experiment {
        links: links.iter().map(|link| link.plan.up.clone()).collect(),
        packets: packets? as u32,
        objects: objects? as u32,
        gamma,
        feedback,
    })
}

/// Notes links whose packets do not take times one by one.
pub(super) fn served(
    top: &Reader<'_>,
    links: &[Written],
    model: &str,
    direction: fn(&LinkPlan) -> &LinkConfig,
) {
    let Some(table) = top.inner("links") else {
        return;
    };
    for link in links {
        let LinkConfig {
            capacity, delay, ..
        } = direction(&link.plan);
        let fits = matches!(delay, Delay::Constant(_))
            && matches!(capacity, Capacity::Service(_) | Capacity::Trace(_));
        if !fits {
            let key = table.key(&link.plan.name);
            let mend = "write service = \"10ms\", service-sd = \"50ms\", service-dist = \"gamma\", or trace = \"lte.down\"";
            let message = format!(
                "needs a service time or a trace, and a constant delay if any, for [{model}]"
            );
            table.wrong_at(&table.place, &key, message, mend);
        }
    }
}

/// What is wrong with a variant's name, and the hint.
pub(super) fn check(name: &str) -> Result<String, (String, String)> {
    beside::variant::<Variant>(name, &Variant::NAMES, "object-model")
}

#[cfg(test)]
mod tests {
    use crate::scenario::Document;

    const TEXT: &str = r#"
schedulers = ["bound", "sos-fec"]
links.a = { service = "10ms", service-sd = "50ms", service-dist = "gamma" }
links.b = { service = "12ms", service-sd = "1ms", service-dist = "gamma" }

[object-model]
packets = 10
objects = 200
"#;

    fn mistakes(text: &str) -> String {
        let document = Document::parse("objects.toml", text).unwrap();
        let found = document.scenarios(&|_| Err("no files".into()));
        found.map_or_else(|mistakes| mistakes.to_string(), |_| String::new())
    }

    #[test]
    fn runs_yield_what_is_announced() {
        let document = Document::parse("objects.toml", TEXT).unwrap();
        let (_, scenario) = document
            .scenarios(&|_| Err("no files".into()))
            .unwrap()
            .remove(0);
        for variant in &scenario.schedulers {
            crate::run::check(&scenario, variant).unwrap();
            let run = crate::run::run(&scenario, variant, 3);
            assert_eq!(crate::scenario::unknown_values(&scenario, &run), [""; 0]);
            assert_eq!(run.distributions["objects.delay"].count, 200);
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(mistakes(TEXT), "");
        for (text, with, says) in [
            ("\"sos-fec\"", "\"sos-fek\"", "`sos-fec`"),
            ("service = \"12ms\"", "delay = \"3ms\"", "links"),
            ("packets = 10", "", "packets"),
            ("packets = 10", "packets = 30001", "30000"),
            (
                "packets = 10\nobjects = 200",
                "packets = 1000\nobjects = 1000000",
                "fewer",
            ),
            ("packets = 10", "packets = 10\ngamma = 1.5", "gamma"),
            (
                "[object-model]",
                "duration = \"3s\"\n[object-model]",
                "duration",
            ),
            ("packets = 10", "packets = 10\npackages = 3", "packages"),
        ] {
            let wrong = mistakes(&TEXT.replace(text, with));
            assert!(wrong.contains(says), "{with}: {wrong}");
        }
    }
}
