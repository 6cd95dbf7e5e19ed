//! `docs/RESULTS.md` names every field that is written, and no other.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../../docs/RESULTS.md");

/// Compares the fields of `value` with the table below the heading; `open` are the fields whose
/// keys are names, with the word that stands for them.
pub(crate) fn assert_documented(value: &impl Serialize, heading: &str, open: &[(&str, &str)]) {
    let mut written = BTreeSet::new();
    fields(
        &serde_json::to_value(value).unwrap(),
        "",
        open,
        &mut written,
    );
    let section = DOCUMENT
        .split("\n## ")
        .find(|part| part.starts_with(heading))
        .unwrap();
    let documented: BTreeSet<String> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(field, _)| field.to_owned())
        .collect();
    assert_eq!(written, documented);
}

fn fields(value: &Value, path: &str, open: &[(&str, &str)], into: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let word = open
                .iter()
                .find(|(field, _)| *field == path)
                .map(|(_, word)| *word);
            for (key, inner) in object {
                let key = word.unwrap_or(key);
                let dot = if path.is_empty() { "" } else { "." };
                let field = format!("{path}{dot}{key}");
                // An object of one name is nothing but its fields.
                if !(word.is_some() && inner.is_object()) {
                    into.insert(field.clone());
                }
                fields(inner, &field, open, into);
            }
        }
        Value::Array(array) => {
            for inner in array.iter().filter(|inner| inner.is_object()) {
                fields(inner, &format!("{path}[]"), open, into);
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_of_results_is_documented() {
    let open = [
        ("runs[].cell", "AXIS"),
        ("runs[].values", "NAME"),
        ("runs[].fractions", "NAME"),
        ("runs[].distributions", "NAME"),
        ("runs[].series", "NAME"),
    ];
    assert_documented(
        &super::sample::results(),
        "JSON of `marline sim run`",
        &open,
    );
}

/// To the last digit: a sweep that is taken up again must give what an unbroken one gives.
#[test]
fn results_survive_being_written_and_read() {
    let results = super::sample::results();
    let text = serde_json::to_string(&results).unwrap();
    let read: super::Results = serde_json::from_str(&text).unwrap();
    assert!(read == results);
}
