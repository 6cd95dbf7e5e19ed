//! What is refused of tunnels, published ports and the proxy's addresses.

use super::*;

#[test]
fn an_address_for_datagrams_that_helps_nobody_is_refused() {
    for (words, reason, mend) in [
        (
            &["--socks-udp-address", "0.0.0.0"][..],
            "nobody can send",
            "at which programs reach",
        ),
        (
            &["--socks-udp-address", "192.0.2.7:1"],
            "is no address",
            "without a port",
        ),
        (
            &["--socks-udp-address", "192.0.2.7", "--socks", "off"],
            "--socks-udp-address 192.0.2.7: there is no proxy",
            "--socks off",
        ),
    ] {
        let error = client(&[&["--server", "S"], words].concat(), None).unwrap_err();
        assert!(shown(&error).contains(reason), "{error}");
        assert!(error.hint().unwrap_or_default().contains(mend), "{error:?}");
    }
    let words = ["--server", "S", "--socks-udp-address", "192.0.2.7"];
    let config = client(&words, None).unwrap();
    assert_eq!(config.socks_udp_address, Some("192.0.2.7".parse().unwrap()));
}

#[test]
fn wrong_published_ports_are_refused_with_the_mend() {
    for (words, reason, mend) in [
        (
            &["--publish", "8443"][..],
            "--publish 8443: not a published port",
            "tcp:8443=127.0.0.1:443",
        ),
        (
            &["--publish", "tcp:1=a:1", "--publish", "tcp:1=b:1"],
            "--publish tcp:1=b:1: tcp:1 leads to tcp:a:1 already",
            "another port of the server",
        ),
    ] {
        let error = client(&[&["--server", "S"], words].concat(), None).unwrap_err();
        assert!(shown(&error).contains(reason), "{error}");
        assert!(error.hint().unwrap_or_default().contains(mend), "{error:?}");
    }
    let many: Vec<String> = (1..=33).map(|port| format!("tcp:{port}=a:1")).collect();
    let words: Vec<&str> = many.iter().flat_map(|port| ["--publish", port]).collect();
    assert!(client(&[&["--server", "S"], &words[..64]].concat(), None).is_ok());
    let error = client(&[&["--server", "S"], &words[..]].concat(), None).unwrap_err();
    assert!(shown(&error).contains("at most 32 ports"), "{error}");

    let permit = format!("{}=tcp:8443", spelt_out("K"));
    for (words, reason) in [
        (&["--allow-publish", "K"][..], "it names no ports"),
        (
            &["--publish-address", "::1"],
            "no client may publish a port there",
        ),
        (
            &["--allow-publish", &permit, "--publish-address", "::1:80:x"],
            "is no address",
        ),
        (
            &[
                "--allow-publish",
                &permit,
                "--publish-address",
                "::1",
                "--publish-address",
                "::1",
            ],
            "given twice",
        ),
    ] {
        let error = server(&[&["--allow-client", "K"], words].concat()).unwrap_err();
        assert!(shown(&error).contains(reason), "{error}");
    }
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
        (
            &["--tun", "--tun-setup=no-nat"],
            "none of on, off, gateway and strict",
            "",
        ),
        (
            &["--tun", "--tun-route", "10.1.2.3/16"],
            "bits set",
            "write `10.1.0.0/16`",
        ),
        (
            &["--tun-announce", "192.168.7.0/24"],
            "--tun-announce 192.168.7.0/24: there is no tunnel",
            "add --tun",
        ),
        (
            &["--tun", "--tun-announce", "192.168.7.1/24"],
            "bits set",
            "write `192.168.7.0/24`",
        ),
        (
            &["--tun", "--tun-dns", "resolver.example"],
            "`resolver.example` is no address",
            "write `9.9.9.9`",
        ),
        (
            &["--tun", "--tun-dns", "9.9.9.9,a b"],
            "`a b` is no domain",
            "",
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
        (&["--allow-prefix", "K=10.1.0.0/16"], "there is no tunnel"),
    ] {
        let words = [&["--allow-client", "K"], words].concat();
        let error = server(&words).unwrap_err();
        assert!(shown(&error).contains(reason), "{error}");
    }
}

