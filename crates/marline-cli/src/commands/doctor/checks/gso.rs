//! Does the kernel take many datagrams in one call (GSO)?

use super::super::finding::Finding;
use quinn_udp::{UdpSockRef, UdpSocketState};
use std::io;
use std::net::{Ipv4Addr, UdpSocket};

const NAME: &str = "gso";

pub(in super::super) fn check() -> Finding {
    judge(segments())
}

/// Datagrams that the kernel takes in one call.
fn segments() -> io::Result<usize> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    Ok(state.max_gso_segments())
}

fn judge(segments: io::Result<usize>) -> Finding {
    match segments {
        Err(error) => Finding::unknown(NAME, format!("no UDP socket to ask: {error}")),
        Ok(0 | 1) => Finding::warning(NAME, "none: every datagram takes a call of the kernel")
            .fix("use Linux 4.18 or later; without it, high rates cost more of the processor"),
        Ok(segments) => Finding::fine(NAME, format!("{segments} datagrams in one call")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn one_datagram_a_call_is_a_warning() {
        assert_eq!(judge(Ok(64)).verdict, Verdict::Fine);
        assert_eq!(judge(Ok(1)).verdict, Verdict::Warning);
        let denied = io::ErrorKind::PermissionDenied.into();
        assert_eq!(judge(Err(denied)).verdict, Verdict::Unknown);
    }
}
