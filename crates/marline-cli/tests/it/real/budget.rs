use super::harness::{Site, links, path, pattern, socks_connect, tcp_echo};
use marline_cli::control::status::PathStatus;
use marline_proto::path::PathState;
use std::io::{Read, Write};
use std::thread;

const LINK: &str = "rate=40mbit,delay=5ms,queue=100ms";
const BUDGET: u64 = 500_000;
const SIZE: usize = 2_000_000;

fn metered(paths: &[PathStatus]) -> Option<&PathStatus> {
    paths.iter().find(|path| path.name == "metered")
}

#[test]
fn a_path_that_has_carried_its_budget_stands_by_also_after_a_restart() {
    let target = tcp_echo();
    let site = Site::new();
    let server = site.server(&[]);
    let links = links(server.addr, [LINK; 2], 1);
    let paths = [
        path("free", &links[0]),
        format!("{},budget=500kB", path("metered", &links[1])),
    ];
    let over = |paths: &[PathStatus]| {
        metered(paths).is_some_and(|path| {
            let budget = path.budget.as_ref().expect("its budget");
            assert_eq!(budget.limit_bytes, BUDGET);
            path.state == PathState::Standby && budget.used_bytes >= BUDGET
        })
    };

    let mut client = site.client(&server, &paths, &["--usage", "usage.toml"]);
    client.active(&["free", "metered"]);
    let body = pattern(3, 0, SIZE);
    // Until enough of it went over the one path: schedulers may choose.
    for _ in 0..10 {
        let mut connection = socks_connect(client.socks(), target);
        let mut writer = connection.try_clone().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                writer.write_all(&body).unwrap();
                writer.shutdown(std::net::Shutdown::Write).unwrap();
            });
            let mut back = Vec::new();
            connection.read_to_end(&mut back).unwrap();
            assert!(back == body);
        });
        let used = |path: &PathStatus| path.budget.as_ref().map_or(0, |b| b.used_bytes);
        let session = client.session_is("a session", |_| true);
        if metered(&session.paths).map_or(0, used) >= BUDGET {
            break;
        }
    }
    let session = client.session_is("the metered path on standby", |s| over(&s.paths));
    let free = session
        .paths
        .iter()
        .find(|path| path.name == "free")
        .unwrap();
    assert_eq!(free.state, PathState::Active);
    assert!(free.budget.is_none());

    client.signal(rustix::process::Signal::TERM);
    assert!(client.wait().success());
    let client = site.client(&server, &paths, &["--usage", "usage.toml"]);
    client.active(&["free"]);
    client.session_is("the metered path on standby again", |s| over(&s.paths));
}
