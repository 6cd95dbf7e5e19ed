//! What a run says of a place, in a few numbers: a bench of thousands of runs keeps no more.

use crate::results::{Distribution, Fraction, Run};
use crate::scenario::Scenario;

use super::load::{BULK, LIVE, PAGE, PAGE_PAUSE};
use super::place::lifetime_ms;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// Median delay in order of a live stream.
    LiveP50,
    /// Its 99th percentile.
    LiveP99,
    /// The delay of its latest packet.
    LiveWorst,
    /// The share of a live stream that never came.
    GivenUp,
    /// What downloads and uploads delivered.
    Goodput,
    /// Their longest time without a delivery.
    Silence,
    /// How long a page takes.
    PageLoad,
    /// Bytes on the links for a byte delivered.
    Wire,
}

/// The values of a run by [`Measure`]; `None` where the load has no such thing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measured {
    values: [Option<f64>; Measure::ALL.len()],
    /// Delay of the latest live packet (ms), or how late they may be.
    latest: f64,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::LiveP50,
        Self::LiveP99,
        Self::LiveWorst,
        Self::GivenUp,
        Self::Goodput,
        Self::Silence,
        Self::PageLoad,
        Self::Wire,
    ];

    /// What tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LiveP50 => "live p50",
            Self::LiveP99 => "live p99",
            Self::LiveWorst => "live worst",
            Self::GivenUp => "given up",
            Self::Goodput => "goodput",
            Self::Silence => "silence",
            Self::PageLoad => "page load",
            Self::Wire => "bytes on wire",
        }
    }

    /// The unit of its values.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::LiveP50 | Self::LiveP99 | Self::LiveWorst | Self::Silence | Self::PageLoad => {
                "ms"
            }
            Self::GivenUp => "%",
            Self::Goodput => "Mb/s",
            Self::Wire => "B/B",
        }
    }

    /// Only goodput is better when it is more.
    pub const fn more_is_better(self) -> bool {
        matches!(self, Self::Goodput)
    }

    /// Does it decide whether a cell is broken? The others are shown.
    pub const fn is_judged(self) -> bool {
        matches!(self, Self::LiveP99 | Self::Goodput | Self::PageLoad)
    }

    /// Added to both values of a ratio, so that nothing is never divided by nothing. A thousandth
    /// of a stream is what nobody sees; 1 ms, 1 kb/s.
    pub const fn floor(self) -> f64 {
        match self {
            Self::GivenUp => 0.1,
            Self::Goodput => 0.001,
            Self::Silence => 1.0,
            Self::LiveP50 | Self::LiveP99 | Self::LiveWorst | Self::PageLoad | Self::Wire => 0.0,
        }
    }
}

impl Measured {
    /// The value.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.values[measure as usize]
    }

    /// The same with this value.
    #[must_use]
    pub fn with(mut self, measure: Measure, value: Option<f64>) -> Self {
        self.values[measure as usize] = value;
        self
    }

    /// The same with the latest live packet (ms).
    #[must_use]
    pub(super) fn with_latest(mut self, latest: f64) -> Self {
        self.latest = latest;
        self
    }

    /// The runs of one cell and seed, in which what never came is as late as the latest packet of
    /// any: a link that gives up everything must not look prompt beside one that delivers late.
    pub(super) fn settled(runs: &mut [&mut Self]) {
        let latest = runs.iter().map(|run| run.latest).fold(0.0, f64::max);
        for run in runs {
            for value in run.values.iter_mut().flatten() {
                if value.is_infinite() {
                    *value = latest;
                }
            }
        }
    }

    /// The few numbers of a run.
    pub(super) fn of(run: &Run, scenario: &Scenario) -> Self {
        let workloads = || scenario.sessions[0].workloads.iter();
        let value = |name: &str| run.values.get(name).copied();
        let window = scenario
            .duration
            .saturating_sub(scenario.warmup)
            .as_secs_f64()
            * 1e3;
        let mut measured = Self::default();
        if workloads().any(|one| one.name == LIVE) {
            let limit = lifetime_ms(scenario, LIVE);
            let delays = run.distributions.get(&format!("{LIVE}.in_order_delay"));
            let lost = run.fractions.get(&format!("{LIVE}.undelivered")).copied();
            let lost = lost.unwrap_or_default();
            let at = |share: f64| Some(delay_at(share, delays, lost));
            let latest = delays.and_then(|delays| delays.quantiles.last());
            measured.latest = latest.map_or(limit, |(_, latest)| latest.max(limit));
            measured = measured
                .with(Measure::LiveP50, at(0.5))
                .with(Measure::LiveP99, at(0.99))
                .with(Measure::LiveWorst, at(1.0))
                .with(Measure::GivenUp, Some(share(lost) * 100.0));
        }
        let bulks: Vec<&str> = workloads()
            .map(|one| &*one.name)
            .filter(|name| name.starts_with(BULK))
            .collect();
        if !bulks.is_empty() {
            let of = |end: &str| -> Vec<f64> {
                let all = bulks.iter().map(|name| value(&format!("{name}.{end}")));
                all.map(Option::unwrap_or_default).collect()
            };
            let goodput = of("goodput_mbps").iter().sum();
            let silence = of("longest_silence_ms").into_iter().fold(0.0, f64::max);
            measured = measured
                .with(Measure::Goodput, Some(goodput))
                .with(Measure::Silence, Some(silence));
        }
        if workloads().any(|one| one.name == PAGE) {
            let mean = value(&format!("{PAGE}.page_load_time.mean_ms"));
            let count = value(&format!("{PAGE}.page_load_time.count")).unwrap_or_default();
            measured = measured.with(Measure::PageLoad, Some(page_load(mean, count, window)));
        }
        let delivered: f64 = workloads()
            .filter_map(|one| value(&format!("{}.goodput_mbps", one.name)))
            .sum();
        let links = scenario.links.iter().flat_map(|link| {
            ["up", "down"].map(|way| value(&format!("link.{}.carried_{way}_mbps", link.name)))
        });
        let carried: f64 = links.flatten().sum();
        // Where nothing came there is nothing to divide by, and no cost to compare.
        let wire = (delivered > 0.0).then(|| carried / delivered);
        measured.with(Measure::Wire, wire)
    }
}

