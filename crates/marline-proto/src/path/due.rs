//! What has arrived by the time that something which leaves now arrives.

use marline_base::{Duration, Instant};

use super::view::PathView;
use crate::flow::Due;
use crate::wire::PathId;

impl Due {
    /// What has arrived by the time that something arrives which leaves now on the path `via`; by
    /// the end of all time if the clocks of some paths cannot be compared.
    pub(crate) fn by_arrival(
        now: Instant,
        via: PathId,
        paths: impl Iterator<Item = PathView> + Clone,
    ) -> Self {
        let arrival = paths.clone().find(|p| p.id == via);
        let arrival = arrival.and_then(|p| p.forecast).map(|forecast| {
            let wait = forecast.free.since(now);
            forecast.offset_us + 1e6 * wait.as_secs_f64()
        });
        let due = paths.map(|p| Some((p.id, moved(now, arrival? - p.forecast?.offset_us))));
        due.collect::<Option<_>>().unwrap_or_default()
    }
}

fn moved(at: Instant, by_us: f64) -> Instant {
    let by = Duration::from_nanos((by_us.abs() * 1e3) as u64);
    if by_us < 0.0 { at - by } else { at + by }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::ArrivalForecast;
    use crate::sched::tests::path;

    const NOW: Instant = Instant::from_millis(1_000);

    fn view(id: u64, offset_us: f64, busy: Duration) -> PathView {
        let forecast = ArrivalForecast {
            offset_us,
            behind_us: 0.0,
            late_us: 0.0,
            ceiling_us: 0.0,
            swing_us: 0.0,
            due: None,
            free: NOW + busy,
            service_us: 1.0,
        };
        PathView {
            forecast: Some(forecast),
            ..path(id)
        }
    }

    #[test]
    fn what_left_earlier_by_as_much_as_its_path_is_longer_is_there() {
        let busy = Duration::from_millis(2);
        let paths = [view(0, 10e3, busy), view(1, 80e3, Duration::ZERO)];
        let due = Due::by_arrival(NOW, PathId(0), paths.iter().copied());
        // Here at 10 + 2 ms; there it takes 80.
        assert!(due.is(PathId(1), Instant::from_millis(932)));
        assert!(!due.is(PathId(1), Instant::from_millis(933)));
        // What stands on its own path is before it.
        assert!(due.is(PathId(0), NOW));
        let due = Due::by_arrival(NOW, PathId(1), paths.iter().copied());
        assert!(due.is(PathId(0), NOW) && due.is(PathId(1), NOW));
        assert!(due.is(PathId(7), NOW), "no path of these");
    }

    #[test]
    fn without_a_forecast_everything_is() {
        let mut paths = [view(0, 10e3, Duration::ZERO), view(1, 80e3, Duration::ZERO)];
        paths[1].forecast = None;
        for via in 0..2 {
            let due = Due::by_arrival(NOW, PathId(via), paths.iter().copied());
            assert!(due.is(PathId(0), NOW) && due.is(PathId(1), NOW));
        }
    }
}
