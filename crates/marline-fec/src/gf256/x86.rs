//! x86-64: byte shuffles (SSSE3, AVX2) and affine transformations (GFNI with AVX-512).
//!
//! A product with a constant is linear over GF(2). Shuffles look it up nibble by nibble, 16 or 32
//! bytes at a time; GF2P8AFFINEQB applies its bit matrix to 64 bytes at once.

#![allow(unsafe_code, reason = "vector instructions load and store by pointer")]

use alloc::vec::Vec;
use core::arch::x86_64::*;
use core::sync::atomic::{AtomicU8, Ordering};

use super::Kernel;
use super::shuffles::shuffles;
use super::tables::MATRICES;

/// What CPU and operating system support together.
#[derive(Clone, Copy)]
struct Features(u8);

impl Features {
    const SSSE3: u8 = 1;
    const AVX2: u8 = 2;
    /// GFNI with AVX-512 F and BW.
    const GFNI: u8 = 4;
    /// Marks a remembered answer.
    const KNOWN: u8 = 0x80;

    /// Whether all of `wanted` is there. Asks the CPU once: CPUID is slow in a virtual machine.
    fn has(wanted: u8) -> bool {
        static FOUND: AtomicU8 = AtomicU8::new(0);
        let mut found = FOUND.load(Ordering::Relaxed);
        if found == 0 {
            // Two threads may both ask; they find the same.
            found = Self::read().0 | Self::KNOWN;
            FOUND.store(found, Ordering::Relaxed);
        }
        found & wanted == wanted
    }

    fn read() -> Self {
        let bit = |word: u32, n: u32| word >> n & 1 == 1;
        // Leaves beyond the highest one answer with those of another.
        let ([highest, ..], [_, _, one, _]) = (cpuid(0), cpuid(1));
        let [_, seven_b, seven_c, _] = if highest >= 7 { cpuid(7) } else { [0; 4] };
        // The operating system saves wide registers only if it says so in XCR0.
        let saved = if bit(one, 27) {
            // SAFETY: the bit above (OSXSAVE) says that XGETBV is enabled.
            unsafe { xcr0() }
        } else {
            0
        };
        let (ymm, zmm) = (saved & 0x06 == 0x06, saved & 0xe6 == 0xe6);
        let mut found = 0;
        if bit(one, 9) {
            found |= Self::SSSE3;
        }
        if ymm && bit(one, 28) && bit(seven_b, 5) {
            found |= Self::AVX2;
        }
        if zmm && bit(seven_b, 16) && bit(seven_b, 30) && bit(seven_c, 8) {
            found |= Self::GFNI;
        }
        Self(found)
    }
}

/// Registers A to D of a leaf of CPUID.
fn cpuid(leaf: u32) -> [u32; 4] {
    #[allow(unused_unsafe, reason = "newer compilers call it safe")]
    // SAFETY: every x86-64 CPU has the instruction.
    let leaf = unsafe { __cpuid_count(leaf, 0) };
    [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]
}

/// # Safety
///
/// XGETBV must be enabled (OSXSAVE).
#[target_feature(enable = "xsave")]
unsafe fn xcr0() -> u64 {
    // SAFETY: the caller promises it; register 0 exists wherever the instruction does.
    unsafe { _xgetbv(0) }
}

shuffles! {
    /// Shuffles of 16 bytes (SSSE3).
    Ssse3 "ssse3" if Features::has(Features::SSSE3);
    __m128i: 16 bytes,
    load: from => _mm_loadu_si128(from.as_ptr().cast()),
    store: to, x => _mm_storeu_si128(to.as_mut_ptr().cast(), x),
    table: table => _mm_loadu_si128(table.as_ptr().cast()),
    nibbles: x => {
        let mask = _mm_set1_epi8(0x0f);
        [_mm_and_si128(x, mask), _mm_and_si128(_mm_srli_epi64::<4>(x), mask)]
    },
    look_up: _mm_shuffle_epi8,
    xor: _mm_xor_si128
}

shuffles! {
    /// Shuffles of 32 bytes (AVX2).
    Avx2 "avx2" if Features::has(Features::AVX2);
    __m256i: 32 bytes,
    load: from => _mm256_loadu_si256(from.as_ptr().cast()),
    store: to, x => _mm256_storeu_si256(to.as_mut_ptr().cast(), x),
    table: table => _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast())),
    nibbles: x => {
        let mask = _mm256_set1_epi8(0x0f);
        [_mm256_and_si256(x, mask), _mm256_and_si256(_mm256_srli_epi64::<4>(x), mask)]
    },
    look_up: _mm256_shuffle_epi8,
    xor: _mm256_xor_si256
}

/// Affine transformations of 64 bytes (GFNI with AVX-512), and sums that stay in registers.
#[derive(Clone, Copy, Debug)]
pub struct Gfni(());

/// Bytes in a vector of AVX-512.
const WIDE: usize = 64;
/// Bytes of a destination that are summed in registers at a time: 24 vectors, of 32. That holds a
/// datagram's payload, so that every source is read once from its beginning to its end, which is
/// what prefetchers like.
const STRIPE: usize = 24 * WIDE;

