//! `--at`: keys of a link that change while it runs.

use super::{possible, read};
use crate::commands::CliError;
use clap::{Arg, ArgAction};
use marline_lab::emulate::Direction;
use marline_link::LinkConfig;
use std::time::Duration;

/// One direction's link from a time on.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::commands::link) struct Change {
    /// Since the start.
    pub(in crate::commands::link) at: Duration,
    pub(in crate::commands::link) direction: Direction,
    pub(in crate::commands::link) config: LinkConfig,
}

/// Name of the flag for both directions or one.
pub(super) fn flag(direction: Option<Direction>) -> String {
    match direction {
        Some(direction) => format!("{direction}-at"),
        None => "at".into(),
    }
}

pub(super) fn arg(direction: Option<Direction>) -> Arg {
    Arg::new(flag(direction))
        .long(flag(direction))
        .value_name("TIME:KEY=VALUE,...")
        .action(ArgAction::Append)
        .hide(direction.is_some())
        .help_heading("Link")
        .help("Change keys at this time from the start, such as 33s:delay=75ms,loss=0%")
}

/// What becomes of the link of `direction`, which begins as `pairs`; `given` are the changes, each
/// with the name of its flag.
pub(super) fn resolve<'a>(
    direction: Direction,
    mut pairs: Vec<(&'a str, &'a str)>,
    given: impl Iterator<Item = (String, &'a String)>,
) -> Result<Vec<Change>, CliError> {
    let mut parts = given
        .map(|(flag, text)| {
            let (at, new) = split(text).ok_or_else(|| {
                CliError::usage(format!(
                    "--{flag} {text}: give a time and keys, such as 33s:delay=75ms,loss=0%"
                ))
            })?;
            Ok((at, flag, text, new))
        })
        .collect::<Result<Vec<_>, CliError>>()?;
    parts.sort_by_key(|(at, ..)| *at);
    let mut changes = Vec::with_capacity(parts.len());
    for (at, flag, text, new) in parts {
        pairs = LinkConfig::layered(&new, &pairs);
        let config = read(pairs.clone())
            .and_then(possible)
            .map_err(|error| CliError::usage(format!("--{flag} {text}: {error}")))?;
        changes.push(Change {
            at,
            direction,
            config,
        });
    }
    Ok(changes)
}

/// A change's time, and keys with values.
type Parts<'a> = (Duration, Vec<(&'a str, &'a str)>);

fn split(text: &str) -> Option<Parts<'_>> {
    let (at, keys) = text.split_once(':')?;
    let at = humantime::parse_duration(at.trim()).ok()?;
    let pairs: Vec<(&str, &str)> = (keys.split(',').map(str::trim))
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    (!pairs.is_empty()).then_some((at, pairs))
}

#[cfg(test)]
mod tests {
    use crate::commands::link::args::Args;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn changes(flags: &str) -> Result<Vec<String>, String> {
        let line = ["link", "--to", "127.0.0.1:9"];
        let line = Line::try_parse_from(line.into_iter().chain(flags.split_whitespace()));
        let changes = line.map_err(|error| error.to_string())?.args.changes();
        let changes = changes.map_err(|error| format!("{error:?}"))?;
        let shown = |c: &super::Change| format!("{:?} {} {}", c.at, c.direction, c.config);
        Ok(changes.iter().map(shown).collect())
    }

    #[test]
    fn a_change_keeps_what_it_does_not_name() {
        assert_eq!(
            changes(
                "--rate 20mbit --rate-sd 2mbit --rate-every 25ms --delay 25ms --loss 1% \
                 --down-at 40s:loss=0% --at 33s:delay=75ms --up-at 500ms:rate=5mbit,queue=64kB"
            )
            .unwrap(),
            [
                "500ms up rate=5mbit,delay=25ms,loss=1%,queue=64kB",
                "33s up rate=5mbit,delay=75ms,loss=1%,queue=64kB",
                "33s down rate=20mbit,rate-sd=2mbit,rate-every=25ms,delay=75ms,loss=1%,queue=200ms",
                "40s down rate=20mbit,rate-sd=2mbit,rate-every=25ms,delay=75ms,queue=200ms",
            ]
        );
        assert!(changes("--rate 20mbit").unwrap().is_empty());
    }

    #[test]
    fn wrong_changes_name_the_flag_and_the_mend() {
        for (flags, part) in [
            ("--at 33s", "--at 33s: give a time and keys"),
            ("--at soon:delay=1ms", "such as 33s:delay=75ms"),
            ("--at 3s:", "--at 3s:: give a time and keys"),
            (
                "--up-at 3s:delay=5",
                "--up-at 3s:delay=5: delay=5: not a time",
            ),
            ("--at 3s:speed=5", "no such key; known are rate"),
            (
                "--down-at 3s:rate=1bit",
                "--down-at 3s:rate=1bit: rate=1 bit/s: must be",
            ),
        ] {
            let error = changes(flags).unwrap_err();
            assert!(error.contains(part), "{flags}: {error}");
        }
    }
}
