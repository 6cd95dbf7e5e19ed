//! What an endpoint makes of a packet.

use quinn_proto::{DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig};

use super::batch::Packet;

/// Longest packet (bytes) that an endpoint takes.
pub(super) fn longest(config: &EndpointConfig) -> usize {
    usize::try_from(config.get_max_udp_payload_size()).unwrap_or(usize::MAX)
}

/// Has an endpoint look at a packet; an answer's bytes go to `response`.
pub(super) fn handle(
    endpoint: &mut Endpoint,
    packet: Packet,
    response: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    let Packet { meta, at, data } = packet;
    let ecn = meta
        .ecn
        .and_then(|mark| EcnCodepoint::from_bits(mark as u8));
    endpoint.handle(at, meta.addr, meta.dst_ip, ecn, data, response)
}
