//! Programs that change the system for a tunnel.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often a running command is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// How long a command may take that only asks: it takes milliseconds, and one that hangs would hold
/// up what keeps the tunnel as it was set up.
const ASKED: Duration = Duration::from_secs(5);

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
    ask_for(text, ASKED)
}

fn ask_for(text: &str, longest: Duration) -> io::Result<Vec<u8>> {
    let words = words(text);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Read in threads of their own: a pipe that is full holds its program up, and one that a
    // program's own child keeps would hold this one up.
    let (said, complained) = (read(child.stdout.take()), read(child.stderr.take()));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() >= longest {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                format!("`{text}` did not end within {} s", longest.as_secs()),
            ));
        }
        thread::sleep(LOOK);
    };
    let left = || longest.saturating_sub(begun.elapsed()).max(LOOK);
    match status.success() {
        true => said.recv_timeout(left()).map_err(io::Error::other),
        false => Err(complaint(
            &complained.recv_timeout(left()).unwrap_or_default(),
        )),
    }
}

/// All that comes of a pipe.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (done, all) = sync_channel(1);
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before an error is as good.
            let _ = pipe.read_to_end(&mut text);
        }
        let _ = done.send(text);
    });
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_answered_in_time_or_given_up() {
        assert_eq!(ask("echo here").unwrap(), b"here\n");
        // More than a pipe holds.
        assert_eq!(ask("head -c 300000 /dev/zero").unwrap().len(), 300_000);
        assert!(
            ask("ls /nonexistent")
                .unwrap_err()
                .to_string()
                .contains("/nonexistent")
        );
        let error = ask_for("sleep 1000", Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
