use marline_proto::stats::{FlowCounters, SessionStats};
use std::collections::BTreeMap;

/// The last look at each flow of one end; a flow is forgotten by its session when it ends.
#[derive(Debug, Clone, Default)]
pub(in crate::demo) struct Counted(BTreeMap<u64, FlowCounters>);

impl Counted {
    pub(super) fn look(&mut self, stats: &SessionStats) {
        let flows = stats.flows.iter();
        self.0.extend(flows.map(|flow| (flow.id.0, flow.counters)));
    }
}

/// (bytes sent − source bytes) / source bytes of all flows of these ends; 0 if nothing was sent.
pub(in crate::demo) fn redundancy(ends: &[Counted]) -> f64 {
    let mut all = FlowCounters::default();
    for flow in ends.iter().flat_map(|end| end.0.values()) {
        all.source_bytes += flow.source_bytes;
        all.copy_bytes += flow.copy_bytes;
        all.retransmitted_bytes += flow.retransmitted_bytes;
        all.repair_bytes += flow.repair_bytes;
    }
    all.redundancy()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(flows: &[(u64, u64, u64, u64)]) -> Counted {
        let counters = |&(id, source_bytes, copy_bytes, retransmitted_bytes)| {
            let counters = FlowCounters {
                source_bytes,
                copy_bytes,
                retransmitted_bytes,
                ..FlowCounters::default()
            };
            (id, counters)
        };
        Counted(flows.iter().map(counters).collect())
    }

    #[test]
    fn both_ends_count_by_their_bytes() {
        let ours = end(&[(0, 1000, 0, 50)]);
        let theirs = end(&[(0, 8000, 800, 100), (4, 1000, 0, 50)]);
        assert_eq!(redundancy(&[ours, theirs]), 0.1);
        assert_eq!(redundancy(&[Counted::default()]), 0.0);
    }
}
