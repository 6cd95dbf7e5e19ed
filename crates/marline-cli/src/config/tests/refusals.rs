//! What is refused: with the place, the value and the hint.

use super::*;

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
    for count in ["0", "257", "two"] {
        let error = server(&["--allow-client", "K", "--workers", count]).unwrap_err();
        let wrong = format!("--workers {count}: `{count}` is not a count from 1 to 256");
        assert!(error.to_string().starts_with(&wrong), "{error}");
    }
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
fn a_proxy_for_everybody_is_refused_unless_somebody_says_so() {
    for address in [
        "0.0.0.0:1080",
        "192.0.2.1:1080",
        "[::]:1080",
        "[2001:db8::1]:1080",
        "[::ffff:192.0.2.1]:1080",
        "[fe80::1]:1080",
    ] {
        let words = ["--server", "S", "--socks", address];
        let error = client(&words, None).unwrap_err();
        let text = shown(&error);
        let message = format!("--socks {address}: everybody who reaches that address could use");
        assert!(text.starts_with(&message), "{text}");
        let hint = error.hint().unwrap();
        for mend in ["--socks-password-file", "127.0.0.1:1080", "--socks-open"] {
            assert!(hint.contains(mend), "{hint}");
        }
        let open = client(&[&words[..], &["--socks-open"]].concat(), None).unwrap();
        assert_eq!(open.socks, Some(address.parse().unwrap()));
        client(&[&words[..], &["--socks-open=off"]].concat(), None).unwrap_err();
    }
    for own in [
        "127.0.0.1:1080",
        "127.9.9.9:1",
        "[::1]:1080",
        "[::ffff:127.0.0.1]:1",
        "off",
    ] {
        client(&["--server", "S", "--socks", own], None).unwrap();
    }
    let file = "server = \"S\"\nsocks = \"0.0.0.0:1080\"\n";
    let error = client(&[], Some(file)).unwrap_err();
    let place = "marline.toml:2: key `socks`: \"0.0.0.0:1080\": everybody";
    assert!(shown(&error).starts_with(place), "{}", shown(&error));
    client(&[], Some(&format!("{file}socks-open = \"on\"\n"))).unwrap();
}

#[test]
fn a_password_that_others_may_read_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "secret\n").unwrap();
    let path = file.path().to_str().unwrap();
    let words = [
        "--server",
        "S",
        "--socks",
        "0.0.0.0:1080",
        "--socks-user",
        "u",
        "--socks-password-file",
        path,
    ];
    for mode in [0o644, 0o640, 0o602] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let error = client(&words, None).unwrap_err();
        let message = format!("--socks-password-file {path}: its permissions are {mode:03o}");
        assert!(shown(&error).starts_with(&message), "{}", shown(&error));
        let hint = error.hint().unwrap();
        assert!(hint.contains(&format!("chmod 600 {path}")), "{hint}");
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap();
    let login = client(&words, None).unwrap().socks_login.unwrap();
    assert_eq!(login.password, "secret");
}

#[test]
fn a_configuration_that_everybody_may_change_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path();
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    let error = Source::load(RawServer::default(), Some(path)).unwrap_err();
    let message = format!("{}: its permissions are 666", path.display());
    assert!(error.to_string().starts_with(&message), "{error}");
    let mend = format!("chmod o-w {}", path.display());
    assert!(error.hint().unwrap().contains(&mend));
}

#[test]
fn the_page_is_for_this_host_or_for_who_logs_in() {
    for address in ["127.0.0.1:9080", "127.9.9.9:0", "[::1]:9080"] {
        let config = client(&["--server", "S", "--web", address], None).unwrap();
        assert_eq!(config.common.web.unwrap().address.to_string(), address);
    }
    for open in ["0.0.0.0:9080", "[::]:9080", "192.0.2.7:9080"] {
        let error = server(&["--allow-client", "K", "--web", open]).unwrap_err();
        assert!(
            shown(&error).starts_with(&format!("--web {open}: ")),
            "{}",
            shown(&error)
        );
        let mend = error.hint().unwrap();
        assert!(mend.contains("ssh -L 9080:127.0.0.1:9080 HOST"), "{mend}");
        assert!(mend.contains("`web-login`"), "{mend}");
        let words = ["--allow-client", "K", "--web", open, "--web-login", "/p"];
        let config = server(&words).unwrap();
        let login = config.common.web.unwrap().login.unwrap();
        assert_eq!(login.password, std::path::Path::new("/p"));
    }
    for (flags, lacks) in [
        (["--web-login", "/p"], "`web` is not given"),
        (["--web-certificate", "/c"], "`web-login` is not given"),
    ] {
        let words = [["--server", "S"], flags].concat();
        let error = client(&words, None).unwrap_err();
        assert!(shown(&error).contains(lacks), "{}", shown(&error));
    }
    let words = [
        "--server",
        "S",
        "--web",
        "127.0.0.1:9",
        "--metrics",
        "127.0.0.1:9",
    ];
    let error = client(&words, None).unwrap_err();
    assert!(
        shown(&error).contains("that port is taken by --metrics"),
        "{}",
        shown(&error)
    );
}

#[test]
fn only_names_of_hosts_are_names_of_metrics() {
    let words = ["--server", "S", "--metrics-name", "Router.example"];
    let names = client(&words, None).unwrap().common.metrics_names;
    assert!(names.len() == 1 && names[0].eq_ignore_ascii_case("router.example"));
    for wrong in ["router.example:9900", "192.0.2.1", "", "a b"] {
        let words = ["--server", "S", "--metrics-name", wrong];
        let error = client(&words, None).unwrap_err();
        assert!(
            shown(&error).starts_with("--metrics-name"),
            "{}",
            shown(&error)
        );
    }
    let words = [
        "--allow-client",
        "K",
        "--advertise",
        "vpn.example",
        "--advertise",
        "[::1]",
    ];
    let names = server(&words).unwrap().common.metrics_names;
    assert_eq!(names, ["vpn.example"]);
}

#[test]
fn a_running_server_may_lose_its_last_client() {
    let nobody = || Source::flags(RawServer::default());
    assert!(ServerConfig::check(&nobody()).is_err());
    let config = ServerConfig::check_running(&nobody()).unwrap();
    assert!(config.allow_clients.is_empty());
}
