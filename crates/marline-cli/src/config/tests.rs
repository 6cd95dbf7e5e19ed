mod refusals;
mod services;

use super::*;
use marline::identity::{ConnectionString, PublicKey};
use marline::{Offload, Path};
use marline_apps::proxy::SocksLogin;
use marline_apps::tun::TunSetup;
use marline_proto::wire::FlowKind;
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn flags<R: Raw>(words: &[&str]) -> R {
    let command = R::augment_args(clap::Command::new("marline").no_binary_name(true));
    R::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn help_of<R: Raw>(flag: &str) -> String {
    let command = R::augment_args(clap::Command::new("marline"));
    let argument = command.get_arguments().find(|a| a.get_long() == Some(flag));
    argument.unwrap().get_help().unwrap().to_string()
}

/// Connection strings for the words `S` and `T`, a key for `K`: the tests are about everything
/// else.
fn spelt_out(word: &str) -> String {
    let key = PublicKey::from_bytes([9; 32]);
    let at = |host: &str| {
        ConnectionString::new(key, vec![host.parse().unwrap()])
            .unwrap()
            .to_string()
    };
    match word {
        "S" => at("s.example"),
        "T" => at("t.example"),
        "K" => key.to_string(),
        other => other.to_owned(),
    }
}

/// Flags and a file, checked as a client's.
fn client(words: &[&str], file: Option<&str>) -> Result<ClientConfig, ConfigError> {
    let words: Vec<String> = words.iter().map(|word| spelt_out(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let file = file.map(|text| {
        text.replace("\"S\"", &format!("\"{}\"", spelt_out("S")))
            .replace("\"T\"", &format!("\"{}\"", spelt_out("T")))
    });
    let file = file.as_deref();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marline.toml");
    if let Some(text) = file {
        fs::write(&path, text).unwrap();
    }
    let source = Source::load(flags::<RawClient>(&words), file.map(|_| path.as_path()))?;
    ClientConfig::check(&source)
}

fn server(words: &[&str]) -> Result<ServerConfig, ConfigError> {
    let words: Vec<String> = words.iter().map(|word| spelt_out(word)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    ServerConfig::check(&Source::flags(flags::<RawServer>(&words)))
}

/// The error with the folder of the test taken off.
fn shown(error: &ConfigError) -> String {
    let text = error.to_string();
    match text.find("marline.toml") {
        Some(start) => text[start..].to_owned(),
        None => text,
    }
}

#[test]
fn flags_and_a_file_with_the_same_names_mean_the_same() {
    let by_flags = client(
        &[
            "--server",
            "S",
            "--identity",
            "/key",
            "--path",
            "wlan0",
            "--path",
            "wwan0,standby,cost=2",
            "--socks",
            "127.0.0.1:9",
            "--forward",
            "udp:127.0.0.1:53=dns:53,lifetime=200ms",
            "--scheduler",
            "stream=min-rtt",
            "--congestion",
            "cubic",
            "--gso",
            "off",
            "--metrics",
            "127.0.0.1:9900",
            "--web",
            "127.0.0.1:9080",
            "--control",
            "/c.sock",
            "--idle-timeout",
            "2m",
            "--repair-budget",
            "20%",
        ],
        None,
    )
    .unwrap();
    let by_file = client(
        &[],
        Some(
            r#"
            server = "S"
            identity = "/key"
            path = ["wlan0", "wwan0,standby,cost=2"]
            socks = "127.0.0.1:9"
            forward = ["udp:127.0.0.1:53=dns:53,lifetime=200ms"]
            scheduler = ["stream=min-rtt"]
            congestion = "cubic"
            gso = "off"
            metrics = "127.0.0.1:9900"
            web = "127.0.0.1:9080"
            control = "/c.sock"
            idle-timeout = "2m"
            repair-budget = "20%"
            "#,
        ),
    )
    .unwrap();
    assert_eq!(by_flags, by_file);
    assert_eq!(by_flags.common.gso, Offload::Off);
    assert_eq!(by_flags.common.session().repair_budget, Some(0.2));
    assert_eq!(
        by_flags.common.schedulers,
        Schedulers {
            stream: "min-rtt".parse().unwrap(),
            ..Schedulers::default()
        }
    );
}

#[test]
fn flags_win_and_a_given_list_replaces_the_files() {
    let config = client(
        &["--server", "S", "--path", "eth0"],
        Some("server = \"T\"\npath = [\"wlan0\", \"wwan0\"]\ncongestion = \"cubic\"\n"),
    )
    .unwrap();
    assert_eq!(config.server.to_string(), spelt_out("S"));
    assert_eq!(config.paths.len(), 1);
    assert_eq!(config.paths[0].name, "eth0");
    assert_eq!(config.common.congestion.name(), "cubic");
}

#[test]
fn defaults_are_those_that_the_help_promises() {
    let config = client(&["--server", "S"], None).unwrap();
    assert_eq!(config.socks, Some("127.0.0.1:1080".parse().unwrap()));
    assert_eq!(config.paths, [Path::default()]);
    assert_eq!(config.common.congestion.name(), "bbr-gentle");
    assert_eq!(config.common.gso, Offload::Auto);
    assert_eq!(config.common.idle_timeout.as_secs(), 180);
    assert_eq!(config.common.metrics, None);
    assert_eq!(config.common.web, None);
    let config = server(&["--allow-client", "K"]).unwrap();
    assert_eq!(
        config.listen,
        [
            "0.0.0.0:4433".parse().unwrap(),
            "[::]:4433".parse().unwrap()
        ]
    );
    assert_eq!(config.max_flows, 1024);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(config.workers, cores.min(256));
    for (workers, count) in [("auto", cores.min(256)), ("3", 3)] {
        let config = server(&["--allow-client", "K", "--workers", workers]).unwrap();
        assert_eq!(config.workers, count);
    }
    assert_eq!(
        client(&["--server", "S", "--socks", "off"], None)
            .unwrap()
            .socks,
        None
    );
    assert_eq!(
        client(&["--server", "S", "--control", "off"], None)
            .unwrap()
            .common
            .control,
        None
    );
}

#[test]
fn the_same_port_serves_tcp_and_udp() {
    let words = [
        "--server",
        "S",
        "--forward",
        "tcp:127.0.0.1:53=d:53",
        "--forward",
        "udp:127.0.0.1:53=d:53",
    ];
    assert_eq!(client(&words, None).unwrap().forwards.len(), 2);
}

#[test]
fn the_help_lists_every_option_of_a_path() {
    let help = help_of::<RawClient>("path");
    for (option, _) in Path::OPTIONS {
        assert!(help.contains(&format!("[,{option}")), "{option}: {help}");
    }
}

#[test]
fn files_named_in_a_file_are_relative_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marline.toml");
    let keys = "identity = \"key\"\nsocks-user = \"u\"\nsocks-password-file = \"pw\"\n";
    fs::write(&path, format!("server = \"{}\"\n{keys}", spelt_out("S"))).unwrap();
    let password = folder.path().join("pw");
    fs::write(&password, "secret\nsecond line\n").unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let source = Source::load(RawClient::default(), Some(&path)).unwrap();
    let config = ClientConfig::check(&source).unwrap();
    assert_eq!(config.identity, folder.path().join("key"));
    let login = config.socks_login.unwrap();
    assert_eq!(
        login,
        SocksLogin {
            user: "u".into(),
            password: "secret".into()
        }
    );
    assert!(!format!("{login:?}").contains("secret"));
}

#[test]
fn a_tunnel_is_the_same_by_flags_and_by_file() {
    let by_flags = client(
        &[
            "--server",
            "S",
            "--path",
            "wlan0",
            "--path",
            "wwan0,cost=2",
            "--tun",
            "--tun-setup",
            "--tun-route",
            "0.0.0.0/0",
            "--tun-rule",
            "dscp=ef,priority=0",
        ],
        None,
    )
    .unwrap();
    let file = r#"
        server = "S"
        path = ["wlan0", "wwan0,cost=2"]
        tun = "marline0"
        tun-setup = "on"
        tun-route = ["0.0.0.0/0"]
        tun-rule = ["dscp=ef,priority=0"]
        "#;
    assert_eq!(by_flags, client(&[], Some(file)).unwrap());
    let tun = by_flags.tun.unwrap();
    assert_eq!((tun.device.as_str(), tun.setup.on), ("marline0", true));
    // The dear path is for what the cheap one does not carry, unless somebody chooses otherwise.
    assert_eq!(tun.rules.scheduler, Some("brim".parse().unwrap()));
    let alike = ["--server", "S", "--path", "a0", "--path", "b0", "--tun=t1"];
    assert_eq!(
        client(&alike, None).unwrap().tun.unwrap().rules.scheduler,
        None
    );
    for name in ["redundant", "edpf"] {
        let chosen = ["--path", "c0,cost=1", "--scheduler", name];
        let chosen = [&alike[..], &chosen].concat();
        let tun = client(&chosen, None).unwrap().tun.unwrap();
        assert_eq!(tun.rules.scheduler, None, "{name}");
    }
    let none = client(&["--server", "S"], None).unwrap();
    assert_eq!(none.tun, None);

    let words = [
        "--allow-client",
        "K",
        "--tun",
        "--tun-state",
        "/state",
        "--tun-peers",
    ];
    let tun = server(&words).unwrap().tun.unwrap();
    assert_eq!(
        (tun.setup, tun.peers, tun.pool),
        (TunSetup::Off, true, None)
    );
    let words = [
        "--allow-client",
        "K",
        "--tun=t0",
        "--tun-setup=no-nat",
        "--tun-state",
        "off",
    ];
    let tun = server(&words).unwrap().tun.unwrap();
    assert_eq!((tun.setup, tun.state), (TunSetup::WithoutNat, None));
}

#[test]
fn translators_are_named_switched_off_or_looked_for() {
    let nat64 = |words: &[&str]| {
        let words = [&["--allow-client", "K"], words].concat();
        server(&words).map(|config| config.nat64)
    };
    let prefix = |text: &str| text.parse().unwrap();
    assert_eq!(nat64(&[]), Ok(None));
    assert_eq!(nat64(&["--nat64", "off"]), Ok(Some(Vec::new())));
    let two = ["--nat64", "2001:db8:64::/96", "--nat64", "2001:db8:1::/48"];
    let prefixes = vec![prefix("2001:db8:64::/96"), prefix("2001:db8:1::/48")];
    assert_eq!(nat64(&two), Ok(Some(prefixes)));
    for wrong in ["2001:db8::/44", "10.0.0.0/8", "on"] {
        let error = nat64(&["--nat64", wrong]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("--nat64 {wrong}: ")), "{error}");
    }
}

#[test]
fn a_target_for_all_holds_for_the_entries_that_have_one() {
    let read = |words: &[&str]| {
        let all = ["--server", "S", "--target", "9mbps"];
        client(&[&all, words].concat(), None)
    };
    let targets = |words: &[&str]| -> Vec<_> {
        let config = read(words).unwrap();
        config.live.iter().map(|entry| entry.needed_rate).collect()
    };
    let rate = Some(marline_base::Rate::from_mbps(9));
    let (plain, frames) = ("udp://:5000", "udp://:5002,name=b,deadline=80ms");
    assert_eq!(targets(&["--live", plain, "--live", frames]), [rate, None]);
    assert_eq!(targets(&["--live", "udp://:5000,objects=auto"]), [rate]);
    for words in [
        &["--live", frames][..],
        &["--live", plain, "--deadline", "80ms"],
        &["--live", "udp://:5000,objects=on"],
    ] {
        let error = read(words).unwrap_err();
        let shown = shown(&error);
        assert!(
            shown.contains("--target") && shown.contains("could hold for"),
            "{shown}"
        );
    }
    // The default, said aloud.
    let auto = ["--server", "S", "--target", "auto", "--live", frames];
    assert_eq!(client(&auto, None).unwrap().live[0].needed_rate, None);
}

#[test]
fn live_entries_have_a_scheduler_of_their_own_unless_one_is_named() {
    let scheduler = |words: &[&str]| {
        let words = [&["--server", "S"], words].concat();
        let config = client(&words, None).unwrap();
        config.live[0].scheduler.map(|choice| choice.to_string())
    };
    let hedge = Some("hedge:prompt=on".to_owned());
    assert_eq!(scheduler(&["--live", "udp://:5000"]), hedge);
    assert_eq!(scheduler(&["--live", "udp://:5000,scheduler=auto"]), hedge);
    let named = scheduler(&["--live", "udp://:5000,scheduler=min-rtt"]);
    assert_eq!(named.as_deref(), Some("min-rtt"));
    // Left to the flow's kind, for which one is named.
    for all in ["packets=redundant", "packets=edpf", "edpf"] {
        let words = ["--scheduler", all, "--live", "udp://:5000"];
        assert_eq!(scheduler(&words), None, "{all}");
    }
    for none in ["packets=auto", "auto", "stream=edpf"] {
        let words = ["--scheduler", none, "--live", "udp://:5000"];
        assert_eq!(scheduler(&words), hedge, "{none}");
    }
}
