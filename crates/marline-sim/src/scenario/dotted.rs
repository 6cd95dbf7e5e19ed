//! Dotted keys, as `--set`, `--vary` and `[vary]` write them: `links.b.delay`,
//! `workloads.live.rate`, `changes.1.at`.

use super::called::{called, names_of};
use super::mistake::nearest;
use super::tree::{Node, Table, Value};

/// Tables that a dotted key may bring into being; any other is a slip of the pen.
const MAY_BE_NEW: &[&str] = &["up", "down", "settings", "set", "block"];

/// What is written at the dotted key.
pub(super) fn get<'a>(root: &'a Table, key: &str) -> Option<&'a Node> {
    let mut parts = key.split('.');
    let mut list = parts.next()?;
    let mut node = root.get(list)?;
    for part in parts {
        node = match &node.value {
            Value::Table(table) => table.get(part)?,
            Value::List(items) => items.get(position(items, list, part)?)?,
            _ => return None,
        };
        list = part;
    }
    Some(node)
}

/// Writes `node` at the dotted key. Whether the last part is a key that can be there is seen when
/// the scenario is checked.
///
/// # Errors
///
/// The message and the hint when a part on the way is not there.
pub(super) fn set(root: &mut Table, key: &str, node: Node) -> Result<(), (String, String)> {
    let parts: Vec<&str> = key.split('.').collect();
    let Some((last, way)) = parts.split_last().filter(|_| !parts.contains(&"")) else {
        let mend = "write parts with one dot between them, such as links.a.rate";
        return Err((format!("`{key}` is not a dotted key"), mend.into()));
    };
    let mut table = root;
    let mut ways = way.iter().copied();
    while let Some(part) = ways.next() {
        if table.get(part).is_none() && MAY_BE_NEW.contains(&part) {
            let value = Value::Table(Table::default());
            let place = node.place.clone();
            table.set(part, Node { place, value });
        }
        let known: Vec<String> = table.keys().iter().map(|&key| key.into()).collect();
        let Some(found) = table.get_mut(part) else {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            return Err(missing(part, &known));
        };
        table = match &mut found.value {
            Value::Table(inner) => inner,
            Value::List(items) => {
                let Some(name) = ways.next() else {
                    let mend = format!("write {key}.NAME.KEY");
                    return Err((format!("`{part}` is a list"), mend));
                };
                item(items, part, name)?
            }
            _ => {
                let mend = format!("`{part}` is a single value; write `{part}` alone");
                return Err((format!("`{key}` leads nowhere"), mend));
            }
        };
    }
    if table.get(last).is_some_and(is_list_of_tables) {
        let mend = format!("name one of its items: {key}.NAME.KEY");
        return Err((format!("`{key}` is a list of tables"), mend));
    }
    table.set(last, node);
    Ok(())
}

fn is_list_of_tables(node: &Node) -> bool {
    matches!(&node.value, Value::List(items) if items.iter().any(|item| item.table().is_some()))
}

fn item<'a>(
    items: &'a mut [Node],
    list: &str,
    name: &str,
) -> Result<&'a mut Table, (String, String)> {
    let known = names(items, list);
    let index = position(items, list, name);
    let found = index.and_then(|index| items.get_mut(index));
    match found.map(|node| &mut node.value) {
        Some(Value::Table(table)) => Ok(table),
        _ => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            Err(missing(name, &known))
        }
    }
}

/// What the items of a list are called.
fn names(items: &[Node], list: &str) -> Vec<String> {
    (1..)
        .zip(items)
        .map(|(number, item): (usize, _)| {
            let name = item.table().and_then(|table| called(table, names_of(list)));
            name.unwrap_or_else(|| number.to_string())
        })
        .collect()
}

/// The index of the item that is called so, or has that number.
fn position(items: &[Node], list: &str, name: &str) -> Option<usize> {
    let by_number = || name.parse::<usize>().ok()?.checked_sub(1);
    let by_name = names(items, list).iter().position(|known| known == name);
    by_name.or_else(by_number)
}

fn missing(part: &str, known: &[&str]) -> (String, String) {
    let message = format!("the scenario has no `{part}`");
    (message, nearest(part, known, "such key"))
}
