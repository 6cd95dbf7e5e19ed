use super::harness::{Digest, Site, http_server, links, path, socks_connect};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

const SIZE: usize = 200_000_000;
const LINK: &str = "rate=400mbit,delay=2ms,queue=50ms";

/// A download by curl, or by ourselves where there is no curl.
enum Download {
    Curl(Child, ChildStdout),
    Plain(Box<dyn Read>),
}

impl Download {
    fn start(proxy: SocketAddr, target: SocketAddr) -> Download {
        let curl = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--proxy"])
            .arg(format!("socks5h://{proxy}"))
            .arg(format!("http://{target}/"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn();
        match curl {
            Ok(mut child) => {
                let body = child.stdout.take().unwrap();
                Download::Curl(child, body)
            }
            Err(error) => {
                println!("curl cannot be run ({error}): a plain HTTP/1.1 request takes its place");
                let mut stream = socks_connect(proxy, target);
                let request =
                    format!("GET / HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.push(byte[0]);
                }
                assert!(head.starts_with(b"HTTP/1.1 200 "));
                Download::Plain(Box::new(stream))
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let body: &mut dyn Read = match self {
            Download::Curl(_, body) => body,
            Download::Plain(body) => body,
        };
        body.read(buffer).unwrap()
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        if let Download::Curl(child, _) = self {
            // Errors say that it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_download_outlives_the_paths_that_it_began_on() {
    let (target, expected) = http_server(SIZE);
    let site = Site::new();
    let server = site.server(&[]);
    let [first, second, third] = links(server.addr, [LINK; 3], 1);
    let paths = [path("first", &first), path("second", &second)];
    let client = site.client(&server, &paths, &[]);
    client.active(&["first", "second"]);

    let mut download = Download::start(client.socks(), target);
    let (mut digest, mut length) = (Digest::new(), 0);
    let mut buffer = vec![0; 1 << 18];
    let mut first = Some(first);
    let mut steps = [SIZE / 5, SIZE / 3, SIZE / 2, SIZE * 2 / 3]
        .into_iter()
        .enumerate()
        .peekable();
    loop {
        let read = download.read(&mut buffer);
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
        length += read;
        if let Some((step, _)) = steps.next_if(|(_, at)| length >= *at) {
            match step {
                // Its packets are swallowed...
                0 => first.as_ref().unwrap().set_dark(true),
                // ... and then even its port is gone.
                1 => first = None,
                2 => client.paths(&["add", &path("third", &third)]),
                _ => {
                    client.active(&["third"]);
                    client.paths(&["remove", "second"]);
                }
            }
        }
    }
    assert_eq!(steps.next(), None);
    assert_eq!(length, SIZE);
    assert_eq!(digest.finish(), expected);
    if let Download::Curl(child, _) = &mut download {
        assert!(child.wait().unwrap().success());
    }
    let session = &client.status().sessions[0];
    let names: Vec<&str> = session
        .paths
        .iter()
        .map(|path| path.name.as_str())
        .collect();
    assert_eq!(names, ["first", "third"]);
    // The last third of the download came by it alone.
    assert!(
        session.paths[1].received_bytes > (SIZE / 4) as u64,
        "{session:?}"
    );
}
