//! What has to be done to the system before a tunnel carries anything: addresses, routes,
//! forwarding, address translation. Either the operator does it and is shown the commands, or this
//! program does it and undoes it.

use super::hello::Place;
use super::pool::Pool;
use super::remains::Remains;
use ipnet::IpNet;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Kernel settings that let a server pass packets on.
const FORWARDING: [&str; 2] = [
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv6/conf/all/forwarding",
];

/// A command that undoes something is ended after this time.
const UNDOING: Duration = Duration::from_secs(5);
/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// One thing to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A command, and the one that undoes it.
    Run {
        words: Vec<String>,
        undo: Vec<String>,
    },
    /// A command that takes away what an earlier run left behind, if it did.
    Clear(Vec<String>),
    /// Forwarding, by the file that switches it.
    Forward(&'static str),
}

/// Everything to be done, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup {
    device: String,
    steps: Vec<Step>,
    /// What an earlier run left switched on, and where this one notes what it does.
    remains: Remains,
}

/// What was done; undone when this is dropped.
#[derive(Debug, Default)]
pub struct Applied(Vec<Undo>);

#[derive(Debug)]
enum Undo {
    Run(Vec<String>),
    Write(&'static str, &'static str),
    Remove(PathBuf),
}

/// A step failed; those before it were undone.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct SetupError {
    what: String,
    why: String,
}

impl SetupError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self.what.split(' ').next() {
            Some("`nft") => {
                "install nftables, or leave out address translation: --tun-setup=no-nat"
            }
            Some("`ip") => {
                "is iproute2 installed, and has the program the right to use it (root or CAP_NET_ADMIN)?"
            }
            _ => "do it yourself and leave --tun-setup out: the commands are shown then",
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn family(net: &IpNet) -> &'static str {
    match net {
        IpNet::V4(_) => "-4",
        IpNet::V6(_) => "-6",
    }
}

/// A default route would displace the one that the paths need: its halves come before it and leave
/// it alone.
fn halves(net: IpNet) -> Vec<IpNet> {
    match net.prefix_len() {
        0 => net.subnets(1).map(Iterator::collect).unwrap_or_default(),
        _ => vec![net],
    }
}

impl Setup {
    fn of_device(device: &str, mtu: u16) -> Self {
        let up = Step::Run {
            words: words(&format!("ip link set dev {device} mtu {mtu} up")),
            undo: words(&format!("ip link set dev {device} down")),
        };
        Setup {
            device: device.to_owned(),
            steps: vec![up],
            remains: Remains::default(),
        }
    }

    fn address(&mut self, net: IpNet) {
        let (family, device) = (family(&net), &self.device);
        // Nobody else in the tunnel can have the address: there is nothing to detect.
        let nodad = if family == "-6" { " nodad" } else { "" };
        self.steps.push(Step::Run {
            words: words(&format!(
                "ip {family} address replace {net} dev {device}{nodad}"
            )),
            undo: words(&format!("ip {family} address del {net} dev {device}")),
        });
    }

    fn route(&mut self, net: IpNet) {
        let (family, device) = (family(&net), &self.device);
        self.steps.push(Step::Run {
            words: words(&format!("ip {family} route replace {net} dev {device}")),
            undo: words(&format!("ip {family} route del {net} dev {device}")),
        });
    }

    /// Only the size of the largest packet of a device that is set up.
    pub(super) fn largest_packet(device: &str, mtu: u16) -> Self {
        let size = Step::Run {
            words: words(&format!("ip link set dev {device} mtu {mtu}")),
            undo: Vec::new(),
        };
        Setup {
            device: device.to_owned(),
            steps: vec![size],
            remains: Remains::default(),
        }
    }

    /// For a client with these addresses, that sends what is for the server or for `routes` into
    /// the tunnel. The server may say what it likes of the network that the addresses belong to.
    pub(super) fn client(device: &str, places: &[Place], mtu: u16, routes: &[IpNet]) -> Self {
        let mut setup = Setup::of_device(device, mtu);
        for place in places {
            setup.address(place.own.addr().into());
        }
        for place in places {
            setup.route(place.server.into());
        }
        for net in routes.iter().flat_map(|net| halves(*net)) {
            // Without an address of its family the kernel would have none to send from.
            if places
                .iter()
                .any(|place| place.server.is_ipv4() == net.addr().is_ipv4())
            {
                setup.route(net);
            }
        }
        setup
    }

