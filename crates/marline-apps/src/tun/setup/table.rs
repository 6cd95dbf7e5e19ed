//! A table of nftables that is this process's own: nobody else can change it, so it outlives
//! `nft flush ruleset` and a firewall that is loaded again; and it goes with the process.
//!
//! The kernel ties such a table to a netlink socket (`flags owner`, Linux 5.12). That is one of
//! `nft -i`, which ends with its input. Where that cannot be had, the table is everybody's.

use super::command::{ask, run, words};
use std::fmt;
use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long the kernel may take to have the table: milliseconds, where it can be owned at all.
const MADE: Duration = Duration::from_secs(1);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// A table as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    /// Family and name.
    pub(super) name: String,
    /// What comes into it: what follows `add` in a command, with `TABLE` for its name.
    pub(super) parts: Vec<String>,
}

/// The table as it is. It goes when this is dropped.
#[derive(Debug)]
pub(super) enum Made {
    Own {
        child: Child,
        input: Option<ChildStdin>,
    },
    Shared(String),
}

impl Table {
    /// The commands that make it, without `nft`.
    pub(super) fn commands(&self) -> impl Iterator<Item = String> + '_ {
        let parts = self.parts.iter();
        std::iter::once(format!("add table {}", self.name))
            .chain(parts.map(|part| format!("add {}", part.replace("TABLE", &self.name))))
    }

    /// What makes it of another one of its name, in one step: a command without `nft`.
    pub(super) fn in_place(&self) -> String {
        let flush = std::iter::once(format!("flush table {}", self.name));
        let commands: Vec<String> = flush.chain(self.commands().skip(1)).collect();
        commands.join("; ")
    }

    /// Makes it, in place of what an earlier run left.
    ///
    /// # Errors
    /// What `nft` says.
    pub(super) fn make(&self, give_up: impl Fn() -> bool + Copy) -> io::Result<Made> {
        let _ = run(&words(&format!("nft delete table {}", self.name)), give_up);
        if let Ok(made) = self.own(give_up) {
            return Ok(made);
        }
        for command in self.commands() {
            let done = run(&words(&format!("nft {command}")), give_up);
            done.map_err(|why| io::Error::other(format!("`nft {command}`: {why}")))?;
        }
        Ok(Made::Shared(self.name.clone()))
    }

    fn own(&self, give_up: impl Fn() -> bool) -> io::Result<Made> {
        // By which it is seen that the table is there.
        ask("nft -j list tables")?;
        let mut command = Command::new("nft");
        // Without a home it keeps no history.
        command.arg("-i").env_remove("HOME").current_dir("/");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // A signal from the terminal is for this program, which ends it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let mut input = child.stdin.take();
        let mut made = Made::Own { child, input: None };
        if let Some(input) = &mut input {
            let head = format!("add table {} {{ flags owner ; }}", self.name);
            let rest = self.commands().skip(1);
            let text: Vec<String> = std::iter::once(head).chain(rest).collect();
            writeln!(input, "{}", text.join("\n"))?;
        }
        if let Made::Own { input: kept, .. } = &mut made {
            *kept = input;
        }
        made.await_all(self, give_up)?;
        Ok(made)
    }
}

impl Made {
    fn lives(&mut self) -> bool {
        match self {
            Made::Own { child, .. } => matches!(child.try_wait(), Ok(None)),
            Made::Shared(_) => true,
        }
    }

    /// Makes another table of the same name of it, all at once: a chain that translates addresses
    /// and goes for a moment lets answers to what it translated arrive at this host, which refuses
    /// them, and whose conversations those were has lost them.
    ///
    /// # Errors
    /// What `nft` says, or that the kernel has it not after a second.
    pub(super) fn become_another(
        &mut self,
        table: &Table,
        give_up: impl Fn() -> bool + Copy,
    ) -> io::Result<()> {
        let line = table.in_place();
        match self {
            Made::Own { input, .. } => {
                let input = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
                writeln!(input, "{line}")?;
                self.await_all(table, give_up)
            }
            Made::Shared(_) => run(&["nft".to_owned(), line], give_up),
        }
    }

    /// Waits until the kernel has all of it.
    fn await_all(&mut self, table: &Table, give_up: impl Fn() -> bool) -> io::Result<()> {
        let begun = Instant::now();
        while !self.is_there(table) {
            if begun.elapsed() >= MADE || !self.lives() || give_up() {
                return Err(io::Error::other("nft cannot own a table"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Has the kernel all of it, and no more?
    fn is_there(&self, table: &Table) -> bool {
        let listed = ask(&format!("nft -j list table {}", table.name)).unwrap_or_default();
        let listed = serde_json::from_slice::<serde_json::Value>(&listed).unwrap_or_default();
        let objects = listed["nftables"].as_array();
        let count = |kind: &str| {
            let objects = objects.into_iter().flatten();
            objects.filter(|object| object.get(kind).is_some()).count()
        };
        ["chain", "rule"].into_iter().all(|kind| {
            let wanted = table.parts.iter().filter(|part| part.starts_with(kind));
            count(kind) == wanted.count()
        })
    }

    /// Is it as it was made? What nobody else can change is, while its process lives.
    pub(super) fn holds(&mut self) -> bool {
        match self {
            Made::Own { .. } => self.lives(),
            Made::Shared(name) => ask(&format!("nft list table {name}")).is_ok(),
        }
    }

    /// There is another one in its place, of the same name: that stays.
    pub(super) fn replaced(&mut self) {
        if let Made::Shared(name) = self {
            name.clear();
        }
    }

    /// What takes it away after this process, as a command of a shell: nothing, if it goes by
    /// itself.
    pub(super) fn undo(&self) -> Option<String> {
        match self {
            Made::Own { .. } => None,
            Made::Shared(name) => Some(format!("nft delete table {name}")),
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        match self {
            Made::Own { child, input } => {
                *input = None;
                let _ = child.wait();
            }
            Made::Shared(name) if name.is_empty() => {}
            Made::Shared(name) => {
                let begun = Instant::now();
                let delete = words(&format!("nft delete table {name}"));
                let _ = run(&delete, || begun.elapsed() >= MADE);
            }
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commands: Vec<String> = self.commands().collect();
        write!(f, "`nft '{}'`", commands.join("; "))
    }
}
