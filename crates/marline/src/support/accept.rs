//! Taking connections in, also when the system has run out of descriptors or memory.

use std::fmt;
use std::fs::File;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{Sleep, sleep};

use crate::support::descriptors::{leaves_few, number};
use crate::support::seldom::Seldom;

/// How long a listener rests after the system had nothing left for a connection. The connection
/// stays in the kernel's queue and would be offered again at once, a million times a second; a
/// client does not notice a tenth of a second.
const REST: Duration = Duration::from_millis(100);

/// Connections that are turned away before a rest: as many as the kernel's queue holds by default.
const TURNED_AWAY: usize = 128;

/// A socket that connections come to.
pub trait Listening {
    /// A connection, and whose it is.
    type Taken;

    /// The number of the connection's descriptor.
    fn number(taken: &Self::Taken) -> i32;

    /// The next one.
    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Taken>>;
}

impl Listening for TcpListener {
    type Taken = (TcpStream, SocketAddr);

    fn number(taken: &Self::Taken) -> i32 {
        number(&taken.0)
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Taken>> {
        self.poll_accept(cx)
    }
}

#[cfg(unix)]
impl Listening for UnixListener {
    type Taken = UnixStream;

    fn number(taken: &Self::Taken) -> i32 {
        number(taken)
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Taken>> {
        self.poll_accept(cx).map_ok(|(stream, _)| stream)
    }
}

impl<L: Listening> Listening for &L {
    type Taken = L::Taken;

    fn number(taken: &Self::Taken) -> i32 {
        L::number(taken)
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Taken>> {
        (**self).poll_next(cx)
    }
}

/// A listener that never fails. While the system has nothing left for a connection, it closes those
/// that wait, so that their clients know at once, and rests in between. For closing them it keeps a
/// descriptor in reserve.
pub struct PatientListener<L = TcpListener> {
    listener: L,
    /// Given up for the moment in which a connection is taken and closed.
    reserve: Option<File>,
    rest: Option<Pin<Box<Sleep>>>,
    /// Are descriptors left to others?
    is_sparing: bool,
    log: Seldom,
}

impl<L: fmt::Debug> fmt::Debug for PatientListener<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PatientListener")
            .field("listener", &self.listener)
            .field("resting", &self.rest.is_some())
            .finish_non_exhaustive()
    }
}

impl<L: Listening> PatientListener<L> {
    /// Takes connections from this socket.
    pub fn new(listener: L) -> Self {
        Self {
            listener,
            reserve: reserve(),
            rest: None,
            is_sparing: false,
            log: Seldom::default(),
        }
    }

    /// As [`new`](Self::new), and leaves some descriptors to paths and to control.
    pub fn sparing(listener: L) -> Self {
        Self {
            is_sparing: true,
            ..Self::new(listener)
        }
    }

    /// The next connection. May be cancelled and called again.
    pub async fn accept(&mut self) -> L::Taken {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// [`accept`](Self::accept) for a hand-written loop.
    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<L::Taken> {
        loop {
            if let Some(rest) = &mut self.rest {
                ready!(rest.as_mut().poll(cx));
                self.rest = None;
            }
            match ready!(self.listener.poll_next(cx)) {
                Ok(taken) if self.is_sparing && leaves_few(L::number(&taken)) => {
                    drop(taken);
                    self.log.say(|more| {
                        tracing::warn!(
                            "a connection was closed: nearly all descriptors are in use{more}; \
                             raise the limit (ulimit -n, LimitNOFILE of systemd)"
                        );
                    });
                    self.rest = Some(Box::pin(sleep(REST)));
                }
                Ok(taken) => return Poll::Ready(taken),
                Err(error) if is_of_one_connection(&error) => {
                    tracing::debug!("a connection was gone before it was taken: {error}");
                }
                Err(error) => {
                    let closed = self.turn_away(cx);
                    self.log.say(|more| {
                        tracing::warn!(
                            "no connection can be taken ({error}); {closed} that waited were \
                             closed{more}"
                        );
                    });
                    self.rest = Some(Box::pin(sleep(REST)));
                }
            }
        }
    }

    /// Takes connections into the reserve's place and closes them; returns how many.
    fn turn_away(&mut self, cx: &mut Context<'_>) -> usize {
        if self.reserve.take().is_none() {
            self.reserve = reserve();
            return 0;
        }
        let mut closed = 0;
        while closed < TURNED_AWAY && matches!(self.listener.poll_next(cx), Poll::Ready(Ok(_))) {
            closed += 1;
        }
        self.reserve = reserve();
        closed
    }
}

/// A descriptor of nothing; `None` where there is none left.
fn reserve() -> Option<File> {
    File::open(if cfg!(windows) { "NUL" } else { "/dev/null" }).ok()
}

/// Errors of a connection that waited, which accept(2) hands on; the next one may be taken at once.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionAborted, ConnectionReset, HostUnreachable, Interrupted, NetworkDown,
        NetworkUnreachable, PermissionDenied, TimedOut, Unsupported,
    };
    matches!(
        error.kind(),
        ConnectionAborted
            | ConnectionReset
            | HostUnreachable
            | Interrupted
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
            | TimedOut
            | Unsupported
    ) || has_no_kind(error)
}

