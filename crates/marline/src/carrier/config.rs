use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{
    AckFrequencyConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    RandomConnectionIdGenerator, TransportConfig, VarInt,
};
use ring::hmac;

use super::batches::{Sending, Singly};
use super::transparent::Holding;
use crate::identity::Identity;

/// Smallest [`QuicConfig::mtu`]: what QUIC asks of every path (RFC 9000 section 14), and what each
/// begins with, handshake and all.
pub const MIN_MTU: u16 = 1200;

/// Largest [`QuicConfig::mtu`]: a 9000-byte Ethernet frame less IPv4 and UDP headers.
pub const MAX_MTU: u16 = 8972;

/// A 1500-byte Ethernet frame less IPv4 and UDP headers: quinn's own default, for which its receive
/// buffers are made.
const USUAL_MAX_PAYLOAD: u16 = 1472;

/// An IPv6 header is longer than one of IPv4 by this number of bytes.
const IPV6_MORE: u16 = 20;

/// The search for the largest size ends within this number of bytes of it: 0.6 % of a packet, and
/// at most seven sizes that are tried between 1200 and 1472 bytes.
const SEARCH_STEP: u16 = 8;

/// A path that takes less than [`QuicConfig::mtu`] is tried again this seldom: sizes of networks
/// hardly ever grow, and a search that fails costs up to 20 kB.
const SEARCH_AGAIN: Duration = Duration::from_secs(3600);

/// After a path has shrunk, packets are of [`MIN_MTU`] for so long; then a search finds what it
/// takes now. Long enough for late losses of large packets to be known, short enough for a false
/// alarm (several bursts of losses that took only large packets) to cost next to nothing.
const SHRUNK_FOR: Duration = Duration::from_millis(500);

/// What a packet holds beside a datagram (bytes): a short header with a packet number of 4 bytes,
/// the seal, the DATAGRAM frame's type and length, and what quinn keeps free.
const PACKET_OVERHEAD: u16 = 30;
/// A client's packets have a connection id as well (bytes): what a server's sockets give out.
const CONNECTION_ID: u16 = 8;

/// Acknowledge after this number of packets, or after [`ACK_DELAY`], in whatever order they came:
/// the session's feedback is what decides anything, and these ACKs only cost.
const ACK_EVERY: u32 = 200;
const ACK_DELAY: Duration = Duration::from_millis(25);

/// What a round trip is thought to take before there was one. A first packet that is lost, or finds
/// a server that is being restarted, is sent again after three of them: QUIC's usual 333 ms would
/// be a second without a session. A longer way costs a copy of the first packet (RFC 9002 section
/// 6.2.2 leaves it open).
const FIRST_RTT: Duration = Duration::from_millis(100);

/// The one stream of a connection carries the handshake, two messages of at most 4 KiB.
const STREAM_WINDOW: u32 = 8 << 10;

/// How a QUIC carrier behaves. Both ends may differ; the smaller idle limit holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicConfig {
    /// UDP payload (bytes) of the largest packet over IPv4, [`MIN_MTU`] to [`MAX_MTU`], default
    /// 1472, which is what Ethernet takes and leaves a client's datagram 1434 bytes and a server's
    /// 1442; over IPv6 it is 20 bytes less. Every path begins with 1200 bytes and finds the largest
    /// size up to this that passes, each direction for itself (RFC 8899); it falls back to 1200
    /// when the path has shrunk. Nothing larger is taken from the peer either, but what Ethernet
    /// takes always is.
    pub mtu: u16,
    /// The carrier ends when nothing came from the peer for this time, default 60 s. It must be
    /// longer than the longest outage that a path should survive; the session notices much
    /// earlier that a path is silent.
    pub idle_timeout: Duration,
    /// Bytes of datagrams (each counted with about 32 more) that wait in the carrier to be sent,
    /// 16 KiB to 1 MiB, default 128 KiB. Beyond that `send` answers `Full`; what waits here has
    /// left the scheduler's hands, so less is better.
    pub send_buffer: usize,
    /// Bytes of received packets that wait in the carrier to be read, 64 KiB to 64 MiB, default
    /// 4 MiB; beyond that they are dropped. This is a carrier's worst-case memory together
    /// with [`send_buffer`](Self::send_buffer).
    pub receive_buffer: usize,
    /// Does the kernel cut large writes into datagrams (GSO, Linux)? Default [`Offload::Auto`].
    pub segmentation_offload: Offload,
    /// The network loses all that is sent in batches.
    #[cfg(test)]
    pub(crate) loses_batches: bool,
}

