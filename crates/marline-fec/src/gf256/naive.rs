//! The reference: multiplication bit by bit, as the definition has it.

use super::Kernel;

/// Slow and plain. Every other kernel is tested against it.
#[derive(Clone, Copy, Debug)]
pub struct Naive;

impl Naive {
    /// `a · b`: the polynomials' product, reduced by 0x11d whenever it reaches degree 8.
    pub const fn product(mut a: u8, mut b: u8) -> u8 {
        let mut sum = 0;
        while b != 0 {
            if b & 1 == 1 {
                sum ^= a;
            }
            let carry = a & 0x80 != 0;
            a <<= 1;
            if carry {
                a ^= 0x1d;
            }
            b >>= 1;
        }
        sum
    }
}

impl Kernel for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn mad(&self, dst: &mut [u8], src: &[u8], c: u8) {
        for (d, s) in dst.iter_mut().zip(src) {
            *d ^= Self::product(c, *s);
        }
    }

    fn scale(&self, dst: &mut [u8], c: u8) {
        for d in dst {
            *d = Self::product(c, *d);
        }
    }
}
