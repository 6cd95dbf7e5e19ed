use super::program::{Program, marline};
use super::until;
use marline_cli::control::Status;
use marline_cli::control::status::SessionStatus;
use marline_lab::emulate::{Emulator, EmulatorConfig};
use marline_proto::path::PathState;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An emulated link to `target`, alike both ways.
pub(crate) fn link(target: SocketAddr, config: &str) -> Emulator {
    let [link] = links(target, [config], 1);
    link
}

/// Links that draw from this seed, each on its own: alike, they would lose the same packets.
pub(crate) fn links<const N: usize>(
    target: SocketAddr,
    configs: [&str; N],
    seed: u64,
) -> [Emulator; N] {
    std::array::from_fn(|number| {
        let mut config = EmulatorConfig::new(target, configs[number].parse().unwrap());
        config.seed = seed << 8 | number as u64;
        Emulator::start(config).unwrap()
    })
}

/// A `--path` by way of a link.
pub(crate) fn path(name: &str, link: &Emulator) -> String {
    path_by(name, link.addr())
}

/// A `--path` by way of a link at this address.
pub(crate) fn path_by(name: &str, link: SocketAddr) -> String {
    format!("127.0.0.1,server={link},name={name}")
}

/// A folder in which keys lie and programs run.
#[derive(Debug)]
pub(crate) struct Site {
    folder: TempDir,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct ServerProgram {
    program: Program,
    /// What it printed.
    pub(crate) string: String,
    /// Where it listens.
    pub(crate) addr: SocketAddr,
    folder: PathBuf,
}

/// A running client.
#[derive(Debug)]
pub(crate) struct ClientProgram {
    program: Program,
    folder: PathBuf,
    control: String,
}

impl Site {
    /// With a key for the server and one for a client.
    pub(crate) fn new() -> Site {
        let site = Site {
            folder: tempfile::tempdir().unwrap(),
        };
        site.key("server");
        site.key("client");
        site
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a key pair; returns the public key.
    pub(crate) fn key(&self, name: &str) -> String {
        let (code, public, error) = marline(self.folder(), &["identity", "new", name]);
        assert_eq!(code, 0, "{error}");
        public.trim().to_owned()
    }

    /// The public key in a key file.
    pub(crate) fn public_key(&self, name: &str) -> String {
        let (code, public, error) = marline(self.folder(), &["identity", "show", name]);
        assert_eq!(code, 0, "{error}");
        public.trim().to_owned()
    }

    /// Starts a server on a free port that lets `client` in and to every target on loopback, and
    /// waits until it listens.
    pub(crate) fn server(&self, more: &[&str]) -> ServerProgram {
        self.server_at("127.0.0.1:0", more)
    }

    /// As [`server`](Self::server), at an address of choice.
    pub(crate) fn server_at(&self, listen: &str, more: &[&str]) -> ServerProgram {
        let client = self.public_key("client");
        self.start_server(&[], listen, &[&["--allow-client", &client], more].concat())
    }

    /// As [`server`](Self::server), by way of another program.
    pub(crate) fn server_within(&self, before: &[&str], more: &[&str]) -> ServerProgram {
        let client = self.public_key("client");
        let more = [&["--allow-client", &client], more].concat();
        self.start_server(before, "127.0.0.1:0", &more)
    }

    /// As [`server`](Self::server), with a file of the clients that are let in.
    pub(crate) fn server_with_list(&self, list: &str) -> ServerProgram {
        self.start_server(&[], "127.0.0.1:0", &["--allow-clients-file", list])
    }

    /// As [`server`](Self::server), with this configuration, which says who is let in.
    pub(crate) fn server_with_config(&self, config: &str) -> ServerProgram {
        self.start_server(&[], "127.0.0.1:0", &["--config", config])
    }

    fn start_server(&self, before: &[&str], listen: &str, more: &[&str]) -> ServerProgram {
        let words = [
            &["server", "--identity", "server", "--listen", listen],
            &["--allow-target", "127.0.0.0/8", "--control", "server.sock"][..],
            more,
        ]
        .concat();
        let program = match before {
            [] => Program::start("the server", self.folder(), &words),
            before => Program::start_within(before, "the server", self.folder(), &words),
        };
        let string = program.first_line();
        let (_, addr) = string.rsplit_once('@').expect("a connection string");
        ServerProgram {
            addr: addr.parse().expect("an address"),
            string,
            program,
            folder: self.folder().to_owned(),
        }
    }

    /// Starts the client with these paths.
    pub(crate) fn client(
        &self,
        server: &ServerProgram,
        paths: &[String],
        more: &[&str],
    ) -> ClientProgram {
        client_of(self, "client", &server.string, paths, more)
    }
}

/// Starts a client with the key of this name.
pub(crate) fn client_of(
    site: &Site,
    name: &str,
    server: &str,
    paths: &[String],
    more: &[&str],
) -> ClientProgram {
    let control = format!("{name}.sock");
    let mut words = vec!["client", "--server", server, "--identity", name];
    words.extend(["--control", &control, "--socks", "127.0.0.1:0"]);
    for path in paths {
        words.extend(["--path", path]);
    }
    words.extend(more);
    ClientProgram {
        program: Program::start(name, site.folder(), &words),
        folder: site.folder().to_owned(),
        control,
    }
}

/// What the program at a control socket says of itself; `None` when there is none yet.
pub(crate) fn status(folder: &Path, control: &str) -> Option<Status> {
    let words = ["status", "--json", "--control", control];
    let (code, json, _) = marline(folder, &words);
    // It may not have come so far as to listen.
    (code == 0).then(|| serde_json::from_str(&json).expect("a status in JSON"))
}

impl ServerProgram {
    pub(crate) fn status(&self) -> Status {
        until("the server's status", || {
            status(&self.folder, "server.sock")
        })
    }
}

impl ClientProgram {
    pub(crate) fn status(&self) -> Status {
        until("the client's status", || {
            status(&self.folder, &self.control)
        })
    }

