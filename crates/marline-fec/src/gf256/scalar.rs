//! One table look-up a byte: what runs where no vector instructions are known.

use super::Kernel;
use super::tables::PRODUCTS;

/// Table look-ups, on any machine.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

impl Kernel for Scalar {
    fn name(&self) -> &'static str {
        "scalar"
    }

    fn mad(&self, dst: &mut [u8], src: &[u8], c: u8) {
        let products = &PRODUCTS[usize::from(c)];
        for (d, s) in dst.iter_mut().zip(src) {
            *d ^= products[usize::from(*s)];
        }
    }

    fn scale(&self, dst: &mut [u8], c: u8) {
        let products = &PRODUCTS[usize::from(c)];
        for d in dst {
            *d = products[usize::from(*d)];
        }
    }
}