impl Gfni {
    /// The kernel, if this machine can run it.
    pub fn detect() -> Option<&'static Self> {
        static KERNEL: Gfni = Gfni(());
        Features::has(Features::GFNI).then_some(&KERNEL)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn matrix(c: u8) -> __m512i {
        _mm512_set1_epi64(MATRICES[usize::from(c)].cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn product(x: __m512i, matrix: __m512i) -> __m512i {
        _mm512_gf2p8affine_epi64_epi8::<0>(x, matrix)
    }

    /// The first 64 bytes of `from`, or all of it followed by zeros.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn load(from: &[u8]) -> __m512i {
        // SAFETY: bytes beyond the end are masked off, and not read.
        unsafe { _mm512_maskz_loadu_epi8(Self::mask(from.len()), from.as_ptr().cast()) }
    }

    /// Writes the first 64 bytes of `to`, or all of it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn store(to: &mut [u8], x: __m512i) {
        // SAFETY: bytes beyond the end are masked off, and not written.
        unsafe { _mm512_mask_storeu_epi8(to.as_mut_ptr().cast(), Self::mask(to.len()), x) }
    }

    /// One bit for each of the first 64 of `len` bytes.
    #[inline]
    fn mask(len: usize) -> u64 {
        if len >= WIDE { !0 } else { !(!0 << len) }
    }

    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn mad_region(dst: &mut [u8], src: &[u8], c: u8) {
        let matrix = Self::matrix(c);
        let len = dst.len().min(src.len());
        let (dst, dst_rest) = dst[..len].as_chunks_mut::<WIDE>();
        let (src, src_rest) = src[..len].as_chunks::<WIDE>();
        for (d, s) in dst.iter_mut().zip(src) {
            let sum = _mm512_xor_si512(Self::load(d), Self::product(Self::load(s), matrix));
            Self::store(d, sum);
        }
        let product = Self::product(Self::load(src_rest), matrix);
        Self::store(dst_rest, _mm512_xor_si512(Self::load(dst_rest), product));
    }

    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn scale_region(dst: &mut [u8], c: u8) {
        let matrix = Self::matrix(c);
        for d in dst.chunks_mut(WIDE) {
            Self::store(d, Self::product(Self::load(d), matrix));
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn dot_region(dst: &mut [u8], terms: &[(u8, &[u8])]) {
        for (index, stripe) in dst.chunks_mut(STRIPE).enumerate() {
            let at = index * STRIPE;
            // About as many registers as the stripe needs, known to the compiler.
            match stripe.len().div_ceil(WIDE) {
                ..=2 => Self::dot_stripe::<2>(stripe, at, terms),
                3..=4 => Self::dot_stripe::<4>(stripe, at, terms),
                5..=6 => Self::dot_stripe::<6>(stripe, at, terms),
                7..=8 => Self::dot_stripe::<8>(stripe, at, terms),
                9..=10 => Self::dot_stripe::<10>(stripe, at, terms),
                11..=12 => Self::dot_stripe::<12>(stripe, at, terms),
                13..=14 => Self::dot_stripe::<14>(stripe, at, terms),
                15..=16 => Self::dot_stripe::<16>(stripe, at, terms),
                17..=18 => Self::dot_stripe::<18>(stripe, at, terms),
                19..=20 => Self::dot_stripe::<20>(stripe, at, terms),
                21..=22 => Self::dot_stripe::<22>(stripe, at, terms),
                _ => Self::dot_stripe::<24>(stripe, at, terms),
            }
        }
    }

    /// Adds to `stripe`, of more than `N − 2` and at most `N` vectors, what the terms have from
    /// `at` on.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn dot_stripe<const N: usize>(stripe: &mut [u8], at: usize, terms: &[(u8, &[u8])]) {
        let mask = |len: usize, lane: usize| Self::mask(len.saturating_sub(lane * WIDE));
        let (before_last, last) = (mask(stripe.len(), N - 2), mask(stripe.len(), N - 1));
        let mut sums = [_mm512_setzero_si512(); N];
        for (c, src) in terms {
            let matrix = Self::matrix(*c);
            let Some(src) = src.get(at..) else { continue };
            let len = src.len().min(stripe.len());
            if len == stripe.len() {
                // Only the last two vectors may be cut, the same way for all terms.
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let from = src.as_ptr().wrapping_add(lane * WIDE);
                    let mask = match N - lane {
                        1 => last,
                        2 => before_last,
                        _ => !0,
                    };
                    // SAFETY: `src` has as many bytes as the stripe, of which the vectors before
                    // the last two are whole; bytes beyond are masked off, and not read.
                    let x = unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) };
                    *sum = _mm512_xor_si512(*sum, Self::product(x, matrix));
                }
            } else {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let from = src.as_ptr().wrapping_add(lane * WIDE);
                    // SAFETY: bytes beyond `len` are masked off, and not read.
                    let x = unsafe { _mm512_maskz_loadu_epi8(mask(len, lane), from.cast()) };
                    *sum = _mm512_xor_si512(*sum, Self::product(x, matrix));
                }
            }
        }
        for (sum, d) in sums.into_iter().zip(stripe.chunks_mut(WIDE)) {
            Self::store(d, _mm512_xor_si512(Self::load(d), sum));
        }
    }
}

