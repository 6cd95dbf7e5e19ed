//! Counters of paths and flows. Which there are is declared with the status.

use crate::control::Metric;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::{Registry, Unit};

pub(super) type Labels = Vec<(&'static str, String)>;

/// The numbers of a path or flow.
pub(super) fn labels(session: u64, what: &'static str, number: u64) -> Labels {
    vec![("session", session.to_string()), (what, number.to_string())]
}

/// Counters of one kind of thing, in the order in which they are declared.
#[derive(Default)]
pub(super) struct Counters(Vec<(Metric, Family<Labels, Counter>)>);

impl Counters {
    /// Adds what `of` has counted; a label of the metric itself follows those.
    pub(super) fn add(&mut self, metric: Metric, of: &Labels, value: u64) {
        let mut labels = of.clone();
        labels.extend(metric.label.map(|(name, of)| (name, of.to_owned())));
        self.family(metric).get_or_create(&labels).inc_by(value);
    }

    fn family(&mut self, metric: Metric) -> &Family<Labels, Counter> {
        let known = self
            .0
            .iter()
            .position(|(known, _)| known.name == metric.name);
        let index = known.unwrap_or(self.0.len());
        if known.is_none() {
            self.0.push((metric, Family::default()));
        }
        &self.0[index].1
    }

    pub(super) fn register(self, all: &mut Registry) {
        for (metric, family) in self.0 {
            match metric.bytes {
                true => all.register_with_unit(metric.name, metric.help, Unit::Bytes, family),
                false => all.register(metric.name, metric.help, family),
            }
        }
    }
}
