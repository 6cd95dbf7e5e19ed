//! `[[changes]]`: what happens to links on the way.

use marline_base::Instant;

use super::around::Around;
use super::links::Keys;
use super::plan::{Change, Setting};
use super::reader::Reader;
use super::sessions::link;

const DARK: &[(&str, [bool; 2])] = &[
    ("yes", [true, true]),
    ("no", [false, false]),
    ("up", [true, false]),
    ("down", [false, true]),
];

/// Reads the changes, ascending by time; at one time, in the order of the file.
pub(super) fn read(top: &Reader<'_>, around: &Around<'_>) -> Vec<Change> {
    let mut timed: Vec<(Instant, usize, Reader<'_>)> = Vec::new();
    for one in top.tables("changes").unwrap_or_default() {
        one.needed("at", "\"10s\"");
        let (at, link) = (one.moment("at"), link(&one, around));
        if let Some(node) = one.get("at")
            && at.is_some_and(|at| around.never(at))
        {
            one.wrong(
                "at",
                node,
                "the run is over by then",
                "give a time before `duration`",
            );
        }
        timed.extend(at.zip(link).map(|(at, link)| (at, link, one)));
    }
    timed.sort_by_key(|(at, _, _)| *at);
    // What a link's keys have become, so that a later change builds on the ones before it.
    let mut keys: Vec<Keys> = around.links.iter().map(|link| link.keys.clone()).collect();
    let mut changes = Vec::new();
    for (at, link, one) in timed {
        let dark = one.word("dark", DARK);
        let set = one.inner("set");
        match (one.get("dark"), one.get("set")) {
            (None, None) => {
                one.missing("set", "`set = { delay = \"90ms\" }` or `dark = true`");
            }
            (Some(_), Some(node)) => {
                let mend = "write two [[changes]] with the same `at`";
                one.wrong("set", node, "a change is either `dark` or `set`", mend);
            }
            _ => {}
        }
        one.finish();
        let setting = match (dark, set) {
            (Some([up, down]), _) => Some(Setting::Dark { up, down }),
            (None, Some(set)) => {
                keys[link] = keys[link].overlaid(&Keys::read(&set, &[]));
                keys[link]
                    .directions(&set, around.files)
                    .map(|[up, down]| Setting::Link {
                        up: Box::new(up),
                        down: Box::new(down),
                    })
            }
            (None, None) => None,
        };
        changes.extend(setting.map(|setting| Change { at, link, setting }));
    }
    changes
}
