//! `marline clients` beside a server that runs.

use super::harness::{Site, link, marline, path, until};

#[test]
fn a_client_is_let_in_and_revoked_without_a_restart() {
    let site = Site::new();
    let list = site.folder().join("clients");
    std::fs::write(&list, "# ours\n").unwrap();
    let server = site.server_with_list("clients");
    let clients = |words: &[&str]| {
        let fixed = ["--file", "clients", "--control", "server.sock"];
        marline(site.folder(), &[&["clients"], words, &fixed].concat())
    };
    let key = site.public_key("client");
    let (code, printed, error) = clients(&["add", &key, "van", "in", "Turin"]);
    assert_eq!(
        (code, printed),
        (0, format!("{key} is let in\n")),
        "{error}"
    );
    let (code, _, error) = clients(&["add", &key]);
    assert!(
        code == 1 && error.contains("already, van in Turin"),
        "{error}"
    );

    let link = link(server.addr, "delay=2ms");
    let client = site.client(&server, &[path("a", &link)], &[]);
    client.active(&["a"]);
    until("the list shows that it is there", || {
        let (_, printed, _) = clients(&["list"]);
        printed.contains("connected  van in Turin").then_some(())
    });

    // What it is granted changes, and its session goes on.
    let session = client.active(&["a"]).id;
    let (code, _, error) = clients(&[
        "change",
        "van in Turin",
        "-o",
        "down=20mbit",
        "-o",
        "up=5mbit",
    ]);
    assert_eq!(code, 0, "{error}");
    let (_, printed, _) = clients(&["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(listed[0]["down_bps"], 20_000_000);
    assert_eq!(listed[0]["options"]["up"][0], "5mbit");
    assert_eq!(listed[0]["connected"], true);
    assert!(
        listed[0]["last_seen"]
            .as_u64()
            .is_some_and(|at| at > 1_700_000_000)
    );
    let (code, _, error) = clients(&["change", "van in Turin", "-o", "down=fast"]);
    assert!(code == 1 && error.contains("option `down`"), "{error}");
    let text = std::fs::read_to_string(&list).unwrap();
    assert_eq!(
        text,
        format!("# ours\ndown=20mbit,up=5mbit {key} van in Turin\n")
    );
    assert_eq!(client.active(&["a"]).id, session);
    // A list with a mistake changes nothing, and names it.
    std::fs::write(&list, text.replace("up=5mbit", "up=5")).unwrap();
    server.signal(rustix::process::Signal::HUP);
    server.logged("the mistake", |line| {
        (line.contains("clients:2: key `up`") && line.contains("stays as it was")).then_some(())
    });
    std::fs::write(&list, text).unwrap();

    let (code, _, error) = clients(&["revoke", "van in Turin"]);
    assert_eq!(code, 0, "{error}");
    client.logged("that it was removed", |line| {
        line.contains("removed from the server's list")
            .then_some(())
    });
    assert_eq!(std::fs::read_to_string(&list).unwrap(), "# ours\n");
    let (code, _, error) = clients(&["revoke", "van in Turin"]);
    assert!(code == 1 && error.contains("is not in the list"), "{error}");
}