/// The same, of errors that have no kind.
#[cfg(unix)]
fn has_no_kind(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(
        Errno::from_io_error(error),
        Some(Errno::HOSTDOWN | Errno::NOPROTOOPT | Errno::PROTO)
    )
}

#[cfg(not(unix))]
fn has_no_kind(_: &io::Error) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::cell::RefCell;
    use tokio::time::{Instant, timeout};

    /// Says these, one after the other, and then the last one for ever.
    struct Script {
        answers: RefCell<Vec<Result<u32, Errno>>>,
        asked: RefCell<usize>,
    }

    impl Script {
        fn new(answers: &[Result<u32, Errno>]) -> Self {
            let answers = answers.iter().rev().copied().collect();
            Self {
                answers: RefCell::new(answers),
                asked: RefCell::default(),
            }
        }
    }

    impl Listening for Script {
        type Taken = u32;

        fn number(taken: &u32) -> i32 {
            *taken as i32
        }

        fn poll_next(&self, _: &mut Context<'_>) -> Poll<io::Result<u32>> {
            *self.asked.borrow_mut() += 1;
            let mut answers = self.answers.borrow_mut();
            let answer = match answers.len() {
                1 => answers[0],
                _ => answers.pop().unwrap(),
            };
            Poll::Ready(answer.map_err(io::Error::from))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn without_descriptors_it_rests_instead_of_asking_again_at_once() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            let mut listener = PatientListener::new(Script::new(&[Err(errno)]));
            let second = Duration::from_secs(1);
            assert!(timeout(second, listener.accept()).await.is_err());
            // Ten rests, and at most two questions between any two.
            let asked = *listener.listener.asked.borrow();
            assert!((10..=22).contains(&asked), "{errno}: {asked}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_closed_and_what_comes_after_the_rest_is_taken() {
        let script = [Err(Errno::MFILE), Ok(1), Ok(2), Err(Errno::AGAIN), Ok(3)];
        let mut listener = PatientListener::new(Script::new(&script));
        let start = Instant::now();
        assert_eq!(listener.accept().await, 3);
        assert_eq!(start.elapsed(), REST);
        assert!(listener.reserve.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_reserve_nothing_is_taken_to_be_closed() {
        let mut listener = PatientListener::new(Script::new(&[Err(Errno::MFILE), Ok(1)]));
        listener.reserve = None;
        assert_eq!(listener.accept().await, 1);
        assert!(listener.reserve.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_descriptors_are_left_to_others() {
        let script = [Ok(i32::MAX as u32), Ok(3)];
        let mut listener = PatientListener::sparing(Script::new(&script));
        let start = Instant::now();
        assert_eq!(listener.accept().await, 3);
        assert_eq!(start.elapsed(), REST);
        let mut listener = PatientListener::new(Script::new(&script));
        assert_eq!(listener.accept().await, i32::MAX as u32);
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_of_one_connection_does_not_delay_the_next() {
        let script = [Err(Errno::CONNABORTED), Err(Errno::PROTO), Ok(1)];
        let mut listener = PatientListener::new(Script::new(&script));
        let start = Instant::now();
        assert_eq!(listener.accept().await, 1);
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
