//! Erasure codes for Marline: arithmetic in GF(2⁸), with a kernel for what the CPU has.
#![no_std]

extern crate alloc;

pub mod gf256;