    /// For a server with this pool; with `nat`, clients appear under the server's own addresses
    /// outside.
    pub(super) fn server(device: &str, pool: &Pool, mtu: u16, nat: bool, remains: Remains) -> Self {
        let mut setup = Setup::of_device(device, mtu);
        setup.remains = remains;
        pool.server().into_iter().for_each(|net| setup.address(net));
        setup.steps.extend(FORWARDING.map(Step::Forward));
        if nat && !has("nft") && has("iptables") {
            setup.translate_by_iptables(pool);
        } else if nat {
            setup.translate_by_nft(pool);
        }
        setup
    }

    fn translate_by_nft(&mut self, pool: &Pool) {
        let device = &self.device;
        let table = format!("inet marline_{}", device.replace(['.', '-', '@'], "_"));
        let delete = words(&format!("nft delete table {table}"));
        let chain = "postrouting { type nat hook postrouting priority srcnat ; }";
        self.steps.push(Step::Clear(delete.clone()));
        self.steps.push(Step::Run {
            words: words(&format!("nft add table {table}")),
            undo: delete,
        });
        let mut add = |text: String| {
            self.steps.push(Step::Run {
                words: words(&text),
                undo: Vec::new(),
            });
        };
        add(format!("nft add chain {table} {chain}"));
        for net in pool.networks() {
            let ip = if net.addr().is_ipv4() { "ip" } else { "ip6" };
            add(format!(
                "nft add rule {table} postrouting oifname != {device} {ip} saddr {net} masquerade"
            ));
        }
    }

    fn translate_by_iptables(&mut self, pool: &Pool) {
        for net in pool.networks() {
            let program = if net.addr().is_ipv4() {
                "iptables"
            } else {
                "ip6tables"
            };
            let rule = |verb: &str| {
                let device = &self.device;
                words(&format!(
                    "{program} -t nat {verb} POSTROUTING -s {net} ! -o {device} -j MASQUERADE"
                ))
            };
            let (add, delete) = (rule("-A"), rule("-D"));
            self.steps.push(Step::Clear(delete.clone()));
            self.steps.push(Step::Run {
                words: add,
                undo: delete,
            });
        }
    }

    /// Logs the commands for a person to give.
    pub(super) fn show(&self) {
        let device = &self.device;
        tracing::info!("tunnel {device}: give these commands, or add --tun-setup:");
        for step in &self.steps {
            if !matches!(step, Step::Clear(_)) {
                tracing::info!("  {step}");
            }
        }
        let left: Vec<&str> = self.left_on().collect();
        if let (Some(note), false) = (self.remains.file(), left.is_empty()) {
            let off: Vec<String> = left.iter().map(|file| format!("echo 0 > {file}")).collect();
            tracing::warn!(
                "a server that was killed had switched on {}: --tun-setup switches that off in the end, \
                 `{} && rm {}` now",
                left.join(" and "),
                off.join(" && "),
                note.display()
            );
        }
    }

