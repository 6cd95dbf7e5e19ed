//! The tables of `docs/SCHEDULERS.md` are what the registry says.

use alloc::format;
use alloc::string::String;

use super::registry::SCHEDULERS;

const DOCUMENT: &str = include_str!("../../../../docs/SCHEDULERS.md");

fn tables() -> String {
    let mut text =
        String::from("| scheduler | next packet or symbol | publication |\n| --- | --- | --- |\n");
    for entry in SCHEDULERS {
        let (name, help, publication) = (entry.name, entry.help, entry.publication);
        text += &format!("| `{name}` | {help} | {publication} |\n");
    }
    text += "\n| option | accepts | default | what it does |\n| --- | --- | --- | --- |\n";
    for entry in SCHEDULERS {
        for option in entry.options {
            text += &format!(
                "| `{}:{}` | {} | `{}` | {} |\n",
                entry.name, option.key, option.accepts, option.default, option.help
            );
        }
    }
    text
}

#[test]
fn the_tables_are_fresh() {
    let tables = tables();
    assert!(
        DOCUMENT.contains(&tables),
        "docs/SCHEDULERS.md must have these tables:\n\n{tables}"
    );
}
