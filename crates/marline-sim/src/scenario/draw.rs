//! `[draw]`: cells whose values nobody chose. An axis `draw` of `count` cells, each with its own
//! values for the keys under `[draw.keys]`, all of which follow from `draw.seed`.
//!
//! Each value follows from the seed, the cell's number and its key alone: more cells, or one key
//! more or less, leave the others as they were.

use std::fmt;

use marline_base::Rng;
use marline_base::text::units;

use super::cells::{self, Axis, Point};
use super::dotted;
use super::mistake::{Mistake, Place, Sink};
use super::reader::Reader;
use super::tree::{Node, Table, Value};
use crate::results::DRAW;

/// Most cells that one scenario may draw.
const MOST: u64 = 1_000;
const RANGE: &str = "write \"2mbit..30mbit\", \"25%..90% of links.a.delay\", or a list of such and of single values";

/// How a key's value is drawn.
#[derive(Clone, Debug, PartialEq)]
enum Law {
    /// It is always the same.
    Fixed(String),
    /// One of these, all equally likely.
    OneOf(Vec<Law>),
    /// Even between the ends, on a logarithmic scale if the lower one is above zero.
    Between { ends: [f64; 2], unit: String },
    /// A share, even between the ends, of what these keys have together.
    ShareOf { ends: [f64; 2], keys: Vec<String> },
}

/// Reads `[draw]`, if there is one: an axis of numbered cells.
pub(super) fn read(root: &Table, place: &Place, sink: &Sink) -> Option<Axis> {
    let top = Reader::new(sink, root, place, "");
    let table = top.inner(DRAW)?;
    table.needed("count", "30, how many cells are drawn");
    let count = table.whole("count", 1..=MOST);
    table.whole("seed", 0..=u64::MAX);
    table.needed("keys", "{ \"links.a.rate\" = \"2mbit..30mbit\" }");
    laws(&table, |key, place, (message, mend)| {
        table.wrong_at(place, &table.key(&format!("keys.{key}")), message, mend);
    });
    table.finish();
    let points = (1..=count?).map(|number| Point {
        name: number.to_string(),
        // What they are is known when the cell's other values are.
        sets: Vec::new(),
    });
    Some(Axis {
        key: DRAW.into(),
        place: table.place.clone(),
        points: points.collect(),
    })
}

/// The dotted keys that are drawn.
pub(super) fn keys(root: &Table) -> Vec<String> {
    let table = root.get(DRAW).and_then(Node::table);
    let keys = table.and_then(|table| table.get("keys")?.table());
    let mut found = Vec::new();
    if let Some(keys) = keys {
        cells::collect(keys, "", &mut found);
    }
    found.into_iter().map(|(key, _)| key).collect()
}

/// Notes keys that an axis sets and a law draws.
pub(super) fn no_two_laws(root: &Table, axes: &[Axis], sink: &Sink) {
    let drawn = keys(root);
    for axis in axes.iter().filter(|axis| !axis.points.is_empty()) {
        let sets = axis.points.iter().flat_map(|point| &point.sets);
        let twice = sets.map(|(key, _)| key).find(|key| drawn.contains(key));
        let is_word = axis.key == DRAW && axis.points.iter().any(|point| !point.sets.is_empty());
        if twice.is_none() && !is_word {
            continue;
        }
        let what = twice.map_or(DRAW, |key| key);
        sink.add(Mistake {
            place: axis.place.clone(),
            key: format!("vary.{}", axis.key),
            message: format!("`{what}` is drawn"),
            mend: "remove one of the two, or call the axis otherwise".into(),
        });
    }
}

/// Draws this key no more.
pub(super) fn forget(root: &mut Table, key: &str) {
    let table = root.get_mut(DRAW).map(|node| &mut node.value);
    if let Some(Value::Table(table)) = table
        && let Some(Value::Table(keys)) = table.get_mut("keys").map(|node| &mut node.value)
    {
        remove(keys, key);
    }
}

