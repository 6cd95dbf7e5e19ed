//! `[links.NAME]`: the keys of `marline link`, for both directions or one.

use marline_base::Rate;
use marline_link::{Capacity, ConfigError, Link, LinkConfig};
use marline_proto::path::MIN_DATAGRAM;

use super::mistake::{Place, nearest};
use super::plan::LinkPlan;
use super::reader::Reader;
use super::tree::{Node, Table, Value};

/// Bytes that Marline's carrier puts around each datagram of a session: IPv4 (20) and UDP (8)
/// headers; QUIC's short header with a connection ID of 8 bytes and a packet number of 2 (11); the
/// type and the length of a DATAGRAM frame (3; quinn always writes a length); the seal (16; RFC
/// 9001 section 5.3).
pub const OVERHEAD: u32 = 20 + 8 + 11 + 3 + 16;

/// Largest datagram that Marline's carrier takes in packets of 1400 bytes, its default (bytes):
/// less by QUIC's header, the seal and the longest head of a DATAGRAM frame.
pub const DATAGRAM: u32 = 1_362;

/// Answers the text of a file that a scenario names, or says why it cannot be read.
pub type ReadFile<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// The hint where a file that a scenario names cannot be read.
pub(super) const A_FILE: &str = "name a file relative to the scenario's folder";

/// One key of a link as it was written.
#[derive(Clone, Debug)]
struct Pair {
    key: String,
    value: String,
    place: Place,
    /// The dotted key, for messages.
    path: String,
}

/// The keys of a link: for both directions, and for each alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    both: Vec<Pair>,
    up: Vec<Pair>,
    down: Vec<Pair>,
}

/// A link with its keys, which changes build on.
pub(super) struct Written {
    pub(super) plan: LinkPlan,
    pub(super) keys: Keys,
}

/// Reads `[links]`.
pub(super) fn read(top: &Reader<'_>, files: &ReadFile<'_>) -> Vec<Written> {
    let Some(links) = top.inner("links") else {
        if top.get("links").is_none() {
            top.missing("links", "at least one table such as [links.a]");
        }
        return Vec::new();
    };
    if links.table.entries.is_empty() {
        links.missing("a", "at least one table such as [links.a]");
    }
    let mut written = Vec::new();
    for entry in &links.table.entries {
        let path = links.key(&entry.key);
        if !is_name(&entry.key) {
            let mend = "use small letters, digits and hyphens";
            links.wrong_at(&entry.place, &path, "not a name for a link", mend);
        }
        let Some(table) = entry.node.table() else {
            let message = format!("is {}, not a table", entry.node.kind());
            let mend = format!("write its keys under [{path}]");
            links.wrong_at(&entry.node.place, &path, message, mend);
            continue;
        };
        let reader = Reader::new(links.sink, table, &entry.place, &path);
        let overhead = reader.whole("overhead", 0..=1_000);
        let datagram = reader.whole("datagram", MIN_DATAGRAM as u64..=9_000);
        let keys = Keys::read(&reader, &["overhead", "datagram"]);
        // What is wrong with a link is noted; that it is there is not to be doubted elsewhere.
        let any = || LinkConfig {
            capacity: Capacity::Constant(Rate::from_mbps(1)),
            ..LinkConfig::default()
        };
        let [up, down] = keys
            .directions(&reader, files)
            .unwrap_or_else(|| [any(), any()]);
        let plan = LinkPlan {
            name: entry.key.clone(),
            up,
            down,
            overhead: overhead.map_or(OVERHEAD, |bytes| bytes as u32),
            datagram: datagram.map_or(DATAGRAM, |bytes| bytes as u32),
            handshake: None,
        };
        written.push(Written { plan, keys });
    }
    written
}

/// A name in dotted keys, measures and file names.
pub(super) fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=40).contains(&name.len()) && name.chars().all(letter)
}

impl Keys {
    /// Reads the table of a link; `others` are keys that the caller reads itself.
    pub(super) fn read(reader: &Reader<'_>, others: &[&str]) -> Self {
        let mut keys = Self::default();
        for entry in &reader.table.entries {
            let path = reader.key(&entry.key);
            let own = match entry.key.as_str() {
                "up" => &mut keys.up,
                "down" => &mut keys.down,
                other if others.contains(&other) => continue,
                _ => {
                    let extra: Vec<&str> = others.iter().copied().chain(["up", "down"]).collect();
                    let place = &entry.place;
                    pairs(
                        reader,
                        &path,
                        (&entry.key, place, &entry.node),
                        &extra,
                        &mut keys.both,
                    );
                    continue;
                }
            };
            let Value::Table(table) = &entry.node.value else {
                let message = format!("is {}, not a table", entry.node.kind());
                let mend = format!("write the keys of this direction under [{path}]");
                reader.wrong_at(&entry.node.place, &path, message, mend);
                continue;
            };
            direction(reader, &path, table, own);
        }
        keys
    }

