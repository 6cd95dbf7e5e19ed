//! Coefficients of consecutive keys are as good as random ones, also in wide windows: a generator
//! whose bytes are linear in its seed would never reach the full rank there.

use marline_fec::coefficients;
use marline_fec::gf256::{best, inv, mul};

/// The rank of the square matrix whose rows belong to `keys`.
fn rank(width: usize, keys: impl Iterator<Item = u16>) -> usize {
    let mut rows: Vec<Vec<u8>> = keys
        .take(width)
        .map(|key| {
            let mut row = vec![0; width];
            coefficients(key, &mut row);
            row
        })
        .collect();
    let mut rank = 0;
    for column in 0..width {
        let Some(pivot) = (rank..rows.len()).find(|r| rows[*r][column] != 0) else {
            continue;
        };
        rows.swap(rank, pivot);
        let (done, rest) = rows.split_at_mut(rank + 1);
        let pivot = &done[rank];
        for row in rest {
            let factor = mul(row[column], inv(pivot[column]));
            best().mad(row, pivot, factor);
        }
        rank += 1;
    }
    rank
}

/// A random square matrix over GF(2⁸) lacks rank with probability 1/255 or so, and two ranks with
/// about 1/2¹⁶ · 1/255.
fn as_good_as_random(width: usize, matrices: u16) {
    let step = u16::MAX / matrices;
    let ranks = (0..matrices).map(|m| rank(width, (0..).map(move |i| i + m * step)));
    let lacking: Vec<usize> = ranks.filter(|rank| *rank < width).collect();
    assert!(lacking.iter().all(|rank| *rank == width - 1), "{lacking:?}");
    // Ten expected among 2550, say; twenty would be three standard deviations off.
    let expected = f64::from(matrices) / 255.0;
    let bound = expected + 3.0 * expected.sqrt() + 1.0;
    assert!(
        (lacking.len() as f64) < bound,
        "{} of {matrices}",
        lacking.len()
    );
}

#[test]
fn windows_of_64() {
    as_good_as_random(64, 500);
}

#[test]
fn windows_of_128() {
    as_good_as_random(128, 250);
}

#[test]
fn windows_of_256() {
    as_good_as_random(256, 125);
}

#[test]
fn keys_far_apart_are_independent_too() {
    for stride in [3, 17, 256, 257] {
        let rank = rank(128, (0..128_u16).map(|i| i.wrapping_mul(stride)));
        assert!(rank >= 127, "stride {stride}: rank {rank}");
    }
}
