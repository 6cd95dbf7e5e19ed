//! Logs: tracing to standard error, filtered by `--log` or `MARLINE_LOG`, and limited.

mod limit;

use super::CliError;
use super::line::Logs;
use limit::Limiter;
use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::time::Instant;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

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
/// When `filter`, which was written at `from`, is not a list of levels and of modules with levels.
pub(super) fn start(filter: &str, from: From) -> Result<(), CliError> {
    let parsed = read(filter, from)?;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let limiter = Limiter::new(Instant::now);
    let lines = fmt::layer()
        .with_writer(limiter.writing_to(|| Logs))
        .with_ansi(!plain && io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry()
        .with(parsed)
        .with(lines)
        .with(limiter)
        .try_init()
        .map_err(|error| CliError::runtime(format!("cannot start logging: {error}")))
}

// `EnvFilter` also knows spans and values of their fields, by a library of regular expressions,
// which is large for a router.
fn read(filter: &str, from: From) -> Result<Targets, CliError> {
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
    let words: Vec<_> = filter.split(',').map(str::trim).map(of_ours).collect();
    let parsed = words.join(",").parse::<Targets>();
    parsed.map_err(|error| refused(error.to_string()))
}

/// Modules of the program that have crates of their own, and whose names in lists stay as they are.
const MODULES: [(&str, &str); 8] = [
    ("marline::budget", "marline_cli::budget"),
    ("marline::cli", "marline_cli::commands"),
    ("marline::config", "marline_cli::config"),
    ("marline::control", "marline_cli::control"),
    ("marline::live", "marline_apps::live"),
    ("marline::metrics", "marline_cli::metrics"),
    ("marline::proxy", "marline_apps::proxy"),
    ("marline::tun", "marline_apps::tun"),
];

/// At the levels `info` and `warn` only what this program says itself, and the errors of libraries:
/// the rest of theirs are dumps of structures that a peer can cause at will. A user who wants them
/// names the library or a lower level.
fn of_ours(word: &str) -> Cow<'_, str> {
    match word.parse::<LevelFilter>() {
        Ok(level @ (LevelFilter::WARN | LevelFilter::INFO)) => {
            format!("{},marline={level}", LevelFilter::ERROR).into()
        }
        _ => {
            let module = MODULES.iter().find(|(name, _)| {
                let rest = word.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '=']))
            });
            match module {
                Some((name, own)) => word.replacen(name, own, 1).into(),
                None => word.into(),
            }
        }
    }
}

/// Whether `word` is no level, and yet tracing would take it: as the name of a module, of which
/// everything is logged, and of all others nothing.
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
            "",
        ] {
            assert!(read(filter, From::Flag).is_ok(), "{filter}");
        }
    }

    #[test]
    fn libraries_log_their_errors_alone_unless_they_or_a_lower_level_are_asked_for() {
        /// What is logged of a line at this level by a library, and by a crate of ours.
        fn logged(filter: &str) -> [bool; 4] {
            let subscriber = tracing_subscriber::registry().with(read(filter, From::Flag).unwrap());
            tracing::subscriber::with_default(subscriber, || {
                [
                    tracing::enabled!(target: "quinn_udp", tracing::Level::WARN),
                    tracing::enabled!(target: "quinn_udp", tracing::Level::ERROR),
                    tracing::enabled!(target: "marline_proto::sched", tracing::Level::INFO),
                    tracing::enabled!(target: "marline_apps::live", tracing::Level::WARN),
                ]
            })
        }
        assert_eq!(logged("info"), [false, true, true, true]);
        assert_eq!(logged(" WARN"), [false, true, false, true]);
        assert_eq!(logged("info,quinn=warn"), [true; 4]);
        assert_eq!(logged("quinn_udp=warn,info"), [true; 4]);
        assert_eq!(logged("debug"), [true; 4]);
        assert_eq!(logged("error"), [false, true, false, false]);
        assert_eq!(logged("off"), [false; 4]);
        // The module's name in lists is older than its crate.
        assert_eq!(
            logged("error,marline::live=warn"),
            [false, true, false, true]
        );
        assert_eq!(
            logged("error,marline::lives=warn"),
            [false, true, false, false]
        );
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
            (
                "[session{path=wlan0}]=debug",
                From::Flag,
                "--log [session{path=wlan0}]=debug: ",
            ),
        ] {
            let error = format!("{:?}", read(filter, from).unwrap_err());
            assert!(error.contains(message), "{filter}: {error}");
            assert!(error.contains("levels are error, warn"), "{error}");
        }
    }
}
