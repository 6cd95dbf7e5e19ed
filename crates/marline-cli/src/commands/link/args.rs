//! The flags of `marline link`: a link's keys three times over, made from the link's own list.

mod change;

use crate::commands::CliError;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};
use marline_lab::emulate::{DevicesConfig, Direction, EmulatorConfig, Place};
use marline_link::{ConfigError, Key, Link, LinkConfig};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

pub(super) use change::Change;

const ABOUT: &str = "Emulate one link: relay UDP, or join network namespaces, with a rate, delay, jitter, loss, queue and outages";

const LONG_ABOUT: &str = "\
Emulate one link: relay UDP, or join two network namespaces, with a rate, delay, jitter, loss, queue and outages.

UDP: programs send to --listen instead of --to; answers come back through the emulated link. Flags such \
as --rate hold for both directions; with --up- or --down- in front (--down-rate) they hold for \
datagrams to or from the target only. A datagram counts with its IP and UDP headers.

Whatever the kernel speaks (TCP, MPTCP, ping): --near and --far are two network devices (TUN) instead, made for as long \
as the link runs, each in a network namespace of its own; what is sent to one comes out of the other. Up is from near to \
far. A packet counts with its IP header as it is. --mtu is the devices' MTU, too, which otherwise is 1500. Several such \
links between the same two namespaces make a multipath laboratory. This needs Linux and root.

A link with a rate and no --queue has a queue of 200ms. --at changes keys while the link runs, such \
as a handover to another cell; what waits in the queue stays, and a new rate, trace or service \
replaces all that was said of the old one. Without --seed one is drawn, and logged: two links started \
alike lose each its own packets. Statistics are printed on SIGINT or SIGTERM.";

const EXAMPLES: &str = "\
Examples:
  marline link --listen 127.0.0.1:5001 --to 127.0.0.1:4433 --rate 20mbit --delay 15ms --loss 1%
  marline link --to 127.0.0.1:4433 --rate 20mbit --up-rate 5mbit --delay 30ms --jitter 5ms --stats 1s
  marline link --to 127.0.0.1:4433 --trace lte.down --up-trace lte.up --queue 100p
  marline link --to 127.0.0.1:4433 --trace walk.csv#starlink --trace-scale 0.1 --delay 25ms
  marline link --to 127.0.0.1:4433 --delay 80ms --jitter 40ms --jitter-dist uniform --jitter-hold 200ms
  marline link --to 127.0.0.1:4433 --rate 20mbit --outage 10s+2s --outage 30s+500ms --json
  marline link --to 127.0.0.1:4433 --rate 20mbit --delay 25ms --outage 30s+3s --at 33s:delay=75ms

A link for every program, between two network namespaces (as root):
  ip netns add van
  ip netns add studio
  marline link --near wan0@van=10.9.0.1/30 --far wan0@studio=10.9.0.2/30 --rate 6mbit --delay 10ms --loss 2%
  ip netns exec van ping 10.9.0.2          # meanwhile, from another terminal";

