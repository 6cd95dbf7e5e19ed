//! The coding interval that a wait at the receiver allows.

use libm::{exp, expm1, floor};

/// The longest coding interval τ at which packets wait for lost ones no longer than `wait` frames
/// in the mean, at least 2: every τ-th packet is coded. `None` if no information packet is lost, so
/// that coding gains nothing.
///
/// `information` and `coded` are the shares of information and of coded packets that are lost, 0 to
/// 1; they differ where they take different paths. A coded packet that is lost prolongs decoding
/// periods like a lost information packet, but begins none.
///
/// The wait is that of Theorem 3's renewal argument, E\[S²\] / 2(E\[S\] + P(S = 0)) frames, with
/// losses of information packets as rare and independent as Poisson's. It is an upper bound: the
/// first frame of a period counts whole, though what arrives before its first loss waits for
/// nothing. It overrates the wait up to threefold where periods last one frame: half a frame for
/// 1/6.
pub fn interval(information: f64, coded: f64, wait: f64) -> Option<u32> {
    if information.is_nan() || information <= 0.0 {
        return None;
    }
    // 0.3 / 0.1 is 2.999… in binary.
    let packets = |lost: f64| floor(lost / information + 1e-9);
    // The wait grows with what a frame loses.
    let (mut least, mut most) = (0.0, 1.0);
    for _ in 0..48 {
        if packets(least) >= packets(most) {
            break;
        }
        let lost = (least + most) / 2.0;
        match waited(lost, coded) <= wait {
            true => least = lost,
            false => most = lost,
        }
    }
    // Converting saturates: a loss next to nothing gives the longest interval.
    Some((packets(least) as u32).saturating_add(1).max(2))
}

/// How long packets wait for lost ones in the mean (frames), by the bound of [`interval`], where
/// every `tau`-th packet is coded; infinite where the coded packets do not keep up with the losses.
pub fn wait(tau: u32, information: f64, coded: f64) -> f64 {
    waited(f64::from(tau.saturating_sub(1)) * information, coded)
}

/// Mean wait in frames that lose `lost` information packets in the mean, and the coded one with
/// probability `coded`; infinite from a load of 1 on.
fn waited(lost: f64, coded: f64) -> f64 {
    let spare = 1.0 - lost - coded;
    if spare.is_nan() || spare <= 0.0 {
        return f64::INFINITY;
    }
    let (idle, busy) = (exp(-lost), -expm1(-lost));
    // A frame that begins a period leaves x = A + B − 1 losses to later ones, A ≥ 1 of information,
    // B of the coded packet. Moments of A − 1 and of x, as far as there is a period.
    let excess = lost - busy;
    let excess_square = lost * lost - excess;
    let left = excess + coded * busy;
    let left_square = excess_square + 2.0 * coded * excess + coded * busy;
    let variance = lost + coded * (1.0 - coded);
    // S = 1 + T, and T takes x/(1 − m) frames in the mean, with a variance of xv/(1 − m)³.
    let mean = busy + left / spare;
    let second = busy
        + 2.0 * left / spare
        + left_square / (spare * spare)
        + left * variance / (spare * spare * spare);
    second / (2.0 * (mean + idle))
}
