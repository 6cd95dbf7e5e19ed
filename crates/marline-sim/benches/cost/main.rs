//! What a delivered packet costs each end, in instructions: `cargo bench -p marline-sim --bench
//! cost [-- COMMAND] [NAME…]`. Needs `valgrind`, whose callgrind counts the same from run to run
//! and on a busy machine.
//!
//! * `check`, the default, compares with `benches/cost/kept.csv`: 5 % more at either end of a case
//!   is an error, and the functions that have changed are printed.
//! * `keep` writes that file.
//! * `schedulers` prints what streams cost by scheduler, coded and not, over links that lose no
//!   packet or a fiftieth, for each Mb delivered, as CSV: Figure 9 of S-EDPF shows it of a device.
//!
//! A case is a kind of flow, alone or beside 199 others that share its load. Two sessions over two
//! links of 200 Mb/s; half a second, which begins when flows have found their rate. The load is
//! part of the figure: what an application does to write and read. Sockets, encryption and the
//! kernel are not; `cargo bench -p marline-cli --bench goodput` has them.

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

mod kept;
mod load;
mod profile;
mod wires;

use load::{Kind, Load};
use profile::Profile;
use wires::Wires;

use marline_proto::sched::registry;
use marline_proto::wire::FlowKind;
use marline_sim::Instant;

type Failure = Box<dyn std::error::Error>;

/// When counting begins, and ends: streams are out of their start after a second.
const FROM: Instant = Instant::from_millis(1_000);
const UNTIL: Instant = Instant::from_millis(1_500);
/// An end of a case may cost this multiple of what is kept before it is an error.
const LIMIT: f64 = 1.05;
/// Which functions the counting is confined to, an end each.
const ENDS: [(&str, &str); 2] = [
    ("sender", "*counted_sender*"),
    ("receiver", "*counted_receiver*"),
];

/// A case by its name, `live-200` for example; `stream/edpf/lossy-1` with a scheduler.
fn load(name: &str) -> Result<Load, Failure> {
    let (what, flows) = name.rsplit_once('-').ok_or("a case is KIND-FLOWS")?;
    let mut words = what.split('/');
    let kind = words.next().and_then(Kind::named);
    let kind = kind.ok_or_else(|| format!("there is no kind of load in {name}"))?;
    let mut load = Load::new(kind, flows.parse()?);
    if let Some(scheduler) = words.next() {
        load.scheduler = Some(scheduler.parse()?);
    }
    load.lossy |= words.next() == Some("lossy");
    Ok(load)
}

fn cases() -> Vec<String> {
    let kinds = Kind::ALL.iter();
    let names = kinds.flat_map(|(name, _)| [1, 200].map(|flows| format!("{name}-{flows}")));
    names.collect()
}

/// What runs below valgrind: prints the packets, and the bytes of applications, that arrive while
/// it counts.
fn run(name: &str) -> Result<(), Failure> {
    let load = load(name)?;
    let mut wires = Wires::new(&load)?;
    wires.run(FROM, false);
    let before = wires.delivered();
    wires.run(UNTIL, true);
    let after = wires.delivered();
    println!("{} {}", after.0 - before.0, after.1 - before.1);
    Ok(())
}

/// Both ends of a case.
fn both(name: &str) -> Result<Vec<(&'static str, Profile)>, Failure> {
    let each = ENDS.iter();
    each.map(|(end, functions)| Ok((*end, Profile::of(name, functions)?)))
        .collect()
}

fn check(names: &[String]) -> Result<(), Failure> {
    let kept = kept::read()?;
    println!(
        "{:<18} {:<9} {:>8} {:>12} {:>7}",
        "case", "end", "packets", "instructions", "change"
    );
    let mut exceeded = Vec::new();
    for name in names {
        for (end, profile) in both(name)? {
            let cost = profile.each();
            let known = kept.get(&(name.clone(), end.to_owned()));
            let change = known.map(|known| cost / known[kept::ALL]);
            let shown = change.map_or("new".to_owned(), |c| format!("{:+.1} %", 100.0 * (c - 1.0)));
            println!(
                "{name:<18} {end:<9} {:>8} {cost:>12.0} {shown:>7}",
                profile.packets
            );
            if let (Some(known), Some(change)) = (known, change)
                && change > LIMIT
            {
                kept::differences(known, &profile);
                exceeded.push(format!("{name} {end}"));
            }
        }
    }
    match exceeded.is_empty() {
        true => Ok(()),
        false => {
            let which = exceeded.join(", ");
            Err(format!("more than 5 % dearer than what is kept: {which}").into())
        }
    }
}

fn keep() -> Result<(), Failure> {
    let mut rows = Vec::new();
    for name in cases() {
        for (end, profile) in both(&name)? {
            println!("{name} {end} {:.0}", profile.each());
            rows.push((name.clone(), end, profile));
        }
    }
    kept::write(&rows)
}

/// Schedulers with repair symbols in streams, and how these are switched off.
const UNCODED: [(&str, &str); 3] = [
    ("hedge", "repairs=off"),
    ("mend", "tau=off:idle=off"),
    ("s-edpf", "tau=off:idle=off"),
];

fn schedulers() -> Result<(), Failure> {
    println!("scheduler,links,mbps,sender_instructions_per_mb,receiver_instructions_per_mb");
    let seconds = UNTIL.since(FROM).as_secs_f64();
    let entries = registry::all().filter(|entry| entry.kinds.contains(&FlowKind::Stream));
    for entry in entries {
        let uncoded = UNCODED.iter().filter(|(name, _)| *name == entry.name);
        let uncoded = uncoded.map(|(name, off)| format!("{name}:{off}"));
        for scheduler in [entry.name.to_owned()].into_iter().chain(uncoded) {
            for links in ["clean", "lossy"] {
                let profiles = both(&format!("stream/{scheduler}/{links}-1"))?;
                let mbps = profiles[0].1.bytes as f64 * 8e-6 / seconds;
                let costs = profiles
                    .iter()
                    .map(|(_, profile)| profile.for_each_megabit());
                let costs: Vec<_> = costs.map(|cost| format!("{cost:.0}")).collect();
                println!("\"{scheduler}\",{links},{mbps:.1},{}", costs.join(","));
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let args = std::env::args().skip(1).filter(|word| word != "--bench");
    let args: Vec<String> = args.collect();
    let (command, names) = match args.split_first() {
        Some((first, rest)) if ["check", "keep", "schedulers", "run"].contains(&first.as_str()) => {
            (first.as_str(), rest)
        }
        _ => ("check", &args[..]),
    };
    let wanted =
        |name: &String| names.is_empty() || names.iter().any(|n| name.starts_with(n.as_str()));
    match command {
        "run" => run(names.first().ok_or("which case?")?),
        "keep" => keep(),
        "schedulers" => schedulers(),
        _ => check(&cases().into_iter().filter(wanted).collect::<Vec<_>>()),
    }
}
