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
