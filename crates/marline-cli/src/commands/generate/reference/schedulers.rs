//! The schedulers with their options, and the congestion controllers.

use super::row;
use marline_proto::congestion::registry::CONTROLLERS;
use marline_proto::sched::registry;
use std::fmt::Write as _;

pub(super) fn page() -> String {
    let mut text = "\
# Schedulers and controllers

A scheduler is written `NAME` or `NAME:KEY=VALUE:KEY=VALUE`, wherever one is named.

"
    .to_owned();
    for entry in registry::all() {
        let _ = writeln!(text, "* [`{0}`](#{0}) {1}", entry.name, entry.help);
    }
    for entry in registry::all() {
        let kinds: Vec<&str> = entry.kinds.iter().map(|kind| kind.name()).collect();
        let _ = write!(
            text,
            "\n## {}\n\n{}. {}. For flows of: {}.\n",
            entry.name,
            entry.help,
            entry.publication,
            kinds.join(", ")
        );
        if entry.options.is_empty() {
            continue;
        }
        text.push_str("\n| option | default | takes | |\n| --- | --- | --- | --- |\n");
        for option in entry.options {
            let (key, default) = (format!("`{}`", option.key), option.default.to_string());
            row(
                &mut text,
                &[&key, &default, &option.accepts.to_string(), option.help],
            );
        }
    }
    text.push_str("\n## Congestion controllers\n\n| name | | from |\n| --- | --- | --- |\n");
    for entry in CONTROLLERS {
        let name = format!("`{}`", entry.name);
        row(&mut text, &[&name, entry.help, entry.publication]);
    }
    text
}
