//! Notices of changes. What has changed is not read from them: whoever waits asks the system how
//! things stand now, which is as quick, and right also after notices were lost.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

/// Notices come in swarms, as when a device appears with its addresses and routes; a swarm is one
/// change. A path that is back this much later is not missed.
const SWARM: Duration = Duration::from_millis(20);
/// How often those who wait look for themselves where the system announces nothing.
const LOOK: Duration = Duration::from_secs(1);

/// Waits for changes of this host's devices, addresses and routes. Clones wait each for themselves.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Changes that the system announced so far.
    announced: watch::Receiver<u64>,
    seen: u64,
}

impl Changes {
    /// Watches from now on, until the last clone is gone. Needs a tokio runtime.
    pub fn watch() -> Self {
        Self::noticed(Notices::open())
    }

    /// Watches changes of this host's firewall instead (nftables, and iptables on top of it), from
    /// now on, until the last clone is gone. Needs a tokio runtime.
    pub fn watch_firewall() -> Self {
        Self::noticed(Notices::of_firewall())
    }

    fn noticed(notices: Notices) -> Self {
        let (sender, receiver) = watch::channel(0);
        tokio::spawn(async move {
            tokio::select! {
                () = notify(notices, &sender) => {}
                () = sender.closed() => {}
            }
        });
        Self::of(receiver)
    }

    fn of(announced: watch::Receiver<u64>) -> Self {
        let seen = *announced.borrow();
        Self { announced, seen }
    }

    /// Waits for the next change since this was called last; false if the system announces none, so
    /// that only a second has passed. Cancel safe.
    pub async fn next(&mut self) -> bool {
        if self.announced.changed().await.is_err() {
            // The runtime is about to end.
            std::future::pending::<()>().await;
        }
        let announced = *self.announced.borrow_and_update();
        std::mem::replace(&mut self.seen, announced) != announced
    }
}

/// Passes changes on by hand.
#[derive(Debug)]
pub(crate) struct Notifier(watch::Sender<u64>);

impl Notifier {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// The changes that it passes on from now on.
    pub(crate) fn changes(&self) -> Changes {
        Changes::of(self.0.subscribe())
    }

    /// Something has changed, or may have if it was not `announced`.
    pub(crate) fn notify(&self, announced: bool) {
        self.0.send_modify(|count| *count += u64::from(announced));
    }
}

async fn notify(mut notices: Notices, sender: &watch::Sender<u64>) {
    loop {
        let announced = notices.next().await;
        sleep(SWARM).await;
        sender.send_modify(|count| *count += u64::from(announced));
    }
}

#[cfg(target_os = "linux")]
use linux::Notices;

#[cfg(target_os = "linux")]
mod linux {
    use std::io;

    use netlink_sys::protocols::{NETLINK_NETFILTER, NETLINK_ROUTE};
    use netlink_sys::{AsyncSocket as _, AsyncSocketExt as _, SocketAddr, TokioSocket};
    use rustix::io::Errno;
    use tokio::time::sleep;

    /// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `_IPV4_ROUTE`, `_IPV4_RULE`, `_IPV6_IFADDR`,
    /// `_IPV6_ROUTE` of linux/rtnetlink.h, and the rules of IPv6 (`RTNLGRP_IPV6_RULE`, the 19th
    /// group).
    const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18;
    /// `NFNLGRP_NFTABLES` of linux/netfilter/nfnetlink.h, the 7th group.
    const FIREWALL: u32 = 1 << 6;
    /// Bytes of a notice. Nothing is read of it, and what does not fit is cut off.
    const NOTICE: usize = 512;

    /// The kernel's notices; without them, the passing of time.
    pub(super) struct Notices(Option<TokioSocket>);

    impl Notices {
        pub(super) fn open() -> Self {
            match subscribe(NETLINK_ROUTE, GROUPS) {
                Ok(socket) => Self(Some(socket)),
                Err(error) => {
                    tracing::warn!(
                        "the system announces no changes of interfaces, addresses and routes \
                         ({error}): they are seen up to a second later; with systemd, \
                         RestrictAddressFamilies needs AF_NETLINK"
                    );
                    Self(None)
                }
            }
        }

        pub(super) fn of_firewall() -> Self {
            Self(subscribe(NETLINK_NETFILTER, FIREWALL).ok())
        }

        /// Waits for a notice, and takes all that there are; false without one. Cancel safe.
        pub(super) async fn next(&mut self) -> bool {
            let Some(socket) = &mut self.0 else {
                sleep(super::LOOK).await;
                return false;
            };
            let mut buffer = Vec::with_capacity(NOTICE);
            let first = socket.recv(&mut buffer).await;
            if first.map_err(|error| lost_some(&error)) == Err(false) {
                self.0 = None;
                return false;
            }
            loop {
                buffer.clear();
                match socket.socket_ref().recv(&mut buffer, 0) {
                    Ok(_) => {}
                    Err(error) if lost_some(&error) => {}
                    Err(_) => return true,
                }
            }
        }
    }

    /// Notices were dropped because there were too many, or the call was interrupted.
    fn lost_some(error: &io::Error) -> bool {
        let known = [Errno::NOBUFS, Errno::INTR];
        Errno::from_io_error(error).is_some_and(|errno| known.contains(&errno))
    }

    fn subscribe(protocol: isize, groups: u32) -> io::Result<TokioSocket> {
        let mut socket = TokioSocket::new(protocol)?;
        socket.socket_mut().bind(&SocketAddr::new(0, groups))?;
        Ok(socket)
    }
}

#[cfg(not(target_os = "linux"))]
struct Notices;

#[cfg(not(target_os = "linux"))]
impl Notices {
    fn open() -> Self {
        Self
    }

    fn of_firewall() -> Self {
        Self
    }

    async fn next(&mut self) -> bool {
        sleep(LOOK).await;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_who_wait_see_a_change_once_and_whether_it_was_announced() {
        let notifier = Notifier::new();
        let (mut one, mut other) = (notifier.changes(), notifier.changes());
        notifier.notify(true);
        notifier.notify(false);
        assert!(one.next().await);
        assert!(other.next().await);
        notifier.notify(false);
        assert!(!one.next().await);
        let again = tokio::time::timeout(Duration::from_millis(1), one.next()).await;
        assert!(again.is_err());
    }
}
