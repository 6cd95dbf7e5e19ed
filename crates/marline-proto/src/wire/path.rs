//! What one end asks of a path: PATH_STATUS, PATH_COST, PATH_QUIET, PATH_ABANDON.

use alloc::vec::Vec;

use super::reader::Reader;
use super::{DecodeErrorKind, PathId, frame_type, varint};

/// How the peer may use a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// For anything.
    Available = 0,
    /// Only when no available path is left.
    Standby = 1,
}

/// PATH_STATUS: how the sender of the frame wants the peer to use a path.
///
/// ```text
/// 0x18 | path (i) | sequence (i) | status (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStatus {
    /// The path.
    pub path: PathId,
    /// Grows with every change of this path's status; a frame whose sequence is not above the
    /// highest seen is old and means nothing.
    pub sequence: u64,
    /// What is asked.
    pub status: Availability,
}

impl PathStatus {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            path: PathId(reader.varint("path")?),
            sequence: reader.varint("sequence")?,
            status: match reader.varint("status")? {
                0 => Availability::Available,
                1 => Availability::Standby,
                value => {
                    return Err(DecodeErrorKind::UnknownValue {
                        field: "status",
                        value,
                    });
                }
            },
        })
    }

    fn fields(&self) -> [u64; 3] {
        [self.path.0, self.sequence, self.status as u64]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::PATH_STATUS, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// Largest [`PathCost::cost`].
pub const MAX_COST: u64 = 255;

/// PATH_COST: what a path costs the sender of the frame. Only a peer gets it whose
/// [`max_path_cost`](super::Params::max_path_cost) is not 0.
///
/// ```text
/// 0x1a | path (i) | sequence (i) | cost (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCost {
    /// The path.
    pub path: PathId,
    /// Grows with every change of this path's cost; a frame whose sequence is not above the highest
    /// seen is old and means nothing.
    pub sequence: u64,
    /// Cost rank, at most [`MAX_COST`]; lower is cheaper.
    pub cost: u64,
}

impl PathCost {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        let frame = Self {
            path: PathId(reader.varint("path")?),
            sequence: reader.varint("sequence")?,
            cost: reader.varint("cost")?,
        };
        if frame.cost > MAX_COST {
            return Err(DecodeErrorKind::TooLarge {
                field: "cost",
                value: frame.cost,
                max: MAX_COST,
            });
        }
        Ok(frame)
    }

    fn fields(&self) -> [u64; 3] {
        [self.path.0, self.sequence, self.cost]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::PATH_COST, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// Largest [`PathQuiet::quiet_ms`]: a day.
pub const MAX_QUIET_MS: u64 = 86_400_000;

/// PATH_QUIET: the sender of the frame asks for a PING whenever a path in reserve has been quiet
/// for so long. Only a peer gets it whose [`max_path_quiet_ms`](super::Params::max_path_quiet_ms)
/// is not 0.
///
/// ```text
/// 0x1b | path (i) | sequence (i) | quiet_ms (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathQuiet {
    /// The path.
    pub path: PathId,
    /// Grows with every change of what is asked for this path; a frame whose sequence is not above
    /// the highest seen is old and means nothing.
    pub sequence: u64,
    /// Milliseconds, at most [`MAX_QUIET_MS`]; 0 asks for nothing any more.
    pub quiet_ms: u64,
}

impl PathQuiet {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        let frame = Self {
            path: PathId(reader.varint("path")?),
            sequence: reader.varint("sequence")?,
            quiet_ms: reader.varint("quiet")?,
        };
        if frame.quiet_ms > MAX_QUIET_MS {
            return Err(DecodeErrorKind::TooLarge {
                field: "quiet",
                value: frame.quiet_ms,
                max: MAX_QUIET_MS,
            });
        }
        Ok(frame)
    }

    fn fields(&self) -> [u64; 3] {
        [self.path.0, self.sequence, self.quiet_ms]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::PATH_QUIET, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}

/// PATH_ABANDON: the sender of the frame will not use a path any more, and nor may the peer.
///
/// ```text
/// 0x19 | path (i) | code (i)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAbandon {
    /// The path.
    pub path: PathId,
    /// Why, for people; 0 for a path that was taken away on purpose.
    pub code: u64,
}

impl PathAbandon {
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeErrorKind> {
        Ok(Self {
            path: PathId(reader.varint("path")?),
            code: reader.varint("code")?,
        })
    }

    fn fields(&self) -> [u64; 2] {
        [self.path.0, self.code]
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::encode_frame(frame_type::PATH_ABANDON, self.fields(), out);
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        varint::frame_len(self.fields())
    }
}
