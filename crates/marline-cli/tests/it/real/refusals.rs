use super::harness::{Program, Site, client_of, marline};
use rustix::process::Signal;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Runs the program in the site's folder, which must end with `code` and say all of `expected`.
fn refused(site: &Site, words: &[&str], code: i32, expected: &[&str]) {
    let (found, stdout, error) = marline(site.folder(), words);
    assert_eq!(found, code, "{words:?}: {error}");
    assert_eq!(stdout, "", "{words:?}");
    for text in expected {
        assert!(error.contains(text), "{words:?}: no {text:?} in\n{error}");
    }
}

/// `marline client` that needs no port, with these words more.
fn client<'a>(server: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fixed = [
        "client",
        "--server",
        server,
        "--control",
        "off",
        "--socks",
        "off",
    ];
    [&fixed, more].concat()
}

/// A connection string of the server's key for an address where nobody answers.
fn nobody(site: &Site) -> (String, UdpSocket) {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    (string(site, "server", &address), silent)
}

fn string(site: &Site, key: &str, address: &str) -> String {
    let words = ["identity", "show", key, "--address", address];
    let (code, string, error) = marline(site.folder(), &words);
    assert_eq!(code, 0, "{error}");
    string.trim().to_owned()
}

#[test]
fn a_client_with_an_unknown_key_is_refused() {
    let site = Site::new();
    let server = site.server(&[]);
    let key = site.key("stranger");
    let output = client_of(&site, "stranger", &server.string, &["any".to_owned()], &[]).finish();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let address = server.addr.to_string();
    for text in ["error: no session", "refused by the server", &address] {
        assert!(error.contains(text), "no {text:?} in\n{error}");
    }
    let hint = format!("hint: start the server with `--allow-client {key}`");
    assert!(error.contains(&hint), "no {hint:?} in\n{error}");
    assert!(server.status().sessions.is_empty());
}

#[test]
fn a_server_with_another_key_is_not_talked_to() {
    let site = Site::new();
    let server = site.server(&[]);
    let other = site.key("other");
    let wrong = string(&site, "other", &server.addr.to_string());
    let key = site.public_key("server");
    let words = client(&wrong, &["--identity", "client"]);
    refused(
        &site,
        &words,
        1,
        &["error: ", &other, &key, "use the connection string"],
    );
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let site = Site::new();
    let (server, silent) = nobody(&site);
    let address = silent.local_addr().unwrap().to_string();
    let words = client(&server, &["--identity", "client", "--wait", "12s"]);
    refused(
        &site,
        &words,
        1,
        &[
            "error: no session",
            &address,
            "is the server running",
            "TLS over TCP did not get through either",
            "run `marline doctor client`",
        ],
    );
}

#[test]
fn a_busy_port_is_named() {
    let site = Site::new();
    let key = site.public_key("client");
    let server = [
        "server",
        "--identity",
        "server",
        "--allow-client",
        &key,
        "--control",
        "off",
    ];
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let udp = udp.local_addr().unwrap().to_string();
    let words = [&server[..], &["--listen", &udp]].concat();
    refused(
        &site,
        &words,
        1,
        &["error: ", &udp, "in use by another program"],
    );

    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = tcp.local_addr().unwrap().to_string();
    let words = [&server[..], &["--listen", "127.0.0.1:0", "--metrics", &tcp]].concat();
    refused(
        &site,
        &words,
        1,
        &[
            "error: --metrics",
            &tcp,
            "hint: another program has that port",
        ],
    );

    let (nobody, _silent) = nobody(&site);
    let fixed = [
        "client",
        "--server",
        &nobody,
        "--identity",
        "client",
        "--control",
        "off",
    ];
    let words = [&fixed[..], &["--socks", &tcp]].concat();
    refused(
        &site,
        &words,
        1,
        &[
            "error: --socks",
            &tcp,
            "hint: another program has that port",
        ],
    );
    let forward = format!("udp:{udp}=127.0.0.1:9");
    let words = [&fixed[..], &["--socks", "off", "--forward", &forward]].concat();
    refused(
        &site,
        &words,
        1,
        &[
            "error: --forward",
            &udp,
            "hint: another program has that port",
        ],
    );
}

