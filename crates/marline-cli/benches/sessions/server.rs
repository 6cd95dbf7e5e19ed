//! The server's process, and what it takes.

use super::{Failure, Plan};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The server's process. Killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) addr: SocketAddr,
}

impl Server {
    /// Lets in the clients that are listed in the folder.
    pub(crate) fn start(plan: &Plan, folder: &Path, sink: SocketAddr) -> Result<Self, Failure> {
        let mut command = Command::new(&plan.program);
        command
            .args(["server", "--listen", "127.0.0.1:0", "--control", "off"])
            .args(["--identity", "server", "--allow-clients-file", "clients"])
            .args(["--clients-state", "off", "--allow-target", "127.0.0.0/8"])
            .args(["--live", &format!("udp://{sink}")])
            .args(plan.workers.iter().flat_map(|count| ["--workers", count]))
            .args(["--log", "warn"])
            .current_dir(folder)
            .env("XDG_STATE_HOME", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let printed = child.stdout.take().ok_or("no standard output")?;
        let mut line = String::new();
        BufReader::new(printed).read_line(&mut line)?;
        let addr = line.trim().rsplit_once('@').ok_or("the server ended")?.1;
        let addr = addr.parse()?;
        Ok(Self { child, addr })
    }

    /// Resident memory (KiB).
    pub(crate) fn resident(&self) -> Result<f64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let words = line.ok_or("no VmRSS")?;
        Ok(words.trim().trim_end_matches(" kB").parse()?)
    }

    /// CPU seconds of each thread so far, with its number.
    pub(crate) fn cpu(&self) -> Result<Vec<(u32, f64)>, Failure> {
        let mut threads = Vec::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let task = task?;
            let spent = std::fs::read_to_string(task.path().join("schedstat"))?;
            let nanos: f64 = spent.split(' ').next().unwrap_or_default().parse()?;
            let number = task.file_name().to_string_lossy().parse()?;
            threads.push((number, nanos * 1e-9));
        }
        threads.sort_by_key(|(number, _)| *number);
        Ok(threads)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU seconds between two looks: in all, and those of each thread that did anything.
pub(crate) fn spent(before: &[(u32, f64)], after: &[(u32, f64)]) -> (f64, Vec<f64>) {
    let earlier = |number| before.iter().find(|(other, _)| *other == number);
    let threads = after
        .iter()
        .map(|(number, now)| now - earlier(*number).map_or(0.0, |(_, then)| *then));
    let threads: Vec<f64> = threads.collect();
    let all = threads.iter().sum();
    let busy = threads.into_iter().filter(|time| *time > 0.01).collect();
    (all, busy)
}
