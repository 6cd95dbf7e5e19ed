//! AArch64: byte shuffles of 16 bytes (NEON's TBL), looked up nibble by nibble.

#![allow(unsafe_code, reason = "vector instructions load and store by pointer")]

use core::arch::aarch64::*;

use super::shuffles::shuffles;

// Every AArch64 target that the compiler knows to have NEON, which is all but bare metal without
// floating point.
shuffles! {
    /// Table look-ups of 16 bytes at a time (NEON).
    Neon "neon" if cfg!(target_feature = "neon");
    uint8x16_t: 16 bytes,
    load: from => vld1q_u8(from.as_ptr()),
    store: to, x => vst1q_u8(to.as_mut_ptr(), x),
    table: table => vld1q_u8(table.as_ptr()),
    nibbles: x => [vandq_u8(x, vdupq_n_u8(0x0f)), vshrq_n_u8::<4>(x)],
    look_up: vqtbl1q_u8,
    xor: veorq_u8
}
