//! `[page-model]`: web pages over the links without a protocol.

use marline_base::Duration;

use super::beside::{self, refuse_beside};
use super::links::{ReadFile, Written};
use super::mistake::nearest;
use super::object_model::served;
use super::reader::Reader;
use super::recorded::recorded;
use crate::model::sos::page::{Experiment, Variant};
use crate::traces::{Page, Pages};

/// The keys of scenarios with sessions, which the model has none of, and of time, which it counts
/// in loads.
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
    "object-model",
    "duration",
    "warmup",
    "turn",
];
/// Stands for every page of the file.
const ALL: &str = "all";
/// Largest page (bytes): a mistake beyond it.
const MOST: u64 = 1 << 30;

/// Reads `[page-model]`; the caller finishes `top`.
pub(super) fn read(
    top: &Reader<'_>,
    reader: &Reader<'_>,
    links: &[Written],
    files: &ReadFile<'_>,
) -> Option<Experiment> {
    refuse_beside(top, &NOT_HERE, "page-model");
    reader.needed("pages", "\"pages.json\", a file of recorded pages");
    let pages = chosen(reader, files);
    let loads = reader.whole("loads", 1..=10_000).unwrap_or(10) as u32;
    let packet = reader.whole("packet", 64..=65_535).unwrap_or(1_500) as u32;
    let request = reader.time("request").unwrap_or(Duration::from_millis(20));
    reader.finish();
    served(top, links, "page-model", |link| &link.down);
    Some(Experiment {
        links: links.iter().map(|link| link.plan.down.clone()).collect(),
        pages: pages?,
        loads,
        packet,
        request,
    })
}

/// The page that is named, or all.
fn chosen(reader: &Reader<'_>, files: &ReadFile<'_>) -> Option<Vec<Page>> {
    let name = reader.text("page").unwrap_or_else(|| ALL.to_owned());
    reader.get("pages")?;
    let pages = recorded(reader, "pages", files, Pages::parse)?;
    if let Some(page) = pages.pages().iter().find(|page| page.bytes() > MOST) {
        let message = format!("page `{}` has more than {MOST} bytes", page.name);
        let mend = "leave it out of the file";
        reader.wrong("pages", reader.get("pages")?, message, mend);
        return None;
    }
    if name == ALL {
        return Some(pages.pages().to_vec());
    }
    let Some(page) = pages.get(&name) else {
        let known = pages.pages().iter().map(|page| page.name.as_str());
        let known: Vec<&str> = known.chain([ALL]).collect();
        let mend = nearest(&name, &known, "page");
        let message = format!("there is no page `{name}`");
        reader.wrong("page", reader.get("page")?, message, mend);
        return None;
    };
    Some(vec![page.clone()])
}

/// What is wrong with a variant's name, and the hint.
pub(super) fn check(name: &str) -> Result<String, (String, String)> {
    beside::variant::<Variant>(name, &Variant::NAMES, "page-model")
}

#[cfg(test)]
mod tests {
    use crate::scenario::Document;

    const PAGES: &str = r#"{"fields":["id","initiator","priority","size","conn","host","start_ms","think_ms","render_blocking"],
"pages":[{"page":"news","objects":[[0,-1,0,5000,0,0,0,0,1],[1,0,1,9000,1,0,0,0,1],[2,0,4,60000,1,0,0,0,0]]},
{"page":"shop","objects":[[0,-1,0,5000,0,0,0,0,1]]}]}"#;

    const TEXT: &str = r#"
schedulers = ["edpf", "sos-priority"]
links.a = { service = "10ms", service-sd = "50ms", service-dist = "gamma" }
links.b = { service = "12ms", service-sd = "1ms", service-dist = "gamma" }

[page-model]
pages = "pages.json"
page = "news"
loads = 5
"#;

    fn files(name: &str) -> Result<String, String> {
        match name {
            "pages.json" => Ok(PAGES.to_owned()),
            _ => Err("no such file".to_owned()),
        }
    }

    fn mistakes(text: &str) -> String {
        let document = Document::parse("pages.toml", text).unwrap();
        let found = document.scenarios(&files);
        found.map_or_else(|mistakes| mistakes.to_string(), |_| String::new())
    }

    #[test]
    fn runs_yield_what_is_announced() {
        for (page, loads) in [("news", 5), ("all", 10)] {
            let text = TEXT.replace("\"news\"", &format!("\"{page}\""));
            let document = Document::parse("pages.toml", &text).unwrap();
            let (_, scenario) = document.scenarios(&files).unwrap().remove(0);
            for variant in &scenario.schedulers {
                crate::run::check(&scenario, variant).unwrap();
                let run = crate::run::run(&scenario, variant, 3);
                assert_eq!(crate::scenario::unknown_values(&scenario, &run), [""; 0]);
                assert_eq!(run.distributions["page.dom"].count, loads);
                assert!(run.values["page.dom.mean_ms"] <= run.values["page.whole.mean_ms"]);
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(mistakes(TEXT), "");
        for (text, with, says) in [
            ("\"edpf\"", "\"edpf-priorty\"", "`edpf-priority`"),
            ("\"news\"", "\"nws\"", "`news`"),
            ("pages.json", "other.json", "no such file"),
            ("pages = \"pages.json\"", "", "pages"),
            ("service = \"12ms\"", "delay = \"3ms\"", "links"),
            ("loads = 5", "loads = 0", "loads"),
            ("loads = 5", "load = 5", "loads"),
            (
                "[page-model]",
                "duration = \"3s\"\n[page-model]",
                "duration",
            ),
        ] {
            let wrong = mistakes(&TEXT.replace(text, with));
            assert!(wrong.contains(says), "{with}: {wrong}");
        }
    }
}
