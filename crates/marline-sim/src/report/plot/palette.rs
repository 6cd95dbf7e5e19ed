//! What tells one scheduler from another: colour, dashes, marker.

use plotters::style::RGBColor;

/// Okabe and Ito's (Color Universal Design, 2008), those that stand out on white first; without
/// their yellow, which does not on paper.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x00, 0x00, 0x00),
];

/// Length of a dash and of the gap after it (pixels); no gap is a solid line.
const DASHES: [(i32, i32); 4] = [(1, 0), (24, 10), (10, 8), (4, 8)];

/// How one scheduler, path or quantity is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) colour: RGBColor,
    pub(super) dash: (i32, i32),
    marker: usize,
}

impl Look {
    /// The look of the `index`-th: no two of the first 28 are alike in colour and dashes.
    pub(super) fn of(index: usize) -> Self {
        // Four dashes and seven colours have no common divisor.
        let turn = index % DASHES.len();
        Self {
            colour: COLOURS[index % COLOURS.len()],
            dash: DASHES[turn],
            marker: (index + index / COLOURS.len()) % 7,
        }
    }

    /// An area of this colour.
    pub(super) const fn coloured(colour: RGBColor) -> Self {
        Self {
            colour,
            dash: DASHES[0],
            marker: 0,
        }
    }

    /// The marker's outline around (0, 0), in pixels.
    pub(super) fn marker(&self) -> Vec<(i32, i32)> {
        match self.marker {
            0 => (0..16)
                .map(|i| {
                    let (sin, cos) = (f64::from(i) * std::f64::consts::TAU / 16.0).sin_cos();
                    ((9.0 * cos).round() as i32, (9.0 * sin).round() as i32)
                })
                .collect(),
            1 => vec![(-8, -8), (8, -8), (8, 8), (-8, 8)],
            2 => vec![(0, -11), (10, 7), (-10, 7)],
            3 => vec![(0, -11), (11, 0), (0, 11), (-11, 0)],
            4 => vec![(0, 11), (10, -7), (-10, -7)],
            5 => cross([(-3, -10), (3, -10), (3, -3), (10, -3), (10, 3), (3, 3)]),
            _ => cross([(0, -4), (6, -10), (10, -6), (4, 0), (10, 6), (6, 10)]),
        }
    }
}

/// Half of a cross and the same turned by half a turn.
fn cross(half: [(i32, i32); 6]) -> Vec<(i32, i32)> {
    half.into_iter()
        .chain(half.into_iter().map(|(x, y)| (-x, -y)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_eight_looks_differ() {
        let looks: Vec<Look> = (0..28).map(Look::of).collect();
        for (i, a) in looks.iter().enumerate() {
            for b in &looks[..i] {
                assert!(a.colour != b.colour || a.dash != b.dash, "{a:?} twice");
            }
        }
    }

    /// A colour as people see it who lack cones for red or for green (Viénot, Brettel and Mollon,
    /// "Digital video colourmaps for checking the legibility of displays by dichromats", 1999), on
    /// linear light.
    fn seen(colour: RGBColor, matrix: [[f64; 3]; 3]) -> [f64; 3] {
        let linear = [colour.0, colour.1, colour.2].map(|part| (f64::from(part) / 255.0).powf(2.2));
        matrix.map(|row| {
            let sum: f64 = row.iter().zip(linear).map(|(a, b)| a * b).sum();
            255.0 * sum.clamp(0.0, 1.0).powf(1.0 / 2.2)
        })
    }

    #[test]
    fn seventeen_can_be_told_apart_by_the_colour_blind() {
        let all = [
            [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
            [
                [0.1124, 0.8876, 0.0],
                [0.1124, 0.8876, 0.0],
                [0.0040, -0.0040, 1.0],
            ],
            [
                [0.2927, 0.7073, 0.0],
                [0.2927, 0.7073, 0.0],
                [-0.0223, 0.0223, 1.0],
            ],
        ];
        let looks: Vec<Look> = (0..17).map(Look::of).collect();
        for matrix in all {
            for (i, a) in looks.iter().enumerate() {
                for b in looks[..i].iter().filter(|b| b.dash == a.dash) {
                    let (one, other) = (seen(a.colour, matrix), seen(b.colour, matrix));
                    let square = |(a, b): (&f64, &f64)| (a - b).powi(2);
                    let apart: f64 = one.iter().zip(&other).map(square).sum();
                    assert!(apart.sqrt() > 30.0, "{a:?} and {b:?}: {}", apart.sqrt());
                }
            }
        }
    }

    #[test]
    fn markers_differ_and_stand_around_their_point() {
        let markers: Vec<_> = (0..7).map(|i| Look::of(i).marker()).collect();
        for (i, a) in markers.iter().enumerate() {
            assert!(markers[..i].iter().all(|b| a != b));
            assert!(a.iter().all(|&(x, y)| x.abs() <= 12 && y.abs() <= 12));
        }
    }
}
