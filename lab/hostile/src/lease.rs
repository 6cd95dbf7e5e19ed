//! A server that gives a client more of the network than the client asked for.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use marline::endpoint::{Accepted, Packets, Session};
use marline_apps::tun::{Offer, Place, Role};
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

use crate::attack::{Failure, Knobs, Outcome};
use crate::server::{host, quietly};

/// The client's address, in a network that would draw 16 million hosts' traffic into the tunnel.
const OWN: &str = "8.0.0.2/8";
const SERVER: &str = "8.0.0.1";
/// Whom packets claim to come from, in turn: the client's own network, itself, a neighbour of the
/// tunnel, loopback.
const FORGED: [Ipv4Addr; 4] = [
    Ipv4Addr::new(10, 201, 1, 1),
    Ipv4Addr::new(8, 0, 0, 2),
    Ipv4Addr::new(192, 168, 1, 1),
    Ipv4Addr::LOCALHOST,
];
/// Between two of them.
const PAUSE: Duration = Duration::from_millis(20);

/// Offers a large network, and sends packets from elsewhere.
pub(crate) async fn foreign(knobs: Knobs) -> Outcome {
    host(&knobs, |session, _| quietly(lease(session))).await
}

async fn lease(session: Session) -> Outcome {
    let place = Place {
        own: OWN.parse::<IpNet>()?,
        server: SERVER.parse()?,
    };
    let offer = Offer::Granted {
        mtu: 1300,
        places: vec![place],
        joined: false,
    };
    let mut kept = Vec::new();
    while let Ok((info, flow)) = session.accept().await {
        match (Role::decode(&info.target), flow) {
            (Some(Role::Lease { .. }), Accepted::Stream(mut stream)) => {
                stream.write_all(&offer.encode()).await?;
                kept.push(stream);
            }
            (Some(Role::Common), Accepted::Packets(packets)) => {
                tokio::spawn(quietly(forge(packets, place)));
            }
            _ => {}
        }
    }
    Ok(())
}

async fn forge(packets: Packets, place: Place) -> Result<(), Failure> {
    let IpNet::V4(own) = place.own else {
        return Err("the network is one of IPv4".into());
    };
    for source in FORGED.into_iter().cycle() {
        packets.send(datagram(source, own.addr())).await?;
        sleep(PAUSE).await;
    }
    Ok(())
}

/// A UDP datagram of four bytes to port 9 (RFC 791, RFC 768), without UDP's checksum.
fn datagram(source: Ipv4Addr, destination: Ipv4Addr) -> Bytes {
    let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let sum = packet
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum::<u32>();
    let folded = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    packet.extend([0x30, 0x39, 0, 9, 0, 12, 0, 0, b'e', b'v', b'i', b'l']);
    packet.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_apps::tun::Packet;

    #[test]
    fn a_forged_packet_is_a_sound_one() {
        for source in FORGED {
            let bytes = datagram(source, Ipv4Addr::new(8, 0, 0, 2));
            let packet = Packet::parse(&bytes).unwrap();
            assert_eq!(packet.source, source);
            let words = bytes[..20]
                .chunks(2)
                .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
            let sum = words.sum::<u32>();
            // RFC 1071: with its checksum a header adds up to all ones.
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        }
    }
}
