//! When what is sent again would arrive, by the law of each path.
//!
//! A rescue, a reinjection and a retransmission go where they arrive first: the law counts a
//! stranger's queue, and a path whose feedback is overdue is later by at least that much.

use marline_base::{Duration, Instant, micros_f64};

use crate::path::LATEST;
use crate::sched::PathView;

/// When packets that leave now would arrive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals {
    now: Instant,
    /// How far the peer's clock is ahead of ours, by what packets took to the peer (µs). One-way
    /// delays are not known: the path that is seen to be the quickest for its round trip is taken
    /// to need half of that. `None` if a path has reported no arrivals, so that laws cannot be
    /// compared.
    ahead: Option<f64>,
}

impl Arrivals {
    /// By what is known of these paths.
    pub(super) fn by(now: Instant, views: &[PathView]) -> Self {
        let ahead =
            |view: &PathView| Some(view.forecast?.offset_us - micros_f64(view.min_rtt) / 2.0);
        let least = |least: f64, view| Some(least.min(ahead(view)?));
        let ahead = views.iter().try_fold(f64::INFINITY, least);
        Self { now, ahead }
    }

    /// Expected time from now until `len` bytes that are queued now have arrived.
    pub(super) fn after(self, view: &PathView, len: u32) -> Duration {
        let (Some(ahead), Some(forecast)) = (self.ahead, view.forecast) else {
            return view.arrival(len);
        };
        let now = self.now;
        let waits = (view.queued + u64::from(len)) as f64 * forecast.service_us;
        let taken = (forecast.offset_us - ahead + waits).max(0.0);
        let taken = Duration::from_nanos((1e3 * taken) as u64);
        let overdue = forecast.due.map_or(Duration::ZERO, |due| now.since(due));
        forecast.free.since(now) + overdue + taken.min(LATEST)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::law::ArrivalForecast;
    use crate::sched::tests::path;

    const NOW: Instant = Instant::from_millis(500);

    /// A path whose packets take `delay_ms`, by a clock that is an hour ahead.
    fn takes(id: u64, min_rtt_ms: u64, delay_ms: f64) -> PathView {
        let mut view = path(id);
        view.min_rtt = Duration::from_millis(min_rtt_ms);
        view.forecast = Some(ArrivalForecast {
            offset_us: 3.6e9 + 1e3 * delay_ms,
            behind_us: 0.0,
            late_us: 0.0,
            ceiling_us: 0.0,
            swing_us: 0.0,
            due: None,
            free: Instant::ZERO,
            service_us: 1.0,
        });
        view
    }

    fn arrivals_ms(views: &[PathView]) -> Vec<f64> {
        let arrivals = Arrivals::by(NOW, views);
        let after = views.iter().map(|view| arrivals.after(view, 1000));
        after.map(|after| micros_f64(after) / 1e3).collect()
    }

    #[test]
    fn a_strangers_queue_counts() {
        // Half a round trip and a millisecond for its own bytes; behind a queue 70 ms more.
        let views = [takes(0, 20, 80.0), takes(1, 60, 30.0)];
        assert_eq!(arrivals_ms(&views), [81.0, 31.0]);
    }

    #[test]
    fn what_waits_and_what_is_overdue_count() {
        let mut views = [takes(0, 20, 10.0), takes(1, 20, 10.0), takes(2, 20, 10.0)];
        views[0].queued = 4000;
        let forecast = views[1].forecast.as_mut().unwrap();
        forecast.free = NOW + Duration::from_millis(7);
        let forecast = views[2].forecast.as_mut().unwrap();
        forecast.due = Some(NOW - Duration::from_millis(9));
        assert_eq!(arrivals_ms(&views), [15.0, 18.0, 20.0]);
    }

    #[test]
    fn laws_are_compared_where_all_are_known() {
        let mut views = [takes(0, 20, 80.0), takes(1, 60, 30.0)];
        views[1].forecast = None;
        let expected = views.map(|view| micros_f64(view.arrival(1000)) / 1e3);
        assert_eq!(arrivals_ms(&views), expected);
    }

    #[test]
    fn no_clock_makes_it_panic() {
        for offset in [f64::INFINITY, f64::NAN, -1e300, 1e300] {
            let mut views = [takes(0, 20, 10.0), takes(1, 20, 10.0)];
            views[1].forecast.as_mut().unwrap().offset_us = offset;
            let arrivals = Arrivals::by(NOW, &views);
            for view in &views {
                arrivals.after(view, 1000);
            }
        }
        assert!(Arrivals::by(NOW, &[]).ahead.is_some());
    }
}
