//! The metrics, as a status in which every field has a value renders them.

use super::row;
use crate::control::Status;
use crate::metrics::{plain, render};
use std::io;

pub(super) fn page(status: &Status) -> io::Result<String> {
    let rendered = plain(&render(status).map_err(io::Error::other)?);
    let mut text = "\
# Metrics

What `--metrics ADDRESS` says to Prometheus, in base units. Labels are numbers and states, never \
names or addresses: which link is which, `marline status` says.

| metric | type | labels | |
| --- | --- | --- | --- |
"
    .to_owned();
    for line in rendered.lines() {
        let described = line.strip_prefix("# TYPE ");
        let Some((name, kind)) = described.and_then(|rest| rest.split_once(' ')) else {
            continue;
        };
        let help = format!("# HELP {name} ");
        let help = rendered.lines().find_map(|line| line.strip_prefix(&help));
        let (cell, labels) = (format!("`{name}`"), labels(&rendered, name).join(", "));
        row(&mut text, &[&cell, kind, &labels, help.unwrap_or_default()]);
    }
    Ok(text)
}

/// The labels of the first sample called `name`.
fn labels(rendered: &str, name: &str) -> Vec<String> {
    let sample = rendered
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let inner = sample.and_then(|rest| rest.split_once('}'));
    let inner = inner.map_or("", |(inner, _)| inner);
    let pairs = inner.split(',').filter_map(|pair| pair.split_once('='));
    pairs.map(|(label, _)| format!("`{label}`")).collect()
}
