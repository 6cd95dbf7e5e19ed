//! A network device by which the kernel's packets come and go, in whichever network namespace.
//!
//! A TUN device belongs to the namespace in which it was opened, and its file can be read from
//! everywhere. Only a thread of its own enters the namespace, so that the rest of the program stays
//! where it is.

use super::Place;
use ipnet::IpNet;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::resume_unwind;
use std::thread;
use tun_rs::{DeviceBuilder, SyncDevice};

/// An open TUN device. It is gone when this is dropped, unless it was there before.
pub(super) struct Device {
    inner: SyncDevice,
    name: String,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish()
    }
}

/// A device could not be had.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Its namespace cannot be entered.
    #[error("cannot enter the network namespace {namespace}: {source}")]
    Namespace {
        /// Its name or path.
        namespace: String,
        /// The system's reason.
        source: io::Error,
    },
    /// It cannot be opened or set up.
    #[error("cannot open the device {place}: {source}")]
    Open {
        /// Where it should be, and with which address.
        place: Place,
        /// The system's reason.
        source: io::Error,
    },
}

impl DeviceError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        use io::ErrorKind::{NotFound, PermissionDenied, ResourceBusy};
        let text = match self {
            DeviceError::Namespace { source, .. } | DeviceError::Open { source, .. }
                if source.kind() == PermissionDenied =>
            {
                "a link between devices needs root (CAP_NET_ADMIN, and CAP_SYS_ADMIN for another namespace); \
                 by --listen and --to everybody may have one"
            }
            DeviceError::Namespace { namespace, source }
                if source.kind() == NotFound && !namespace.contains('/') =>
            {
                return format!(
                    "make it first: `ip netns add {namespace}`; `ip netns list` shows those that there are"
                );
            }
            DeviceError::Namespace { .. } => {
                "give a name that `ip netns list` shows, or the path of a namespace, such as /proc/PID/ns/net"
            }
            DeviceError::Open { source, .. } if source.kind() == ResourceBusy => {
                "another program has that device: choose another name"
            }
            DeviceError::Open { source, .. } if source.kind() == NotFound => {
                "this system has no /dev/net/tun: load the module (`modprobe tun`), or give it to the container"
            }
            DeviceError::Open { .. } => {
                "a device that is there must be a TUN device; IPv6 needs an mtu of at least 1280, IPv4 one of 68"
            }
        };
        text.to_owned()
    }
}

impl Device {
    /// Opens the device, making it if there is none, and brings it up with its address; `mtu` in
    /// bytes.
    pub(super) fn open(place: &Place, mtu: u16) -> Result<Self, DeviceError> {
        let opened = thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(place)?;
                set_up(place, mtu).map_err(|source| DeviceError::Open {
                    place: place.clone(),
                    source,
                })
            });
            thread.join()
        });
        let inner = opened.unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(Self {
            inner,
            name: place.device.clone(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Takes a packet that the kernel sends; never waits for one.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.recv(buffer)
    }

    /// Gives the kernel a packet.
    pub(super) fn send(&self, packet: &[u8]) -> io::Result<usize> {
        self.inner.send(packet)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

/// Moves this thread into the namespace of `place`.
fn enter(place: &Place) -> Result<(), DeviceError> {
    let Some(file) = place.namespace_file() else {
        return Ok(());
    };
    let entered = File::open(file).and_then(|file| {
        let network = Some(LinkNameSpaceType::Network);
        Ok(move_into_link_name_space(file.as_fd(), network)?)
    });
    entered.map_err(|source| DeviceError::Namespace {
        namespace: place.namespace.clone().unwrap_or_default(),
        source,
    })
}

/// The device in this thread's namespace. Without offloads, so that what the kernel hands over are
/// packets as they travel, of at most `mtu` bytes.
fn set_up(place: &Place, mtu: u16) -> io::Result<SyncDevice> {
    let builder = DeviceBuilder::new().name(&place.device).mtu(mtu);
    let builder = match place.address {
        Some(IpNet::V4(net)) => builder.ipv4(net.addr(), net.prefix_len(), None),
        Some(IpNet::V6(net)) => builder.ipv6(net.addr(), net.prefix_len()),
        None => builder,
    };
    let device = builder.enable(false).build_sync()?;
    device.set_nonblocking(true)?;
    be_quiet(&place.device);
    device.enabled(true)?;
    Ok(device)
}

/// Asks the kernel to send nothing of its own over the device, such as questions for routers: a
/// link that draws losses would draw for them, too. Where it refuses, or has no IPv6, that changes
/// no more than the draws.
fn be_quiet(device: &str) {
    // No address of its own making; nobody else can have the one that was given.
    for (setting, value) in [
        ("addr_gen_mode", "1"),
        ("accept_dad", "0"),
        ("router_solicitations", "0"),
    ] {
        let file = format!("/proc/sys/net/ipv6/conf/{device}/{setting}");
        if let Err(error) = fs::write(&file, value) {
            tracing::debug!("{file}: {error}");
        }
    }
}
