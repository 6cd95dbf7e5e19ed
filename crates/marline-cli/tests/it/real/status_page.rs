use super::harness::{Site, links, marline, path, socks_connect, tcp_echo, until};
use std::io::{Read, Write};

#[test]
fn the_status_is_complete_in_80_columns() {
    const FLOWS: usize = 100;
    let target = tcp_echo();
    let site = Site::new();
    let server = site.server(&[]);
    let links = links(server.addr, ["delay=2ms", "delay=5ms"], 1);
    let paths = [
        path("a", &links[0]),
        path("b", &links[1]),
        format!("any,standby,name=reserve,server={}", links[0].addr()),
    ];
    let client = site.client(&server, &paths, &[]);
    client.active(&["a", "b"]);
    let mut streams: Vec<_> = (0..FLOWS)
        .map(|_| socks_connect(client.socks(), target))
        .collect();
    for stream in &mut streams {
        stream.write_all(&[7; 1_000]).unwrap();
        stream.read_exact(&mut [0; 1_000]).unwrap();
    }
    links[1].set_dark(true);
    let page = |more: &[&str]| {
        let words = [&["status", "--control", "client.sock"], more].concat();
        let (code, page, error) = marline(site.folder(), &words);
        assert_eq!(code, 0, "{error}");
        assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
        page
    };
    // A path that nothing is sent on is asked when the next data leaves.
    let shown = until("a path that nobody answers on", || {
        for stream in &mut streams {
            stream.write_all(&[7; 1_000]).unwrap();
            stream.read_exact(&mut [0; 1_000]).unwrap();
        }
        let page = page(&[]);
        page.contains("no answer for ").then_some(page)
    });
    println!("{shown}");
    assert!(shown.contains("put on standby here"), "{shown}");
    let flows: Vec<_> = shown.lines().filter(|l| l.starts_with("stream ")).collect();
    assert_eq!(flows.len(), 1, "a line for all of them\n{shown}");
    let open = flows[0].split_whitespace().nth(2);
    assert_eq!(open, Some("100"), "{shown}");
    let details = page(&["--details"]);
    let every = details.lines().filter(|line| line.starts_with("flow "));
    assert_eq!(every.count(), FLOWS, "{details}");

    let session = client.status().sessions.remove(0);
    let lost = session.paths.iter().find(|path| path.name == "b").unwrap();
    assert!(lost.for_s > 0.0 && lost.silent_s > Some(0.0), "{lost:?}");
    let carried = session.carried;
    assert!(carried.sent_bytes >= carried.acked_bytes, "{carried:?}");
    assert!(carried.acked_bytes >= (FLOWS * 1_000) as u64, "{carried:?}");
}
