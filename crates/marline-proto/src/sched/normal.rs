//! The normal distribution.

use alloc::boxed::Box;
use core::f64::consts::FRAC_1_SQRT_2;

const INV_SQRT_2PI: f64 = 0.398_942_280_401_432_7;

/// Density φ of the standard normal distribution.
pub fn density(x: f64) -> f64 {
    INV_SQRT_2PI * libm::exp(-0.5 * x * x)
}

/// Distribution function Φ.
pub fn below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// E[(x − Z)⁺] = xΦ(x) + φ(x) for a standard normal Z: the integral of Φ.
pub fn excess(x: f64) -> f64 {
    // For very negative x the two terms cancel to nothing.
    (x * below(x) + density(x)).max(0.0)
}

/// The value that is not exceeded with probability `p`; ±10 at 0 and 1.
pub fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-10.0, 10.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The value that a normal variable exceeds with probability `tail`, which is taken for one from
/// 1e−12 to 0.5; within 1e−8 (Acklam's rational functions), and many times as fast as [`quantile`].
pub fn score(tail: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [
        0.007_784_695_709_041_462,
        0.322_467_129_070_039_8,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
    ];
    let horner = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = tail.clamp(1e-12, 0.5);
    if tail < 0.024_25 {
        let q = libm::sqrt(-2.0 * libm::log(tail));
        return -horner(&C, q) / (horner(&D, q) * q + 1.0);
    }
    let q = 0.5 - tail;
    let r = q * q;
    q * horner(&A, r) / (horner(&B, r) * r + 1.0)
}

/// Knots a unit.
const FINE: usize = 64;
/// The table ends at ±this; Φ is within 10⁻¹⁵ of 0 or 1 there.
const END: usize = 8;
const KNOTS: usize = 2 * END * FINE + 1;

/// [`below`] and [`excess`] by interpolation between tabulated values: within 10⁻⁹, and several
/// times as fast as the functions.
#[derive(Clone, Debug)]
pub struct Table {
    /// Φ, φ and the excess at each knot, the derivatives per step.
    knots: Box<[[f64; 3]]>,
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

impl Table {
    /// Computes the values.
    pub fn new() -> Self {
        let knot = |i: usize| {
            let x = i as f64 / FINE as f64 - END as f64;
            [below(x), density(x) / FINE as f64, excess(x)]
        };
        Self {
            knots: (0..KNOTS).map(knot).collect(),
        }
    }

    /// [`below`].
    #[inline]
    pub fn below(&self, x: f64) -> f64 {
        match self.place(x) {
            Ok((i, t)) => {
                let [a, b] = [self.knots[i], self.knots[i + 1]];
                hermite(t, (a[0], a[1]), (b[0], b[1]))
            }
            Err(high) => f64::from(u8::from(high)),
        }
    }

    /// [`excess`].
    #[inline]
    pub fn excess(&self, x: f64) -> f64 {
        match self.place(x) {
            Ok((i, t)) => {
                let [a, b] = [self.knots[i], self.knots[i + 1]];
                let step = 1.0 / FINE as f64;
                hermite(t, (a[2], a[0] * step), (b[2], b[0] * step))
            }
            Err(high) => {
                if high {
                    x
                } else {
                    0.0
                }
            }
        }
    }

    /// Adds `weight`·[`below`](Self::below)(`start` + i·`slope`) to each `sums[i]`; `slope` > 0.
    pub fn add_below(&self, sums: &mut [f64], start: f64, slope: f64, weight: f64) {
        self.add(sums, start, slope, |x, sum, knots| match knots {
            Some((t, a, b)) => *sum += weight * hermite(t, (a[0], a[1]), (b[0], b[1])),
            None => *sum += if x > 0.0 { weight } else { 0.0 },
        });
    }

    /// Adds `weight`·[`excess`](Self::excess)(`start` + i·`slope`) to each `sums[i]`; `slope` > 0.
    pub fn add_excess(&self, sums: &mut [f64], start: f64, slope: f64, weight: f64) {
        let step = 1.0 / FINE as f64;
        self.add(sums, start, slope, |x, sum, knots| match knots {
            Some((t, a, b)) => {
                *sum += weight * hermite(t, (a[2], a[0] * step), (b[2], b[0] * step));
            }
            None => *sum += if x > 0.0 { weight * x } else { 0.0 },
        });
    }

