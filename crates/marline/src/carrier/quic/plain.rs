//! UDP where the system lacks options that quinn's sockets ask for, as wine 8 does.
//!
//! A packet costs a call of the kernel each, packets may be fragmented on their way, so QUIC does
//! not look for larger ones, and an answer leaves by the address that the routing table picks.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Once;

use quinn_udp::RecvMeta;

/// `WSAEMSGSIZE`, by which Windows says that a packet was longer than the buffer. Elsewhere its end
/// is cut off, which QUIC notices, and no error has this number.
const TOO_LONG: i32 = 10040;

/// Says, once, that this error keeps sockets from more than sending and receiving.
pub(super) fn warn(because: &io::Error) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        tracing::warn!(
            "this system lacks options of UDP sockets ({because}): packets are sent one by one and \
             have no more than 1200 bytes"
        );
    });
}

/// Sends one packet. An error other than a full buffer counts as a loss on the way.
pub(super) fn send(socket: &UdpSocket, contents: &[u8], to: SocketAddr) -> io::Result<()> {
    match socket.send_to(contents, to) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        Err(error) => {
            tracing::debug!(%error, %to, "a packet was not sent");
            Ok(())
        }
    }
}

/// Receives one packet.
pub(super) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<RecvMeta> {
    loop {
        match socket.recv_from(buffer) {
            Ok((len, addr)) => {
                return Ok(RecvMeta {
                    addr,
                    len,
                    stride: len,
                    ecn: None,
                    dst_ip: None,
                });
            }
            Err(error) if error.raw_os_error() == Some(TOO_LONG) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_go_there_whole_and_an_empty_socket_would_block() {
        let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let (from, to) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let mut buffer = [0; 1500];
        for packet in [&[1; 1200][..], &[2; 7]] {
            send(&one, packet, to).unwrap();
            let meta = receive(&other, &mut buffer).unwrap();
            let len = packet.len();
            assert_eq!((meta.addr, meta.len, meta.stride), (from, len, len));
            assert_eq!(&buffer[..meta.len], packet);
        }
        // One that is too long ends nothing.
        send(&one, &[3; 2000], to).unwrap();
        send(&one, &[4; 9], to).unwrap();
        let mut lengths = std::iter::repeat_with(|| receive(&other, &mut buffer).unwrap().len);
        assert_eq!(lengths.find(|len| *len < 1500), Some(9));
        other.set_nonblocking(true).unwrap();
        let error = receive(&other, &mut buffer).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
