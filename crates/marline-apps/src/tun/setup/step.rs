//! One thing to be done to the system.

use super::super::remains::Remains;
use super::applied::{Applied, Undo};
use super::command::run;
use super::names::Names;
use super::route::Route;
use super::table::Table;
use std::fmt;
use std::fs;
use std::io;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A command, and the one that undoes it.
    Run {
        words: Vec<String>,
        undo: Vec<String>,
    },
    /// A route into the tunnel.
    Route(Route),
    /// A command that takes away what an earlier run left behind, if it did.
    Clear(Vec<String>),
    /// Forwarding, by the file that switches it.
    Forward(&'static str),
    /// A setting of the kernel's, by its file, where it is as it was when this was made.
    Set {
        file: String,
        from: &'static str,
        to: &'static str,
    },
    /// A table of nftables.
    Table(Table),
    /// The name servers in resolv.conf.
    Names(Names),
}

impl Step {
    /// Undoes it before the tunnel's end; what is common to all setups of a server stays.
    pub(super) fn undo(&self, applied: &mut Applied) {
        match self {
            Step::Run { undo, .. } if !undo.is_empty() => applied.undo_command(undo),
            Step::Route(route) => applied.undo_route(&route.delete()),
            Step::Table(table) => applied.undo_table(&table.name),
            _ => {}
        }
    }

    /// Is it undone by taking one of these, which comes in its place?
    pub(super) fn is_changed_by(&self, others: &[Step]) -> bool {
        let Step::Table(table) = self else {
            return false;
        };
        let is_its = |step: &Step| matches!(step, Step::Table(other) if other.name == table.name);
        others.iter().any(is_its)
    }

    /// How a person undoes it, if it leaves anything.
    pub(super) fn shown_undo(&self) -> Option<String> {
        match self {
            Step::Run { undo, .. } if !undo.is_empty() => Some(format!("`{}`", undo.join(" "))),
            Step::Route(route) => Some(format!("`{}`", route.delete().join(" "))),
            Step::Table(table) => Some(format!("`nft delete table {}`", table.name)),
            _ => None,
        }
    }

    /// Does it, and notes in `applied` how it is undone.
    ///
    /// # Errors
    /// What the system says, or that it was given up.
    pub(super) fn take(
        &self,
        applied: &mut Applied,
        remains: &mut Remains,
        give_up: impl Fn() -> bool + Copy,
    ) -> io::Result<()> {
        match self {
            Step::Clear(words) => {
                let _ = run(words, give_up);
            }
            Step::Run { words, undo } => {
                let done = run(words, give_up);
                // One that was ended may have done it already.
                if (done.is_ok() || give_up()) && !undo.is_empty() {
                    applied.push(Undo::Run(undo.clone()));
                }
                done?;
            }
            Step::Route(route) => route.take(applied, give_up)?,
            Step::Forward(file) => {
                let now = match fs::read_to_string(file) {
                    // This kernel has no such family.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    now => now?,
                };
                if now.trim() == "0" {
                    if !remains.holds(file) {
                        remains.add(file);
                        applied.switch_off(file);
                    }
                    fs::write(file, "1")?;
                }
                applied.keep_on(file);
            }
            Step::Set { file, from, to } => {
                applied.push(Undo::Write(file.clone(), from));
                fs::write(file, to)?;
            }
            Step::Names(names) => {
                names.write()?;
                applied.keep_names(names.clone());
            }
            Step::Table(table) => applied.take_table(table, give_up)?,
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Run { words, .. } | Step::Clear(words) => write!(f, "`{}`", words.join(" ")),
            Step::Route(route) => route.fmt(f),
            Step::Forward(file) => write!(f, "`echo 1 > {file}`"),
            Step::Set { file, to, .. } => write!(f, "`echo {to} > {file}`"),
            Step::Table(table) => table.fmt(f),
            Step::Names(names) => names.fmt(f),
        }
    }
}