    /// Walks over `sums`, with the knots around each place where there are any. In the middle there
    /// always are, which spares the check.
    #[inline(always)]
    fn add(
        &self,
        sums: &mut [f64],
        start: f64,
        slope: f64,
        mut each: impl FnMut(f64, &mut f64, Option<(f64, &[f64; 3], &[f64; 3])>),
    ) {
        let reach = |x: f64| ((x - start) / slope).clamp(0.0, sums.len() as f64) as usize;
        let (low, high) = (reach(-(END as f64)), reach(END as f64));
        let (low, high) = ((low + 1).min(sums.len()), high.min(sums.len()));
        let x = |i: usize| start + slope * i as f64;
        for (i, sum) in sums.iter_mut().enumerate().take(low) {
            each(x(i), sum, self.around(x(i)));
        }
        if low >= high {
            let rest = sums.iter_mut().enumerate().skip(low);
            rest.for_each(|(i, sum)| each(x(i), sum, self.around(x(i))));
            return;
        }
        for (i, sum) in sums[low..high].iter_mut().enumerate() {
            let at = (x(low + i) + END as f64) * FINE as f64;
            let knot = (at as usize).min(KNOTS - 2);
            let t = at - knot as f64;
            each(
                0.0,
                sum,
                Some((t, &self.knots[knot], &self.knots[knot + 1])),
            );
        }
        for (i, sum) in sums.iter_mut().enumerate().skip(high) {
            each(x(i), sum, self.around(x(i)));
        }
    }

    fn around(&self, x: f64) -> Option<(f64, &[f64; 3], &[f64; 3])> {
        let (knot, t) = self.place(x).ok()?;
        Some((t, &self.knots[knot], &self.knots[knot + 1]))
    }

    /// The knot before `x` and how far behind it `x` lies, or on which side of the table it is.
    #[inline]
    fn place(&self, x: f64) -> Result<(usize, f64), bool> {
        let at = (x + END as f64) * FINE as f64;
        if at >= 0.0 && at < (KNOTS - 1) as f64 {
            let knot = at as usize;
            Ok((knot, at - knot as f64))
        } else {
            Err(x > 0.0)
        }
    }
}

/// The cubic with these values and slopes at 0 and 1.
#[inline]
fn hermite(t: f64, (a, slope_a): (f64, f64), (b, slope_b): (f64, f64)) -> f64 {
    let rise = b - a;
    let c = slope_a - rise;
    let d = rise - slope_b;
    a + t * (rise + (1.0 - t) * (c * (1.0 - t) + d * t))
}

#[cfg(test)]
mod tests {
    use marline_base::Rng;

    use super::*;

    fn near(a: f64, b: f64, within: f64) {
        assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
    }

    #[test]
    fn known_values() {
        near(below(0.0), 0.5, 1e-16);
        near(below(1.0), 0.841_344_746_068_543, 1e-14);
        near(below(-3.0), 0.001_349_898_031_630_1, 1e-15);
        near(quantile(0.975), 1.959_963_984_540_054, 1e-12);
        near(
            excess(0.0),
            1.0 / libm::sqrt(2.0 * core::f64::consts::PI),
            1e-15,
        );
        near(excess(-9.0), 0.0, 1e-15);
    }

    #[test]
    fn scores_are_exceeded_as_often_as_they_should() {
        for tail in [0.5, 0.3, 0.05, 0.025, 0.024, 1e-3, 1e-6] {
            near(below(-score(tail)) / tail, 1.0, 1e-6);
        }
        near(score(0.025), quantile(0.975), 1e-8);
        near(score(0.0), 7.034, 1e-3);
        assert!(score(f64::NAN).is_nan());
    }

    #[test]
    fn the_table_agrees_everywhere() {
        let table = Table::new();
        let mut rng = Rng::new(4);
        for _ in 0..20_000 {
            let x = 20.0 * rng.uniform() - 10.0;
            near(table.below(x), below(x), 1e-9);
            near(table.excess(x), excess(x), 1e-9);
        }
        for x in [-8.0, 8.0, f64::NEG_INFINITY, f64::NAN, -1e300] {
            assert!((0.0..=1.0).contains(&table.below(x)), "{x}");
        }
        near(table.below(8.0), 1.0, 1e-12);
        near(table.excess(12.0), 12.0, 1e-12);
    }

    #[test]
    fn the_integral_of_below_is_the_excess() {
        let step = 1e-3;
        let mut sum = 0.0;
        let mut x = -9.0;
        while x < 1.3 {
            sum += step * below(x + 0.5 * step);
            x += step;
        }
        near(sum, excess(x), 1e-6);
    }
}
