//! Asks the system's own tools, `ip`, `nft` and `timedatectl`, for what they know.

use super::limits::PATIENCE;
use std::io::{self, ErrorKind};
use std::process::Stdio;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longest answer, bytes: the largest rule sets have some megabytes.
const MAX_ANSWER: u64 = 16 << 20;
/// Longest complaint that is read, bytes; its first line is shown.
const MAX_COMPLAINT: u64 = 4096;
/// Where administrators' tools are that a user's PATH may leave out (FHS 3.0, sections 3.16, 4.10).
const FOLDERS: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// Why a tool has said nothing that could be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It is not there.
    #[error("`{0}` is not installed")]
    Absent(&'static str),
    /// It runs and says nothing.
    #[error("`{0}` does not answer within {wait} s", wait = PATIENCE.as_secs())]
    Silent(&'static str),
    /// It cannot be run, or its answer cannot be read.
    #[error("`{program}` cannot be used: {why}")]
    Broken {
        /// The tool.
        program: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// It answers that it cannot say that.
    #[error("`{program}` says: {complaint}")]
    Refused {
        /// The tool.
        program: &'static str,
        /// The first line of its complaint.
        complaint: String,
    },
}

/// What the program writes.
pub(super) async fn ask(program: &'static str, words: &[&str]) -> Result<Vec<u8>, NoAnswer> {
    let broken = |error: io::Error| NoAnswer::Broken {
        program,
        why: error.to_string(),
    };
    let mut child = start(program, words)
        .map_err(broken)?
        .ok_or(NoAnswer::Absent(program))?;
    let (mut answer, mut complaint) = (Vec::new(), Vec::new());
    let whole = async {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let reading = async {
            if let Some(out) = out {
                let _ = out.take(MAX_ANSWER).read_to_end(&mut answer).await;
            }
        };
        let listening = async {
            if let Some(err) = err {
                let _ = err.take(MAX_COMPLAINT).read_to_end(&mut complaint).await;
            }
        };
        tokio::join!(reading, listening);
        child.wait().await
    };
    let status = timeout(PATIENCE, whole).await;
    let status = status.map_err(|_| NoAnswer::Silent(program))?;
    if status.map_err(broken)?.success() {
        return Ok(answer);
    }
    let complaint = String::from_utf8_lossy(&complaint);
    let first = complaint.lines().next().unwrap_or("nothing, and fails");
    Err(NoAnswer::Refused {
        program,
        complaint: first.trim().to_owned(),
    })
}

/// `None` if there is no such program.
fn start(program: &str, words: &[&str]) -> io::Result<Option<Child>> {
    for folder in FOLDERS {
        let started = Command::new(format!("{folder}{program}"))
            .args(words)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        match started {
            Ok(child) => return Ok(Some(child)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_complaints_and_absence_are_told_apart() {
        assert_eq!(ask("echo", &["hello"]).await, Ok(b"hello\n".to_vec()));
        let failed = ask("sh", &["-c", "echo no way >&2; exit 3"]).await;
        assert_eq!(failed.unwrap_err().to_string(), "`sh` says: no way");
        let absent = ask("no-such-program", &[]).await;
        assert_eq!(absent, Err(NoAnswer::Absent("no-such-program")));
    }
}
