use core::fmt;
use core::iter::Sum;
use core::time::Duration;

/// A data rate in bits a second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(u64);

impl Rate {
    /// Nothing at all.
    pub const ZERO: Self = Self(0);

    /// A rate of `bits` bit/s.
    #[inline]
    pub const fn from_bps(bits: u64) -> Self {
        Self(bits)
    }

    /// A rate of `kilobits` · 10³ bit/s.
    #[inline]
    pub const fn from_kbps(kilobits: u64) -> Self {
        Self(kilobits.saturating_mul(1_000))
    }

    /// A rate of `megabits` · 10⁶ bit/s.
    #[inline]
    pub const fn from_mbps(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// The rate at which `bytes` take `time`; zero when `time` is zero.
    #[inline]
    pub const fn from_bytes_over(bytes: u64, time: Duration) -> Self {
        let nanos = time.as_nanos();
        if nanos == 0 {
            return Self::ZERO;
        }
        // Here and below: 64 bits nearly always suffice, and divide several times as fast.
        if let Some(units) = bytes.checked_mul(8_000_000_000)
            && nanos <= u64::MAX as u128
        {
            return Self(units / nanos as u64);
        }
        let bps = bytes as u128 * 8_000_000_000 / nanos;
        Self(if bps > u64::MAX as u128 {
            u64::MAX
        } else {
            bps as u64
        })
    }

    /// Bits a second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Millions of bits a second.
    #[inline]
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Time that `bytes` take at this rate, in whole nanoseconds rounded up;
    /// [`Duration::MAX`] at rate zero.
    #[inline]
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        if let Some(units) = bytes.checked_mul(8_000_000_000) {
            return Duration::from_nanos(units.div_ceil(self.0));
        }
        let nanos = (bytes as u128 * 8_000_000_000).div_ceil(self.0 as u128);
        if nanos > u64::MAX as u128 {
            Duration::MAX
        } else {
            Duration::from_nanos(nanos as u64)
        }
    }

    /// Whole bytes that fit into `time` at this rate.
    #[inline]
    pub const fn bytes_in(self, time: Duration) -> u64 {
        let nanos = time.as_nanos();
        if nanos <= u64::MAX as u128
            && let Some(units) = self.0.checked_mul(nanos as u64)
        {
            return units / 8_000_000_000;
        }
        let bytes = (self.0 as u128).saturating_mul(nanos) / 8_000_000_000;
        if bytes > u64::MAX as u128 {
            u64::MAX
        } else {
            bytes as u64
        }
    }

    /// This rate times `factor`, which must not be negative.
    #[inline]
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

/// What several paths carry together: no more than the largest rate, which stands for no limit.
impl Sum for Rate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, |sum, rate| Self(sum.0.saturating_add(rate.0)))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} bit/s", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kb/s", self.0 as f64 * 1e-3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} Mb/s", self.0 as f64 * 1e-6),
            _ => write!(f, "{:.2} Gb/s", self.0 as f64 * 1e-9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate alloc;
    use alloc::string::ToString;

    #[test]
    fn a_1500_byte_packet_takes_600_us_at_20_mbps() {
        assert_eq!(
            Rate::from_mbps(20).time_for(1_500),
            Duration::from_micros(600)
        );
        assert_eq!(
            Rate::from_mbps(20).bytes_in(Duration::from_micros(600)),
            1_500
        );
        assert_eq!(
            Rate::from_bytes_over(1_500, Duration::from_micros(600)),
            Rate::from_mbps(20)
        );
    }

    #[test]
    fn rates_without_limit_add_up_to_one() {
        let rates = [
            Rate::from_mbps(8),
            Rate::from_bps(u64::MAX),
            Rate::from_mbps(2),
        ];
        assert_eq!(rates.into_iter().sum::<Rate>(), Rate::from_bps(u64::MAX));
        assert_eq!(
            [rates[0], rates[2]].into_iter().sum::<Rate>(),
            Rate::from_mbps(10)
        );
    }

    #[test]
    fn beyond_64_bits_nothing_changes() {
        // 2.4 GB are more than 2⁶⁴ units of a billionth of a bit.
        let bytes = 2_400_000_000;
        assert_eq!(
            Rate::from_mbps(8).time_for(bytes),
            Duration::from_secs(2_400)
        );
        assert_eq!(
            Rate::from_mbps(8).bytes_in(Duration::from_secs(2_400)),
            bytes
        );
        assert_eq!(
            Rate::from_bytes_over(bytes, Duration::from_secs(2_400)),
            Rate::from_mbps(8)
        );
        let century = Duration::from_secs(3_155_760_000);
        assert_eq!(Rate::from_bps(8).bytes_in(century), 3_155_760_000);
    }

    #[test]
    fn degenerate_rates_are_defined() {
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
        assert_eq!(Rate::from_bytes_over(1, Duration::ZERO), Rate::ZERO);
        assert_eq!(
            Rate::from_bps(3).time_for(1),
            Duration::from_nanos(2_666_666_667)
        );
        assert_eq!(Rate::from_mbps(20).to_string(), "20.0 Mb/s");
    }
}