    /// Waits until its session is as `wanted`.
    pub(crate) fn session_is(
        &self,
        what: &str,
        wanted: impl Fn(&SessionStatus) -> bool,
    ) -> SessionStatus {
        until(what, || {
            let sessions = self.status().sessions;
            sessions.into_iter().find(|session| wanted(session))
        })
    }

    /// Waits until the paths of these names carry data.
    pub(crate) fn active(&self, names: &[&str]) -> SessionStatus {
        self.session_is(&format!("active paths {names:?}"), |session| {
            let active = |name: &&str| {
                let mut paths = session.paths.iter();
                paths.any(|path| path.name == **name && path.state == PathState::Active)
            };
            session.state == "established" && names.iter().all(active)
        })
    }

    /// Runs `marline paths` on it.
    pub(crate) fn paths(&self, words: &[&str]) {
        self.run(&[&["paths"], words].concat());
    }

    /// Runs a subcommand of control on it.
    pub(crate) fn run(&self, words: &[&str]) {
        let words = [words, &["--control", &self.control]].concat();
        let (code, _, error) = marline(&self.folder, &words);
        assert_eq!(code, 0, "{error}");
    }

    /// As [`run`](Self::run), which is to fail: returns what was said of it.
    pub(crate) fn refused(&self, words: &[&str]) -> String {
        let words = [words, &["--control", &self.control]].concat();
        let (code, _, error) = marline(&self.folder, &words);
        assert_eq!(code, 1, "{error}");
        error
    }

    /// Its control socket.
    pub(crate) fn control(&self) -> PathBuf {
        self.folder.join(&self.control)
    }

    /// Where its SOCKS5 proxy listens.
    pub(crate) fn socks(&self) -> SocketAddr {
        self.logged("its SOCKS5 proxy", |line| {
            line.split_once("SOCKS5 proxy at ")?.1.parse().ok()
        })
    }

    /// Where its forward to `target` listens.
    pub(crate) fn forward(&self, target: SocketAddr) -> SocketAddr {
        let ending = format!("{target}");
        self.logged("its forward", |line| {
            let (before, to) = line.split_once(" is carried to ")?;
            to.ends_with(&ending).then_some(())?;
            before.rsplit(' ').next()?.parse().ok()
        })
    }
}

impl Deref for ServerProgram {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for ServerProgram {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}

impl Deref for ClientProgram {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl DerefMut for ClientProgram {
    fn deref_mut(&mut self) -> &mut Program {
        &mut self.program
    }
}
