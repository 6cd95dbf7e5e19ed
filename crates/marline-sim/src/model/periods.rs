//! Decoding periods as S-EDPF's analysis counts them (Theorem 2).

/// Frames end with a coded packet. A period begins with the frame that loses a source packet and
/// ends with the frame after which as many coded packets have arrived as source packets were lost;
/// a frame outside of periods that loses none is a period of length 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Periods {
    count: u64,
    sum: f64,
    squares: f64,
    /// Frames of the period under way, and what it still lacks.
    frames: u64,
    lacking: u64,
}

impl Periods {
    /// A packet left; in the order of departures.
    pub(super) fn on_packet(&mut self, coded: bool, lost: bool) {
        if !coded {
            self.lacking += u64::from(lost);
            return;
        }
        if self.frames > 0 || self.lacking > 0 {
            self.frames += 1;
            self.lacking -= u64::from(!lost && self.lacking > 0);
        }
        if self.lacking == 0 {
            self.count += 1;
            self.sum += self.frames as f64;
            self.squares += (self.frames * self.frames) as f64;
            self.frames = 0;
        }
    }

    /// E\[S\], in frames; `None` without a period.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// E\[S²\].
    pub fn second_moment(&self) -> Option<f64> {
        (self.count > 0).then(|| self.squares / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_counted_by_hand() {
        // s: source, c: coded; capitals are lost. Frames: ssc | sSc | SSc | sssC | sc | sc.
        let mut periods = Periods::default();
        for packet in "ssc sSc SSc sSC sc sc sc".chars().filter(|c| *c != ' ') {
            periods.on_packet(
                packet.eq_ignore_ascii_case(&'c'),
                packet.is_ascii_uppercase(),
            );
        }
        // 0; 1; then two lost and one repaired, one more lost and nothing, two repairs: 4; then 0.
        assert_eq!(periods.mean(), Some(5.0 / 4.0));
        assert_eq!(periods.second_moment(), Some(17.0 / 4.0));
    }
}