fn share(lost: Fraction) -> f64 {
    lost.hits as f64 / lost.trials.max(1) as f64
}

/// A quantile of the delays of all packets. Those that never came are infinitely late:
/// what was lost must not make the others look good.
fn delay_at(at: f64, delays: Option<&Distribution>, lost: Fraction) -> f64 {
    let quantiles = delays.map_or(&[][..], |delays| &delays.quantiles);
    let Some((_, latest)) = quantiles.last() else {
        return f64::INFINITY;
    };
    let among = at / (1.0 - share(lost)).max(f64::MIN_POSITIVE);
    if among > 1.0 {
        return f64::INFINITY;
    }
    let after = quantiles.partition_point(|(p, _)| *p < among);
    match (
        after.checked_sub(1).map(|i| quantiles[i]),
        quantiles.get(after),
    ) {
        (_, Some(&(p, value))) if p <= among => value,
        (Some((low, from)), Some(&(high, to))) => from + (to - from) * (among - low) / (high - low),
        (None, Some(&(_, value))) => value,
        (_, None) => *latest,
    }
}

/// The mean time of a page (ms), but no less than what the whole window leaves for each load, the
/// one under way at its end among them: a page that froze must not vanish.
fn page_load(mean: Option<f64>, count: f64, window: f64) -> f64 {
    let pauses = count * PAGE_PAUSE.as_secs_f64() * 1e3;
    let rest = (window - pauses).max(0.0) / (count + 1.0);
    mean.filter(|_| count > 0.0).unwrap_or(window).max(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays() -> Distribution {
        let quantile = |percent: u32| (f64::from(percent) / 100.0, f64::from(percent));
        Distribution {
            unit: "ms".to_owned(),
            count: 1_000,
            quantiles: (0..=100).map(quantile).collect(),
        }
    }

    #[test]
    fn what_never_came_is_late() {
        let lost = |hits| Fraction {
            hits,
            trials: 1_000,
        };
        let delays = delays();
        let at = |share, hits| delay_at(share, Some(&delays), lost(hits));
        assert!((at(0.99, 0) - 99.0).abs() < 1e-9);
        assert!((at(0.5, 0) - 50.0).abs() < 1e-9);
        // Half of all is 5/9 of the nine tenths that came.
        assert!((at(0.5, 100) - 500.0 / 9.0).abs() < 1e-9);
        assert_eq!(at(0.99, 20), f64::INFINITY, "two in a hundred never came");
        assert_eq!(delay_at(0.5, None, lost(1_000)), f64::INFINITY);
    }

    #[test]
    fn who_gives_up_everything_is_not_prompt() {
        let run = |p99, latest| {
            let run = Measured::default().with(Measure::LiveP99, Some(p99));
            run.with_latest(latest)
        };
        let (mut late, mut useless) = (run(1_854.0, 2_000.0), run(f64::INFINITY, 300.0));
        Measured::settled(&mut [&mut late, &mut useless]);
        let p99 = |run: &Measured| run.get(Measure::LiveP99);
        assert_eq!((p99(&late), p99(&useless)), (Some(1_854.0), Some(2_000.0)));
    }

    #[test]
    fn a_page_that_froze_counts() {
        assert_eq!(page_load(Some(480.0), 20.0, 20_000.0), 480.0, "all is well");
        // Ten loads of half a second, and then nothing for ten seconds.
        let frozen = page_load(Some(500.0), 10.0, 20_000.0);
        assert!((frozen - 15_000.0 / 11.0).abs() < 1e-9, "{frozen}");
        assert_eq!(page_load(None, 0.0, 20_000.0), 20_000.0);
    }
}
