//! Logs: tracing to standard error, filtered by `--log` or `MARLINE_LOG`.

use super::CliError;
use super::line::Logs;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The environment variable that stands in for `--log`.
pub(super) const VARIABLE: &str = "MARLINE_LOG";
const HINT: &str = "levels are error, warn, info, debug, trace and off; in a list such as `info,marline::live=debug`, \
                    a module stands with `=LEVEL`, or at least with `::` in its name";

/// Where the filter was written.
#[derive(Debug, Clone, Copy)]
pub(super) enum From {
    Flag,
    Variable,
}

/// Starts logging to standard error.
///
/// # Errors
/// When `filter`, which was written at `from`, is not a list of levels and tracing directives.
pub(super) fn start(filter: &str, from: From) -> Result<(), CliError> {
    let parsed = read(filter, from)?;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(|| Logs)
        .with_ansi(!plain && io::stderr().is_terminal())
        .with_target(false)
        .try_init()
        .map_err(|error| CliError::runtime(format!("cannot start logging: {error}")))
}

fn read(filter: &str, from: From) -> Result<EnvFilter, CliError> {
    let refused = |why: String| {
        let place = match from {
            From::Flag => format!("--log {filter}"),
            From::Variable => format!("{VARIABLE}={filter}"),
        };
        CliError::usage(format!("{place}: {why}")).hint(HINT)
    };
    if let Some(word) = filter.split(',').map(str::trim).find(|word| misspelt(word)) {
        return Err(refused(format!("`{word}` is no level")));
    }
    EnvFilter::try_new(filter).map_err(|error| refused(error.to_string()))
}

/// Whether `word` is no level, and yet tracing would take it: as the name of a module, of which everything is logged, and
/// of all others nothing.
fn misspelt(word: &str) -> bool {
    let bare = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_alphanumeric() || "_-".contains(c));
    bare && word.parse::<LevelFilter>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_directives_are_read() {
        for filter in [
            "info",
            "WARN",
            "off",
            "marline=debug",
            "marline::live=debug,info",
            "warn, marline_proto::sched",
            "quinn=off,info",
            "[session{path=wlan0}]=debug",
            "",
        ] {
            assert!(read(filter, From::Flag).is_ok(), "{filter}");
        }
    }

    #[test]
    fn a_misspelt_level_does_not_silence_everything() {
        for (filter, from, message) in [
            ("inof", From::Flag, "--log inof: `inof` is no level"),
            (
                "debgu,marline::live=info",
                From::Variable,
                "MARLINE_LOG=debgu,marline::live=info: `debgu` is no level",
            ),
            ("info,marline", From::Flag, "`marline` is no level"),
            ("marline=inof", From::Flag, "--log marline=inof: "),
        ] {
            let error = format!("{:?}", read(filter, from).unwrap_err());
            assert!(error.contains(message), "{filter}: {error}");
            assert!(error.contains("levels are error, warn"), "{error}");
        }
    }
}