    /// These keys with `newer` ones over them. A shared key that is set again holds for both
    /// directions, whatever each had of its own.
    pub(super) fn overlaid(&self, newer: &Self) -> Self {
        let over = |old: &[Pair], newest: &[Pair]| {
            let mut pairs = left(old, newest);
            pairs.extend_from_slice(newest);
            pairs
        };
        Self {
            both: over(&self.both, &newer.both),
            up: over(&left(&self.up, &newer.both), &newer.up),
            down: over(&left(&self.down, &newer.both), &newer.down),
        }
    }

    /// Both directions, checked; notes what is wrong.
    pub(super) fn directions(
        &self,
        reader: &Reader<'_>,
        files: &ReadFile<'_>,
    ) -> Option<[LinkConfig; 2]> {
        let [up, down] = [&self.up, &self.down].map(|own| {
            let texts = |pairs: &'_ [Pair]| -> Vec<(String, String)> {
                pairs
                    .iter()
                    .map(|p| (p.key.clone(), p.value.clone()))
                    .collect()
            };
            let (own_texts, both) = (texts(own), texts(&self.both));
            let pairs = LinkConfig::layered(&views(&own_texts), &views(&both));
            let read = |name: &str| files(name).map_err(|why| format!("{why}; {A_FILE}"));
            let checked = LinkConfig::from_pairs(pairs, read).and_then(|config| {
                Link::new(config.clone(), 0)?;
                Ok(config)
            });
            checked
                .map_err(|error| self.refused(reader, own, &error))
                .ok()
        });
        Some([up?, down?])
    }

    fn refused(&self, reader: &Reader<'_>, own: &[Pair], error: &ConfigError) {
        let mut pairs = own
            .iter()
            .chain(&self.both)
            .filter(|p| p.key == error.key());
        let exact = pairs.clone().find(|pair| pair.value == error.value());
        let (place, path) = match exact.or_else(|| pairs.next()) {
            Some(pair) => (pair.place.clone(), pair.path.clone()),
            None => (reader.place.clone(), reader.key(error.key())),
        };
        let message = match error.value() {
            "" => "is wrong".to_owned(),
            value => format!("\"{value}\" is wrong"),
        };
        reader.wrong_at(&place, &path, message, error.accepted());
    }
}

fn views(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect()
}

fn direction(reader: &Reader<'_>, path: &str, table: &Table, own: &mut Vec<Pair>) {
    for entry in &table.entries {
        let path = format!("{path}.{}", entry.key);
        pairs(
            reader,
            &path,
            (&entry.key, &entry.place, &entry.node),
            &[],
            own,
        );
    }
}

/// Adds a key with its value, or with each of its values if it is a list (`outage`).
fn pairs(
    reader: &Reader<'_>,
    path: &str,
    (key, place, node): (&str, &Place, &Node),
    others: &[&str],
    into: &mut Vec<Pair>,
) {
    if !LinkConfig::KEYS.iter().any(|known| known.name == key) {
        let mut known: Vec<&str> = LinkConfig::KEYS.iter().map(|known| known.name).collect();
        known.extend(others);
        let mend = nearest(key, &known, "key");
        reader.wrong_at(place, path, "no such key of a link", mend);
        return;
    }
    let values = match &node.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    for node in values {
        let Some(value) = node.scalar() else {
            let mend = "write a text as `marline link` takes it, such as \"20mbit\"";
            reader.wrong_at(&node.place, path, format!("is {}", node.kind()), mend);
            continue;
        };
        into.push(Pair {
            key: key.into(),
            value,
            place: node.place.clone(),
            path: path.into(),
        });
    }
}

/// What stays of `old` under `newer`: keys that it does not give, and no capacity if it gives one.
fn left(old: &[Pair], newer: &[Pair]) -> Vec<Pair> {
    let of_capacity = |key: &str| LinkConfig::CAPACITY_KEYS.contains(&key);
    let replaced = |key: &str| {
        newer
            .iter()
            .any(|pair| pair.key == key || of_capacity(&pair.key) && of_capacity(key))
    };
    old.iter()
        .filter(|pair| !replaced(&pair.key))
        .cloned()
        .collect()
}
