//! The emulator's thread.
//!
//! It sleeps in `ppoll`, whose time limit has nanoseconds. Linux lets ordinary threads oversleep by
//! up to 50 µs to save wake-ups; the thread gives up this slack. It does not spin: at some thousand
//! datagrams a second that would take a core from the programs under test.
//! Where it may, it raises its own priority.

use crate::emulate::relay::Relay;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::{self, PipeReader};
use std::net::{SocketAddr, UdpSocket};
#[cfg(target_os = "linux")]
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Datagrams taken from one socket before the others, and what is due, have their turn.
const BATCH: usize = 32;
/// Nice value to ask for: ahead of ordinary programs.
#[cfg(target_os = "linux")]
const PRIORITY: i32 = -10;
/// How often idle clients are looked for.
const EXPIRY: Duration = Duration::from_secs(1);

pub(super) fn run(relay: &Mutex<Relay>, listen: &UdpSocket, stopped: &PipeReader) {
    be_punctual();
    let mut buffer = vec![0; usize::from(u16::MAX)];
    let mut upstreams = Upstreams::default();
    let clock = lock(relay).clock();
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
            upstreams.refresh(&relay);
            (due, now)
        };
        let wake = due.unwrap_or(expiry).min(expiry);
        let ready = match wait(stopped, listen, &upstreams.sockets, wake.since(now)) {
            Ok(ready) => ready,
            Err(Errno::INTR) => continue,
            Err(error) => {
                tracing::error!("the emulated link stops: cannot wait for datagrams: {error}");
                return;
            }
        };
        if ready.stopped {
            return;
        }
        if ready.listen {
            receive(&mut buffer, |buffer| {
                let (len, from) = listen.recv_from(buffer)?;
                lock(relay).take_from_client(from, &buffer[..len]);
                Ok(())
            });
        }
        for index in ready.upstreams {
            let (client, socket) = &upstreams.sockets[index];
            receive(&mut buffer, |buffer| {
                let len = socket.recv(buffer)?;
                lock(relay).take_from_target(*client, &buffer[..len]);
                Ok(())
            });
        }
    }
}

/// The clients' sockets, fetched anew when the table has changed.
#[derive(Default)]
struct Upstreams {
    sockets: Vec<(SocketAddr, Arc<UdpSocket>)>,
    generation: u64,
}

impl Upstreams {
    fn refresh(&mut self, relay: &Relay) {
        if self.generation != relay.clients.generation() {
            self.generation = relay.clients.generation();
            self.sockets = relay.clients.sockets();
        }
    }
}

struct Ready {
    stopped: bool,
    listen: bool,
    /// Which of the clients' sockets.
    upstreams: Vec<usize>,
}

/// Sleeps until a socket has something, the handle is dropped, or `limit` has passed.
fn wait(
    stopped: &PipeReader,
    listen: &UdpSocket,
    upstreams: &[(SocketAddr, Arc<UdpSocket>)],
    limit: Duration,
) -> Result<Ready, Errno> {
    let mut fds = Vec::with_capacity(upstreams.len() + 2);
    fds.push(PollFd::new(stopped, PollFlags::IN));
    fds.push(PollFd::new(listen, PollFlags::IN));
    fds.extend(
        upstreams
            .iter()
            .map(|(_, socket)| PollFd::new(&**socket, PollFlags::IN)),
    );
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    poll(&mut fds, Some(&limit))?;
    let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
    let clients = fds[2..].iter().enumerate();
    Ok(Ready {
        stopped: is_ready(&fds[0]),
        listen: is_ready(&fds[1]),
        upstreams: clients
            .filter(|(_, fd)| is_ready(fd))
            .map(|(index, _)| index)
            .collect(),
    })
}

/// Takes datagrams until there is none, at most [`BATCH`].
fn receive(buffer: &mut [u8], mut one: impl FnMut(&mut [u8]) -> io::Result<()>) {
    for _ in 0..BATCH {
        if let Err(error) = one(buffer) {
            // Nothing left is the usual end. The target's refusal of an earlier datagram comes
            // here too (ICMP): a link does not care who listens behind it.
            if error.kind() != io::ErrorKind::WouldBlock {
                tracing::debug!("receiving on the emulated link: {error}");
            }
            return;
        }
    }
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
