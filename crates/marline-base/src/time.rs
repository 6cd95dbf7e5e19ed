use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an epoch that the caller chose.
///
/// Only differences mean anything. Simulated time starts at [`Instant::ZERO`]; a real endpoint
/// counts from the moment it started. The range is 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every time that is ever reached; "never" in timer tables.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant that lies `nanos` ns after the epoch.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant that lies `micros` µs after the epoch.
    #[inline]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The instant that lies `millis` ms after the epoch.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds since the epoch, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds since the epoch.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Time from `earlier` to `self`, or zero when `earlier` is not earlier.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// In 64 bits throughout: this is what sessions and simulators compute most.
#[inline]
const fn nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(duration.subsec_nanos() as u64)
}

/// Nanoseconds of a duration as a float, rounded as [`Duration::as_nanos`] is, which is slow to
/// convert: 128 bits, for durations of more than 584 years alone.
#[inline]
pub fn nanos_f64(duration: Duration) -> f64 {
    match nanos(duration) {
        u64::MAX => duration.as_nanos() as f64,
        nanos => nanos as f64,
    }
}

/// Microseconds of a duration as a float: the unit of arrival times on the wire.
#[inline]
pub fn micros_f64(duration: Duration) -> f64 {
    nanos_f64(duration) / 1e3
}

/// Saturates at [`Instant::FAR_FUTURE`].
impl Add<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(nanos(rhs)))
    }
}

impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

/// Saturates at [`Instant::ZERO`].
impl Sub<Duration> for Instant {
    type Output = Self;

    #[inline]
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(rhs)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}ms", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_as_floats_are_those_of_the_library() {
        let odd = Duration::new(9_007_199, 254_740_993);
        for duration in [
            Duration::ZERO,
            odd,
            Duration::from_nanos(u64::MAX),
            Duration::MAX,
        ] {
            assert_eq!(nanos_f64(duration), duration.as_nanos() as f64);
        }
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(
            Instant::FAR_FUTURE + Duration::from_secs(1),
            Instant::FAR_FUTURE
        );
        assert_eq!(
            Instant::from_millis(1) - Duration::from_secs(1),
            Instant::ZERO
        );
        assert_eq!(Instant::ZERO.since(Instant::from_millis(1)), Duration::ZERO);
        assert_eq!(
            Instant::from_micros(1_500).since(Instant::from_millis(1)),
            Duration::from_micros(500)
        );
    }
}
