use super::Program;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;

/// An emulated link as a process of its own: `marline link`.
#[derive(Debug)]
pub(crate) struct Relay {
    program: Program,
    /// Where programs send to instead of its target.
    pub(crate) addr: SocketAddr,
}

impl Relay {
    /// A link to `target`, alike both ways, and waits until it listens.
    pub(crate) fn start(folder: &Path, target: SocketAddr, config: &str) -> Relay {
        let flags: Vec<String> = config.split(',').map(|key| format!("--{key}")).collect();
        let target = target.to_string();
        let mut words = vec!["link", "--to", &target];
        words.extend(flags.iter().map(String::as_str));
        let program = Program::start("the link", folder, &words);
        let addr = program.logged("where it listens", |line| {
            let (_, rest) = line.split_once("relaying ")?;
            rest.split(' ').next()?.parse().ok()
        });
        Relay { program, addr }
    }
}

impl Deref for Relay {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}
