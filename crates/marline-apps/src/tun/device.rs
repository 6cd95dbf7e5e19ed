//! The network interface whose packets this program reads and writes.
//!
//! The kernel hands over what its TCP sends in pieces of up to 64 KiB, which are cut into packets
//! here, and takes back packets of one connection joined in the same way; both ways the kernel's
//! own work is per piece (`tun-rs`).

use super::Port;
use crate::proxy::Tasks;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tun_rs::{AsyncDevice, DeviceBuilder, GROTable, VIRTIO_NET_HDR_LEN};

/// Packets that wait between the device and the tunnel, each way.
const WAITING: usize = 512;
/// Packets that are written at once.
const BATCH: usize = 64;
/// Longest IP packet.
const LONGEST: usize = 65_535;
/// More than the packets of the smallest size in the largest piece that the kernel hands over.
const PIECES: usize = 256;
/// Longest packet of a piece; whole ones are not cut and have a buffer of their own.
const PIECE: usize = LONGEST;
/// After an error, before the device is tried again.
const PAUSE: Duration = Duration::from_millis(50);

/// A TUN device. It is gone when this is dropped, unless somebody made it persistent before.
pub struct Device {
    inner: Arc<AsyncDevice>,
    name: String,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish()
    }
}

/// The device could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the tunnel device {name}: {source}")]
pub struct DeviceError {
    name: String,
    source: io::Error,
}

impl DeviceError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self
            .source
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::PERM | rustix::io::Errno::ACCESS) => {
                "a tunnel needs root or CAP_NET_ADMIN; or make the device first: `ip tuntap add NAME mode tun user USER`"
            }
            Some(rustix::io::Errno::BUSY) => {
                "another program has that device: choose another name with --tun=NAME"
            }
            Some(rustix::io::Errno::NOENT | rustix::io::Errno::NODEV | rustix::io::Errno::NXIO) => {
                "this system has no /dev/net/tun: load the module (`modprobe tun`), or give it to the container"
            }
            _ => {
                "names of devices have up to 15 letters and digits; a device that is there must be a TUN device"
            }
        }
    }
}

impl Device {
    /// Opens the device of this name, making it if there is none. It is neither up nor has it
    /// addresses then. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        let error = |source| DeviceError {
            name: name.to_owned(),
            source,
        };
        let inner = DeviceBuilder::new()
            .name(name)
            .offload(true)
            .inherit_enable_state()
            .build_async()
            .map_err(error)?;
        let name = inner.name().map_err(error)?;
        Ok(Device {
            inner: Arc::new(inner),
            name,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins to read and to write it, as tasks.
    pub(super) fn serve(self, tasks: &Tasks) -> Port {
        let (to_tunnel, incoming) = mpsc::channel(WAITING);
        let (outgoing, from_tunnel) = mpsc::channel(WAITING);
        // Packets promise nothing: there is no end to wait for.
        tasks.spawn_until_drained(read(Arc::clone(&self.inner), to_tunnel));
        tasks.spawn_until_drained(write(self.inner, from_tunnel));
        Port { incoming, outgoing }
    }
}

async fn read(device: Arc<AsyncDevice>, to: mpsc::Sender<Vec<u8>>) {
    let mut whole = vec![0; VIRTIO_NET_HDR_LEN + LONGEST];
    let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![0; PIECE]).collect();
    let mut sizes = [0; PIECES];
    loop {
        let count = match device
            .recv_multiple(&mut whole, &mut pieces, &mut sizes, 0)
            .await
        {
            Ok(count) => count,
            Err(error) => {
                // Down, or what the kernel handed over cannot be cut.
                tracing::debug!(%error, "cannot read the tunnel device");
                sleep(PAUSE).await;
                continue;
            }
        };
        for (piece, size) in pieces.iter().zip(sizes).take(count) {
            if to.send(piece[..size].to_vec()).await.is_err() {
                return;
            }
        }
    }
}

async fn write(device: Arc<AsyncDevice>, mut from: mpsc::Receiver<Bytes>) {
    let mut table = GROTable::new();
    let mut packets = Vec::with_capacity(BATCH);
    // As much as packets that are joined may need.
    let mut buffers: Vec<Vec<u8>> = (0..BATCH)
        .map(|_| Vec::with_capacity(VIRTIO_NET_HDR_LEN + LONGEST))
        .collect();
    while from.recv_many(&mut packets, BATCH).await > 0 {
        let count = packets.len();
        for (buffer, packet) in buffers.iter_mut().zip(packets.drain(..)) {
            buffer.clear();
            buffer.resize(VIRTIO_NET_HDR_LEN, 0);
            buffer.extend_from_slice(&packet);
        }
        let batch = &mut buffers[..count];
        if let Err(error) = device
            .send_multiple(&mut table, batch, VIRTIO_NET_HDR_LEN)
            .await
        {
            tracing::debug!(%error, "the kernel did not take a packet from the tunnel");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::Packet;
    use super::super::packet::tests::hostile;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What clients send is joined by code that is not ours.
        #[test]
        fn any_packets_can_be_joined(packets in proptest::collection::vec(hostile(), 1..8)) {
            let with_room = |packet: &Vec<u8>| [&[0; VIRTIO_NET_HDR_LEN], &packet[..]].concat();
            let packets = packets.iter().filter(|packet| Packet::parse(packet).is_ok());
            // Twice each: neighbours of one flow are what is joined.
            let twice = packets.flat_map(|packet| [with_room(packet), with_room(packet)]);
            let mut buffers: Vec<Vec<u8>> = twice.collect();
            for buffer in &mut buffers {
                buffer.reserve(LONGEST);
            }
            let _ = GROTable::new().apply_gro(&mut buffers, VIRTIO_NET_HDR_LEN, true);
        }
    }
}
