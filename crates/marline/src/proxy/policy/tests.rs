use super::*;

fn policy(allow: &[&str], deny: &[&str]) -> Policy {
    let rules = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
    Policy::new(rules(allow), rules(deny))
}

/// Whether `policy` lets a client that named `host` reach `address`.
fn allows(policy: &Policy, host: &str, address: &str) -> bool {
    let host = match host {
        "" => Host::Ip(address.parse::<SocketAddr>().unwrap().ip()),
        name => Host::Name(name.to_owned()),
    };
    policy.check(&host, address.parse().unwrap()).is_ok()
}

#[test]
fn only_public_addresses_by_default() {
    let default = Policy::default();
    for public in [
        "1.1.1.1:443",
        "100.63.255.255:1",
        "100.128.0.0:1",
        "172.32.0.1:80",
        "[2606:4700::1111]:443",
    ] {
        assert!(allows(&default, "", public), "{public}");
    }
    for special in [
        "127.0.0.1:80",
        "127.255.255.254:80",
        "0.0.0.0:80",
        "0.1.2.3:80",
        "10.255.0.1:80",
        "172.16.0.1:80",
        "172.31.255.255:80",
        "192.168.1.1:80",
        "169.254.169.254:80",
        "100.64.0.1:80",
        "100.127.255.255:80",
        "192.0.2.1:80",
        "198.51.100.7:80",
        "203.0.113.7:80",
        "198.19.0.1:80",
        "224.0.0.251:5353",
        "239.255.255.250:1900",
        "255.255.255.255:67",
        "[::]:80",
        "[::1]:80",
        "[fe80::1]:80",
        "[febf::1]:80",
        "[fd00::1]:80",
        "[ff02::fb]:5353",
        "[2001:db8::1]:80",
        "[3fff::1]:80",
        // IPv4 in IPv6 clothes: mapped, compatible, NAT64, 6to4.
        "[::ffff:127.0.0.1]:80",
        "[::ffff:192.168.1.1]:80",
        "[::ffff:100.64.0.1]:80",
        "[::127.0.0.1]:80",
        "[64:ff9b::10.0.0.1]:80",
        "[2002:7f00:1::]:80",
        "[2002:c0a8:101::1]:80",
    ] {
        assert!(!allows(&default, "", special), "{special}");
        // A name that resolves to it does not help.
        assert!(!allows(&default, "innocent.example", special), "{special}");
    }
    assert!(allows(&default, "", "[::ffff:1.1.1.1]:443"));
    assert!(allows(&default, "", "[64:ff9b::1.1.1.1]:443"));
}

#[test]
fn only_an_address_rule_within_a_special_range_opens_it() {
    for (rule, address, open) in [
        ("127.0.0.1", "127.0.0.1:80", true),
        ("127.0.0.1", "127.0.0.2:80", false),
        ("127.0.0.1", "[::ffff:127.0.0.1]:80", true),
        ("10.1.0.0/16", "10.1.2.3:80", true),
        ("10.1.0.0/16", "10.2.2.3:80", false),
        ("10.0.0.0/8", "10.2.2.3:80", true),
        ("10.1.0.0/16:443", "10.1.2.3:443", true),
        ("10.1.0.0/16:443", "10.1.2.3:80", false),
        ("[fd00::/8]:80-89", "[fd00::1]:85", true),
        ("[fd00::/8]:80-89", "[fd00::1]:90", false),
        ("::1", "[::1]:80", true),
        ("0.0.0.0/0", "10.1.2.3:80", false),
        ("0.0.0.0/0", "127.0.0.1:80", false),
        ("::/0", "[::1]:80", false),
        ("*", "127.0.0.1:80", false),
        ("*:80", "192.168.0.1:80", false),
        ("localhost", "127.0.0.1:80", false),
    ] {
        assert_eq!(
            allows(&policy(&[rule], &[]), "localhost", address),
            open,
            "{rule} {address}"
        );
    }
}

#[test]
fn an_allow_list_is_the_whole_list() {
    let lan = policy(&["10.0.0.0/8"], &[]);
    assert!(!allows(&lan, "", "1.1.1.1:443"));
    assert!(allows(
        &policy(&["10.0.0.0/8", "*"], &[]),
        "",
        "1.1.1.1:443"
    ));
    let web = policy(&["*:80", "*:443"], &[]);
    assert!(allows(&web, "", "1.1.1.1:443"));
    assert!(!allows(&web, "", "1.1.1.1:25"));
}

#[test]
fn names_match_whole_labels() {
    let named = policy(&["example.com", "*.example.org:443"], &[]);
    for (name, port, allowed) in [
        ("example.com", 80, true),
        ("example.com.", 80, true),
        ("www.example.com", 80, false),
        ("badexample.com", 80, false),
        ("www.example.org", 443, true),
        ("a.b.example.org.", 443, true),
        ("example.org", 443, false),
        ("badexample.org", 443, false),
        ("www.example.org", 80, false),
    ] {
        assert_eq!(
            allows(&named, name, &format!("1.1.1.1:{port}")),
            allowed,
            "{name}:{port}"
        );
    }
    assert!(!allows(&named, "", "1.1.1.1:80"));
}

#[test]
fn deny_wins_over_allow() {
    let rules = policy(
        &["10.0.0.0/8", "*"],
        &["10.9.0.0/16", "*:25", "*.bad.example", "1.0.0.1"],
    );
    assert!(allows(&rules, "", "10.8.0.1:80"));
    for (host, address) in [
        ("", "10.9.0.1:80"),
        ("", "1.1.1.1:25"),
        ("x.bad.example", "1.1.1.1:80"),
        ("", "1.0.0.1:80"),
        ("", "[::ffff:1.0.0.1]:80"),
        ("", "[64:ff9b::1.0.0.1]:80"),
    ] {
        assert!(!allows(&rules, host, address), "{host} {address}");
    }
}

#[test]
fn a_denial_says_why() {
    let check = |policy: &Policy, address: &str| {
        let address: SocketAddr = address.parse().unwrap();
        policy
            .check(&Host::Ip(address.ip()), address)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        check(&Policy::default(), "127.0.0.1:80"),
        "127.0.0.1 is loopback, and no allow-target rule names it by address"
    );
    assert_eq!(
        check(&policy(&[], &["1.0.0.0/8:25"]), "1.1.1.1:25"),
        "the rule `1.0.0.0/8:25` denies it"
    );
    assert_eq!(
        check(&policy(&["*:80"], &[]), "1.1.1.1:25"),
        "no allow-target rule matches it"
    );
}

#[test]
fn a_written_rule_reads_back_the_same() {
    for text in [
        "*",
        "*:80",
        "example.com:1-2",
        "*.example.com",
        "10.0.0.0/8",
        "[fd00::/8]:80-89",
        "[::1/128]",
    ] {
        assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
    }
}

#[test]
fn wrong_rules_are_refused_with_the_reason() {
    for (text, reason) in [
        ("", "neither a host pattern"),
        ("10.0.0.0/33", "not a network"),
        ("10.0.0.1/8", "bits set behind"),
        ("a b", "neither a host pattern"),
        ("*.*.com", "neither a host pattern"),
        ("ex*mple.com", "neither a host pattern"),
        ("*:0", "not a port"),
        ("*:http", "not a port"),
        ("*:90-80", "wrong way round"),
        ("[fd00::/8", "closing"),
        ("[fd00::/8]80", "not a port"),
    ] {
        let problem = text.parse::<Rule>().expect_err(text);
        assert!(problem.message.contains(reason), "{text}: {problem}");
    }
}
