//! `[[expect]]`: bounds on the results.

use super::cells::Axis;
use super::mistake::nearest;
use super::plan::{Expectation, Scenario};
use super::reader::Reader;
use super::tree::Value;
use super::values::value_names;

/// Reads the expectations of a scenario with these axes and schedulers.
pub(super) fn read(top: &Reader<'_>, axes: &[Axis], schedulers: &[String]) -> Vec<Expectation> {
    let list = top.tables("expect").unwrap_or_default();
    let read = list.iter().map(|one| expectation(one, axes, schedulers));
    read.flatten().collect()
}

fn expectation(reader: &Reader<'_>, axes: &[Axis], schedulers: &[String]) -> Option<Expectation> {
    reader.needed("figure", "\"Figure 3\"");
    let figure = reader.text("figure");
    let known: Vec<&str> = schedulers.iter().map(String::as_str).collect();
    let first = known.first().copied().unwrap_or("edpf");
    reader.needed("scheduler", &format!("\"{first}\""));
    let scheduler = compared(reader, "scheduler", &known);
    let relative_to = compared(reader, "relative-to", &known);
    let best_of = best_of(reader, axes);
    let cell = cell(reader, axes);
    let mean = reader.word("cells", &[("each", false), ("mean", true)]);
    reader.needed("measure", "\"live.in_order_delay.p99_ms\"");
    let measure = reader.text("measure");
    let published = reader.number("published");
    let (least, most) = (reader.number("least"), reader.number("most"));
    if let (Some(low), Some(high), Some(node)) = (least, most, reader.get("least"))
        && low > high
    {
        let mend = "nothing lies between; exchange them";
        reader.wrong(
            "least",
            node,
            format!("{low} is more than `most`, {high}"),
            mend,
        );
    }
    let note = reader.text("note");
    let missed = reader.text("missed");
    let unbounded = reader.word("bound", &[("none", true)]).unwrap_or(false);
    let bounded = least.is_some() || most.is_some();
    // Nobody forgets a bound without a word.
    if !unbounded && !bounded && published.is_none() {
        reader.missing(
            "most",
            "a bound, `most = 1.5` or `least = 0.95`, or what was `published`, or `bound = \"none\"` to show it only",
        );
    }
    if missed.is_some()
        && !bounded
        && let Some(node) = reader.get("missed")
    {
        let mend = "give it one, or write a `note`";
        reader.wrong("missed", node, "there is no bound to miss", mend);
    }
    if unbounded
        && bounded
        && let Some(node) = reader.get("bound")
    {
        let mend = "leave `bound` out, or `least` and `most`";
        reader.wrong("bound", node, "there is one", mend);
    }
    reader.finish();
    Some(Expectation {
        figure: figure?,
        scheduler: scheduler?,
        cell,
        mean: mean.unwrap_or(false),
        measure: measure?,
        published,
        relative_to,
        best_of,
        least,
        most,
        note,
        missed,
    })
}

/// Notes measures that runs of the scenario do not yield.
pub(super) fn measures(top: &Reader<'_>, scenario: &Scenario) {
    let names = value_names(scenario);
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    for one in top.tables("expect").unwrap_or_default() {
        if let Some(measure) = one.text("measure")
            && let Some(node) = one.get("measure")
            && !known.contains(&measure.as_str())
        {
            // Hundreds of names help nobody: those of the same thing do.
            let what = measure.split('.').next().unwrap_or_default();
            let near = known
                .iter()
                .filter(|name| name.starts_with(&format!("{what}.")));
            let near: Vec<&str> = near.copied().collect();
            let choice = if near.is_empty() { &known } else { &near };
            let mend = match nearest(&measure, choice, "measure") {
                mend if mend.len() < 200 => mend,
                _ => "`marline sim list` names the measures".into(),
            };
            one.wrong("measure", node, format!("runs yield no `{measure}`"), mend);
        }
    }
}

fn compared(reader: &Reader<'_>, key: &'static str, known: &[&str]) -> Option<String> {
    let name = reader.text(key)?;
    if known.contains(&name.as_str()) {
        return Some(name);
    }
    let mend = nearest(&name, known, "scheduler to compare");
    let message = format!("`{name}` is not among `schedulers`");
    reader.wrong(key, reader.get(key)?, message, mend);
    None
}

/// `best-of = { AXIS = ["VALUE", …] }`
fn best_of(reader: &Reader<'_>, axes: &[Axis]) -> Option<(String, Vec<String>)> {
    let table = reader.inner("best-of")?;
    let [entry] = &table.table.entries[..] else {
        let mend = "write one axis and some of its values, such as { use = [\"a\", \"b\"] }";
        reader.wrong("best-of", reader.get("best-of")?, "is not one axis", mend);
        return None;
    };
    let key = table.key(&entry.key);
    let Some(axis) = axes.iter().find(|axis| axis.key == entry.key) else {
        let keys: Vec<&str> = axes.iter().map(Axis::key).collect();
        let message = format!("`{}` is not varied", entry.key);
        reader.wrong_at(
            &entry.place,
            &key,
            message,
            nearest(&entry.key, &keys, "key under [vary]"),
        );
        return None;
    };
    let mut values = Vec::new();
    let items = match &entry.node.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![&entry.node],
    };
    for node in items {
        let value = node.scalar().unwrap_or_default();
        if axis.point(&value).is_none() {
            let all: Vec<&str> = axis.values().collect();
            let mend = format!("its values are {}", all.join(", "));
            reader.wrong_at(
                &node.place,
                &key,
                format!("\"{value}\" is none of its values"),
                mend,
            );
        }
        values.push(value);
    }
    Some((entry.key.clone(), values))
}

fn cell(reader: &Reader<'_>, axes: &[Axis]) -> Vec<(String, String)> {
    let Some(table) = reader.inner("cell") else {
        return Vec::new();
    };
    let keys: Vec<&str> = axes.iter().map(Axis::key).collect();
    let mut cell = Vec::new();
    for entry in &table.table.entries {
        let key = table.key(&entry.key);
        let Some(axis) = axes.iter().find(|axis| axis.key == entry.key) else {
            let mend = nearest(&entry.key, &keys, "key under [vary]");
            let message = format!("`{}` is not varied", entry.key);
            reader.wrong_at(&entry.place, &key, message, mend);
            continue;
        };
        let value = entry.node.scalar().unwrap_or_default();
        if axis.point(&value).is_none() {
            let values: Vec<&str> = axis.values().collect();
            let mend = format!("its values are {}", values.join(", "));
            let message = format!("\"{value}\" is none of its values");
            reader.wrong_at(&entry.node.place, &key, message, mend);
        }
        cell.push((entry.key.clone(), value));
    }
    cell
}