    /// What an earlier run switched on and did not switch off.
    fn left_on(&self) -> impl Iterator<Item = &'static str> {
        FORWARDING
            .into_iter()
            .filter(|file| self.remains.holds(file))
    }

    /// Does everything; other tasks go on meanwhile. With `stop` the command that runs is ended,
    /// what was done is undone, and this fails.
    pub(super) async fn apply(self, stop: CancellationToken) -> Result<Applied, SetupError> {
        let done = tokio::task::spawn_blocking(move || self.run(&stop));
        done.await.unwrap_or_else(|error| {
            Err(SetupError {
                what: "the tunnel's setup".to_owned(),
                why: error.to_string(),
            })
        })
    }

    fn run(mut self, stop: &CancellationToken) -> Result<Applied, SetupError> {
        let mut applied = Applied::default();
        self.remains.take_over();
        // Undone last.
        let note = self.remains.file().map(Path::to_owned);
        applied.0.extend(note.map(Undo::Remove));
        for file in self.left_on() {
            tracing::info!(
                "{file} was switched on by a server that was killed; it is switched off in the end"
            );
            applied.0.push(Undo::Write(file, "0"));
        }
        for step in self.steps {
            let failed = |why: io::Error| SetupError {
                what: step.to_string(),
                why: why.to_string(),
            };
            if stop.is_cancelled() {
                return Err(failed(io::Error::other("not begun, for this is to stop")));
            }
            let run = |words| run(words, || stop.is_cancelled());
            match &step {
                Step::Clear(words) => {
                    let _ = run(words);
                }
                Step::Run { words, undo } => {
                    let done = run(words);
                    // One that was ended may have done it already.
                    if (done.is_ok() || stop.is_cancelled()) && !undo.is_empty() {
                        applied.0.push(Undo::Run(undo.clone()));
                    }
                    done.map_err(failed)?;
                }
                Step::Forward(file) => {
                    let before = fs::read_to_string(file).map_err(failed)?;
                    if before.trim() != "0" {
                        continue;
                    }
                    if !self.remains.holds(file) {
                        self.remains.add(file);
                        applied.0.push(Undo::Write(file, "0"));
                    }
                    fs::write(file, "1").map_err(failed)?;
                }
            }
        }
        Ok(applied)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Run { words, .. } | Step::Clear(words) => write!(f, "`{}`", words.join(" ")),
            Step::Forward(file) => write!(f, "`echo 1 > {file}`"),
        }
    }
}

impl Applied {
    /// Leaves everything as it is.
    pub(super) fn forget(mut self) {
        self.0.clear();
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        let mut is_left = false;
        for undo in self.0.drain(..).rev() {
            let result = match &undo {
                Undo::Run(words) => {
                    let begun = Instant::now();
                    run(words, || begun.elapsed() >= UNDOING)
                }
                Undo::Write(file, value) => {
                    if let Err(error) = fs::write(file, value) {
                        tracing::warn!(
                            "cannot undo the forwarding, `echo {value} > {file}`: {error}"
                        );
                        is_left = true;
                    }
                    Ok(())
                }
                // The next server tries again.
                Undo::Remove(_) if is_left => Ok(()),
                Undo::Remove(file) => fs::remove_file(file),
            };
            // With the device all that belonged to it is gone already.
            if let Err(error) = result {
                tracing::debug!(?undo, %error, "nothing to undo");
            }
        }
    }
}

/// Runs a command to its end, or until it is given up.
fn run(words: &[String], give_up: impl Fn() -> bool) -> io::Result<()> {
    let Some((program, rest)) = words.split_first() else {
        return Ok(());
    };
    let mut child = Command::new(program)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    while child.try_wait()?.is_none() {
        if give_up() {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::other("ended before it was done"));
        }
        thread::sleep(LOOK);
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("it failed and said nothing");
    Err(io::Error::other(said.to_owned()))
}

