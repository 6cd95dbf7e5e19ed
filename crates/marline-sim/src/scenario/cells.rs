//! `[vary]`: axes whose every combination is a cell.

use super::mistake::{Mistake, Place, Sink};
use super::tree::{Node, Table, Value};

/// Cells of one scenario.
const MOST_CELLS: usize = 10_000;

/// Something that is varied: a dotted key, or a word for several keys at once.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) points: Vec<Point>,
}

/// One value of an axis.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// As it is written in cells.
    pub(super) name: String,
    /// What it sets.
    pub(super) sets: Vec<(String, Node)>,
}

/// The axes' values, as written: one combination.
pub type Cell = Vec<(String, String)>;

impl Axis {
    /// The dotted key, or the word.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The values, as written.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.points.iter().map(|point| point.name.as_str())
    }

    pub(super) fn point(&self, name: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.name == name)
    }
}

/// Reads `[vary]`, if there is one.
pub(super) fn read(root: &Table, sink: &Sink) -> Vec<Axis> {
    let mut axes = Vec::new();
    match root.get("vary").map(|node| (node, &node.value)) {
        None => {}
        Some((_, Value::Table(table))) => flatten(table, "", sink, &mut axes),
        Some((node, _)) => sink.add(Mistake {
            place: node.place.clone(),
            key: "vary".into(),
            message: format!("is {}, not a table", node.kind()),
            mend: "write under [vary]: \"links.a.delay\" = [\"10ms\", \"20ms\"]".into(),
        }),
    }
    axes
}

/// `links.b.delay = […]` under `[vary]` is a table in a table for TOML; here it is one key.
fn flatten(table: &Table, prefix: &str, sink: &Sink, axes: &mut Vec<Axis>) {
    for entry in &table.entries {
        let key = match prefix {
            "" => entry.key.clone(),
            _ => format!("{prefix}.{}", entry.key),
        };
        match &entry.node.value {
            Value::Table(inner) => flatten(inner, &key, sink, axes),
            Value::List(items) => axes.extend(axis(&key, &entry.place, items, sink)),
            _ => sink.add(Mistake {
                place: entry.node.place.clone(),
                key: format!("vary.{key}"),
                message: format!("is {}, not a list", entry.node.kind()),
                mend: "write its values in [ ]".into(),
            }),
        }
    }
}

/// An axis of these values.
pub(super) fn axis(key: &str, place: &Place, values: &[Node], sink: &Sink) -> Option<Axis> {
    let wrong = |place: &Place, message: String, mend: &str| {
        sink.add(Mistake {
            place: place.clone(),
            key: format!("vary.{key}"),
            message,
            mend: mend.into(),
        });
    };
    if values.is_empty() {
        wrong(
            place,
            "has no value".into(),
            "write at least one value, or remove the key",
        );
        return None;
    }
    let mut points: Vec<Point> = Vec::new();
    for value in values {
        let point = point(key, value);
        match point {
            None => wrong(
                &value.place,
                format!("{} cannot be a value here", value.kind()),
                "write a single value, or { name = \"…\", set = { \"links.a.delay\" = \"9ms\" } }",
            ),
            Some(point) if points.iter().any(|other| other.name == point.name) => {
                wrong(
                    &value.place,
                    format!("`{}` comes twice", point.name),
                    "remove one",
                );
            }
            Some(point) => points.push(point),
        }
    }
    Some(Axis {
        key: key.into(),
        place: place.clone(),
        points,
    })
}

fn point(key: &str, value: &Node) -> Option<Point> {
    if let Some(name) = value.scalar() {
        let sets = vec![(key.to_owned(), value.clone())];
        return Some(Point { name, sets });
    }
    let table = value.table()?;
    if table
        .keys()
        .iter()
        .any(|key| !["name", "set"].contains(key))
    {
        return None;
    }
    let mut sets = Vec::new();
    collect(table.get("set")?.table()?, "", &mut sets);
    Some(Point {
        name: table.get("name")?.scalar()?,
        sets,
    })
}

/// The keys of a table with dots between them: `links.b.delay = …` is a table in a table for TOML;
/// here it is one key.
pub(super) fn collect(table: &Table, prefix: &str, sets: &mut Vec<(String, Node)>) {
    for entry in &table.entries {
        let key = match prefix {
            "" => entry.key.clone(),
            _ => format!("{prefix}.{}", entry.key),
        };
        match &entry.node.value {
            Value::Table(inner) => collect(inner, &key, sets),
            _ => sets.push((key, entry.node.clone())),
        }
    }
}

/// Every combination, the last axis turning fastest; `None` if there are too many.
pub(super) fn cells(axes: &[Axis]) -> Option<Vec<Cell>> {
    let lengths = axes.iter().map(|axis| axis.points.len());
    let count = lengths.fold(1usize, |product, length| product.saturating_mul(length));
    if count > MOST_CELLS {
        return None;
    }
    let mut cells = vec![Cell::new()];
    for axis in axes {
        let longer = cells.iter().flat_map(|cell| {
            axis.values().map(|value| {
                let mut cell = cell.clone();
                cell.push((axis.key.clone(), value.to_owned()));
                cell
            })
        });
        cells = longer.collect();
    }
    Some(cells)
}

/// What is wrong with more cells than [`cells`] yields.
pub(super) fn too_many(axes: &[Axis]) -> Option<Mistake> {
    let axis = axes.last()?;
    Some(Mistake {
        place: axis.place.clone(),
        key: format!("vary.{}", axis.key),
        message: "the axes have too many combinations".into(),
        mend: format!("at most {MOST_CELLS} cells make one scenario; remove values or an axis"),
    })
}
