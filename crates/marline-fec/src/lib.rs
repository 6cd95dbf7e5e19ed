//! Erasure codes for Marline: arithmetic in GF(2⁸), with a kernel for what the CPU has,
//! and a streaming code.
#![no_std]

extern crate alloc;

mod coefficients;
pub mod gf256;
pub mod stream;

pub use coefficients::coefficients;