/// The checked flags of `marline link`.
#[derive(Debug)]
pub(in crate::commands) struct Args {
    ends: Ends,
    /// Keys and values in the order of [`LinkConfig::KEYS`].
    both: Vec<(&'static str, String)>,
    own: [Vec<(&'static str, String)>; 2],
    /// What `--at` says for both directions.
    both_at: Vec<String>,
    /// What `--up-at` and `--down-at` say.
    own_at: [Vec<String>; 2],
    pub(super) stats: Option<Duration>,
    pub(super) json: bool,
}

/// What the link lies between, as the flags say.
#[derive(Debug)]
enum Ends {
    Udp {
        listen: SocketAddr,
        target: SocketAddr,
    },
    Devices {
        near: Place,
        far: Place,
    },
}

/// What is to be emulated.
#[derive(Debug)]
pub(super) enum Config {
    Udp(EmulatorConfig),
    Devices(DevicesConfig),
}

impl Args {
    /// Reads the links' keys and traces.
    pub(super) fn config(&self) -> Result<Config, CliError> {
        let ([up, down], seed) = self.links()?;
        match &self.ends {
            Ends::Udp { listen, target } => {
                let mut config = EmulatorConfig::new(*target, up);
                config.down = down;
                config.listen = *listen;
                config.seed = seed.unwrap_or(config.seed);
                Ok(Config::Udp(config))
            }
            Ends::Devices { near, far } => {
                if near.namespace == far.namespace {
                    let why = "--near and --far are in the same network namespace";
                    return Err(CliError::usage(why).hint(
                        "between addresses of one namespace the kernel needs no device: make another \
                         (`ip netns add NAME`) and put one of the two there, as in --far wan0@NAME=10.9.0.2/30",
                    ));
                }
                let mut config = DevicesConfig::new(near.clone(), far.clone(), up);
                config.down = down;
                config.seed = seed.unwrap_or(config.seed);
                Ok(Config::Devices(config))
            }
        }
    }

    /// The links of both directions, and the seed that is given for both, of which each draws its
    /// own.
    fn links(&self) -> Result<([LinkConfig; 2], Option<u64>), CliError> {
        let [up, down] = Direction::BOTH;
        let mut links = [self.link(up)?, self.link(down)?];
        let mut common = None;
        for (link, own) in links.iter_mut().zip(&self.own) {
            if !own.iter().any(|(key, _)| *key == "seed") {
                common = link.seed.take().or(common);
            }
        }
        Ok((links, common))
    }

    /// The changes of both links, in the order of their times.
    pub(super) fn changes(&self) -> Result<Vec<Change>, CliError> {
        let mut changes = Vec::new();
        for direction in Direction::BOTH {
            let own = &self.own_at[direction as usize];
            let of_both = self.both_at.iter().map(|text| ("at".to_owned(), text));
            let own = own.iter().map(|text| (format!("{direction}-at"), text));
            let given = of_both.chain(own);
            changes.extend(change::resolve(direction, self.pairs(direction), given)?);
        }
        changes.sort_by_key(|change| change.at);
        Ok(changes)
    }

    fn link(&self, direction: Direction) -> Result<LinkConfig, CliError> {
        let link = read(self.pairs(direction)).and_then(possible);
        link.map_err(|error| self.wrong(direction, &error))
    }

    /// What is wrong with the link of `direction` as an error of the flag that says so, as it was
    /// written. Of several values of one flag it is not known which is meant.
    fn wrong(&self, direction: Direction, error: &ConfigError) -> CliError {
        let given = |pairs: &[(&str, String)]| -> Vec<String> {
            let own = pairs.iter().filter(|(key, _)| *key == error.key());
            own.map(|(_, value)| value.clone()).collect()
        };
        let own = given(&self.own[direction as usize]);
        let (prefix, given) = match own.is_empty() {
            true => ("", given(&self.both)),
            false => (direction.name(), own),
        };
        let value = match &given[..] {
            [written] if !error.value().is_empty() => written,
            _ => error.value(),
        };
        refused(prefix, error, value)
    }

    /// The keys and values of one direction.
    fn pairs(&self, direction: Direction) -> Vec<(&str, &str)> {
        let [own, both] = [&self.own[direction as usize], &self.both].map(|pairs| {
            let pairs = pairs.iter().map(|(key, value)| (*key, value.as_str()));
            pairs.collect::<Vec<_>>()
        });
        LinkConfig::layered(&own, &both)
    }
}

/// The link that `pairs` describe, with the traces that they name.
fn read(pairs: Vec<(&str, &str)>) -> Result<LinkConfig, ConfigError> {
    LinkConfig::from_pairs(pairs, |path| {
        fs::read_to_string(path).map_err(|e| format!("cannot read: {e}"))
    })
}

/// The link, if there can be one.
fn possible(config: LinkConfig) -> Result<LinkConfig, ConfigError> {
    Link::new(config.clone(), 0).map(|_| config)
}

/// A wrong value as an error of the flag, whose prefix is `up`, `down` or nothing.
pub(super) fn refused(prefix: &str, error: &ConfigError, value: &str) -> CliError {
    let dash = if prefix.is_empty() { "" } else { "-" };
    let blank = if value.is_empty() { "" } else { " " };
    CliError::usage(format!(
        "--{prefix}{dash}{}{blank}{value}: {}",
        error.key(),
        error.accepted()
    ))
}

/// Name of the flag for `key`, for which direction, if only one.
fn flag(key: &Key, direction: Option<Direction>) -> String {
    match direction {
        Some(direction) => format!("{direction}-{}", key.name),
        None => key.name.to_owned(),
    }
}

fn arg(key: &Key, direction: Option<Direction>) -> Arg {
    let name = flag(key, direction);
    let arg = Arg::new(name.clone())
        .long(name)
        .value_name(key.value)
        .help(key.help)
        // Sixty flags that repeat twenty would hide them; the long text says how they are made.
        .hide(direction.is_some())
        .help_heading("Link");
    match key.name {
        "outage" => arg.action(ArgAction::Append),
        "codel" | "overtake" => arg.num_args(0..=1).default_missing_value("yes"),
        _ => arg,
    }
}

/// The flag for one end as a device, which wants the `other`.
fn place(name: &'static str, other: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("DEVICE[@NAMESPACE][=ADDRESS/BITS]")
        .value_parser(clap::value_parser!(Place))
        .requires(other)
        .conflicts_with_all(["listen", "to"])
        .help(help)
}

impl clap::Args for Args {
    fn augment_args(command: Command) -> Command {
        let command = command
            .about(ABOUT)
            .long_about(LONG_ABOUT)
            .after_help(EXAMPLES)
            .arg(
                Arg::new("listen")
                    .long("listen")
                    .value_name("ADDR")
                    .value_parser(clap::value_parser!(SocketAddr))
                    .default_value("127.0.0.1:0")
                    .help("Where programs send to; port 0 lets the system choose"),
            )
            .arg(
                Arg::new("to")
                    .long("to")
                    .value_name("ADDR")
                    .value_parser(clap::value_parser!(SocketAddr))
                    .help("Where datagrams go"),
            )
            .arg(place(
                "near",
                "far",
                "One end as a network device, instead of --listen and --to: wan0@van=10.9.0.1/30",
            ))
            .arg(place(
                "far",
                "near",
                "The other end, in another network namespace: wan0@studio=10.9.0.2/30",
            ))
            .arg(
                Arg::new("stats")
                    .long("stats")
                    .value_name("TIME")
                    .value_parser(humantime::parse_duration)
                    .help("Log a line of statistics every so often, such as 1s"),
            )
            .arg(
                Arg::new("json")
                    .long("json")
                    .action(ArgAction::SetTrue)
                    .help("Print the final statistics as JSON"),
            );
        let end = ArgGroup::new("end").args(["to", "near"]).required(true);
        let command = [None]
            .into_iter()
            .chain(Direction::BOTH.map(Some))
            .map(change::arg)
            .fold(command.group(end), Command::arg);
        let directions = [None].into_iter().chain(Direction::BOTH.map(Some));
        directions
            .flat_map(|direction| LinkConfig::KEYS.iter().map(move |key| arg(key, direction)))
            .fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = |name| {
            clap::Error::raw(
                clap::error::ErrorKind::MissingRequiredArgument,
                format!("--{name} is missing\n"),
            )
        };
        let addr = |name| {
            matches
                .get_one::<SocketAddr>(name)
                .copied()
                .ok_or(missing(name))
        };
        let pairs = |direction| {
            let values = |key: &Key| matches.get_many::<String>(&flag(key, direction));
            let values = LinkConfig::KEYS
                .iter()
                .map(|key| (key.name, values(key).into_iter().flatten().cloned()));
            values
                .flat_map(|(key, values)| values.map(move |value| (key, value)))
                .collect()
        };
        let changes = |direction| {
            let values = matches.get_many::<String>(&change::flag(direction));
            values.into_iter().flatten().cloned().collect()
        };
        let place = |name| matches.get_one::<Place>(name).cloned();
        let ends = match (place("near"), place("far")) {
            (Some(near), Some(far)) => Ends::Devices { near, far },
            _ => Ends::Udp {
                listen: addr("listen")?,
                target: addr("to")?,
            },
        };
        Ok(Self {
            ends,
            both: pairs(None),
            own: Direction::BOTH.map(|direction| pairs(Some(direction))),
            both_at: changes(None),
            own_at: Direction::BOTH.map(|direction| changes(Some(direction))),
            stats: matches.get_one::<Duration>("stats").copied(),
            json: matches.get_flag("json"),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