/// Removes a dotted key however it is written: without quotes it is a table in a table for TOML.
fn remove(table: &mut Table, key: &str) {
    table.entries.retain_mut(|entry| {
        let rest = key.strip_prefix(entry.key.as_str());
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('.'))
            && let Value::Table(inner) = &mut entry.node.value
        {
            remove(inner, rest);
        }
        entry.key != key
    });
}

/// A key that a cell draws.
pub(super) struct Drawn {
    pub(super) key: String,
    /// Where its law stands.
    place: Place,
    pub(super) pick: Pick,
}

/// What a cell draws for a key, before it is known what shares are of.
pub(super) enum Pick {
    Text(String),
    ShareOf { share: f64, keys: Vec<String> },
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::ShareOf { share, keys } => {
                let percent = three_digits(100.0 * share);
                write!(f, "{percent}% of {}", keys.join(" + "))
            }
        }
    }
}

impl Pick {
    /// The value as a scenario writes it, of which `root` has what it refers to.
    fn value(&self, root: &Table) -> Result<String, (String, String)> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::ShareOf { share, keys } => share_of(*share, keys, root),
        }
    }
}

/// What the cell of this number draws, in the order of the file.
pub(super) fn drawn(root: &Table, number: &str, sink: &Sink) -> Vec<Drawn> {
    let Some(table) = root.get(DRAW).and_then(Node::table) else {
        return Vec::new();
    };
    let seed = table.get("seed").and_then(Node::scalar);
    let seed = seed.and_then(|text| text.parse().ok()).unwrap_or(1);
    let cell = Rng::new(seed).stream("cells").stream(number);
    let place = Place::Flag(DRAW.into());
    let reader = Reader::new(sink, table, &place, DRAW);
    let laws = laws(&reader, |_, _, _| {}).into_iter();
    laws.map(|(key, place, law)| Drawn {
        pick: law.pick(&mut cell.stream(&key)),
        key,
        place,
    })
    .collect()
}

/// Sets in `root` what the cell of this number draws.
pub(super) fn set(root: &mut Table, number: &str, sink: &Sink) {
    for Drawn { key, place, pick } in drawn(root, number, sink) {
        let set = pick.value(root).and_then(|text| {
            let value = Value::Text(text);
            let place = place.clone();
            dotted::set(root, &key, Node { place, value })
        });
        if let Err((message, mend)) = set {
            let key = format!("{DRAW}.keys.{key}");
            sink.add(Mistake {
                place,
                key,
                message,
                mend,
            });
        }
    }
}

/// The keys under `keys` of the table with their laws, in the order of the file; what cannot be
/// read is reported to `wrong`.
fn laws(
    table: &Reader<'_>,
    wrong: impl Fn(&str, &Place, (String, String)),
) -> Vec<(String, Place, Law)> {
    let mut keys = Vec::new();
    if let Some(inner) = table.inner("keys") {
        cells::collect(inner.table, "", &mut keys);
    }
    let mut laws = Vec::new();
    for (key, node) in keys {
        match Law::read(&node) {
            Ok(law) => laws.push((key, node.place, law)),
            Err(why) => wrong(&key, &node.place, why),
        }
    }
    laws
}

impl Law {
    fn read(node: &Node) -> Result<Self, (String, String)> {
        if let Value::List(items) = &node.value {
            if items.is_empty() {
                return Err(("has no value".into(), RANGE.into()));
            }
            let laws: Result<_, _> = items.iter().map(Self::read).collect();
            return laws.map(Self::OneOf);
        }
        let text = node
            .scalar()
            .ok_or_else(|| (format!("is {}", node.kind()), RANGE.into()))?;
        let Some((low, rest)) = text.split_once("..") else {
            return Ok(Self::Fixed(text));
        };
        let (high, of) = match rest.split_once(" of ") {
            Some((high, keys)) => (high, Some(keys)),
            None => (rest, None),
        };
        let wrong = |what: &str| (format!("\"{text}\" {what}"), RANGE.to_owned());
        let [low, high] = [low, high].map(|end| amount(end.trim()));
        let (Some((low, unit)), Some((high, other))) = (low, high) else {
            return Err(wrong("is not a range of two numbers"));
        };
        if unit != other {
            return Err(wrong("has ends of two units"));
        }
        if low > high {
            return Err(wrong("ends before it begins"));
        }
        let ends = [low, high];
        let Some(keys) = of else {
            let unit = unit.to_owned();
            return Ok(Self::Between { ends, unit });
        };
        if unit != "%" {
            return Err(wrong("is not a share of other keys"));
        }
        let keys = keys.split('+').map(|key| key.trim().to_owned()).collect();
        let ends = ends.map(|percent| percent / 100.0);
        Ok(Self::ShareOf { ends, keys })
    }

