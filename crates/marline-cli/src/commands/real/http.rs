//! A download by `curl`, an ordinary HTTP client, through the SOCKS5 proxy.

use super::{Came, POLL, Trial, look};
use crate::commands::{CliError, runtime};
use marline_base::Rate;
use marline_lab::demo::{Body, serve};
use sha2::{Digest, Sha256};
use std::io::{self, ErrorKind, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Largest body: it is kept in memory.
const LARGEST: u64 = 256 << 20;
/// Rate of a link of which none is known.
const UNKNOWN: Rate = Rate::from_mbps(20);
/// How much longer than the trial a download may take.
const REST: Duration = Duration::from_secs(60);

/// Killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Errors say that it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Bytes that the best of the trial's links alone carries in its time.
fn length(trial: &Trial) -> u64 {
    // The scenario may have links that this trial does not use.
    let links = trial.paths().iter().map(|path| path.link);
    let rates = links.map(|link| trial.scenario.links[link].down.capacity.mean_rate());
    let rate = rates.flatten().max().unwrap_or(UNKNOWN);
    rate.bytes_in(trial.scenario.duration).min(LARGEST)
}

/// Downloads a body of which the better link alone carries as much as it can in the trial's time,
/// and checks its SHA-256. The goodput is that from the end of the warm-up to the end of the
/// download.
pub(super) fn download(
    trial: &Trial,
    proxy: SocketAddr,
    stop: &AtomicBool,
) -> Result<Came, CliError> {
    let scenario = &trial.scenario;
    let length = length(trial);
    let body = Body::new(1, usize::try_from(length).unwrap_or(usize::MAX));
    let wanted = body.prefix_hash(length);
    let failed = |error: io::Error| CliError::runtime(format!("the web server: {error}"));
    let runtime = runtime()?;
    let listener = runtime
        .block_on(TcpListener::bind("127.0.0.1:0"))
        .map_err(failed)?;
    let origin = listener.local_addr().map_err(failed)?;
    let done = CancellationToken::new();
    let came = thread::scope(|scope| {
        scope.spawn(|| {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener, body) => {}
                    () = done.cancelled() => {}
                }
            });
        });
        let _done = done.clone().drop_guard();
        fetch(proxy, origin, scenario.duration + REST, stop)
    })?;
    if wanted != Some(came.hash) {
        return Err(CliError::runtime(format!(
            "the download is not what was sent: {} of {length} bytes came",
            came.pieces.iter().map(|(_, bytes)| bytes).sum::<u64>()
        )));
    }
    let counted = came.pieces.iter().filter(|(at, _)| *at >= scenario.warmup);
    let bytes: u64 = counted.map(|(_, bytes)| bytes).sum();
    let end = came.pieces.last().map_or(Duration::ZERO, |(at, _)| *at);
    let span = end.saturating_sub(scenario.warmup);
    if span.is_zero() {
        return Err(CliError::runtime("the download ended within the warm-up")
            .hint("let the run last longer, with --seconds"));
    }
    Ok(Came {
        delay_ms: None,
        calm_ms: None,
        lost: 0.0,
        left_out: 0.0,
        goodput_mbps: Rate::from_bytes_over(bytes, span).as_mbps_f64(),
        sender_late_ms: 0.0,
    })
}

/// What `curl` printed.
struct Fetched {
    /// Time since its start, and bytes.
    pieces: Vec<(Duration, u64)>,
    hash: [u8; 32],
}

fn fetch(
    proxy: SocketAddr,
    origin: SocketAddr,
    most: Duration,
    stop: &AtomicBool,
) -> Result<Fetched, CliError> {
    let begin = Instant::now();
    let child = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--noproxy", ""])
        .args(["--socks5-hostname", &proxy.to_string()])
        .arg(format!("http://{origin}/file"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut curl = Running(child.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            CliError::runtime("curl is not installed").hint("install it, or leave out --curl")
        }
        _ => CliError::runtime(format!("cannot start curl: {error}")),
    })?);
    let (tell, told) = sync_channel::<(Instant, Vec<u8>)>(64);
    if let Some(mut out) = curl.0.stdout.take() {
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length @ 1..) = out.read(&mut buffer) {
                if tell
                    .send((Instant::now(), buffer[..length].to_vec()))
                    .is_err()
                {
                    return;
                }
            }
        });
    }
    let (mut pieces, mut hash) = (Vec::new(), Sha256::new());
    loop {
        look(stop)?;
        if begin.elapsed() > most {
            return Err(CliError::runtime("the download does not end"));
        }
        match told.recv_timeout(POLL) {
            Ok((at, piece)) => {
                hash.update(&piece);
                pieces.push((at - begin, piece.len() as u64));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let failed = |why: String| CliError::runtime(format!("curl: {why}"));
    let status = curl.0.wait().map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        let mut why = String::new();
        if let Some(mut error) = curl.0.stderr.take() {
            // What cannot be read says nothing.
            let _ = error.read_to_string(&mut why);
        }
        return Err(failed(format!("{status}: {}", why.trim())));
    }
    Ok(Fetched {
        pieces,
        hash: hash.finalize().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::trials;
    use super::*;
    use marline_sim::scenario::Document;

    #[test]
    fn the_length_is_that_of_the_best_link_in_use() {
        let text = r#"
            duration = "10s"
            schedulers = ["mend"]
            links.fast = { rate = "80mbit", delay = "10ms" }
            links.slow = { rate = "4mbit", delay = "10ms" }
            workloads = [{ kind = "backlogged", flow = "stream", from = "client" }]
            [vary]
            use = [
                { name = "slow", set = { paths = [{ link = "slow" }] } },
                { name = "both", set = { paths = [{ link = "slow" }, { link = "fast" }] } },
            ]
        "#;
        let document = Document::parse("test.toml", text).unwrap();
        let cells = document.scenarios(&|_| Err("no files".into()));
        let cells = cells.unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let lengths: Vec<u64> = cells
            .into_iter()
            .map(|(_, scenario)| length(&trials("test", scenario).unwrap()[0]))
            .collect();
        assert_eq!(lengths, [5_000_000, 100_000_000]);
    }
}
