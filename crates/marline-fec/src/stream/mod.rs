//! The streaming code: a systematic random linear code over a sliding window (RFC 8681).
//!
//! Source symbols travel as they are. Now and then a *repair symbol* travels with them, a random
//! linear combination of all source symbols that are not acknowledged yet; each one that arrives
//! stands in for any one that was lost, without anybody asking for anything.
//!
//! # The code
//!
//! Source symbols are numbered 0, 1, 2, … and may differ in length. Symbol i with bytes b of
//! length L is *framed* as xᵢ = L ‖ b ‖ 0 0 0 …, L in two bytes, most significant first, followed
//! by as many zeros as anybody asks for. A repair symbol over the window of n symbols from s on,
//! with key κ, is
//!
//! ```text
//!     y = c₀ · x_s + c₁ · x_{s+1} + … + c_{n−1} · x_{s+n−1}
//! ```
//!
//! cut where the longest framed symbol of the window ends. The coefficients c follow from κ by
//! [`coefficients`](crate::coefficients()). Because the length is coded like the bytes, what is
//! recovered comes back with its own length.
//!
//! The receiver moves what it knows to the left side. What is left is a system of linear equations
//! in the symbols that it lacks; the [`Decoder`] keeps it reduced, so that a symbol comes out with
//! the first packet that determines it. *m* missing symbols need *m* independent equations; random
//! coefficients give them with *m* repair symbols except for a probability of about 0.4 %, and with
//! *m* + 1 except for 0.002 %.
//!
//! # What travels
//!
//! A [`Repair`] (s, n, κ) and the bytes of y. For example, with the window of symbols 7 and 8 that
//! are `"a"` and `"bcd"`, and the key 1, whose first coefficients are 0x25 and 0xe1:
//!
//! ```text
//!     x₇ = 00 01 61 00 00             0x25 · x₇ = 00 25 44 00 00
//!     x₈ = 00 03 62 63 64             0xe1 · x₈ = 00 3e 4c ad 30
//!                          s = 7, n = 2, κ = 1, y = 00 1b 08 ad 30
//! ```
//!
//! ```
//! use marline_fec::stream::{Decoder, Encoder, Limits};
//!
//! let limits = Limits::default();
//! let mut encoder = Encoder::new(7, limits);
//! encoder.push(b"a").unwrap();
//! encoder.push(b"bcd").unwrap();
//! encoder.set_key(1);
//! let mut y = Vec::new();
//! let repair = encoder.repair(&mut y).unwrap();
//! assert_eq!((repair.start, repair.count, repair.key), (7, 2, 1));
//! assert_eq!(y, [0x00, 0x1b, 0x08, 0xad, 0x30]);
//!
//! let mut decoder = Decoder::new(7, limits);
//! decoder.source(8, b"bcd").unwrap(); // 7 was lost
//! decoder.repair(repair, &y).unwrap();
//! assert_eq!(decoder.poll_recovered(), Some(7));
//! assert_eq!(decoder.symbol(7), Some(&b"a"[..]));
//! ```

mod decoder;
mod encoder;
mod framed;

pub use decoder::{Decoder, Refusal, Status};
pub use encoder::{Encoder, TooLong};

use core::ops::Range;

/// Which combination a repair symbol is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Repair {
    /// Number of the oldest source symbol in it.
    pub start: u64,
    /// How many consecutive source symbols are in it, at least 1.
    pub count: u16,
    /// What their coefficients follow from.
    pub key: u16,
}

impl Repair {
    /// The numbers of the source symbols in it; empty if they would exceed 64 bits.
    pub fn symbols(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.count.into())
    }
}

/// What both ends agree on. Memory and time of either end follow from it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The most source symbols that a repair symbol combines, 1 to [`Limits::MAX_WINDOW`].
    /// Greater values are taken for the greatest, 0 for 1.
    pub window: u16,
    /// The most bytes of a source symbol.
    pub symbol: u16,
}

impl Limits {
    /// The widest window. Work per coded symbol grows with the window, and beyond this a code
    /// repairs later than a retransmission would.
    pub const MAX_WINDOW: u16 = 1024;

    /// The window within its range.
    pub(crate) fn clamped_window(&self) -> usize {
        self.window.clamp(1, Self::MAX_WINDOW).into()
    }
}

impl Default for Limits {
    /// A window of 256 symbols of at most 1500 bytes.
    fn default() -> Self {
        Self {
            window: 256,
            symbol: 1500,
        }
    }
}
