//! What arrivals over the paths of a session were like, learnt from the packets of all flows.
//!
//! A scheduler belongs to one flow, but how long packets take over a path, and how much that
//! varies, is a property of the path: a flow that begins on a session that has carried others
//! knows it from its first packet on. So there is one history a path, fed once with each arrival
//! and read by the schedulers of all flows, which exchange theirs for it when they plan.

use marline_base::{Duration, Instant};

use super::per_path::PerPath;
use super::{Feedback, Outcome};
use crate::wire::PathId;
use arrivals::Arrivals;

pub(super) mod arrivals;
pub(super) mod gauss;
pub(super) mod sample;

/// How often the laws of arrivals are learnt again (`Z_timer` of S-EDPF's Algorithm 2).
pub(super) const REFRESH: Duration = Duration::from_millis(100);

/// One history a path.
#[derive(Debug, Default)]
pub(super) struct Histories {
    paths: PerPath<Arrivals>,
    refreshed: Instant,
}

impl Histories {
    /// Learns from what became of a symbol, whichever flow it belongs to.
    pub(super) fn on_feedback(&mut self, feedback: &Feedback) {
        if let (Outcome::Acked, Some(at_us)) = (feedback.outcome, feedback.arrived_us) {
            let path = self.paths.of(feedback.path, Arrivals::default);
            path.on_arrival(feedback.sent, at_us);
        }
    }

    /// Learns the laws of arrivals again, if it is time.
    pub(super) fn refresh(&mut self, now: Instant) {
        if now.since(self.refreshed) >= REFRESH || self.refreshed == Instant::ZERO {
            self.refreshed = now;
            self.paths.iter_mut().for_each(|(_, path)| path.refresh());
        }
    }

    /// What is known of the path, if anything is.
    pub(super) fn arrivals(&self, path: PathId) -> Option<&Arrivals> {
        self.paths.get(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Symbol;
    use crate::path::EmissionKind;
    use crate::sched::tests::{Backlog, path};
    use crate::sched::{Choice, Common, Plan};

    /// Packets of some flow: of each path one every millisecond, on path 0 as quick as possible and
    /// late in turn, on path 1 always in between.
    fn carry(common: &mut Common) {
        for n in 0..40 {
            let late = if n % 2 == 0 { 5 } else { 80 };
            for (id, delay) in [(0, late), (1, 20)] {
                common.on_feedback(&Feedback {
                    symbol: Symbol {
                        unit: 0,
                        offset: 0,
                        len: 1_200,
                    },
                    kind: EmissionKind::Source,
                    path: PathId(id),
                    sent: Instant::from_millis(n),
                    outcome: Outcome::Acked,
                    own_way: true,
                    arrived_us: Some(1_000 * (n + delay)),
                });
            }
        }
    }

    /// Where the first packet of a stream goes that begins then.
    fn first(common: &mut Common, ms: u64) -> usize {
        let mut paths = [path(0), path(1)];
        let mut backlog = Backlog::of(1);
        let choice: Choice = "mend".parse().expect("a scheduler");
        let now = Instant::from_millis(ms);
        let mut plan = Plan::new(now, &mut paths, &mut backlog).among(common);
        choice.make().plan(&mut plan);
        backlog.sent_on()[0]
    }

    #[test]
    fn a_new_flow_knows_what_arrivals_of_others_were_like() {
        let mut common = Common::default();
        assert_eq!(first(&mut common, 100), 0, "nothing is known");
        carry(&mut common);
        assert_eq!(first(&mut common, 200), 1, "it would wait for late ones");
        // It is the session's, not the first flow's.
        assert_eq!(first(&mut common, 210), 1);
        let mut blind = Common::default().blind(true);
        carry(&mut blind);
        assert_eq!(first(&mut blind, 200), 0, "each learns by itself");
    }
}
