//! The emulator's thread.
//!
//! It sleeps in `ppoll`, whose time limit has nanoseconds. Linux lets ordinary threads oversleep by
//! up to 50 µs to save wake-ups; the thread gives up this slack. It does not spin: at some thousand
//! datagrams a second that would take a core from the programs under test.
//! Where it may, it raises its own priority.

use crate::emulate::port::Port;
use crate::emulate::relay::Relay;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind, PipeReader};
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Packets taken from one port before the others, and what is due, have their turn.
const BATCH: usize = 32;
/// Nice value to ask for: ahead of ordinary programs.
#[cfg(target_os = "linux")]
const PRIORITY: i32 = -10;
/// How often idle clients are looked for.
const EXPIRY: Duration = Duration::from_secs(1);

pub(super) fn run(relay: &Mutex<Relay>, stopped: &PipeReader) {
    be_punctual();
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let (mut ports, clock) = {
        let relay = lock(relay);
        (Ports::of(&relay), relay.clock())
    };
    let mut expiry = clock.now() + EXPIRY;
    loop {
        let (due, now) = {
            let mut relay = lock(relay);
            let due = relay.send_due();
            let now = clock.now();
            if now >= expiry {
                relay.expire();
                expiry = now + EXPIRY;
            }
            if ports.generation != relay.ends.generation() {
                ports = Ports::of(&relay);
            }
            (due, now)
        };
        let wake = due.unwrap_or(expiry).min(expiry);
        let ready = match wait(stopped, &ports.all, wake.since(now)) {
            Ok(ready) => ready,
            Err(Errno::INTR) => continue,
            Err(error) => {
                tracing::error!("the emulated link stops: cannot wait for packets: {error}");
                return;
            }
        };
        if ready.stopped {
            return;
        }
        for index in ready.ports {
            if let Err(error) = receive(relay, &ports.all[index], &mut buffer) {
                tracing::error!("the emulated link stops: a device is gone: {error}");
                return;
            }
        }
    }
}

/// What packets come out of, fetched again when clients have come or gone.
struct Ports {
    all: Vec<Port>,
    generation: u64,
}

impl Ports {
    fn of(relay: &Relay) -> Self {
        Self {
            all: relay.ends.ports(),
            generation: relay.ends.generation(),
        }
    }
}

struct Ready {
    stopped: bool,
    /// Which of the ports.
    ports: Vec<usize>,
}

/// Sleeps until a port has something, the handle is dropped, or `limit` has passed.
fn wait(stopped: &PipeReader, ports: &[Port], limit: Duration) -> Result<Ready, Errno> {
    let mut fds = Vec::with_capacity(ports.len() + 1);
    fds.push(PollFd::new(stopped, PollFlags::IN));
    fds.extend(ports.iter().map(|port| PollFd::new(port, PollFlags::IN)));
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    poll(&mut fds, Some(&limit))?;
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    let ports = fds[1..].iter().enumerate();
    Ok(Ready {
        stopped: is_ready(&fds[0]),
        ports: ports
            .filter(|(_, fd)| is_ready(fd))
            .map(|(index, _)| index)
            .collect(),
    })
}

/// Takes packets until there is none, at most [`BATCH`].
///
/// # Errors
///
/// Nothing can come of this port any more.
fn receive(relay: &Mutex<Relay>, port: &Port, buffer: &mut [u8]) -> io::Result<()> {
    for _ in 0..BATCH {
        match port.receive(buffer) {
            Ok((length, origin)) => lock(relay).take(origin, &buffer[..length]),
            Err(error) if port.is_gone(&error) => return Err(error),
            Err(error) => {
                // Nothing left is the usual end.
                if error.kind() != ErrorKind::WouldBlock {
                    tracing::debug!("receiving on the emulated link: {error}");
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Asks the system to wake this thread in time; where it refuses, timing is coarser.
fn be_punctual() {
    #[cfg(target_os = "linux")]
    {
        if let Err(error) = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN)) {
            tracing::debug!("timers of the emulated link are 50 µs coarse: {error}");
        }
        // A link does not slow down because the computer is busy. On Linux this is the thread's
        // own priority; it takes the right to raise one (root, or CAP_SYS_NICE).
        if let Err(error) = rustix::process::setpriority_process(None, PRIORITY) {
            tracing::debug!("the emulated link keeps its ordinary priority: {error}");
        }
    }
}

fn lock(relay: &Mutex<Relay>) -> MutexGuard<'_, Relay> {
    // The relay is whole between datagrams, whatever happened to who held it.
    relay.lock().unwrap_or_else(PoisonError::into_inner)
}