/// Whether several packets are sent by one call of the kernel, which cuts them (GSO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// Yes, and no more on a path where such batches are lost while single packets arrive, as some
    /// drivers and hypervisors have it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The choices by name.
const OFFLOADS: [(&str, Offload); 3] = [
    ("auto", Offload::Auto),
    ("on", Offload::On),
    ("off", Offload::Off),
];

impl FromStr for Offload {
    /// What could have been chosen.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = OFFLOADS.iter().find(|(name, _)| *name == text);
        found.map(|(_, offload)| *offload).ok_or("auto, on or off")
    }
}

impl Default for QuicConfig {
    fn default() -> Self {
        Self {
            mtu: USUAL_MAX_PAYLOAD,
            idle_timeout: Duration::from_secs(60),
            send_buffer: 128 << 10,
            receive_buffer: 4 << 20,
            segmentation_offload: Offload::Auto,
            #[cfg(test)]
            loses_batches: false,
        }
    }
}

/// A value of [`QuicConfig`] that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value} is out of range: {least} to {most} are possible")]
pub struct ConfigError {
    /// Name of the field.
    pub key: &'static str,
    /// Its value (bytes, or milliseconds for a time).
    pub value: u64,
    /// Least value that is taken.
    pub least: u64,
    /// Greatest value that is taken.
    pub most: u64,
}

