//! The network interface whose packets this program reads and writes.
//!
//! The kernel hands over what its TCP sends in long packets of up to 64 KiB, and takes them in turn
//! ([`joined`]). Those of UDP are cut here, and several packets that are written at
//! once are joined where they can be (`tun-rs`).

use super::joined::{self, Message};
use super::{Port, virtio};
use crate::proxy::Tasks;
use bytes::Bytes;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tun_rs::{AsyncDevice, DeviceBuilder, GROTable, VIRTIO_NET_HDR_LEN};

/// Messages that wait between the device and the tunnel, each way; of up to 64 KiB each.
const WAITING: usize = 128;
/// Messages that are written at once.
const BATCH: usize = 64;
/// Longest IP packet.
const LONGEST: usize = 65_535;
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
        let inner = open(name).map_err(error)?;
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

/// Opens the device in the way that its kernel, and whoever made it, has it: with long packets and
/// one queue, or else without, or with several queues, of which one is used.
fn open(name: &str) -> io::Result<AsyncDevice> {
    let open = |offload, multi_queue| {
        let builder = DeviceBuilder::new().name(name).inherit_enable_state();
        let builder = builder.offload(offload).multi_queue(multi_queue);
        builder.build_async()
    };
    // Any other error says why there is no device at all.
    let is_other_kind = |error: &io::Error| {
        let refused = [rustix::io::Errno::INVAL, rustix::io::Errno::OPNOTSUPP];
        let code = error.raw_os_error();
        code.is_some_and(|code| refused.contains(&rustix::io::Errno::from_raw_os_error(code)))
    };
    let first = match open(true, false) {
        Err(error) if is_other_kind(&error) => error,
        result => return result,
    };
    for (offload, multi_queue) in [(true, true), (false, false), (false, true)] {
        if let Ok(device) = open(offload, multi_queue) {
            tracing::debug!(offload, multi_queue, "the tunnel device is of another kind");
            return Ok(device);
        }
    }
    Err(first)
}

async fn read(device: Arc<AsyncDevice>, to: mpsc::Sender<Bytes>) {
    let joins = device.tcp_gso();
    let mut buffer = vec![0; virtio::HEADER + LONGEST];
    let mut messages = Vec::new();
    loop {
        let length = match device.recv(&mut buffer).await {
            Ok(length) => length,
            Err(error) => {
                // Down.
                tracing::debug!(%error, "cannot read the tunnel device");
                sleep(PAUSE).await;
                continue;
            }
        };
        match joins {
            true => virtio::read(&mut buffer[..length], &mut messages),
            false => messages.push(Bytes::copy_from_slice(&buffer[..length])),
        }
        for message in messages.drain(..) {
            if to.send(message).await.is_err() {
                return;
            }
        }
    }
}

async fn write(device: Arc<AsyncDevice>, mut from: mpsc::Receiver<Bytes>) {
    let mut writer = Writer::new(device);
    let mut messages = Vec::with_capacity(BATCH);
    while from.recv_many(&mut messages, BATCH).await > 0 {
        if let Err(error) = writer.write(&messages).await {
            tracing::debug!(%error, "the kernel did not take a packet from the tunnel");
        }
        messages.clear();
    }
}

/// Hands messages to the kernel.
struct Writer {
    device: Arc<AsyncDevice>,
    table: GROTable,
    buffers: Vec<Vec<u8>>,
}

impl Writer {
    fn new(device: Arc<AsyncDevice>) -> Self {
        Writer {
            device,
            table: GROTable::new(),
            buffers: Vec::new(),
        }
    }

    /// Writes messages in their order. The error is the last one's that was not taken; the others
    /// were written all the same.
    async fn write(&mut self, messages: &[Bytes]) -> io::Result<()> {
        let mut result = Ok(());
        let is_same = |a: &Bytes, b: &Bytes| joined::is_marked(a) == joined::is_marked(b);
        for run in messages.chunk_by(is_same) {
            let written = match run {
                [first, ..] if joined::is_marked(first) => self.write_joined(run).await,
                [packet] => self.write_packet(packet).await,
                _ => self.write_packets(run).await,
            };
            result = written.and(result);
        }
        result
    }

    async fn write_joined(&mut self, messages: &[Bytes]) -> io::Result<()> {
        let mut result = Ok(());
        for message in messages {
            if !self.device.tcp_gso() {
                let mut packets = Vec::new();
                if let Ok(read) = Message::parse(message) {
                    read.split(message, &mut packets);
                }
                for packet in &packets {
                    result = self.write_packet(packet).await.and(result);
                }
            } else if let Some((head, payload)) = virtio::written(message) {
                let parts = [IoSlice::new(head.bytes()), IoSlice::new(payload)];
                result = self
                    .device
                    .send_vectored(&parts)
                    .await
                    .map(drop)
                    .and(result);
            }
        }
        result
    }

    async fn write_packet(&self, packet: &[u8]) -> io::Result<()> {
        let head: &[u8] = match self.device.tcp_gso() {
            true => &[0; virtio::HEADER],
            false => &[],
        };
        let parts = [IoSlice::new(head), IoSlice::new(packet)];
        self.device.send_vectored(&parts).await.map(drop)
    }

    /// Writes packets, of which those of one flow are joined as far as they can be.
    async fn write_packets(&mut self, packets: &[Bytes]) -> io::Result<()> {
        // As much as packets that are joined may need.
        let room = || Vec::with_capacity(VIRTIO_NET_HDR_LEN + LONGEST);
        let most = self.buffers.len().max(packets.len());
        self.buffers.resize_with(most, room);
        for (buffer, packet) in self.buffers.iter_mut().zip(packets) {
            buffer.clear();
            buffer.resize(VIRTIO_NET_HDR_LEN, 0);
            buffer.extend_from_slice(packet);
        }
        let batch = &mut self.buffers[..packets.len()];
        let written = self
            .device
            .send_multiple(&mut self.table, batch, VIRTIO_NET_HDR_LEN);
        written.await.map(drop)
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
