//! What the items of a list are called, in dotted keys and in messages.

use super::tree::Table;

/// Keys that say what an item of this list is called, the first that it has; without any, items
/// are called by their number from 1.
pub(super) fn names_of(list: &str) -> &'static [&'static str] {
    match list {
        "paths" => &["link"],
        "sessions" | "workloads" | "cross" => &["name", "kind"],
        _ => &[],
    }
}

/// The first of the keys `names` that the table has a text for.
pub(super) fn called(table: &Table, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| table.get(name)?.scalar())
}
