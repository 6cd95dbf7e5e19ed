//! The NAT64 translators that routers of this host's networks announce (RFC 8781).
//!
//! The kernel passes the option on to whom it may concern, once for each advertisement. What was
//! announced before somebody watches is not repeated, so that RFC 7050's question stays beside it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::time::Instant;

use super::pref64::Pref64;
use crate::support::lock;

/// Interfaces whose announcements are remembered: more than a host has modems. Of further ones none
/// is.
#[cfg(any(test, target_os = "linux"))]
const MOST: usize = 64;

/// What is announced now. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Translators(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// By the interface's number, and until when it holds.
    known: Mutex<BTreeMap<u32, (Pref64, Instant)>>,
    changes: watch::Sender<()>,
}

impl Translators {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            known: Mutex::default(),
            changes: watch::Sender::new(()),
        }))
    }

    /// The prefix that was announced last by this interface, or by any, and still holds.
    pub(crate) fn of(&self, interface: Option<u32>) -> Option<Pref64> {
        let known = lock(&self.0.known);
        let now = Instant::now();
        let fits = |(number, (_, until)): &(&u32, &(Pref64, Instant))| {
            *until > now && interface.is_none_or(|it| it == **number)
        };
        known.iter().find(fits).map(|(_, (found, _))| *found)
    }

    /// Waits until one is known.
    pub(crate) async fn comes(&self, interface: Option<u32>) -> Pref64 {
        let mut changes = self.0.changes.subscribe();
        loop {
            if let Some(found) = self.of(interface) {
                return found;
            }
            // The sender lives as long as this does.
            let _ = changes.changed().await;
        }
    }

    /// Forgets what was announced to interfaces that have left that network.
    pub(crate) fn keep(&self, is_connected: impl Fn(u32) -> bool) {
        lock(&self.0.known).retain(|number, _| is_connected(*number));
    }

    /// A router has announced it.
    #[cfg(any(test, target_os = "linux"))]
    fn announced(&self, pref64: Pref64) {
        let mut known = lock(&self.0.known);
        let now = Instant::now();
        known.retain(|_, (_, until)| *until > now);
        let number = pref64.interface;
        if pref64.lifetime.is_zero() {
            // One router may take back what is its own alone.
            known.retain(|it, (old, _)| *it != number || old.prefix != pref64.prefix);
        } else if known.len() < MOST || known.contains_key(&number) {
            known.insert(number, (pref64, now + pref64.lifetime));
        }
        drop(known);
        self.0.changes.send_replace(());
    }

    /// Takes note of what is announced. Never completes.
    #[cfg(target_os = "linux")]
    pub(crate) async fn watch(&self) {
        linux::watch(|pref64| {
            let Pref64 { prefix, length, .. } = pref64;
            tracing::debug!("a router announces the translator {prefix}/{}", 8 * length);
            self.announced(pref64);
        })
        .await;
    }

    /// Other systems announce nothing.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn watch(&self) {
        std::future::pending::<()>().await;
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use netlink_sys::protocols::NETLINK_ROUTE;
    use netlink_sys::{AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket};
    use rustix::io::Errno;

    use super::super::pref64::{Pref64, read};

    /// `RTNLGRP_ND_USEROPT` of linux/rtnetlink.h, the 20th group.
    const GROUP: u32 = 1 << 19;
    /// Bytes of a notice: one option with its headers, of the longest length.
    const NOTICE: usize = 4096;

    /// Never completes. Where the system lets this process have no such socket, nothing comes.
    pub(super) async fn watch(mut announced: impl FnMut(Pref64)) {
        if let Ok(socket) = subscribe() {
            let mut buffer = Vec::with_capacity(NOTICE);
            loop {
                buffer.clear();
                match socket.recv(&mut buffer).await {
                    Ok(()) => read(&buffer).into_iter().for_each(&mut announced),
                    // Some were dropped; each is repeated.
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => {}
                    Err(_) => break,
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn subscribe() -> io::Result<TokioSocket> {
        let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
        socket.socket_mut().bind(&SocketAddr::new(0, GROUP))?;
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pref64(interface: u32, prefix: &str, seconds: u64) -> Pref64 {
        Pref64 {
            interface,
            prefix: prefix.parse().unwrap(),
            length: 12,
            lifetime: Duration::from_secs(seconds),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_announced_holds_for_its_interface_and_its_time() {
        let translators = Translators::new();
        let prefix = |interface| translators.of(interface).map(|it| it.prefix.to_string());
        let coming = translators.clone();
        let first = tokio::spawn(async move { coming.comes(Some(2)).await });
        translators.announced(pref64(1, "64:ff9b::", 600));
        assert_eq!(prefix(Some(1)).as_deref(), Some("64:ff9b::"));
        assert_eq!(prefix(Some(2)), None);
        assert_eq!(prefix(None).as_deref(), Some("64:ff9b::"));
        let second = pref64(2, "2001:db8:64::", 1_200);
        translators.announced(second);
        assert_eq!(first.await.unwrap(), second);
        tokio::time::advance(Duration::from_secs(601)).await;
        assert_eq!(prefix(None).as_deref(), Some("2001:db8:64::"));
        // Another router's is not taken back, its own is.
        translators.announced(pref64(2, "2001:db8:1::", 0));
        assert!(prefix(Some(2)).is_some());
        translators.announced(pref64(2, "2001:db8:64::", 0));
        assert_eq!(prefix(None), None);
        // What leaves its network has its translator no more.
        translators.announced(second);
        translators.keep(|interface| interface == 2);
        assert!(prefix(Some(2)).is_some());
        translators.keep(|interface| interface == 1);
        assert_eq!(prefix(None), None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_than_so_many_interfaces_are_remembered() {
        let translators = Translators::new();
        for interface in 0..2 * MOST as u32 {
            translators.announced(pref64(interface, "64:ff9b::", 8));
        }
        assert_eq!(lock(&translators.0.known).len(), MOST);
    }
}
