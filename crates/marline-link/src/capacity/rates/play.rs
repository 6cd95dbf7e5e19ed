use super::RateTrace;
use crate::capacity::steps::Steps;
use core::time::Duration;
use marline_base::{Instant, Rate};

/// [`RateTrace`] at work.
#[derive(Clone, Debug)]
pub(in crate::capacity) struct Player {
    trace: RateTrace,
    /// When the present loop began.
    origin: Instant,
    /// The step that held at the last question.
    place: usize,
}

impl Player {
    pub(in crate::capacity) const fn new(trace: RateTrace) -> Self {
        Self {
            trace,
            origin: Instant::ZERO,
            place: 0,
        }
    }
}

impl Steps for Player {
    fn at(&mut self, time: Instant) -> (Rate, Instant) {
        let begin = self.origin + Duration::from_millis(self.trace.steps[self.place].ms);
        if time < begin || time >= self.trace.end(self.place, self.origin) {
            let period = self.trace.period().as_nanos() as u64;
            let within = Duration::from_nanos(time.as_nanos() % period);
            self.origin = time - within;
            self.place = self.trace.step_at(within);
        }
        let end = self.trace.end(self.place, self.origin);
        (self.trace.steps[self.place].rate, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::steps::carry;
    use crate::outage::{Cursor, Outage, Outages};
    use alloc::vec;
    use marline_base::Rng;

    /// 12 Mb/s for 10 ms, nothing for 20 ms, 24 Mb/s for 5 ms; 240 kbit a loop of 35 ms.
    fn player() -> Player {
        let table = "# step_ms: 5\nt_ms,a_kbps\n0,12000\n10,0\n30,24000\n";
        Player::new(RateTrace::parse("t", None, 1.0, table).unwrap())
    }

    fn sent(player: &mut Player, from_us: u64, size: u32) -> u64 {
        carry(
            player,
            Instant::from_micros(from_us),
            size,
            &mut Cursor::never(),
        )
        .as_micros()
    }

    #[test]
    fn packets_flow_at_the_rate_of_the_moment() {
        let mut player = player();
        assert_eq!(sent(&mut player, 0, 1_500), 1_000);
        // Two thirds before the pause, the last third after it at twice the rate.
        assert_eq!(sent(&mut player, 8_000, 4_500), 30_500);
        assert_eq!(sent(&mut player, 12_000, 1_500), 30_500);
        // 30 kbit in what is left of the loop, 6 kbit in the next one.
        assert_eq!(sent(&mut player, 33_750, 4_500), 35_500);
        assert_eq!(sent(&mut player, 35_000 * 1_000, 1_500), 35_000_000 + 1_000);
    }

    #[test]
    fn every_loop_carries_its_area_exactly() {
        let mut player = player();
        // 30 000 bytes a loop, 20 packets; the last of a loop leaves at its very end.
        let mut last = 0;
        for packet in 1..=20 * 500_u64 {
            last = sent(&mut player, last, 1_500);
            if packet.is_multiple_of(20) {
                assert_eq!(last, packet / 20 * 35_000);
            }
        }
    }

    #[test]
    fn time_may_be_asked_for_in_any_order() {
        let mut walking = player();
        let mut one_step = Duration::ZERO;
        while one_step < Duration::from_millis(200) {
            let time = Instant::ZERO + one_step;
            assert_eq!(walking.at(time), player().at(time), "{time:?}");
            one_step += Duration::from_micros(613);
        }
        assert_eq!(
            walking.at(Instant::from_millis(3)),
            player().at(Instant::from_millis(3))
        );
    }

    #[test]
    fn the_dark_carries_nothing() {
        let outages = Outages::Scheduled(vec![Outage {
            start: Instant::from_millis(5),
            length: Duration::from_millis(26),
        }]);
        let mut dark = Cursor::new(&outages, Rng::new(1));
        // 5 ms at 12 Mb/s before, the other 60 kbit from 31 ms on at 24 Mb/s.
        let left = carry(&mut player(), Instant::ZERO, 15_000, &mut dark);
        assert_eq!(left, Instant::from_micros(33_500));
    }
}
