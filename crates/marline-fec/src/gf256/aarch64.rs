//! AArch64: byte shuffles of 16 bytes (NEON's TBL), looked up nibble by nibble.

#![allow(unsafe_code, reason = "vector instructions load and store by pointer")]

use core::arch::aarch64::*;

use super::Kernel;
use super::tables::NIBBLES;

/// Table look-ups of 16 bytes at a time (NEON).
#[derive(Clone, Copy, Debug)]
pub struct Neon(());

/// Bytes in a vector.
const WIDTH: usize = 16;

impl Neon {
    /// The kernel, if this machine can run it: every AArch64 target that the compiler knows to
    /// have NEON, which is all but bare metal without floating point.
    pub fn detect() -> Option<&'static Self> {
        static KERNEL: Neon = Neon(());
        cfg!(target_feature = "neon").then_some(&KERNEL)
    }

    /// # Safety
    ///
    /// The machine must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn tables(c: u8) -> (uint8x16_t, uint8x16_t) {
        let [low, high] = &NIBBLES[usize::from(c)];
        // SAFETY: both arrays have 16 bytes.
        unsafe { (vld1q_u8(low.as_ptr()), vld1q_u8(high.as_ptr())) }
    }

    /// # Safety
    ///
    /// The machine must have NEON.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn product(x: &[u8; WIDTH], (low, high): (uint8x16_t, uint8x16_t)) -> uint8x16_t {
        // SAFETY: the array has 16 bytes; the caller promises NEON.
        unsafe {
            let x = vld1q_u8(x.as_ptr());
            let of_low = vqtbl1q_u8(low, vandq_u8(x, vdupq_n_u8(0x0f)));
            let of_high = vqtbl1q_u8(high, vshrq_n_u8::<4>(x));
            veorq_u8(of_low, of_high)
        }
    }

    /// # Safety
    ///
    /// The machine must have NEON.
    #[target_feature(enable = "neon")]
    unsafe fn mad_region(dst: &mut [u8], src: &[u8], c: u8) {
        let len = dst.len().min(src.len());
        let (dst, dst_rest) = dst[..len].as_chunks_mut::<WIDTH>();
        let (src, src_rest) = src[..len].as_chunks::<WIDTH>();
        let mut padded = [0; WIDTH];
        padded[..src_rest.len()].copy_from_slice(src_rest);
        // SAFETY: every pointer is to 16 bytes; the caller promises NEON.
        unsafe {
            let tables = Self::tables(c);
            for (d, s) in dst.iter_mut().zip(src) {
                let sum = veorq_u8(vld1q_u8(d.as_ptr()), Self::product(s, tables));
                vst1q_u8(d.as_mut_ptr(), sum);
            }
            let product = Self::product(&padded, tables);
            vst1q_u8(padded.as_mut_ptr(), product);
        }
        for (d, p) in dst_rest.iter_mut().zip(&padded) {
            *d ^= p;
        }
    }

    /// # Safety
    ///
    /// The machine must have NEON.
    #[target_feature(enable = "neon")]
    unsafe fn scale_region(dst: &mut [u8], c: u8) {
        let (dst, rest) = dst.as_chunks_mut::<WIDTH>();
        let mut padded = [0; WIDTH];
        padded[..rest.len()].copy_from_slice(rest);
        // SAFETY: every pointer is to 16 bytes; the caller promises NEON.
        unsafe {
            let tables = Self::tables(c);
            for d in dst {
                let product = Self::product(d, tables);
                vst1q_u8(d.as_mut_ptr(), product);
            }
            let product = Self::product(&padded, tables);
            vst1q_u8(padded.as_mut_ptr(), product);
        }
        rest.copy_from_slice(&padded[..rest.len()]);
    }
}

impl Kernel for Neon {
    fn name(&self) -> &'static str {
        "neon"
    }

    fn mad(&self, dst: &mut [u8], src: &[u8], c: u8) {
        // SAFETY: a value of this type exists only where `detect` found NEON.
        unsafe { Self::mad_region(dst, src, c) }
    }

    fn scale(&self, dst: &mut [u8], c: u8) {
        // SAFETY: a value of this type exists only where `detect` found NEON.
        unsafe { Self::scale_region(dst, c) }
    }
}
