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
