//! Every kernel against the definition.

use alloc::vec;
use alloc::vec::Vec;

use super::{Kernel, Naive, best, inv, mul, supported};

/// Bytes without a pattern that a kernel could share.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let byte = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(seed);
        (state >> 56) as u8
    };
    core::iter::repeat_with(byte).take(len).collect()
}

#[test]
fn tables_hold_the_products_of_the_definition() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(mul(a, b), Naive::product(a, b), "{a} · {b}");
        }
        assert_eq!(mul(a, inv(a)), u8::from(a != 0));
    }
    // RFC 8681 section 3.6's polynomial: x · x⁷ = x⁴ + x³ + x² + 1.
    assert_eq!(mul(0x80, 2), 0x1d);
}

#[test]
fn the_field_has_its_laws() {
    for a in 0..=255 {
        for b in 0..=255 {
            assert_eq!(mul(a, b), mul(b, a));
            let c = a.wrapping_mul(37) ^ b;
            assert_eq!(mul(a, mul(b, c)), mul(mul(a, b), c));
            assert_eq!(mul(a, b ^ c), mul(a, b) ^ mul(a, c));
        }
    }
}

#[test]
fn the_best_kernel_is_the_first_supported_one() {
    let supported = supported();
    assert_eq!(best().name(), supported[0].name());
    assert_eq!(supported[supported.len() - 1].name(), "naive");
}

/// Runs `test` for every kernel but the reference.
fn every_kernel(test: impl Fn(&dyn Kernel)) {
    for kernel in supported() {
        if kernel.name() != "naive" {
            test(kernel);
        }
    }
}

#[test]
fn every_coefficient() {
    let src = bytes(300, 1);
    let before = bytes(300, 2);
    for c in 0..=255 {
        let (mut sum, mut scaled) = (before.clone(), before.clone());
        Naive.mad(&mut sum, &src, c);
        Naive.scale(&mut scaled, c);
        every_kernel(|kernel| {
            let mut dst = before.clone();
            kernel.mad(&mut dst, &src, c);
            assert_eq!(dst, sum, "{kernel:?} mad by {c}");
            let mut dst = before.clone();
            kernel.scale(&mut dst, c);
            assert_eq!(dst, scaled, "{kernel:?} scale by {c}");
            let mut dst = before.clone();
            kernel.dot(&mut dst, &[(c, &src)]);
            assert_eq!(dst, sum, "{kernel:?} dot by {c}");
        });
    }
}

#[test]
fn every_length_and_misalignment() {
    const GUARD: usize = 64;
    let src = bytes(700, 3);
    let before = bytes(700 + GUARD, 4);
    for len in 0..600 {
        // Offsets walk through all residues of a cache line as lengths do.
        let (at, from) = (len % 67, (len * 5) % 71);
        let c = (len * 7 + 3) as u8;
        let expect = |operation: &dyn Fn(&dyn Kernel, &mut [u8])| {
            let mut expected = before.clone();
            operation(&Naive, &mut expected[at..at + len]);
            every_kernel(|kernel| {
                let mut dst = before.clone();
                operation(kernel, &mut dst[at..at + len]);
                // Also what lies around the region.
                assert_eq!(dst, expected, "{kernel:?}, {len} bytes at {at} from {from}");
            });
        };
        expect(&|kernel, dst| kernel.mad(dst, &src[from..from + len], c));
        expect(&|kernel, dst| kernel.scale(dst, c));
        expect(&|kernel, dst| kernel.dot(dst, &[(c, &src[from..from + len])]));
        // Regions of different lengths: what is missing counts as zeros.
        expect(&|kernel, dst| kernel.mad(dst, &src[from..from + len / 2], c));
        expect(&|kernel, dst| kernel.mad(dst, &src[from..], c));
        expect(&|kernel, dst| kernel.dot(dst, &[(c, &src[..len / 2]), (3, &src[from..])]));
    }
}

#[test]
fn sums_of_many_terms_of_many_lengths() {
    for count in [0_usize, 1, 2, 3, 8, 65, 255] {
        for len in [
            0_usize, 1, 63, 64, 65, 511, 512, 513, 1023, 1024, 1400, 4096,
        ] {
            let sources: Vec<Vec<u8>> = (0..count)
                .map(|i| bytes((len + 100).saturating_sub(i * 97 % (len + 150)), i as u64))
                .collect();
            let terms: Vec<(u8, &[u8])> = sources
                .iter()
                .enumerate()
                .map(|(i, source)| ((i * 31) as u8, &source[..]))
                .collect();
            let before = bytes(len, 5);
            let mut expected = before.clone();
            for (c, source) in &terms {
                Naive.mad(&mut expected, source, *c);
            }
            every_kernel(|kernel| {
                let mut dst = before.clone();
                kernel.dot(&mut dst, &terms);
                assert_eq!(dst, expected, "{kernel:?}, {count} terms, {len} bytes");
            });
        }
    }
}

#[test]
fn sums_into_many_destinations() {
    for count in [0, 1, 5, 6, 7, 13] {
        for len in [0_usize, 1, 63, 64, 65, 200, 256, 257, 500, 1400] {
            let sources: Vec<Vec<u8>> = (0..17)
                .map(|i| bytes((len + 20).saturating_sub(i * 13), i as u64))
                .collect();
            let sources: Vec<&[u8]> = sources.iter().map(|source| &source[..]).collect();
            let rows: Vec<Vec<u8>> = (0..count).map(|i| bytes(17, 100 + i)).collect();
            let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
            let sum = |kernel: &dyn Kernel| {
                let mut all: Vec<Vec<u8>> = (0..count).map(|i| bytes(len, 200 + i)).collect();
                let mut dsts: Vec<&mut [u8]> = all.iter_mut().map(|dst| &mut dst[..]).collect();
                kernel.dots(&mut dsts, &rows, &sources);
                all
            };
            let expected = sum(&Naive);
            every_kernel(|kernel| {
                assert_eq!(sum(kernel), expected, "{kernel:?}, {count} of {len} bytes");
            });
        }
    }
}

#[test]
fn nothing_times_nothing() {
    every_kernel(|kernel| {
        kernel.mad(&mut [], &[], 7);
        kernel.mad(&mut [], &[1], 7);
        kernel.scale(&mut [], 7);
        kernel.dot(&mut [], &[]);
        let mut dst = vec![9; 3];
        kernel.dot(&mut dst, &[]);
        kernel.mad(&mut dst, &[], 7);
        kernel.mad(&mut dst, &[1, 2, 3], 0);
        assert_eq!(dst, [9; 3]);
        kernel.scale(&mut dst, 0);
        assert_eq!(dst, [0; 3]);
    });
}