#[test]
fn what_this_host_does_not_have_is_answered_with_what_it_has() {
    let site = Site::new();
    let (server, _silent) = nobody(&site);
    let fixed = ["--identity", "client", "--wait", "100ms", "--path"];
    let words = client(&server, &[&fixed[..], &["nosuch0"]].concat());
    refused(
        &site,
        &words,
        1,
        &[
            "error: ",
            "no network interface `nosuch0`; there are ",
            "lo",
            "hint: ",
        ],
    );
    // 192.0.2.0/24 is for documentation.
    let words = client(&server, &[&fixed[..], &["192.0.2.77"]].concat());
    refused(
        &site,
        &words,
        1,
        &[
            "error: ",
            "192.0.2.77 is no address of this host",
            "127.0.0.1",
        ],
    );
    let key = site.public_key("client");
    let words = [
        &["server", "--identity", "server", "--allow-client", &key][..],
        &["--control", "off", "--wait", "100ms"],
        &["--listen", "192.0.2.77:4433"],
    ];
    let expected = ["error: this host does not have 192.0.2.77 yet", "hint: "];
    refused(&site, &words.concat(), 1, &expected);
}

#[test]
fn a_client_that_waits_says_once_for_what_and_ends_on_a_signal() {
    let site = Site::new();
    let (server, _silent) = nobody(&site);
    let words = client(&server, &["--identity", "client", "--path", "nosuch0"]);
    let mut waiting = Program::start("the client", site.folder(), &words);
    waiting.logged("what it waits for", |line| {
        line.contains("no network interface `nosuch0`")
            .then_some(())
    });
    // Some retries more.
    std::thread::sleep(Duration::from_millis(500));
    waiting.signal(Signal::INT);
    let output = waiting.finish();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("nosuch0`").count(), 1, "{said}");
}

#[test]
fn an_unusable_key_file_is_wrong_configuration() {
    let site = Site::new();
    let (server, _silent) = nobody(&site);
    let words = client(&server, &["--identity", "missing"]);
    refused(
        &site,
        &words,
        2,
        &[
            "error: ",
            "key file missing: no such file",
            "marline identity new missing",
        ],
    );
    // A folder: files without permission are no obstacle to a test that runs as root.
    let words = client(&server, &["--identity", "."]);
    refused(
        &site,
        &words,
        2,
        &["error: ", "key file .: ", "is not a regular file"],
    );
    let key = site.folder().join("client");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let words = client(&server, &["--identity", "client"]);
    refused(
        &site,
        &words,
        2,
        &["error: ", "key file client: ", "644", "chmod 600 client"],
    );
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(&key, "ssh-ed25519 AAAA\n").unwrap();
    refused(&site, &words, 2, &["error: ", "key file client, line 1"]);
}

#[test]
fn wrong_flags_and_keys_are_wrong_usage() {
    let site = Site::new();
    let (server, _silent) = nobody(&site);
    refused(
        &site,
        &["client", "--pth", "any"],
        2,
        &["error: ", "--pth", "--path"],
    );
    refused(
        &site,
        &["client"],
        2,
        &["error: ", "no server is given", "hint: "],
    );
    let words = client("marline://nonsense", &[]);
    refused(
        &site,
        &words,
        2,
        &["error: --server marline://nonsense", "hint: "],
    );
    for (flag, value, expected) in [
        ("--path", "lo,stanby", "did you mean the option `standby`"),
        ("--forward", "tcp:127.0.0.1:0", "forward"),
        ("--scheduler", "edfp", "hint: "),
        ("--congestion", "bbrr", "hint: "),
        ("--idle-timeout", "60", "write a number and its unit"),
        ("--metrics", "9900", "write IP:PORT"),
    ] {
        let words = client(&server, &["--identity", "client", flag, value]);
        refused(
            &site,
            &words,
            2,
            &[&format!("error: {flag} {value}: "), expected],
        );
    }
    refused(
        &site,
        &["server", "--identity", "server"],
        2,
        &["error: ", "no client would be let in"],
    );
    let words = [
        "server",
        "--identity",
        "server",
        "--allow-client",
        "marline-pub:short",
    ];
    refused(
        &site,
        &words,
        2,
        &["error: --allow-client marline-pub:short: ", "hint: "],
    );

    std::fs::write(
        site.folder().join("wrong.toml"),
        "server = \"x\"\nforwrd = []\n",
    )
    .unwrap();
    let words = ["client", "--config", "wrong.toml"];
    refused(
        &site,
        &words,
        2,
        &["error: wrong.toml:2: ", "forwrd", "forward"],
    );
    refused(
        &site,
        &["client", "--config", "none.toml"],
        2,
        &["error: none.toml"],
    );
}
