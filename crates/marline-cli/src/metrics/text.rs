//! A status snapshot as OpenMetrics text, which Prometheus reads. Base units; labels are numbers
//! and states, never addresses or names.

use super::counters::{Counters, labels};
use super::forecast::Forecasts;
use super::gauge::{FloatGauge, PERCENTILES, gauge, ratio};
use super::live::Live;
use crate::control::Status;
use crate::control::status::{FlowStatus, PathStatus, SessionStatus, UnitsStatus};
use marline_proto::path::PathState;
use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Media type of the text.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Media type of the same in Prometheus' older format.
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSession {
    session: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPath {
    session: u64,
    path: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPathState {
    session: u64,
    path: u64,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFlow {
    session: u64,
    flow: u64,
    kind: String,
    scheduler: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFlowPercentile {
    session: u64,
    flow: u64,
    percentile: &'static str,
}

/// Every metric. Built again for each scrape, so that what has ended is not reported for ever.
#[derive(Default)]
struct Metrics {
    uptime: FloatGauge,
    flows_opened: Family<OfSession, Counter>,
    path_rtt: Family<OfPath, FloatGauge>,
    path_rtt_min: Family<OfPath, FloatGauge>,
    path_loss: Family<OfPath, FloatGauge>,
    path_cwnd: Family<OfPath, Gauge>,
    path_in_flight: Family<OfPath, Gauge>,
    path_queue: Family<OfPath, Gauge>,
    path_datagram: Family<OfPath, Gauge>,
    path_rate: Family<OfPath, Gauge>,
    path_state: Family<OfPathState, Gauge>,
    path_counters: Counters,
    path_budget: Family<OfPath, Gauge>,
    path_budget_used: Family<OfPath, Gauge>,
    flow_backlog: Family<OfFlow, Gauge>,
    flow_delay: Family<OfFlowPercentile, FloatGauge>,
    flow_redundancy: Family<OfFlow, FloatGauge>,
    flow_coding_interval: Family<OfFlow, Gauge>,
    flow_counters: Counters,
    forecasts: Forecasts,
    live: Live,
}

/// The snapshot as text.
///
/// # Errors
/// None in practice: formatting into a `String` does not fail.
pub fn render(status: &Status) -> Result<String, fmt::Error> {
    let mut metrics = Metrics::default();
    metrics.uptime.set(status.uptime_s);
    for session in &status.sessions {
        metrics.session(session);
    }
    for entry in &status.live {
        metrics.live.entry(entry);
    }
    let mut text = String::new();
    encode(&mut text, &metrics.registry())?;
    Ok(text)
}

/// OpenMetrics text in Prometheus' older format, in which a counter's type and help bear its whole
/// name, and there are neither units nor an end.
pub fn plain(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    let counters: Vec<&str> = openmetrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    for line in openmetrics.lines() {
        let described = line.strip_prefix("# ").and_then(|rest| {
            let (what, rest) = rest.split_once(' ')?;
            let (name, about) = rest.split_once(' ')?;
            Some((what, name, about))
        });
        match described {
            Some(("UNIT", ..)) => continue,
            Some((what, name, about)) if counters.contains(&name) => {
                text += &format!("# {what} {name}_total {about}");
            }
            _ if line == "# EOF" => continue,
            _ => text += line,
        }
        text.push('\n');
    }
    text
}

impl Metrics {
    fn session(&mut self, session: &SessionStatus) {
        let labels = OfSession {
            session: session.id,
        };
        self.flows_opened
            .get_or_create(&labels)
            .inc_by(session.flows_opened);
        for path in &session.paths {
            self.path(session.id, path);
        }
        for flow in &session.flows {
            self.flow(session.id, flow);
        }
    }

    fn path(&mut self, session: u64, path: &PathStatus) {
        let of_path = OfPath {
            session,
            path: path.id,
        };
        for (family, value) in [
            (&self.path_rtt, path.rtt_ms.map(|ms| ms / 1e3)),
            (&self.path_rtt_min, path.rtt_min_ms.map(|ms| ms / 1e3)),
            (&self.path_loss, path.loss),
        ] {
            if let Some(value) = value {
                family.get_or_create(&of_path).set(value);
            }
        }
        for (family, value) in [
            (&self.path_cwnd, path.cwnd_bytes),
            (&self.path_in_flight, path.in_flight_bytes),
            (&self.path_queue, path.queue_bytes),
        ] {
            family.get_or_create(&of_path).set(gauge(value));
        }
        if let Some(longest) = path.datagram_bytes {
            let family = &self.path_datagram;
            family.get_or_create(&of_path).set(gauge(longest));
        }
        if let Some(rate) = path.rate_bps {
            self.path_rate.get_or_create(&of_path).set(gauge(rate / 8));
        }
        for state in PathState::ALL {
            let labels = OfPathState {
                session,
                path: path.id,
                state: state.name(),
            };
            self.path_state
                .get_or_create(&labels)
                .set(i64::from(state == path.state));
        }
        let numbers = labels(session, "path", path.id);
        for (metric, value) in path.counters() {
            self.path_counters.add(metric, &numbers, value);
        }
        if let Some(forecast) = &path.forecast {
            self.forecasts.path(session, path.id, forecast);
        }
        if let Some(law) = &path.law {
            self.forecasts.law(session, path.id, law);
        }
        if let Some(budget) = &path.budget {
            for (family, value) in [
                (&self.path_budget, budget.limit_bytes),
                (&self.path_budget_used, budget.used_bytes),
            ] {
                family.get_or_create(&of_path).set(gauge(value));
            }
        }
    }

    fn flow(&mut self, session: u64, flow: &FlowStatus) {
        let of_flow = OfFlow {
            session,
            flow: flow.id,
            kind: flow.kind.clone(),
            scheduler: flow.scheduler.clone(),
        };
        self.flow_backlog
            .get_or_create(&of_flow)
            .set(gauge(flow.backlog_bytes));
        if let Some(delay) = flow.delay_ms {
            let ms = [delay.p50, delay.p95, delay.p99, delay.worst];
            for (percentile, ms) in PERCENTILES.into_iter().zip(ms) {
                let labels = OfFlowPercentile {
                    session,
                    flow: flow.id,
                    percentile,
                };
                self.flow_delay.get_or_create(&labels).set(ms / 1e3);
            }
        }
        self.flow_redundancy
            .get_or_create(&of_flow)
            .set(flow.redundancy);
        if let Some(tau) = flow.coding_interval {
            self.flow_coding_interval
                .get_or_create(&of_flow)
                .set(tau.into());
        }
        if let Some(calibration) = &flow.calibration {
            self.forecasts.flow(session, flow.id, calibration);
        }
        let numbers = labels(session, "flow", flow.id);
        // A counter with a label of its own does without these.
        let mut described = numbers.clone();
        described.push(("kind", flow.kind.clone()));
        described.push(("scheduler", flow.scheduler.clone()));
        let units = flow.units.iter().flat_map(UnitsStatus::counters);
        for (metric, value) in flow.counters().into_iter().chain(units) {
            let labels = metric.label.map_or(&described, |_| &numbers);
            self.flow_counters.add(metric, labels, value);
        }
    }

    fn registry(self) -> Registry {
        let mut all = Registry::with_prefix("marline");
        all.register_with_unit("uptime", "Time since the start", Unit::Seconds, self.uptime);
        all.register(
            "flows_opened",
            "Flows opened since the session began",
            self.flows_opened,
        );
        all.register_with_unit(
            "path_rtt",
            "Smoothed round-trip time",
            Unit::Seconds,
            self.path_rtt,
        );
        all.register_with_unit(
            "path_rtt_min",
            "Smallest recent round-trip time",
            Unit::Seconds,
            self.path_rtt_min,
        );
        all.register_with_unit(
            "path_loss",
            "Estimated share of packets lost, 0 to 1",
            ratio(),
            self.path_loss,
        );
        all.register_with_unit(
            "path_cwnd",
            "Congestion window",
            Unit::Bytes,
            self.path_cwnd,
        );
        all.register_with_unit(
            "path_datagram",
            "Longest datagram that the path takes",
            Unit::Bytes,
            self.path_datagram,
        );
        all.register_with_unit(
            "path_in_flight",
            "Sent and not yet acknowledged or lost",
            Unit::Bytes,
            self.path_in_flight,
        );
        all.register_with_unit(
            "path_queue",
            "Scheduled and not yet sent",
            Unit::Bytes,
            self.path_queue,
        );
        all.register(
            "path_rate_bytes_per_second",
            "Expected delivery rate",
            self.path_rate,
        );
        all.register(
            "path_state",
            "1 for the state that the path is in",
            self.path_state,
        );
        self.path_counters.register(&mut all);
        all.register_with_unit(
            "path_budget",
            "What the path may carry in a month",
            Unit::Bytes,
            self.path_budget,
        );
        all.register_with_unit(
            "path_budget_used",
            "What of its budget the path has carried this month",
            Unit::Bytes,
            self.path_budget_used,
        );
        all.register_with_unit(
            "flow_backlog",
            "Taken and not yet sent",
            Unit::Bytes,
            self.flow_backlog,
        );
        all.register_with_unit(
            "flow_delay",
            "From a write until this end knows that the peer has it in order",
            Unit::Seconds,
            self.flow_delay,
        );
        all.register_with_unit(
            "flow_redundancy",
            "(sent - source) / source",
            ratio(),
            self.flow_redundancy,
        );
        all.register_with_unit(
            "flow_coding_interval",
            "Tau: one packet that this end sends in so many is a repair symbol; absent while none are due",
            Unit::Other("packets".to_owned()),
            self.flow_coding_interval,
        );
        self.flow_counters.register(&mut all);
        self.forecasts.register(&mut all);
        self.live.register(&mut all);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    #[test]
    fn the_older_format_names_counters_in_full() {
        let text = plain(&render(&example()).unwrap());
        for line in [
            "# TYPE marline_path_bytes_total counter",
            "# HELP marline_path_bytes_total Carried by the path.",
            "# TYPE marline_path_rtt_seconds gauge",
            "marline_path_bytes_total{session=\"0\",path=\"0\",direction=\"send\"} 5000000",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
        assert!(
            !text.contains("# UNIT") && !text.contains("# EOF"),
            "{text}"
        );
    }

    /// Names of metrics in a text, such as a rule's expression.
    fn names(text: &str) -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names = words.filter(|word| word.starts_with("marline_"));
        names.map(str::to_owned).collect()
    }

    #[test]
    fn board_and_rules_ask_for_metrics_that_there_are() {
        let known = names(&plain(&render(&example()).unwrap()));
        for file in ["grafana-board.json", "prometheus-rules.yml"] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
            // Packages are tested without the rest of the repository.
            let Ok(text) = std::fs::read_to_string(path.join(file)) else {
                continue;
            };
            let asked = names(&text);
            assert!(!asked.is_empty(), "{file} asks for nothing");
            let unknown: Vec<_> = asked.difference(&known).collect();
            assert!(unknown.is_empty(), "{file} asks for {unknown:?}");
        }
    }

    #[test]
    fn the_text_has_base_units_and_no_names() {
        let text = render(&example()).unwrap();
        for line in [
            "marline_uptime_seconds 61.5",
            "marline_flows_opened_total{session=\"0\"} 5",
            "marline_path_rtt_seconds{session=\"0\",path=\"0\"} 0.03125",
            "marline_path_loss_ratio{session=\"0\",path=\"0\"} 0.01",
            "marline_path_cwnd_bytes{session=\"0\",path=\"0\"} 120000",
            "marline_path_datagram_bytes{session=\"0\",path=\"0\"} 1434",
            "marline_path_rate_bytes_per_second{session=\"0\",path=\"0\"} 2500000",
            "marline_path_state{session=\"0\",path=\"1\",state=\"dead\"} 1",
            "marline_path_state{session=\"0\",path=\"1\",state=\"active\"} 0",
            "marline_path_bytes_total{session=\"0\",path=\"0\",direction=\"send\"} 5000000",
            "marline_path_lost_packets_total{session=\"0\",path=\"0\"} 36",
            "marline_flow_bytes_total{session=\"0\",flow=\"4\",direction=\"receive\"} 3000000",
            "marline_flow_delay_seconds{session=\"0\",flow=\"4\",percentile=\"99\"} 0.055",
            "marline_flow_redundancy_ratio{session=\"0\",flow=\"4\",kind=\"stream\",scheduler=\"min-rtt\"} 0.125",
            "marline_flow_coding_interval_packets{session=\"0\",flow=\"4\",kind=\"stream\",scheduler=\"min-rtt\"} 23",
            "marline_flow_repairs_total{session=\"0\",flow=\"4\",fate=\"sent\"} 22",
            "marline_flow_repairs_total{session=\"0\",flow=\"4\",fate=\"used\"} 13",
            "marline_flow_repairs_total{session=\"0\",flow=\"4\",fate=\"wasted\"} 7",
            "marline_flow_repairs_total{session=\"0\",flow=\"4\",fate=\"received\"} 59",
            "marline_flow_repairs_total{session=\"0\",flow=\"4\",fate=\"received_used\"} 41",
            "marline_flow_units_total{session=\"0\",flow=\"4\",what=\"complete\"} 30",
            "marline_flow_rebuilt_symbols_total{session=\"0\",flow=\"4\",kind=\"stream\",scheduler=\"min-rtt\"} 18",
            "marline_path_forecast_bytes_per_second{session=\"0\",path=\"0\"} 4937500.0",
            "marline_path_forecast_deviation_bytes_per_second{session=\"0\",path=\"0\"} 1012500.0",
            "marline_path_forecast_outage_ratio{session=\"0\",path=\"0\"} 0.02",
            "marline_path_forecast_mode{session=\"0\",path=\"0\",mode=\"bank\"} 1.0",
            "marline_path_promises_total{session=\"0\",path=\"0\"} 900",
            "marline_path_law_packets_total{session=\"0\",path=\"0\"} 2000",
            "marline_path_law_arrived_ratio{session=\"0\",path=\"0\",tenth=\"9\"} 0.12",
            "marline_path_law_lost_total{session=\"0\",path=\"0\"} 20",
            "marline_path_law_expected_lost{session=\"0\",path=\"0\"} 22.5",
            "marline_path_promised_ratio{session=\"0\",path=\"0\"} 0.953",
            "marline_path_promises_kept_ratio{session=\"0\",path=\"0\"} 0.949",
            "marline_flow_promised_ratio{session=\"0\",flow=\"4\"} 0.981",
            "marline_flow_promises_kept_ratio{session=\"0\",flow=\"4\"} 0.978",
            "marline_live_bytes_total{live=\"0\",direction=\"send\"} 11844000",
            "marline_live_delay_seconds{live=\"0\",percentile=\"99\"} 0.0575",
            "marline_live_faults_total{live=\"0\",direction=\"receive\",fault=\"rtp-late\"} 13",
            "marline_live_faults_total{live=\"0\",direction=\"send\",fault=\"ts-continuity\"} 1",
            "marline_live_given_up_total{live=\"0\"} 7",
            "marline_live_repaired_total{live=\"0\"} 21",
            "marline_live_peer_lost_total{live=\"0\"} 8",
            "marline_live_peer_late_total{live=\"0\"} 9",
            "marline_live_peer_duplicated_total{live=\"0\"} 10",
            "marline_live_lost_total{live=\"0\"} 3",
            "marline_live_late_total{live=\"0\"} 2",
            "marline_live_duplicated_total{live=\"0\"} 4",
            "marline_live_capacity_bytes_per_second{live=\"0\"} 937500",
            "marline_live_below_target{live=\"0\"} 1",
            "# EOF",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
        assert!(
            !text.contains("wlan0") && !text.contains("\"cam\"") && !text.contains("server-key"),
            "{text}"
        );
        // What is not known is not reported as 0.
        assert!(!text.contains("marline_path_rtt_seconds{session=\"0\",path=\"1\"}"));
        let mut uncoded = example();
        uncoded.sessions[0].flows[0].coding_interval = None;
        let text = render(&uncoded).unwrap();
        assert!(!text.contains("coding_interval_packets{"), "{text}");
    }
}
