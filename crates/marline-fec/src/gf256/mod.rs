//! Arithmetic in GF(2⁸) on single elements and on regions of bytes.
//!
//! The field is GF(2)\[x\] / (x⁸ + x⁴ + x³ + x² + 1), polynomial 0x11d, as RFC 5510 and RFC 8681
//! have it. Addition and subtraction are exclusive or. A byte is an element, a region of bytes a
//! vector; codes are linear maps of such vectors, so all their time goes into [`Kernel::mad`] and
//! [`Kernel::dot`].
//!
//! A [`Kernel`] is one way of computing them. [`best`] is the fastest that this machine has,
//! chosen once; [`supported`] lists all that it has, for tests and benchmarks.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod detect;
mod naive;
mod scalar;
#[cfg(any(target_arch = "aarch64", target_arch = "x86_64"))]
mod shuffles;
mod tables;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
pub use aarch64::Neon;
pub use detect::{best, supported};
pub use naive::Naive;
pub use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Gfni, Ssse3};

use core::fmt::Debug;

/// Operations on regions.
///
/// Where two regions differ in length the shorter one counts as followed by zeros, and nothing is
/// written beyond the end of a destination.
pub trait Kernel: Debug + Sync {
    /// A short name for reports, such as `avx2`.
    fn name(&self) -> &'static str;

    /// Multiply and add: `dst += c · src`.
    fn mad(&self, dst: &mut [u8], src: &[u8], c: u8);

    /// `dst = c · dst`.
    fn scale(&self, dst: &mut [u8], c: u8);

    /// `dst += Σ c · src` over all terms `(c, src)`.
    ///
    /// Kernels with registers to spare write `dst` only once, however many terms there are.
    fn dot(&self, dst: &mut [u8], terms: &[(u8, &[u8])]) {
        for (c, src) in terms {
            self.mad(dst, src, *c);
        }
    }

    /// `dsts[i] += Σ rows[i][j] · sources[j]` for all destinations, which have one length.
    ///
    /// Every source is read once for several destinations, where [`Kernel::dot`] reads it for each.
    fn dots(&self, dsts: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
        for (j, source) in sources.iter().enumerate() {
            for (dst, row) in dsts.iter_mut().zip(rows) {
                self.mad(dst, source, row.get(j).copied().unwrap_or(0));
            }
        }
    }
}

/// `a · b`.
pub fn mul(a: u8, b: u8) -> u8 {
    tables::PRODUCTS[usize::from(a)][usize::from(b)]
}

/// `1 / a`, or 0 if `a` is 0.
pub fn inv(a: u8) -> u8 {
    tables::INVERSES[usize::from(a)]
}

#[cfg(test)]
mod tests;
