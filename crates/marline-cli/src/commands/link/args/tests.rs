use super::*;
use clap::Parser;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn config(flags: &str) -> Result<EmulatorConfig, String> {
    let flags = flags.split_whitespace();
    let line = ["link", "--to", "127.0.0.1:9"].into_iter().chain(flags);
    let line = Line::try_parse_from(line).map_err(|error| error.to_string())?;
    match line.args.config().map_err(|error| format!("{error:?}"))? {
        Config::Udp(config) => Ok(config),
        Config::Devices(config) => Err(format!("{config:?}")),
    }
}

/// What comes of flags without `--to`.
fn between(flags: &str) -> Result<DevicesConfig, String> {
    let flags = ["link"].into_iter().chain(flags.split_whitespace());
    let line = Line::try_parse_from(flags).map_err(|error| error.to_string())?;
    match line.args.config().map_err(|error| format!("{error:?}"))? {
        Config::Udp(config) => Err(format!("{config:?}")),
        Config::Devices(config) => Ok(config),
    }
}

fn links(flags: &str) -> [String; 2] {
    let config = config(flags).unwrap();
    [config.up.to_string(), config.down.to_string()]
}

#[test]
fn the_flags_are_consistent() {
    <Args as clap::Args>::augment_args(Command::new("link")).debug_assert();
}

#[test]
fn a_flag_holds_for_both_directions_unless_one_has_its_own() {
    let [up, down] = links(
        "--rate 20mbit --delay 15ms --jitter 3ms --loss 1% --down-loss 2% --up-queue 64kB \
         --outage 10s+2s --outage 20s+1s --down-outage 5s+1s",
    );
    assert_eq!(
        up,
        "rate=20mbit,delay=15ms,jitter=3ms,loss=1%,queue=64kB,outage=10s+2s,outage=20s+1s"
    );
    assert_eq!(
        down,
        "rate=20mbit,delay=15ms,jitter=3ms,loss=2%,queue=200ms,outage=5s+1s"
    );
}

#[test]
fn a_capacity_of_its_own_replaces_all_of_the_common_one() {
    let [up, down] = links("--rate 40mbit --rate-sd 8mbit --rate-every 25ms --up-service 1ms");
    assert_eq!(up, "service=1ms,queue=200ms");
    assert_eq!(
        down,
        "rate=40mbit,rate-sd=8mbit,rate-every=25ms,queue=200ms"
    );
    assert_eq!(
        links("--delay 5ms --codel --overtake"),
        ["delay=5ms,overtake=yes,codel=5ms/100ms"; 2]
    );
    assert_eq!(links("--rate unlimited"), ["rate=unlimited"; 2]);
}

#[test]
fn one_seed_is_the_emulators_and_a_directions_is_pinned() {
    let config_of = |flags| {
        let config = config(flags).unwrap();
        (config.seed, config.up.seed, config.down.seed)
    };
    assert_eq!(config_of("--seed 7"), (7, None, None));
    assert_eq!(config_of("--seed 7 --up-seed 3"), (7, Some(3), None));
    let (drawn, up, down) = config_of("--down-seed 3");
    assert_eq!((up, down), (None, Some(3)));
    assert_ne!(drawn, config_of("").0);
}

#[test]
fn errors_name_the_flag() {
    let error = |flags| config(flags).unwrap_err();
    assert!(error("--rate 20mb").contains("--rate 20mb: not a rate"));
    assert!(error("--rate 1mbit --up-rate 20mb").contains("--up-rate 20mb: not a rate"));
    // What can be read and yet not be: the flag and the value are those given, not those of one
    // direction.
    assert!(error("--loss 200%").contains("--loss 200%: must be from 0 to 1"));
    assert!(error("--loss 1% --down-loss 200%").contains("--down-loss 200%: must be"));
    assert!(error("--rate 1bit").contains("--rate 1bit: must be at least"));
    assert!(error("--trace /no/such/file").contains("--trace /no/such/file: cannot read"));
    assert!(error("--rate 1mbit --service 1ms").contains("only one of rate, trace and service"));
    assert!(error("--listen here").contains("--listen"));
    assert!(error("--speed 3").contains("--speed"));
}

#[test]
fn devices_stand_in_for_the_addresses() {
    let config = between(
        "--near wan0@van=10.9.0.1/30 --far wan1@studio=10.9.0.2/30 --rate 6mbit --up-loss 2% --seed 7",
    )
    .unwrap();
    assert_eq!(config.near.to_string(), "wan0@van=10.9.0.1/30");
    assert_eq!(config.far.to_string(), "wan1@studio=10.9.0.2/30");
    assert_eq!(config.up.to_string(), "rate=6mbit,loss=2%,queue=200ms");
    assert_eq!(config.down.to_string(), "rate=6mbit,queue=200ms");
    assert_eq!((config.seed, config.up.seed), (7, None));
}

#[test]
fn a_link_has_two_ends_of_one_kind() {
    for (flags, part) in [
        ("", "--to <ADDR>"),
        ("--near wan0@van", "--far <DEVICE"),
        ("--far wan0@van", "--near <DEVICE"),
        ("--near a@van --far b@van", "the same network namespace"),
        ("--near a --far b", "ip netns add NAME"),
        ("--near a@van --far b --to 127.0.0.1:9", "cannot be used"),
        (
            "--near a@van --far b --listen 127.0.0.1:9",
            "cannot be used",
        ),
        ("--near a@van=10.9.0.1 --far b", "such as 10.9.0.1/30"),
    ] {
        let error = between(flags).unwrap_err();
        assert!(error.contains(part), "{flags}: {error}");
    }
}
