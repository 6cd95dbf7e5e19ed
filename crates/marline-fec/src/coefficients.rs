//! Coefficients from a 16-bit key, as RFC 8681 derives them: both ends draw the same ones, so that
//! a repair symbol carries two bytes instead of one for every source symbol.
//!
//! RFC 8681 section 3.6, for GF(2⁸) and density threshold 15 (no coefficient is zero): the key
//! seeds the generator of RFC 8682, whose low bytes are the coefficients, zeros left out.

use alloc::vec;
use alloc::vec::Vec;

/// Number of generators that run at once: a register of 128 bits has room for their words.
const LANES: usize = 4;

/// `L` generators TinyMT32 side by side, RFC 8682: each step needs the result of the one before, so
/// that one alone leaves most of a core idle.
#[derive(Clone, Debug)]
struct TinyMt32<const L: usize> {
    state: [[u32; L]; 4],
}

impl<const L: usize> TinyMt32<L> {
    /// The parameters that RFC 8682 section 2.1 fixes.
    const MAT1: u32 = 0x8f70_11ee;
    const MAT2: u32 = 0xfc78_ff1f;
    const TMAT: u32 = 0x3793_fdff;

    fn new(seeds: [u32; L]) -> Self {
        let mut s = [seeds, [Self::MAT1; L], [Self::MAT2; L], [Self::TMAT; L]];
        for (i, n) in (1..8).zip(1_u32..) {
            let previous = s[(i - 1) % 4];
            for (word, previous) in s[i % 4].iter_mut().zip(previous) {
                let mixed = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253);
                *word ^= n.wrapping_add(mixed);
            }
        }
        let mut generators = Self { state: s };
        for _ in 0..8 {
            generators.step();
        }
        generators
    }

    #[inline]
    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.state;
        for lane in 0..L {
            let mut x = (s0[lane] & 0x7fff_ffff) ^ s1[lane] ^ s2[lane];
            x ^= x << 1;
            let y = s3[lane] ^ (s3[lane] >> 1) ^ x;
            // All ones if y is odd.
            let odd = (y & 1).wrapping_neg();
            self.state[0][lane] = s1[lane];
            self.state[1][lane] = s2[lane] ^ (odd & Self::MAT1);
            self.state[2][lane] = x ^ (y << 10) ^ (odd & Self::MAT2);
            self.state[3][lane] = y;
        }
    }

    #[inline]
    fn next(&mut self) -> [u32; L] {
        self.step();
        let [s0, _, s2, s3] = self.state;
        let mut out = [0; L];
        for lane in 0..L {
            let t = s0[lane].wrapping_add(s2[lane] >> 8);
            out[lane] = s3[lane] ^ t ^ ((t & 1).wrapping_neg() & Self::TMAT);
        }
        out
    }
}

/// Fills `out` with the coefficients of `key`: the first is the oldest symbol's. None is zero.
pub fn coefficients(key: u16, out: &mut [u8]) {
    let mut generator = TinyMt32::new([u32::from(key)]);
    for c in out {
        // Ends: the generator's bytes are uniform, and its period has no run of zeros.
        *c = loop {
            let [value] = generator.next();
            let [low, ..] = value.to_le_bytes();
            if low != 0 {
                break low;
            }
        };
    }
}

/// Coefficients of keys that follow each other, drawn for several of them at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Successive {
    /// The first of the keys that are drawn; a multiple of their number.
    first: u16,
    /// As many for each key, one key after the other.
    drawn: Vec<u8>,
}

impl Successive {
    /// The first `count` coefficients of `key`.
    pub(crate) fn get(&mut self, key: u16, count: usize) -> &[u8] {
        let lane = usize::from(key) % LANES;
        let first = key - lane as u16;
        let mut each = self.drawn.len() / LANES;
        if self.first != first || each < count {
            // A window that grows meanwhile shall not make them be drawn again each time.
            each = count.next_multiple_of(STEP);
            (self.first, self.drawn) = (first, draw(first, each));
        }
        &self.drawn[lane * each..][..count]
    }
}

/// Coefficients are drawn in multiples of this number.
const STEP: usize = 32;

/// `each` coefficients of each of the keys from `first` on.
fn draw(first: u16, each: usize) -> Vec<u8> {
    let mut generators = TinyMt32::new([0, 1, 2, 3].map(|lane: u32| u32::from(first) + lane));
    let mut drawn = vec![0; LANES * each];
    let mut filled = [0; LANES];
    while filled.iter().any(|filled| *filled < each) {
        for (lane, value) in generators.next().into_iter().enumerate() {
            let [low, ..] = value.to_le_bytes();
            if filled[lane] < each {
                drawn[lane * each + filled[lane]] = low;
                // What is zero is overwritten by the next.
                filled[lane] += usize::from(low != 0);
            }
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8682 section 2.3: the first values for the seed 1.
    const PUBLISHED: [u32; 50] = [
        2545341989, 981918433, 3715302833, 2387538352, 3591001365, 3820442102, 2114400566,
        2196103051, 2783359912, 764534509, 643179475, 1822416315, 881558334, 4207026366,
        3690273640, 3240535687, 2921447122, 3984931427, 4092394160, 44209675, 2188315343,
        2908663843, 1834519336, 3774670961, 3019990707, 4065554902, 1239765502, 4035716197,
        3412127188, 552822483, 161364450, 353727785, 140085994, 149132008, 2547770827, 4064042525,
        4078297538, 2057335507, 622384752, 2041665899, 2193913817, 1080849512, 33160901, 662956935,
        642999063, 3384709977, 1723175122, 3866752252, 521822317, 2292524454,
    ];

    #[test]
    fn the_generator_is_that_of_rfc_8682() {
        let mut generator = TinyMt32::new([1]);
        let mut four = TinyMt32::new([7, 1, 0, 65_535]);
        for expected in PUBLISHED {
            assert_eq!(generator.next(), [expected]);
            assert_eq!(four.next()[1], expected);
        }
    }

    #[test]
    fn coefficients_are_the_low_bytes_without_zeros() {
        let mut drawn = [0; 50];
        coefficients(1, &mut drawn);
        // None of the published values ends in a zero byte.
        assert_eq!(drawn, PUBLISHED.map(|value| value as u8));
        for key in 0..=u16::MAX {
            coefficients(key, &mut drawn[..8]);
            assert!(drawn[..8].iter().all(|c| *c != 0));
        }
    }

    #[test]
    fn keys_in_succession_have_the_coefficients_that_each_has_alone() {
        let mut successive = Successive::default();
        let mut alone = [0; 400];
        // Lengths that grow, shrink and repeat, keys that jump and begin again.
        let keys = (0..40).chain([9_000, 8_999, 3]).chain(65_530..=65_535);
        for (key, count) in keys.zip([1, 5, 64, 65, 31, 400].into_iter().cycle()) {
            coefficients(key, &mut alone);
            assert_eq!(successive.get(key, count), &alone[..count], "key {key}");
        }
    }
}
