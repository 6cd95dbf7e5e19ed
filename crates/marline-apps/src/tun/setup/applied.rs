//! What was done to the system for a tunnel: it is kept so while the tunnel lasts, and undone in
//! the end.

use super::command::{quoted, run};
use super::forward::{Forward, Opened};
use super::guard::Guard;
use super::names::Names;
use super::table::{Made, Table};
use super::ways::{Laid, Ways};
use marline::interfaces::Changes;
use marline::support::lock;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// A command that undoes something is ended after this time.
const UNDOING: Duration = Duration::from_secs(5);
/// How often the settings are looked at that nobody announces: somebody else may switch forwarding
/// off, and what was forwarded is missed soon.
const LOOK: Duration = Duration::from_secs(2);
/// How often all the rest is looked at if no change of it is announced: that runs commands.
const THOROUGH: Duration = Duration::from_secs(30);
/// From one such look to the next, however much changes.
const PAUSE: Duration = Duration::from_millis(500);

/// What was done; undone when this is dropped.
#[derive(Debug)]
pub struct Applied {
    undo: Vec<Undo>,
    kept: Arc<Mutex<Kept>>,
    /// Ends last: until then it undoes everything if this process is killed.
    guard: Option<Guard>,
}

#[derive(Debug)]
pub(super) enum Undo {
    Run(Vec<String>),
    Route {
        delete: Vec<String>,
        /// The route whose place it took.
        restore: Option<Vec<String>>,
    },
    Write(String, &'static str),
    Remove(PathBuf),
    Names(Names),
}

/// What others may undo, and what is done again then.
#[derive(Debug, Default)]
struct Kept {
    on: Vec<&'static str>,
    tables: Vec<(Table, Made)>,
    names: Vec<Names>,
    forward: Option<(Forward, Opened)>,
    ways: Option<(Ways, Laid)>,
}

impl Applied {
    /// Nothing, and there is nothing to undo.
    pub(in super::super) fn nothing() -> Self {
        Applied {
            undo: Vec::new(),
            kept: Arc::default(),
            guard: None,
        }
    }

    /// Nothing yet, for this device.
    pub(super) fn begin(device: &str) -> Self {
        let guard = Guard::start(device).map_err(|error| {
            tracing::warn!("what is set up stays behind if this process is killed: {error}");
        });
        let mut applied = Applied::nothing();
        applied.guard = guard.ok();
        applied
    }

    pub(super) fn push(&mut self, undo: Undo) {
        if let Some(guard) = &mut self.guard {
            guard.add(&undo.to_shell());
        }
        self.undo.push(undo);
    }

    /// Switches this setting off in the end.
    pub(super) fn switch_off(&mut self, file: &'static str) {
        self.push(Undo::Write(file.to_owned(), "0"));
    }

    /// Removes this file in the end.
    pub(super) fn remove(&mut self, file: PathBuf) {
        self.push(Undo::Remove(file));
    }

    /// Has this setting on from now on.
    pub(super) fn keep_on(&mut self, file: &'static str) {
        lock(&self.kept).on.push(file);
    }

    /// Has these name servers asked from now on.
    pub(super) fn keep_names(&mut self, names: Names) {
        lock(&self.kept).names.push(names.clone());
        self.push(Undo::Names(names));
    }

    /// Has this table from now on: in place of one of its name, if there is one.
    ///
    /// # Errors
    /// What `nft` says.
    pub(super) fn take_table(
        &mut self,
        table: &Table,
        give_up: impl Fn() -> bool + Copy,
    ) -> io::Result<()> {
        for (kept, made) in &mut lock(&self.kept).tables {
            if kept.name == table.name && made.become_another(table, give_up).is_ok() {
                kept.clone_from(table);
                return Ok(());
            }
        }
        self.undo_table(&table.name);
        let made = table.make(give_up)?;
        self.keep_table(table.clone(), made);
        Ok(())
    }

    pub(super) fn keep_table(&mut self, table: Table, made: Made) {
        if let (Some(guard), Some(undo)) = (&mut self.guard, made.undo()) {
            guard.add(&undo);
        }
        lock(&self.kept).tables.push((table, made));
    }

    /// Runs what undoes a command, before the tunnel's end.
    pub(super) fn undo_command(&mut self, undo: &[String]) {
        self.undo
            .retain(|one| !matches!(one, Undo::Run(words) if words == undo));
        let _ = run_to_undo(undo);
    }

    /// Takes a route away that this command deletes, before the tunnel's end.
    pub(super) fn undo_route(&mut self, command: &[String]) {
        let is_its = |one: &Undo| matches!(one, Undo::Route { delete, .. } if *delete == command);
        if let Some(index) = self.undo.iter().position(is_its)
            && let Undo::Route { delete, restore } = self.undo.remove(index)
        {
            for words in std::iter::once(delete).chain(restore) {
                let _ = run_to_undo(&words);
            }
        }
    }

