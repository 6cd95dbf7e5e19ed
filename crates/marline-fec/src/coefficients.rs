//! Coefficients from a 16-bit key, as RFC 8681 derives them: both ends draw the same ones, so that
//! a repair symbol carries two bytes instead of one for every source symbol.
//!
//! RFC 8681 section 3.6, for GF(2⁸) and density threshold 15 (no coefficient is zero): the key
//! seeds the generator of RFC 8682, whose low bytes are the coefficients, zeros left out.

/// TinyMT32, RFC 8682.
#[derive(Clone, Debug)]
struct TinyMt32 {
    state: [u32; 4],
}

impl TinyMt32 {
    /// The parameters that RFC 8682 section 2.1 fixes.
    const MAT1: u32 = 0x8f70_11ee;
    const MAT2: u32 = 0xfc78_ff1f;
    const TMAT: u32 = 0x3793_fdff;

    fn new(seed: u32) -> Self {
        let mut s = [seed, Self::MAT1, Self::MAT2, Self::TMAT];
        for (i, n) in (1..8).zip(1_u32..) {
            let previous = s[(i - 1) % 4];
            let mixed = (previous ^ (previous >> 30)).wrapping_mul(1_812_433_253);
            s[i % 4] ^= n.wrapping_add(mixed);
        }
        let mut generator = Self { state: s };
        for _ in 0..8 {
            generator.step();
        }
        generator
    }

    fn step(&mut self) {
        let [s0, s1, s2, s3] = self.state;
        let mut x = (s0 & 0x7fff_ffff) ^ s1 ^ s2;
        x ^= x << 1;
        let y = s3 ^ (s3 >> 1) ^ x;
        // All ones if y is odd.
        let odd = (y & 1).wrapping_neg();
        self.state = [
            s1,
            s2 ^ (odd & Self::MAT1),
            x ^ (y << 10) ^ (odd & Self::MAT2),
            y,
        ];
    }

    fn next(&mut self) -> u32 {
        self.step();
        let [s0, _, s2, s3] = self.state;
        let t = s0.wrapping_add(s2 >> 8);
        s3 ^ t ^ ((t & 1).wrapping_neg() & Self::TMAT)
    }
}

/// Fills `out` with the coefficients of `key`: the first is the oldest symbol's. None is zero.
pub fn coefficients(key: u16, out: &mut [u8]) {
    let mut generator = TinyMt32::new(key.into());
    for c in out {
        // Ends: the generator's bytes are uniform, and its period has no run of zeros.
        *c = loop {
            let [low, ..] = generator.next().to_le_bytes();
            if low != 0 {
                break low;
            }
        };
    }
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
        let mut generator = TinyMt32::new(1);
        for expected in PUBLISHED {
            assert_eq!(generator.next(), expected);
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
}