/// A server by a list of clients with these lines, in which `K` and `L` stand for keys.
fn listed(text: &str, words: &[&str]) -> Result<ServerConfig, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("marline.toml-clients");
    let other = PublicKey::from_bytes([8; 32]).to_string();
    let text = text.replace(" K", &format!(" {}", spelt_out("K")));
    fs::write(&file, text.replace(" L", &format!(" {other}"))).unwrap();
    let list = ["--allow-clients-file", file.to_str().unwrap()];
    server(&[&list, words].concat())
}

#[test]
fn what_a_client_is_granted_stands_before_its_key() {
    let text =
        "# ours\ndown=20mbit,publish=tcp:8443,address=10.77.0.9,prefix=192.168.7.0/24 K van\n K2";
    let text = text.replace(" K2", "");
    let config = listed(&text, &["--tun"]).unwrap();
    let key: PublicKey = spelt_out("K").parse().unwrap();
    let grants = &config.grants;
    assert_eq!(grants.limits[&key].down.unwrap().as_bps(), 20_000_000);
    assert_eq!(
        grants.addresses[&key],
        std::net::IpAddr::from([10, 77, 0, 9])
    );
    assert!(!grants.permits.is_empty() && !grants.targets.contains_key(&key));
    assert_eq!(config.tun.unwrap().prefixes, grants.prefixes);
    assert_eq!(config.allow_clients.name(&key).as_deref(), Some("van"));
    // The same as a flag.
    let line = format!("up=1mbit {}", spelt_out("K"));
    let config = server(&["--allow-client", &line]).unwrap();
    assert_eq!(config.grants.limits[&key].up.unwrap().as_bps(), 1_000_000);
    // Old lists stay as they were.
    let config = listed(" K a van\n L\n", &[]).unwrap();
    assert_eq!(config.allow_clients.len(), 2);
    assert!(config.grants.limits.is_empty() && config.grants.permits.is_empty());
}

#[test]
fn wrong_grants_are_refused_with_file_line_key_and_mend() {
    for (text, place, mend) in [
        (
            "\ndwon=1mbit K",
            "marline.toml-clients:2: key `dwon`: \"dwon=1mbit\": there is no",
            "down",
        ),
        (
            "up=fast K",
            "marline.toml-clients:1: key `up`: \"up=fast\": `fast`",
            "",
        ),
        (
            "up=9kbit,down=1mbit K",
            "clients:1: key `up`: \"up=9kbit\": `9kbit` is too slow",
            "100kbit",
        ),
        ("publish=8443 K", "clients:1: key `publish`", "tcp:PORT"),
        (
            "prefix=10.1.0.0/16 K\nprefix=10.1.2.0/24 L",
            "overlaps 10.1.",
            "",
        ),
        (
            "address=10.77.0.9 K\naddress=10.77.0.9 L",
            "`10.77.0.9` is given already",
            "an address of its own",
        ),
    ] {
        let error = listed(text, &[]).expect_err(text);
        // Those of two lines name one of them.
        assert!(
            shown(&error).contains("clients:") && shown(&error).contains(place),
            "{error}"
        );
        assert!(error.hint().unwrap_or_default().contains(mend), "{error:?}");
    }
    let pool = "10.77.0.0/24,fd77::/64".parse().unwrap();
    for (text, fits) in [
        ("address=10.77.0.9 K", true),
        ("address=fd77::9 K", true),
        ("address=10.77.0.1 K", false),
        ("address=10.78.0.9 K", false),
        ("address=10.77.0.9 K\naddress=fd77::9 L", false),
        ("prefix=10.77.0.128/25 K", false),
    ] {
        let config = listed(text, &["--tun"]).unwrap();
        assert_eq!(config.grants.fit(&pool).is_ok(), fits, "{text}");
    }
}
