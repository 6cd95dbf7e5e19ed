//! Names of schedulers.

use marline_proto::sched::{AUTO, Choice, registry};
use marline_proto::wire::FlowKind;

use super::reader::Reader;

/// Stands for every scheduler that serves all flows of the scenario.
pub(super) const ALL: &str = "all";

/// The scheduler, written `NAME` or `NAME:KEY=VALUE`, as the registry writes it; or `auto`, which
/// chooses for each flow as the program does.
///
/// # Errors
///
/// What is wrong, and the hint.
pub(super) fn check(text: &str) -> Result<String, (String, String)> {
    match text {
        AUTO => Ok(text.to_owned()),
        _ => check_named(text),
    }
}

/// The same without flows for which `auto` could choose: of models.
///
/// # Errors
///
/// As [`check`].
pub(super) fn check_named(text: &str) -> Result<String, (String, String)> {
    if text == AUTO {
        let message = "`auto` chooses for flows of a session, and a model has none".to_owned();
        return Err((message, "name a scheduler, such as \"edpf\"".to_owned()));
    }
    let choice: Result<Choice, _> = text.parse();
    choice
        .map(|choice| choice.to_string())
        .map_err(|error| (error.message(), error.hint()))
}

/// The key `scheduler`.
pub(super) fn read(reader: &Reader<'_>) -> Option<String> {
    let name = reader.text("scheduler")?;
    match check(&name) {
        Ok(name) => Some(name),
        Err((message, mend)) => {
            reader.wrong("scheduler", reader.get("scheduler")?, message, mend);
            None
        }
    }
}

/// Does the scheduler, which exists, serve flows of this kind?
pub(super) fn serves(text: &str, kind: FlowKind) -> bool {
    let choice: Result<Choice, _> = text.parse();
    text == AUTO || choice.is_ok_and(|choice| choice.entry().kinds.contains(&kind))
}

/// What is wrong with a scheduler that does not serve a kind of flow, and the hint.
pub(super) fn unfit(text: &str, kind: FlowKind, workload: &str) -> (String, String) {
    let fit = registry::all().filter(|entry| entry.kinds.contains(&kind));
    let fit: Vec<&str> = fit.map(|entry| entry.name).collect();
    (
        format!(
            "scheduler `{text}` does not serve {} flows, which workload `{workload}` uses",
            kind.name()
        ),
        format!("schedulers for them: {}", fit.join(", ")),
    )
}

/// All schedulers that serve these kinds.
pub(super) fn all(kinds: &[FlowKind]) -> Vec<String> {
    let fit = registry::all().filter(|entry| kinds.iter().all(|kind| entry.kinds.contains(kind)));
    fit.map(|entry| entry.name.to_owned()).collect()
}