    fn pick(&self, rng: &mut Rng) -> Pick {
        match self {
            Self::Fixed(text) => Pick::Text(text.clone()),
            Self::OneOf(laws) => {
                let index = rng.below(laws.len() as u64) as usize;
                laws[index].pick(rng)
            }
            Self::Between { ends, unit } => {
                let number = within(*ends, between(*ends, rng.uniform()));
                Pick::Text(format!("{number}{unit}"))
            }
            Self::ShareOf { ends, keys } => {
                let [low, high] = *ends;
                Pick::ShareOf {
                    share: low + (high - low) * rng.uniform(),
                    keys: keys.clone(),
                }
            }
        }
    }
}

/// The value at `place` (0 to 1) of a range.
fn between([low, high]: [f64; 2], place: f64) -> f64 {
    if low > 0.0 {
        low * libm::pow(high / low, place)
    } else {
        low + (high - low) * place
    }
}

fn share_of(share: f64, keys: &[String], root: &Table) -> Result<String, (String, String)> {
    let mend = "name keys that are written, or drawn before, and have a rate, a time or a size";
    let mut texts = Vec::new();
    for key in keys {
        let text = dotted::get(root, key).and_then(Node::scalar);
        texts.push(text.ok_or_else(|| (format!("`{key}` has no value"), mend.to_owned()))?);
    }
    let sum = |read: fn(&str) -> Option<f64>| {
        let all: Option<Vec<f64>> = texts.iter().map(|text| read(text)).collect();
        all.map(|all| share * all.iter().sum::<f64>())
    };
    let rate = sum(|text| Some(units::rate(text)?.as_bps() as f64 / 1e3));
    let time = sum(|text| Some(units::time(text)?.as_nanos() as f64 / 1e6));
    let size = sum(|text| Some(units::size(text)? as f64));
    let all = [(rate, "kbit"), (time, "ms"), (size, "B")];
    let found = all.into_iter().find_map(|(sum, unit)| Some((sum?, unit)));
    let (sum, unit) = found.ok_or_else(|| {
        let message = format!("{} cannot be added", texts.join(" and "));
        (message, mend.to_owned())
    })?;
    Ok(format!("{}{unit}", three_digits(sum)))
}

/// Splits a number from its unit.
fn amount(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    Some((number.parse().ok()?, unit))
}

/// As a person would write it who chose it.
fn three_digits(value: f64) -> String {
    if value <= 0.0 {
        return "0".into();
    }
    show(round(value, decimals(value)), decimals(value))
}

/// The same for a value of a range: with more digits where three would not distinguish ten places
/// of it, and never beyond its ends.
fn within([low, high]: [f64; 2], value: f64) -> String {
    if value <= 0.0 || low == high {
        return low.to_string();
    }
    let decimals = decimals(value).max(decimals(high - low) - 1);
    match round(value, decimals) {
        rounded if rounded < low => low.to_string(),
        rounded if rounded > high => high.to_string(),
        rounded => show(rounded, decimals),
    }
}

/// Digits after the point of three that count; below zero if not even the last before it does.
fn decimals(value: f64) -> i32 {
    2 - libm::floor(libm::log10(value)) as i32
}

fn round(value: f64, decimals: i32) -> f64 {
    let scale = libm::pow(10.0, f64::from(decimals));
    libm::round(value * scale) / scale
}

fn show(rounded: f64, decimals: i32) -> String {
    let places = decimals.max(0) as usize;
    format!("{rounded:.places$}")
}
