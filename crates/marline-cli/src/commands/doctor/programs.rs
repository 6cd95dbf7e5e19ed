//! Asks the system's own tools, `ip` and `nft`, for what they know.

use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest answer, bytes: the largest rule sets have some megabytes.
const MAX_ANSWER: u64 = 16 << 20;
/// Where administrators' tools are that a user's PATH may leave out.
const FOLDERS: [&str; 3] = ["", "/usr/sbin/", "/sbin/"];

/// What the program writes, or in words why it is not known.
pub(super) async fn ask(program: &str, words: &[&str]) -> Result<Vec<u8>, String> {
    let mut child = start(program, words)?;
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
                let _ = err.take(4096).read_to_end(&mut complaint).await;
            }
        };
        tokio::join!(reading, listening);
        child.wait().await
    };
    match timeout(PATIENCE, whole).await {
        Err(_) => Err(format!("`{program}` did not answer in time")),
        Ok(Err(error)) => Err(format!("`{program}` failed: {error}")),
        Ok(Ok(status)) if status.success() => Ok(answer),
        Ok(Ok(_)) => {
            let complaint = String::from_utf8_lossy(&complaint);
            let first = complaint.lines().next().unwrap_or("it failed").trim();
            Err(format!("`{program}` says: {first}"))
        }
    }
}

fn start(program: &str, words: &[&str]) -> Result<Child, String> {
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
            Ok(child) => return Ok(child),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(format!("`{program}` cannot be started: {error}")),
        }
    }
    Err(format!("there is no `{program}` here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_complaints_and_absence_are_told_apart() {
        assert_eq!(ask("echo", &["hello"]).await, Ok(b"hello\n".to_vec()));
        let failed = ask("sh", &["-c", "echo no way >&2; exit 3"]).await;
        assert_eq!(failed, Err("`sh` says: no way".into()));
        let absent = ask("no-such-program", &[]).await;
        assert_eq!(absent, Err("there is no `no-such-program` here".into()));
    }
}
