use super::*;
use crate::identity::{ConnectionString, PublicKey};
use marline_proto::wire::FlowKind;
use std::fs;

fn flags<R: Raw>(words: &[&str]) -> R {
    let command = R::augment_args(clap::Command::new("marline").no_binary_name(true));
    R::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn help_of<R: Raw>(flag: &str) -> String {
    let command = R::augment_args(clap::Command::new("marline"));
    let argument = command.get_arguments().find(|a| a.get_long() == Some(flag));
    argument.unwrap().get_help().unwrap().to_string()
}

/// Connection strings for the words `S` and `T`, a key for `K`: the tests are about everything else.
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
            "--metrics",
            "127.0.0.1:9900",
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
            metrics = "127.0.0.1:9900"
            control = "/c.sock"
            idle-timeout = "2m"
            repair-budget = "20%"
            "#,
        ),
    )
    .unwrap();
    assert_eq!(by_flags, by_file);
    assert_eq!(by_flags.common.session().repair_budget, 0.2);
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
    assert_eq!(config.common.congestion.name, "cubic");
}

#[test]
fn defaults_are_those_that_the_help_promises() {
    let config = client(&["--server", "S"], None).unwrap();
    assert_eq!(config.socks, Some("127.0.0.1:1080".parse().unwrap()));
    assert_eq!(config.paths, [PathSpec::default()]);
    assert_eq!(config.common.congestion.name, "bbr-gentle");
    assert_eq!(config.common.idle_timeout.as_secs(), 60);
    assert_eq!(config.common.metrics, None);
    let config = server(&["--allow-client", "K"]).unwrap();
    assert_eq!(
        config.listen,
        [
            "0.0.0.0:4433".parse().unwrap(),
            "[::]:4433".parse().unwrap()
        ]
    );
    assert_eq!(config.max_flows, 1024);
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
fn errors_in_a_file_name_line_key_value_and_mend() {
    for (text, message, hint) in [
        (
            "server = \"S\"\nsocs = \"127.0.0.1:1\"\n",
            "marline.toml:2: unknown key `socs`",
            "`socks`",
        ),
        (
            "listen = [\"0.0.0.0:1\"]\n",
            "marline.toml:1: unknown key `listen`",
            "marline server",
        ),
        (
            "server = \"S\"\n\npath = \"wlan0\"\n",
            "marline.toml:3: key `path`: invalid type",
            "write a list",
        ),
        (
            "server = \"S\"\nidle-timeout = 5\n",
            "marline.toml:2: key `idle-timeout`: invalid type",
            "in quotes",
        ),
        (
            "server = \"S\"\npath = [\n  \"wlan0\",\n  \"wlan0\",\n]\n",
            "marline.toml:4: key `path`: \"wlan0\": the same path",
            "",
        ),
        (
            "server = \"S\"\nscheduler = [\"fastest\"]\n",
            "marline.toml:2: key `scheduler`: \"fastest\": unknown scheduler `fastest`",
            "known schedulers: auto, ",
        ),
        (
            "server = \"S\"\nscheduler = [\"packets=ols-x\"]\n",
            "marline.toml:2: key `scheduler`: \"packets=ols-x\": unknown scheduler `ols-x`",
            "it is called `hedge` here",
        ),
        (
            "server = \"S\"\nserver = \"T\"\n",
            "marline.toml:2: key `server`: it is given already, in line 1",
            "leave one",
        ),
        (
            "path = [\"a\"]\npath = [\"b\"]\n",
            "marline.toml:2: key `path`: it is given already, in line 1",
            "`path = [\"...\", \"...\"]`",
        ),
        (
            "socks = \"127.0.0.1:1\"\n",
            "marline.toml: key `server`: no server is given",
            "--server",
        ),
    ] {
        let error = client(&[], Some(text)).unwrap_err();
        assert!(
            shown(&error).starts_with(message),
            "{message}\nis not the start of\n{}",
            shown(&error)
        );
        let found = error.hint().unwrap_or_default();
        assert!(
            found.contains(hint),
            "{hint} is not in {found:?} for {text}"
        );
    }
}

#[test]
fn errors_in_lists_and_tables_name_the_key_that_holds_them() {
    for (text, message, hint) in [
        (
            "path = [\n  \"wlan0\",\n  5,\n]\n",
            "marline.toml:3: key `path`: invalid type: integer",
            "in quotes",
        ),
        // The text before a `=` is no key.
        (
            "path = [\n  \"wlan0,cost=2\"\n  \"wwan0,cost=1\",\n]\n",
            "marline.toml:3: key `path`: missing comma",
            "",
        ),
        (
            "path = [\n  \"wlan0\",\n  wwan0,\n]\n",
            "marline.toml:3: key `path`: string values must be quoted",
            "in quotes",
        ),
        (
            "[[path]]\naddress = \"wlan0\"\n",
            "marline.toml:1: key `path`: invalid type: map",
            "`path = [\"...\"]`",
        ),
        (
            "[path]\naddress = \"wlan0\"\n",
            "marline.toml:1: key `path`: invalid type: map",
            "`path = [\"...\"]`",
        ),
        (
            "[live]\naddress = \"udp://:1\"\n",
            "marline.toml:1: key `live`: invalid type: map",
            "write `[[live]]`",
        ),
        (
            "[live]\naddress = \"udp://:1\"\n[live]\naddress = \"udp://:2\"\n",
            "marline.toml:3: key `live`: it is given twice",
            "write `[[live]]`",
        ),
        (
            "[[live]]\naddress = \"udp://:1\"\n\n[[live]]\nname = \"b\"\n",
            "marline.toml:4: key `live`: missing field `address`",
            "a line such as `address = ",
        ),
        (
            "[[live]]\naddress = \"udp://:1\"\npriority = 3\n",
            "marline.toml:3: key `live.priority`: invalid type: integer",
            "in quotes",
        ),
        (
            "[[live]]\naddress = \"udp://:1\"\n[[live]]\naddress = \"udp://:2\"\naddress = \"udp://:3\"\n",
            "marline.toml:5: key `address`: it is given already, in line 4",
            "leave one",
        ),
    ] {
        let error = client(&[], Some(text)).unwrap_err();
        let found = shown(&error);
        assert!(
            found.starts_with(message),
            "{message}\nis not the start of\n{found}"
        );
        let found = error.hint().unwrap_or_default();
        assert!(
            found.contains(hint),
            "{hint} is not in {found:?} for {text}"
        );
    }
}

#[test]
fn errors_in_flags_name_the_flag_and_the_value() {
    for (words, message) in [
        (vec![], "--server: no server is given"),
        (vec!["--path", "a,server=h:0"], "--path a,server=h:0: "),
        (
            vec!["--socks", "localhost:1080"],
            "--socks localhost:1080: `localhost:1080` is not an address",
        ),
        (
            vec!["--congestion", "vegas"],
            "--congestion vegas: unknown congestion controller",
        ),
        (
            vec!["--idle-timeout", "0s"],
            "--idle-timeout 0s: `0s` is not between",
        ),
        (
            vec!["--socks-user", "u"],
            "--socks-password-file: `socks-user` needs it",
        ),
        (
            vec![
                "--socks-user",
                "u",
                "--socks-password-file",
                "/nowhere/at/all",
            ],
            "--socks-password-file /nowhere",
        ),
        (
            vec!["--path", "a,name=x", "--path", "b,name=x"],
            "--path b,name=x: another path has the name `x`",
        ),
        (
            vec!["--scheduler", "edpf", "--scheduler", "stream=edpf"],
            "--scheduler stream=edpf: a scheduler for stream",
        ),
        (
            vec!["--scheduler", "hop-jump:refuse=off"],
            "--scheduler hop-jump:refuse=off: scheduler `hop-jump` serves blocks flows only",
        ),
        (
            vec!["--scheduler", "voices=edpf"],
            "--scheduler voices=edpf: unknown kind of flow",
        ),
        (
            vec!["--scheduler", "stream=edpf:horizn=1s"],
            "--scheduler stream=edpf:horizn=1s: scheduler `edpf` has no option `horizn`",
        ),
        (
            vec!["--scheduler", "edpf:horizon=1h"],
            "--scheduler edpf:horizon=1h: option `horizon` does not take `1h`",
        ),
        (
            vec![
                "--forward",
                "tcp:127.0.0.1:1=a:1",
                "--forward",
                "tcp:127.0.0.1:1=b:1",
            ],
            "--forward tcp:127.0.0.1:1=b:1: that port is taken by --forward tcp:127.0.0.1:1=a:1",
        ),
    ] {
        let mut all = words.clone();
        if !words.is_empty() {
            all.extend(["--server", "S"]);
        }
        let error = client(&all, None).unwrap_err();
        assert!(
            error.to_string().starts_with(message),
            "{message}\nis not the start of\n{error}"
        );
    }
}

#[test]
fn a_scheduler_of_blocks_or_objects_says_how_it_is_named() {
    for name in ["hop-jump", "sos"] {
        let error = client(&["--server", "S", "--scheduler", name], None).unwrap_err();
        let hint = error.hint().unwrap_or_default();
        let kind = name
            .parse::<marline_proto::sched::Choice>()
            .unwrap()
            .entry()
            .kinds[0];
        let way = format!("{}={name}", kind.name());
        assert!(hint.contains(&format!("`{way}`")), "{hint}");
        assert!(client(&["--server", "S", "--scheduler", &way], None).is_ok());
    }
    for help in [
        help_of::<RawClient>("scheduler"),
        help_of::<RawServer>("scheduler"),
    ] {
        for kind in FlowKind::ALL {
            assert!(help.contains(&format!("{}=", kind.name())), "{help}");
        }
    }
}

#[test]
fn a_server_that_would_let_nobody_in_is_refused() {
    let error = server(&[]).unwrap_err();
    assert!(
        error.to_string().contains("no client would be let in"),
        "{error}"
    );
    let error = server(&["--allow-clients-file", "/nowhere/clients"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("--allow-clients-file /nowhere/clients: "),
        "{error}"
    );
    let error = server(&["--allow-client", "K", "--allow-clients-file", "f"]).unwrap_err();
    assert!(error.to_string().contains("is given too"), "{error}");
    let error = server(&["--allow-client", "marline-pub:abc"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("--allow-client marline-pub:abc: "),
        "{error}"
    );
    assert_eq!(
        server(&["--allow-client", "K"])
            .unwrap()
            .allow_clients
            .len(),
        1
    );
    let error = server(&["--allow-client", "K", "--allow-target", "10.0.0.0/40"]).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("--allow-target 10.0.0.0/40: "),
        "{error}"
    );
    let error = server(&["--allow-client", "K", "--max-flows", "0"]).unwrap_err();
    assert!(error.to_string().starts_with("--max-flows 0: "), "{error}");
    let error = server(&[
        "--allow-client",
        "K",
        "--listen",
        "[::]:1",
        "--listen",
        "[::]:1",
    ])
    .unwrap_err();
    assert!(error.to_string().contains("twice"), "{error}");
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
fn two_values_that_ask_for_one_port_are_both_named() {
    for (words, message) in [
        (
            &[
                "--live",
                "udp://:5000",
                "--live",
                "udp://127.0.0.1:5000,name=b",
            ][..],
            "--live udp://127.0.0.1:5000,name=b: that port is taken by --live udp://:5000",
        ),
        (
            &[
                "--forward",
                "udp:127.0.0.1:5000=h:1",
                "--live",
                "udp://:5000",
            ],
            "--live udp://:5000: that port is taken by --forward udp:127.0.0.1:5000=h:1",
        ),
        (
            &["--metrics", "0.0.0.0:1080"],
            "--metrics 0.0.0.0:1080: that port is taken by 127.0.0.1:1080, the default of `socks`",
        ),
    ] {
        let error = client(&[&["--server", "S"], words].concat(), None).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert!(error.hint().unwrap_or_default().contains("another port"));
    }
    let file = "server = \"S\"\nlive = [\n  \"udp://:5000\",\n  \"udp://:5000,name=b\",\n]\n";
    assert_eq!(
        shown(&client(&[], Some(file)).unwrap_err()),
        "marline.toml:4: key `live`: \"udp://:5000,name=b\": \
         that port is taken by `live` \"udp://:5000\" in line 3"
    );
    let server = |words: &[&str]| server(&[&["--allow-client", "K"], words].concat());
    let metrics = ["--listen", "127.0.0.1:9", "--metrics", "127.0.0.1:9"];
    let error = server(&metrics).unwrap_err().to_string();
    assert_eq!(
        error,
        "--metrics 127.0.0.1:9: that port is taken by --listen 127.0.0.1:9"
    );
    assert!(server(&[&metrics[..], &["--tcp", "off"]].concat()).is_ok());
    // Where they differ, or the system may allow both.
    for words in [
        &[
            "--live",
            "udp://127.0.0.1:1",
            "--live",
            "udp://127.0.0.2:1,name=b",
        ][..],
        &["--live", "udp://:0", "--live", "udp://:0,name=b"],
        &["--live", "udp://[::]:1", "--live", "udp://:1,name=b"],
    ] {
        assert!(
            client(&[&["--server", "S"], words].concat(), None).is_ok(),
            "{words:?}"
        );
    }
}

#[test]
fn the_help_lists_every_option_of_a_path() {
    let help = help_of::<RawClient>("path");
    for option in PathSpec::OPTIONS {
        assert!(help.contains(&format!("[,{option}")), "{option}: {help}");
    }
}

#[test]
fn files_named_in_a_file_are_relative_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("marline.toml");
    let keys = "identity = \"key\"\nsocks-user = \"u\"\nsocks-password-file = \"pw\"\n";
    fs::write(&path, format!("server = \"{}\"\n{keys}", spelt_out("S"))).unwrap();
    fs::write(folder.path().join("pw"), "secret\nsecond line\n").unwrap();
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
fn a_missing_or_binary_file_is_named() {
    let error =
        Source::load(RawClient::default(), Some("/nowhere/marline.toml".as_ref())).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/marline.toml: cannot read"),
        "{error}"
    );
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
    assert_eq!((tun.device.as_str(), tun.setup), ("marline0", true));
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
fn wrong_tunnels_are_refused_with_the_mend() {
    for (words, reason, mend) in [
        (
            &["--tun-setup"][..],
            "--tun-setup on: there is no tunnel",
            "add --tun",
        ),
        (
            &["--tun-rule", "port=1"],
            "--tun-rule port=1: there is no",
            "add --tun",
        ),
        (
            &["--tun=a/b"],
            "--tun a/b: `a/b` is no name",
            "1 to 15 letters",
        ),
        (&["--tun", "--tun-setup=no-nat"], "neither on nor off", ""),
        (
            &["--tun", "--tun-route", "10.1.2.3/16"],
            "bits set",
            "write `10.1.0.0/16`",
        ),
        (
            &["--tun", "--tun-rule", "priorit=1"],
            "unknown option `priorit`",
            "`priority`",
        ),
        (
            &["--tun", "--tun-route", "0.0.0.0/0", "--path", "192.0.2.1"],
            "path 192.0.2.1 would be routed into its own tunnel",
            "name the interface",
        ),
    ] {
        let words = [&["--server", "S"], words].concat();
        let error = client(&words, None).unwrap_err();
        assert!(shown(&error).contains(reason), "{error}");
        assert!(error.hint().unwrap_or_default().contains(mend), "{error:?}");
    }
    for (words, reason) in [
        (&["--tun-pool", "10.0.0.0/24"][..], "there is no tunnel"),
        (&["--tun", "--tun-pool", "10.0.0.0"], "is not a network"),
        (&["--tun", "--tun-setup=yes"], "none of on, off and no-nat"),
        (&["--tun", "--tun-peers=yes"], "neither on nor off"),
    ] {
        let words = [&["--allow-client", "K"], words].concat();
        let error = server(&words).unwrap_err();
        assert!(shown(&error).contains(reason), "{error}");
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
        config.live.iter().map(|entry| entry.target).collect()
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
    assert_eq!(client(&auto, None).unwrap().live[0].target, None);
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
