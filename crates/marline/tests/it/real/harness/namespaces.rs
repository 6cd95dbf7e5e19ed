use super::program::Program;
use super::skip::skipped;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Networks of their own for a client, a server and a router between them; gone when this is dropped.
///
/// ```text
/// client ── c1 10.201.1.2 ── a1 ┐
///                               anchor ── a0 ── s0 10.201.0.2 ── server
/// client ── c2 10.201.2.2 ── a2 ┘
/// ```
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) client: String,
    pub(crate) anchor: String,
    pub(crate) server: String,
}

/// Where the server is reached from the client.
pub(crate) const SERVER: &str = "10.201.0.2";

fn ip(words: &str) -> Result<String, String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("`ip` cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "`ip {words}`: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

impl Namespaces {
    /// `None`, and a word of it, where this machine does not let us.
    pub(crate) fn new() -> Option<Namespaces> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let left_out = |why: &str| {
            skipped(&format!("{why} (docs/TESTING.md says what tunnels need)"));
            None
        };
        if !rustix::process::geteuid().is_root() {
            return left_out("network namespaces need root");
        }
        if !Path::new("/dev/net/tun").exists() {
            return left_out("there is no /dev/net/tun");
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |part: &str| format!("marline-{}-{number}-{part}", std::process::id());
        let this = Namespaces {
            client: name("c"),
            anchor: name("a"),
            server: name("s"),
        };
        match ip(&format!("netns add {}", this.client)) {
            Ok(_) => {}
            Err(why) => return left_out(&why),
        }
        this.build().expect("the namespaces can be connected");
        Some(this)
    }

    fn build(&self) -> Result<(), String> {
        let (client, anchor, server) = (&self.client, &self.anchor, &self.server);
        ip(&format!("netns add {anchor}"))?;
        ip(&format!("netns add {server}"))?;
        for (near, far, number) in [("c1", "a1", 1), ("c2", "a2", 2), ("s0", "a0", 0)] {
            let side = if number == 0 { server } else { client };
            ip(&format!(
                "link add {near} netns {side} type veth peer name {far} netns {anchor}"
            ))?;
            ip(&format!(
                "-n {side} address add 10.201.{number}.2/24 dev {near}"
            ))?;
            ip(&format!(
                "-n {anchor} address add 10.201.{number}.1/24 dev {far}"
            ))?;
            ip(&format!("-n {side} link set {near} up"))?;
            ip(&format!("-n {anchor} link set {far} up"))?;
        }
        for side in [client, anchor, server] {
            ip(&format!("-n {side} link set lo up"))?;
        }
        for number in [1, 2] {
            ip(&format!(
                "-n {client} route add 10.201.0.0/24 via 10.201.{number}.1 dev c{number} metric {number}"
            ))?;
        }
        ip(&format!("-n {server} route add default via 10.201.0.1"))?;
        self.set(anchor, "net/ipv4/ip_forward", "1");
        self.set(server, "net/ipv4/ip_forward", "0");
        self.set(server, "net/ipv6/conf/all/forwarding", "0");
        // Whoever is root may ping.
        self.set(client, "net/ipv4/ping_group_range", "0 0");
        Ok(())
    }

    /// Changes a setting of a namespace.
    pub(crate) fn set(&self, namespace: &str, name: &str, value: &str) {
        let file = format!("/proc/sys/{name}");
        self.inside(namespace, || {
            std::fs::write(&file, value).expect("a setting")
        });
    }

    /// Reads a setting of a namespace.
    pub(crate) fn setting(&self, namespace: &str, name: &str) -> String {
        let file = format!("/proc/sys/{name}");
        let value = self.inside(namespace, || {
            std::fs::read_to_string(&file).expect("a setting")
        });
        value.trim().to_owned()
    }

    /// Runs `ip` in a namespace; `None` when it fails.
    pub(crate) fn ip(&self, namespace: &str, words: &str) -> Option<String> {
        ip(&format!("-n {namespace} {words}")).ok()
    }

    /// Runs `work` in a thread that is in a namespace; sockets that it opens stay there.
    pub(crate) fn inside<R: Send>(&self, namespace: &str, work: impl FnOnce() -> R + Send) -> R {
        let file = File::open(format!("/run/netns/{namespace}")).expect("the namespace");
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("root may enter a namespace");
                work()
            });
            thread.join().expect("the work in the namespace")
        })
    }

    /// Starts the program in a namespace.
    pub(crate) fn start(
        &self,
        namespace: &str,
        name: &str,
        folder: &Path,
        words: &[&str],
    ) -> Program {
        Program::start_within(&["ip", "netns", "exec", namespace], name, folder, words)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in [&self.client, &self.anchor, &self.server] {
            // With a namespace its interfaces go.
            let _ = ip(&format!("netns del {name}"));
        }
    }
}
