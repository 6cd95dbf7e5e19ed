//! What is in the datagrams of one direction of a flow, and whether it is whole.
//!
//! Nothing is changed or held back by it: what is not understood, SRT and the rest, passes as it
//! is.

use super::mpegts::{Continuity, is_transport};
use super::rtp::{Header, Sources, Verdict};
use serde::{Deserialize, Serialize};

/// What datagrams carry, as far as it is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Not understood, which is no fault.
    #[default]
    Opaque,
    /// MPEG transport packets.
    MpegTs,
    /// RTP.
    Rtp,
    /// MPEG transport packets in RTP (RFC 2250).
    RtpMpegTs,
}

impl Content {
    /// The word for it in tables and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Content::Opaque => "opaque",
            Content::MpegTs => "mpeg-ts",
            Content::Rtp => "rtp",
            Content::RtpMpegTs => "rtp-mpeg-ts",
        }
    }
}

/// What the content's own numbers say. In packets of RTP, except for `continuity_errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Wholeness {
    /// Numbers that are missing.
    pub lost: u64,
    /// Came after later ones.
    pub late: u64,
    /// Came again.
    pub duplicated: u64,
    /// MPEG transport packets whose continuity counter was not what it should have been.
    pub continuity_errors: u64,
}

impl std::ops::AddAssign for Wholeness {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.late += other.late;
        self.duplicated += other.duplicated;
        self.continuity_errors += other.continuity_errors;
    }
}

/// Looks at one direction of one flow. At most 10 KiB.
#[derive(Debug, Default)]
pub(super) struct Inspector {
    rtp: Sources,
    continuity: Option<Continuity>,
    pub(super) content: Content,
    pub(super) found: Wholeness,
}

impl Inspector {
    pub(super) fn look(&mut self, datagram: &[u8]) {
        if is_transport(datagram) {
            self.content = Content::MpegTs;
            self.transport(datagram);
            return;
        }
        let Some(header) = Header::parse(datagram) else {
            return;
        };
        match self.rtp.follow(&header) {
            Verdict::Unknown => return,
            Verdict::Next { missing } => self.found.lost += missing,
            Verdict::Late => {
                self.found.late += 1;
                self.found.lost = self.found.lost.saturating_sub(1);
                return;
            }
            Verdict::Duplicate => {
                self.found.duplicated += 1;
                return;
            }
        }
        let payload = &datagram[header.payload];
        if is_transport(payload) {
            self.content = Content::RtpMpegTs;
            self.transport(payload);
        } else {
            self.content = Content::Rtp;
        }
    }

    fn transport(&mut self, packets: &[u8]) {
        let continuity = self.continuity.get_or_insert_default();
        self.found.continuity_errors += continuity.follow(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transport(counter: u8) -> Vec<u8> {
        let mut packet = vec![0x47, 0, 5, 0x10 | (counter % 16)];
        packet.resize(188, 0);
        packet
    }

    fn rtp(sequence: u16, payload: &[u8]) -> Vec<u8> {
        let [high, low] = sequence.to_be_bytes();
        let head = [0x80, 33, high, low, 0, 0, 0, 0, 0, 0, 0, 6];
        [&head[..], payload].concat()
    }

    #[test]
    fn content_is_recognised_and_followed() {
        let mut bare = Inspector::default();
        for n in [0, 1, 3] {
            bare.look(&transport(n));
        }
        assert_eq!(
            (bare.content, bare.found.continuity_errors),
            (Content::MpegTs, 1)
        );
        let mut wrapped = Inspector::default();
        for n in [0, 1, 2, 4, 4, 3, 5] {
            wrapped.look(&rtp(n, &transport(n as u8)));
        }
        assert_eq!(wrapped.content, Content::RtpMpegTs);
        let found = Wholeness {
            lost: 0,
            late: 1,
            duplicated: 1,
            // 3 was not there when its turn came.
            continuity_errors: 1,
        };
        assert_eq!(wrapped.found, found);
    }

    #[test]
    fn srt_is_opaque() {
        let mut inspector = Inspector::default();
        for n in 0..50_u32 {
            // A handshake or an acknowledgement, and data.
            let control = [&[0x80, (n % 3) as u8, 0, 0][..], &[0; 40]].concat();
            inspector.look(&control);
            inspector.look(&[&n.to_be_bytes()[..], &[0xc0; 1328]].concat());
        }
        assert_eq!(inspector.content, Content::Opaque);
        assert_eq!(inspector.found, Wholeness::default());
    }
}