/// Is there such a program?
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| Path::new(&folder).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(setup: &Setup) -> Vec<String> {
        setup.steps.iter().map(Step::to_string).collect()
    }

    #[test]
    fn a_client_gets_single_addresses_and_its_own_routes_of_the_families_that_it_has() {
        let place = Place {
            own: "10.77.0.2/7".parse().unwrap(),
            server: "10.77.0.1".parse().unwrap(),
        };
        let routes = ["0.0.0.0/0", "::/0", "10.1.0.0/16"].map(|net| net.parse().unwrap());
        let setup = Setup::client("tun7", &[place], 1322, &routes);
        assert_eq!(
            texts(&setup),
            [
                "`ip link set dev tun7 mtu 1322 up`",
                "`ip -4 address replace 10.77.0.2/32 dev tun7`",
                "`ip -4 route replace 10.77.0.1/32 dev tun7`",
                "`ip -4 route replace 0.0.0.0/1 dev tun7`",
                "`ip -4 route replace 128.0.0.0/1 dev tun7`",
                "`ip -4 route replace 10.1.0.0/16 dev tun7`",
            ]
        );
    }

    #[test]
    fn a_server_forwards_and_translates() {
        let pool: Pool = "10.77.0.0/24,fd77::/64".parse().unwrap();
        let plain = Setup::server("tun7", &pool, 1500, false, Remains::default());
        assert_eq!(
            texts(&plain)[1..],
            [
                "`ip -4 address replace 10.77.0.1/24 dev tun7`",
                "`ip -6 address replace fd77::1/64 dev tun7 nodad`",
                "`echo 1 > /proc/sys/net/ipv4/ip_forward`",
                "`echo 1 > /proc/sys/net/ipv6/conf/all/forwarding`",
            ]
        );
        let mut nft = plain.clone();
        nft.translate_by_nft(&pool);
        assert_eq!(
            texts(&nft)[5..],
            [
                "`nft delete table inet marline_tun7`",
                "`nft add table inet marline_tun7`",
                "`nft add chain inet marline_tun7 postrouting { type nat hook postrouting priority srcnat ; }`",
                "`nft add rule inet marline_tun7 postrouting oifname != tun7 ip saddr 10.77.0.0/24 masquerade`",
                "`nft add rule inet marline_tun7 postrouting oifname != tun7 ip6 saddr fd77::/64 masquerade`",
            ]
        );
        let mut iptables = plain.clone();
        iptables.translate_by_iptables(&pool);
        let rule = "POSTROUTING -s 10.77.0.0/24 ! -o tun7 -j MASQUERADE";
        assert_eq!(texts(&iptables)[6], format!("`iptables -t nat -A {rule}`"));
    }

    #[test]
    fn a_command_that_hangs_is_ended_and_undone_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (made, begun) = (file("made"), file("begun"));
        let hang = ["sh", "-c", &format!("touch {begun}; exec sleep 1000")];
        let steps = vec![
            Step::Run {
                words: words(&format!("touch {made}")),
                undo: words(&format!("rm {made}")),
            },
            Step::Run {
                words: hang.map(str::to_owned).to_vec(),
                undo: words(&format!("rm {begun}")),
            },
        ];
        let setup = Setup {
            device: "tun7".to_owned(),
            steps,
            remains: Remains::default(),
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = thread::spawn(move || setup.run(&stopped));
        while !Path::new(&begun).exists() {
            thread::yield_now();
        }
        stop.cancel();
        let error = running.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("ended before it was done"), "{error}");
        assert!(!Path::new(&begun).exists() && !Path::new(&made).exists());
    }

    #[test]
    fn the_note_is_kept_until_the_forwarding_is_switched_off() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("undo");
        fs::write(&note, "").unwrap();
        for (file, kept) in [("/nonexistent/forwarding", true), ("/dev/null", false)] {
            drop(Applied(vec![
                Undo::Remove(note.clone()),
                Undo::Write("/dev/null", "0"),
                Undo::Write(file, "0"),
            ]));
            assert_eq!(note.exists(), kept, "{file}");
        }
    }

    #[test]
    fn what_was_done_is_undone_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (made, undone) = (file("made"), file("undone"));
        let run = |text: String, undo: String| Step::Run {
            words: words(&text),
            undo: words(&undo),
        };
        let steps = vec![
            Step::Clear(words("false")),
            run(format!("touch {made}"), format!("mv {made} {undone}")),
            run("ls /nonexistent".into(), "false".into()),
            run(format!("rm {made}"), "false".into()),
        ];
        let device = "tun7".to_owned();
        let setup = Setup {
            device,
            steps,
            remains: Remains::default(),
        };
        let stop = CancellationToken::new();
        let error = setup.run(&stop).unwrap_err().to_string();
        assert!(error.contains("`ls /nonexistent`: "), "{error}");
        assert!(Path::new(&undone).exists() && !Path::new(&made).exists());
        assert!(has("sh") && !has("no-such-program-here"));
    }
}
