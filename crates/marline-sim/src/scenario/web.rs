//! The objects of a web page: written in the scenario, or recorded by a browser.

use marline_base::Duration;

use super::links::ReadFile;
use super::mistake::nearest;
use super::plan::{Load, WebObject};
use super::reader::Reader;
use super::recorded::recorded;
use crate::traces::Pages;

/// Objects of one page.
const MOST_OBJECTS: usize = 10_000;
/// Largest object (bytes).
const MOST: u64 = 1 << 30;

pub(super) fn read(reader: &Reader<'_>, files: &ReadFile<'_>) -> Option<Load> {
    let pause = reader.span("pause").unwrap_or(Duration::from_secs(1));
    let page = match (reader.get("pages"), reader.get("objects")) {
        (Some(_), None) => chosen(reader, files),
        (None, Some(_)) => written(reader),
        (Some(_), Some(node)) => {
            reader.wrong(
                "objects",
                node,
                "the page comes from a file",
                "remove one of the two",
            );
            None
        }
        (None, None) => {
            reader.missing(
                "objects",
                "[[workloads.objects]], or `pages = \"pages.json\"`",
            );
            None
        }
    };
    Some(Load::Web {
        page: page?.into(),
        pause,
        reopen: reader.flag("reopen").unwrap_or(false),
    })
}

fn written(reader: &Reader<'_>) -> Option<Vec<WebObject>> {
    let mut page: Vec<WebObject> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for one in reader.tables("objects")? {
        let name = one.text("name").unwrap_or_default();
        if let (true, Some(node)) = (names.contains(&name), one.get("name")) {
            let message = format!("two objects are called `{name}`");
            one.wrong(
                "name",
                node,
                message,
                "give each a name of its own, or none",
            );
        }
        one.needed("size", "\"30kB\"");
        let size = one.bytes("size", 1..=MOST);
        let after = one.text("after");
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let parent = match &after {
            None => (!page.is_empty()).then_some(0),
            Some(after) => known.iter().position(|known| known == after),
        };
        if let (Some(after), None, Some(node)) = (&after, parent, one.get("after")) {
            let mend = nearest(after, &known, "object before it");
            one.wrong(
                "after",
                node,
                format!("no object before it is called `{after}`"),
                mend,
            );
        }
        let object = WebObject {
            size: size.unwrap_or(1),
            after: parent,
            think: one.time("think").unwrap_or(Duration::ZERO),
            connection: one.whole("connection", 0..=999).unwrap_or(0) as u32,
            priority: one.whole("priority", 0..=7).unwrap_or(3) as u8,
            blocking: one.flag("blocking").unwrap_or(page.is_empty()),
        };
        for _ in 0..one.whole("count", 1..=1_000).unwrap_or(1) {
            page.push(object.clone());
            names.push(name.clone());
        }
        one.finish();
    }
    if page.is_empty() || page.len() > MOST_OBJECTS {
        let mend = format!("write 1 to {MOST_OBJECTS}");
        let node = reader.get("objects")?;
        reader.wrong("objects", node, format!("{} objects", page.len()), mend);
        return None;
    }
    Some(page)
}

fn chosen(reader: &Reader<'_>, files: &ReadFile<'_>) -> Option<Vec<WebObject>> {
    reader.needed("page", "\"news\", the name of one of its pages");
    let name = reader.text("page");
    let pages = recorded(reader, "pages", files, Pages::parse)?;
    let name = name?;
    let Some(page) = pages.get(&name) else {
        let known: Vec<&str> = pages
            .pages()
            .iter()
            .map(|page| page.name.as_str())
            .collect();
        let mend = nearest(&name, &known, "page");
        reader.wrong(
            "page",
            reader.get("page")?,
            format!("there is no page `{name}`"),
            mend,
        );
        return None;
    };
    let objects = page.objects.iter().map(|object| WebObject {
        size: object.size.max(1),
        // What nothing in the recording explains, the first object asked for.
        after: object.initiator.or((object.id > 0).then_some(0)),
        think: object.think,
        connection: object.connection,
        priority: object.priority,
        blocking: object.render_blocking,
    });
    Some(objects.collect())
}
