//! What is expected of paths, and how often that was right.

use super::gauge::{FloatGauge, ratio};
use crate::control::forecast::{CalibrationStatus, ForecastStatus, LawStatus};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPath {
    session: u64,
    path: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPathMode {
    session: u64,
    path: u64,
    mode: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTenth {
    session: u64,
    path: u64,
    /// 0 is the earliest.
    tenth: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFlow {
    session: u64,
    flow: u64,
}

/// Metrics of forecasts and promises.
#[derive(Default)]
pub(super) struct Forecasts {
    mean: Family<OfPath, FloatGauge>,
    sd: Family<OfPath, FloatGauge>,
    outage: Family<OfPath, FloatGauge>,
    mode: Family<OfPathMode, FloatGauge>,
    path_promises: Family<OfPath, Counter>,
    path_promised: Family<OfPath, FloatGauge>,
    path_kept: Family<OfPath, FloatGauge>,
    flow_promises: Family<OfFlow, Counter>,
    flow_promised: Family<OfFlow, FloatGauge>,
    flow_kept: Family<OfFlow, FloatGauge>,
    law_packets: Family<OfPath, Counter>,
    law_arrived: Family<OfTenth, FloatGauge>,
    law_lost: Family<OfPath, Counter>,
    law_expected_lost: Family<OfPath, FloatGauge>,
}

impl Forecasts {
    pub(super) fn path(&self, session: u64, path: u64, forecast: &ForecastStatus) {
        let of_path = OfPath { session, path };
        let calibration = &forecast.calibration;
        for (family, value) in [
            (&self.mean, Some(forecast.mean_bps as f64 / 8.0)),
            (&self.sd, Some(forecast.sd_bps as f64 / 8.0)),
            (&self.outage, Some(forecast.outage)),
            (&self.path_promised, calibration.promised),
            (&self.path_kept, calibration.kept),
        ] {
            if let Some(value) = value {
                family.get_or_create(&of_path).set(value);
            }
        }
        let mode = forecast.mode.clone();
        let of_mode = OfPathMode {
            session,
            path,
            mode,
        };
        self.mode.get_or_create(&of_mode).set(1.0);
        let promises = self.path_promises.get_or_create(&of_path);
        promises.inc_by(calibration.promises);
    }

    pub(super) fn law(&self, session: u64, path: u64, law: &LawStatus) {
        let of_path = OfPath { session, path };
        for (tenth, share) in (0..).zip(&law.deciles) {
            let of_tenth = OfTenth {
                session,
                path,
                tenth,
            };
            self.law_arrived.get_or_create(&of_tenth).set(*share);
        }
        let expected = self.law_expected_lost.get_or_create(&of_path);
        expected.set(law.expected_lost);
        for (family, value) in [(&self.law_packets, law.packets), (&self.law_lost, law.lost)] {
            family.get_or_create(&of_path).inc_by(value);
        }
    }

    pub(super) fn flow(&self, session: u64, flow: u64, calibration: &CalibrationStatus) {
        let of_flow = OfFlow { session, flow };
        for (family, value) in [
            (&self.flow_promised, calibration.promised),
            (&self.flow_kept, calibration.kept),
        ] {
            if let Some(value) = value {
                family.get_or_create(&of_flow).set(value);
            }
        }
        let promises = self.flow_promises.get_or_create(&of_flow);
        promises.inc_by(calibration.promises);
    }

    pub(super) fn register(self, all: &mut Registry) {
        all.register(
            "path_forecast_bytes_per_second",
            "Capacity that is expected of the path, mean",
            self.mean,
        );
        all.register(
            "path_forecast_deviation_bytes_per_second",
            "Standard deviation of the capacity that is expected",
            self.sd,
        );
        all.register_with_unit(
            "path_forecast_outage",
            "Probability that the path falls into an outage",
            ratio(),
            self.outage,
        );
        all.register(
            "path_forecast_mode",
            "1 for the way in which the forecast comes about",
            self.mode,
        );
        all.register(
            "path_promises",
            "Promises that all packets of a block on the path are on time",
            self.path_promises,
        );
        all.register_with_unit(
            "path_promised",
            "Mean probability of these promises",
            ratio(),
            self.path_promised,
        );
        all.register_with_unit(
            "path_promises_kept",
            "Share of these promises that were kept",
            ratio(),
            self.path_kept,
        );
        all.register(
            "path_law_packets",
            "Packets that were followed up to see how often the path's law of arrivals comes true",
            self.law_packets,
        );
        all.register_with_unit(
            "path_law_arrived",
            "Share of these that arrived in each tenth of their law, a tenth each if it is right",
            ratio(),
            self.law_arrived,
        );
        all.register(
            "path_law_lost",
            "Packets that were followed up and lost",
            self.law_lost,
        );
        all.register(
            "path_law_expected_lost",
            "How many of these were to be lost",
            self.law_expected_lost,
        );
        all.register(
            "flow_promises",
            "Promises that a block is on time",
            self.flow_promises,
        );
        all.register_with_unit(
            "flow_promised",
            "Mean probability of these promises",
            ratio(),
            self.flow_promised,
        );
        all.register_with_unit(
            "flow_promises_kept",
            "Share of these promises that were kept",
            ratio(),
            self.flow_kept,
        );
    }
}
