//! What all metrics have in common.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Unit;
use std::sync::atomic::AtomicU64;

pub(super) type FloatGauge = Gauge<f64, AtomicU64>;

/// Values of the label `direction`.
pub(super) const SEND: &str = "send";
pub(super) const RECEIVE: &str = "receive";

pub(super) fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The unit of shares, which Prometheus writes in the singular.
pub(super) fn ratio() -> Unit {
    Unit::Other("ratio".to_owned())
}

/// Values of the label `percentile`; `quantile` is a summary's, which has counts besides.
pub(super) const PERCENTILES: [&str; 4] = ["50", "95", "99", "100"];