    /// Takes a table away, before the tunnel's end.
    pub(super) fn undo_table(&mut self, name: &str) {
        // It goes as it is dropped.
        lock(&self.kept)
            .tables
            .retain(|(table, _)| table.name != name);
    }

    /// Has the firewall let pass what is forwarded now.
    pub(super) fn keep_forward(&mut self, forward: Option<Forward>) {
        if let (Some(guard), Some(forward)) = (&mut self.guard, &forward) {
            guard.add(&forward.undo());
        }
        let mut kept = lock(&self.kept);
        // What was opened is closed as it is dropped.
        drop(kept.forward.take());
        kept.forward = forward.map(|it| (it, Opened::default()));
        kept.restore_rules();
    }

    /// Has the firewall let pass what is forwarded, and links' own addresses answered.
    pub(super) fn keep(&mut self, forward: Option<Forward>, ways: Option<Ways>) {
        if let Some(guard) = &mut self.guard {
            forward.iter().for_each(|it| guard.add(&it.undo()));
            ways.iter().for_each(|_| guard.add(Ways::UNDO));
        }
        let mut kept = lock(&self.kept);
        kept.forward = forward.map(|it| (it, Opened::default()));
        kept.ways = ways.map(|it| (it, Laid::default()));
        kept.restore_rules();
    }

    /// Does again what others undo, for as long as this is polled.
    pub(in super::super) async fn watch(&self) -> std::convert::Infallible {
        let (mut routes, mut rules) = (Changes::watch(), Changes::watch_firewall());
        let mut looked = Instant::now();
        loop {
            let changed = tokio::select! {
                announced = routes.next() => announced,
                announced = rules.next() => announced,
                () = sleep(LOOK) => false,
            };
            let thorough = changed || looked.elapsed() >= THOROUGH;
            let kept = Arc::clone(&self.kept);
            let done = tokio::task::spawn_blocking(move || {
                let mut kept = lock(&kept);
                kept.restore_settings();
                if thorough {
                    kept.restore_rules();
                }
            });
            let _ = done.await;
            if thorough {
                looked = Instant::now();
                // Others may change much at once.
                sleep(PAUSE).await;
            }
        }
    }
}

/// Runs a command for as long as one that undoes something may take.
fn run_to_undo(words: &[String]) -> io::Result<()> {
    let begun = Instant::now();
    run(words, || begun.elapsed() >= UNDOING)
}

impl Kept {
    /// What is seen without running a command.
    fn restore_settings(&mut self) {
        for file in &self.on {
            let is_off = fs::read_to_string(file).is_ok_and(|value| value.trim() == "0");
            if is_off && fs::write(file, "1").is_ok() {
                tracing::warn!("{file} was switched off by somebody else; it is on again");
            }
        }
        for (table, made) in &mut self.tables {
            if made.holds() {
                continue;
            }
            match table.make(|| false) {
                Ok(again) => {
                    made.replaced();
                    *made = again;
                    tracing::warn!(
                        "the table {} was taken away by somebody else; it is there again",
                        table.name
                    );
                }
                Err(error) => tracing::debug!(%error, "the table is not there"),
            }
        }
        for names in &self.names {
            match names.write() {
                Ok(true) => tracing::info!("{names} again: somebody else had written it"),
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "the name servers are others"),
            }
        }
    }

    fn restore_rules(&mut self) {
        if let Some((forward, opened)) = &mut self.forward {
            forward.open(opened);
        }
        if let Some((ways, laid)) = &mut self.ways {
            ways.lay(laid);
        }
    }
}

impl Undo {
    /// As a command of a shell.
    fn to_shell(&self) -> String {
        let shell = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            words.join(" ")
        };
        match self {
            Undo::Run(words) => shell(words),
            Undo::Route { delete, restore } => {
                let commands = std::iter::once(delete).chain(restore);
                let commands: Vec<String> = commands.map(|words| shell(words)).collect();
                commands.join("; ")
            }
            Undo::Write(file, value) => format!("echo {value} > {}", quoted(file)),
            Undo::Names(names) => names.to_shell(),
            Undo::Remove(file) => format!("rm -f {}", quoted(&file.to_string_lossy())),
        }
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // Waits for what is being restored; nothing is restored from here on.
        drop(std::mem::take(&mut *lock(&self.kept)));
        let mut is_left = false;
        for undo in self.undo.drain(..).rev() {
            let result = match &undo {
                Undo::Run(words) => run_to_undo(words),
                Undo::Route { delete, restore } => {
                    let deleted = run_to_undo(delete);
                    restore.as_ref().map_or(deleted, |words| run_to_undo(words))
                }
                Undo::Write(file, value) => {
                    if let Err(error) = fs::write(file, value)
                        && error.kind() != io::ErrorKind::NotFound
                    {
                        tracing::warn!("cannot undo a setting, `echo {value} > {file}`: {error}");
                        is_left = true;
                    }
                    Ok(())
                }
                Undo::Names(names) => names.undo(),
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