/// Destinations whose sums are in registers together, and vectors of each: 24 of 32 registers.
const TOGETHER: usize = 6;
const LANES: usize = 4;

impl Gfni {
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn dots_region(dsts: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
        for (dsts, rows) in dsts.chunks_mut(TOGETHER).zip(rows.chunks(TOGETHER)) {
            match dsts.len().min(rows.len()) {
                1 => {
                    let terms: Vec<(u8, &[u8])> = rows[0]
                        .iter()
                        .copied()
                        .zip(sources.iter().copied())
                        .collect();
                    Self::dot_region(dsts[0], &terms);
                }
                2 => Self::dots_of::<2>(dsts, rows, sources),
                3 => Self::dots_of::<3>(dsts, rows, sources),
                4 => Self::dots_of::<4>(dsts, rows, sources),
                5 => Self::dots_of::<5>(dsts, rows, sources),
                _ => Self::dots_of::<TOGETHER>(dsts, rows, sources),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn dots_of<const D: usize>(dsts: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
        let len = dsts.iter().map(|dst| dst.len()).max().unwrap_or(0);
        for at in (0..len).step_by(LANES * WIDE) {
            match (len - at).div_ceil(WIDE) {
                1 => Self::dots_stripe::<D, 1>(dsts, at, rows, sources),
                2 => Self::dots_stripe::<D, 2>(dsts, at, rows, sources),
                3 => Self::dots_stripe::<D, 3>(dsts, at, rows, sources),
                _ => Self::dots_stripe::<D, LANES>(dsts, at, rows, sources),
            }
        }
    }

    /// Adds to `N` vectors from `at` on of each of `D` destinations.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn dots_stripe<const D: usize, const N: usize>(
        dsts: &mut [&mut [u8]],
        at: usize,
        rows: &[&[u8]],
        sources: &[&[u8]],
    ) {
        let mut sums = [[_mm512_setzero_si512(); N]; D];
        for (j, src) in sources.iter().enumerate() {
            let src = src.get(at..).unwrap_or(&[]);
            let mut x = [_mm512_setzero_si512(); N];
            // All but the last vectors of a symbol are whole: masks would take a tenth of the time.
            if src.len() >= N * WIDE {
                for (lane, x) in x.iter_mut().enumerate() {
                    // SAFETY: `src` has this many bytes.
                    *x = unsafe { _mm512_loadu_si512(src.as_ptr().add(lane * WIDE).cast()) };
                }
            } else {
                for (lane, x) in x.iter_mut().enumerate() {
                    *x = Self::load(src.get(lane * WIDE..).unwrap_or(&[]));
                }
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                let matrix = Self::matrix(row.get(j).copied().unwrap_or(0));
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = _mm512_xor_si512(*sum, Self::product(x, matrix));
                }
            }
        }
        for (sums, dst) in sums.iter().zip(dsts) {
            let rest = dst.get_mut(at..).unwrap_or(&mut []);
            for (sum, d) in sums.iter().zip(rest.chunks_mut(WIDE)) {
                Self::store(d, _mm512_xor_si512(Self::load(d), *sum));
            }
        }
    }
}

impl Kernel for Gfni {
    fn name(&self) -> &'static str {
        "gfni"
    }

    fn mad(&self, dst: &mut [u8], src: &[u8], c: u8) {
        // SAFETY: a value of this type exists only where `detect` found the features.
        unsafe { Self::mad_region(dst, src, c) }
    }

    fn scale(&self, dst: &mut [u8], c: u8) {
        // SAFETY: a value of this type exists only where `detect` found the features.
        unsafe { Self::scale_region(dst, c) }
    }

    fn dot(&self, dst: &mut [u8], terms: &[(u8, &[u8])]) {
        // SAFETY: a value of this type exists only where `detect` found the features.
        unsafe { Self::dot_region(dst, terms) }
    }

    fn dots(&self, dsts: &mut [&mut [u8]], rows: &[&[u8]], sources: &[&[u8]]) {
        // SAFETY: a value of this type exists only where `detect` found the features.
        unsafe { Self::dots_region(dsts, rows, sources) }
    }
}

#[cfg(test)]
mod tests {
    use super::Features;

    #[test]
    fn finds_what_the_standard_library_finds() {
        extern crate std;
        for (flag, expected) in [
            (Features::SSSE3, std::is_x86_feature_detected!("ssse3")),
            (Features::AVX2, std::is_x86_feature_detected!("avx2")),
            (
                Features::GFNI,
                std::is_x86_feature_detected!("gfni")
                    && std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw"),
            ),
        ] {
            assert_eq!(Features::has(flag), expected, "flag {flag}");
        }
    }
}
