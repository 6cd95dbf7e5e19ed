use super::*;

fn policy(allow: &[&str], deny: &[&str]) -> Judge {
    judge(allow, deny, &[], &[])
}

/// At a host that has `own` addresses, in a network whose translators have these prefixes.
pub(crate) fn judge(allow: &[&str], deny: &[&str], own: &[&str], nat64: &[&str]) -> Judge {
    let rules = |list: &[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
    let prefixes = nat64.iter().map(|text| text.parse().unwrap()).collect();
    let translators = Arc::new(Translators::configured(prefixes));
    judge_by(Policy::new(rules(allow), rules(deny)), own, translators)
}

/// At a host that has `own` addresses, in a network that has these translators.
pub(crate) fn judge_by(rules: Policy, own: &[&str], translators: Arc<Translators>) -> Judge {
    Judge::new(rules, Arc::new(own::tests::host_with(own)), translators)
}

/// Whether `policy` lets a client that named `host` reach `address`.
fn allows(policy: &Judge, host: &str, address: &str) -> bool {
    let host = match host {
        "" => Host::Ip(address.parse::<SocketAddr>().unwrap().ip()),
        name => Host::Name(name.to_owned()),
    };
    policy.check(&host, address.parse().unwrap()).is_ok()
}

#[test]
fn only_public_addresses_by_default() {
    let default = policy(&[], &[]);
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
    let check = |policy: &Judge, address: &str| {
        let address: SocketAddr = address.parse().unwrap();
        policy
            .check(&Host::Ip(address.ip()), address)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        check(&policy(&[], &[]), "127.0.0.1:80"),
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

#[test]
fn the_hosts_own_addresses_need_an_address_rule() {
    let own = ["9.9.9.9", "2606:4700::9", "10.9.0.1"];
    for (allow, address, open) in [
        (&[][..], "9.9.9.9:80", false),
        (&[], "9.9.9.8:80", true),
        (&[], "[2606:4700::9]:80", false),
        (&[], "[2606:4700::8]:80", true),
        (&["*"], "9.9.9.9:80", false),
        (&["*:80"], "9.9.9.9:80", false),
        (&["this.example"], "9.9.9.9:80", false),
        (&["*.example"], "9.9.9.9:80", false),
        // Everything is no address.
        (&["0.0.0.0/0"], "9.9.9.9:80", false),
        (&["::/0"], "[2606:4700::9]:80", false),
        (&["9.9.9.9"], "9.9.9.9:80", true),
        (&["9.9.9.0/24"], "9.9.9.9:80", true),
        (&["9.9.9.9:80"], "9.9.9.9:80", true),
        (&["9.9.9.9:80"], "9.9.9.9:81", false),
        (&["*", "9.9.9.9:80"], "9.9.9.9:81", false),
        (&["2606:4700::9"], "[2606:4700::9]:80", true),
        (&["10.9.0.0/16"], "10.9.0.1:80", true),
        (&["*"], "10.9.0.1:80", false),
        // In IPv6 clothes.
        (&[], "[::ffff:9.9.9.9]:80", false),
        (&[], "[::9.9.9.9]:80", false),
        (&[], "[::ffff:0:9.9.9.9]:80", false),
        (&[], "[64:ff9b::9.9.9.9]:80", false),
        (&[], "[2002:909:909::1]:80", false),
        (&[], "[64:ff9b::9.9.9.8]:80", true),
        (&["*", "9.9.9.9"], "[64:ff9b::9.9.9.9]:80", true),
    ] {
        let judge = judge(allow, &[], &own, &[]);
        assert_eq!(
            allows(&judge, "this.example", address),
            open,
            "{allow:?} {address}"
        );
    }
    let denied = judge(&["9.9.9.9"], &["*:22"], &own, &[]);
    assert!(!allows(&denied, "", "9.9.9.9:22") && allows(&denied, "", "9.9.9.9:80"));
    let reason = judge(&[], &[], &own, &[]).check_packet("9.9.9.9".parse().unwrap(), Port::Without);
    assert_eq!(
        reason.unwrap_err().to_string(),
        "9.9.9.9 is this host's own, and no allow-target rule names it by address"
    );
}

#[test]
fn a_name_of_this_host_is_its_address() {
    let advertised = marline::identity::Host::Name("vpn.example.com".into());
    let own = OwnAddresses::of_this_host([advertised]).unwrap();
    let translators = Arc::new(Translators::configured(Vec::new()));
    let judge = Judge::new(Policy::default(), Arc::new(own), translators);
    assert!(allows(&judge, "www.example.com", "8.8.8.8:80"));
    assert!(!allows(&judge, "vpn.example.com", "8.8.8.8:80"));
    assert!(!allows(&judge, "vpn.example.com.", "8.8.8.8:80"));
    judge
        .own()
        .found("vpn.example.com", ["8.8.8.8".parse().unwrap()]);
    assert!(!allows(&judge, "", "8.8.8.8:80"));
}

#[test]
fn behind_a_translators_prefix_the_ipv4_address_is_judged() {
    let prefixes = ["2a00:64::/96", "2a00:48:1::/48", "2a00:32::/32"];
    let closed = judge(&[], &["8.8.4.4"], &["9.9.9.9"], &prefixes);
    for (address, open) in [
        ("[2a00:64::8.8.8.8]:80", true),
        ("[2a00:64::8.8.4.4]:80", false),
        ("[2a00:64::9.9.9.9]:80", false),
        ("[2a00:64::127.0.0.1]:80", false),
        ("[2a00:64::192.168.1.1]:80", false),
        ("[2a00:48:1:7f00:0:100::]:80", false),
        ("[2a00:48:1:808:8:800::]:80", true),
        ("[2a00:32:a00:1::]:80", false),
        // Another network's.
        ("[2a00:65::127.0.0.1]:80", true),
    ] {
        assert_eq!(allows(&closed, "", address), open, "{address}");
    }
    let open = judge(&["*", "192.168.0.0/16"], &[], &[], &prefixes);
    assert!(allows(&open, "", "[2a00:64::192.168.1.1]:80"));
    assert!(!allows(&open, "", "[2a00:64::10.0.0.1]:80"));
    // Those of a site's own translators and Teredo's must be opened themselves, and show what is
    // inside.
    let local = judge(&["64:ff9b:1::/48", "2001::/32"], &[], &["9.9.9.9"], &[]);
    assert!(allows(&local, "", "[64:ff9b:1::8.8.8.8]:80"));
    assert!(!allows(&local, "", "[64:ff9b:1::9.9.9.9]:80"));
    assert!(!allows(&local, "", "[64:ff9b:1::10.0.0.1]:80"));
    assert!(!allows(&local, "", "[64:ff9b:1:7f00:0:100::]:80"));
    assert!(!allows(&local, "", "[2001:0:808:808::f5ff:fffe]:80"));
    assert!(allows(&local, "", "[2001:0:808:808::f7f7:f7f7]:80"));
}

#[tokio::test(start_paused = true)]
async fn ipv6_waits_until_translators_are_known() {
    let own = Arc::new(own::tests::host_with(&[]));
    let translators = Arc::new(Translators::to_be_discovered());
    let judge = Judge::new(Policy::default(), own, Arc::clone(&translators));
    let inside: IpAddr = "2a00:64::127.0.0.1".parse().unwrap();
    assert_eq!(
        judge.check_packet(inside, Port::Without),
        Err(Denied::NotYet)
    );
    let v4 = "1.1.1.1".parse().unwrap();
    assert!(judge.check_packet(v4, Port::Without).is_ok());
    judge.ready(v4).await;
    assert!(!translators.are_known());
    let answer = ["2a00:64::192.0.0.170".parse().unwrap()];
    tokio::join!(judge.ready(inside), async {
        tokio::task::yield_now().await;
        translators.discovered(Some(&answer));
    });
    let denied = judge.check_packet(inside, Port::Without).unwrap_err();
    assert!(matches!(denied, Denied::NotPublic { .. }), "{denied}");
}
