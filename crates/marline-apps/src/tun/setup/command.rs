//! Programs that change the system for a tunnel.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// The words of a command in which none has a blank.
pub(super) fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Runs a command to its end, or until it is given up.
pub(super) fn run(words: &[String], give_up: impl Fn() -> bool) -> io::Result<()> {
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
    Err(complaint(&output.stderr))
}

/// What a command prints.
pub(super) fn ask(text: &str) -> io::Result<Vec<u8>> {
    let words = words(text);
    let mut command = Command::new(&words[0]);
    let output = command.args(&words[1..]).stdin(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(complaint(&output.stderr)),
    }
}

pub(super) fn complaint(said: &[u8]) -> io::Error {
    let said = String::from_utf8_lossy(said);
    let first = said.lines().next();
    io::Error::other(first.unwrap_or("it failed and said nothing").to_owned())
}

/// Is there such a program?
pub(super) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .any(|folder| Path::new(&folder).join(program).is_file())
}

/// A word for a shell, whatever is in it.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
