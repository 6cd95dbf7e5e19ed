//! Erasure codes for Marline.
//!
//! | module | is |
//! | --- | --- |
//! | [`stream`] | repairs a stream: random combinations of a sliding window (RFC 8681) |
//! | [`block`] | repairs a block: any k of its symbols bring it back |
//! | [`analysis`] | what the streaming code costs and gives, in numbers |
//! | [`gf256`] | the arithmetic under both, with kernels for what the CPU has |
//!
//! Codes are values without input or output: bytes go in, bytes come out, and the same calls give
//! the same bytes on every machine. Wire formats belong to who uses them.
#![no_std]

extern crate alloc;

pub mod analysis;
pub mod block;
mod coefficients;
mod equations;
pub mod gf256;
pub mod stream;

pub use coefficients::coefficients;
