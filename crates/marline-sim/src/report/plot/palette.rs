//! What tells one scheduler from another: colour, dashes, marker.

use plotters::style::RGBColor;

/// Okabe and Ito's eight (Color Universal Design, 2008), those that stand out on white first.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
    RGBColor(0x00, 0x00, 0x00),
    RGBColor(0xF0, 0xE4, 0x42),
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
    /// The look of the `index`-th: no two of the first 32 are alike in colour and dashes.
    pub(super) fn of(index: usize) -> Self {
        let turn = index + index / COLOURS.len();
        Self {
            colour: COLOURS[index % COLOURS.len()],
            dash: DASHES[turn % DASHES.len()],
            marker: turn % 7,
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
    fn thirty_two_looks_differ() {
        let looks: Vec<Look> = (0..32).map(Look::of).collect();
        for (i, a) in looks.iter().enumerate() {
            for b in &looks[..i] {
                assert!(a.colour != b.colour || a.dash != b.dash, "{a:?} twice");
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