impl QuicConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let millis = u64::try_from(self.idle_timeout.as_millis()).unwrap_or(u64::MAX);
        for (key, value, least, most) in [
            ("mtu", u64::from(self.mtu), MIN_MTU.into(), MAX_MTU.into()),
            ("idle_timeout", millis, 1_000, 86_400_000),
            ("send_buffer", self.send_buffer as u64, 16 << 10, 1 << 20),
            (
                "receive_buffer",
                self.receive_buffer as u64,
                64 << 10,
                64 << 20,
            ),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ConfigError {
                    key,
                    value,
                    least,
                    most,
                });
            }
        }
        Ok(())
    }

    /// For one connection with `remote`, over a socket that sends packets to these singly.
    pub(super) fn transport(
        &self,
        remote: SocketAddr,
        singly: &Singly,
    ) -> Result<Arc<TransportConfig>, ConfigError> {
        self.transport_holding(remote, singly, ())
    }

    /// The largest packet for an address.
    fn mtu_to(&self, remote: SocketAddr) -> u16 {
        let more = match remote.ip().to_canonical().is_ipv4() {
            true => 0,
            false => IPV6_MORE,
        };
        (self.mtu - more).max(MIN_MTU)
    }

    /// [`transport`](Self::transport) for one connection, which holds `held` as long as there is
    /// anything left of it.
    pub(super) fn transport_holding<T: Send + Sync + 'static>(
        &self,
        remote: SocketAddr,
        singly: &Singly,
        held: T,
    ) -> Result<Arc<TransportConfig>, ConfigError> {
        self.check()?;
        let idle = IdleTimeout::try_from(self.idle_timeout).ok();
        let mut acks = AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(ACK_EVERY))
            .max_ack_delay(Some(ACK_DELAY))
            .reordering_threshold(VarInt::from_u32(0));
        let mut search = MtuDiscoveryConfig::default();
        search
            .upper_bound(self.mtu_to(remote))
            .minimum_change(SEARCH_STEP)
            .interval(SEARCH_AGAIN)
            .black_hole_cooldown(SHRUNK_FOR);
        let judged = self.segmentation_offload == Offload::Auto;
        let sending = judged.then(|| Sending::new(singly.clone(), remote));
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(Arc::new(Holding::new(held, sending)))
            .initial_mtu(MIN_MTU)
            .min_mtu(MIN_MTU)
            .mtu_discovery_config(Some(search))
            .initial_rtt(FIRST_RTT)
            .ack_frequency_config(Some(acks))
            .max_idle_timeout(idle)
            .keep_alive_interval(None)
            .datagram_send_buffer_size(self.send_buffer)
            // A server's inbox has the other half.
            .datagram_receive_buffer_size(Some(self.receive_buffer / 2))
            .enable_segmentation_offload(self.segmentation_offload != Offload::Off)
            .max_concurrent_bidi_streams(VarInt::from_u32(1))
            .max_concurrent_uni_streams(VarInt::from_u32(0))
            .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
            .receive_window(VarInt::from_u32(STREAM_WINDOW))
            .send_window(u64::from(STREAM_WINDOW));
        Ok(Arc::new(transport))
    }

    /// Bytes of the largest datagram that a client sends over IPv4, or a server.
    pub(super) fn max_datagram(&self, is_client: bool) -> usize {
        let id = if is_client { CONNECTION_ID } else { 0 };
        usize::from(self.mtu - PACKET_OVERHEAD - id)
    }

    /// For one connection that is dialled. Its socket is no other one's, so that packets to it need
    /// no connection id (RFC 9000 section 5.1): each has room for 8 bytes more.
    pub(super) fn endpoint(&self) -> EndpointConfig {
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
        // Refused below 1200 and above 65527 only, and `check` has seen to that.
        let _ = endpoint.max_udp_payload_size(self.mtu.max(USUAL_MAX_PAYLOAD));
        endpoint
    }

    /// As [`endpoint`](Self::endpoint), for a server, whose sockets give it connection ids of their
    /// own: with resets (RFC 9000 section 10.3) that a restarted server can still sign, so that
    /// clients learn at their next packet that their sessions are gone, not after the idle limit.
    pub(super) fn listening_endpoint(&self, identity: &Identity) -> EndpointConfig {
        let key = identity.derive(b"marline stateless reset");
        let mut endpoint = self.endpoint();
        endpoint.reset_key(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())));
        endpoint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_over_ipv6_leave_room_for_its_longer_header() {
        let to = |mtu, remote: &str| {
            let quic = QuicConfig {
                mtu,
                ..QuicConfig::default()
            };
            quic.mtu_to(remote.parse().unwrap())
        };
        assert_eq!(to(1472, "192.0.2.1:4433"), 1472);
        assert_eq!(to(1472, "[::ffff:192.0.2.1]:4433"), 1472);
        assert_eq!(to(1472, "[2001:db8::1]:4433"), 1452);
        assert_eq!(to(1200, "[2001:db8::1]:4433"), 1200);
    }

    #[test]
    fn values_out_of_range_are_named_with_their_limits() {
        let remote = SocketAddr::from(([192, 0, 2, 1], 4433));
        let singly = Singly::default();
        QuicConfig::default().transport(remote, &singly).unwrap();
        let error = QuicConfig {
            mtu: 1199,
            ..QuicConfig::default()
        }
        .transport(remote, &singly)
        .unwrap_err();
        assert_eq!(
            error.to_string(),
            "mtu = 1199 is out of range: 1200 to 8972 are possible"
        );
        let error = QuicConfig {
            idle_timeout: Duration::from_millis(999),
            ..QuicConfig::default()
        }
        .transport(remote, &singly)
        .unwrap_err();
        assert_eq!((error.key, error.least), ("idle_timeout", 1_000));
    }
}
