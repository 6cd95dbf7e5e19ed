//! What is expected of paths, and how often that was right: part of a [`Status`](super::Status).

use marline_proto::law;
use marline_proto::sched::capacity::{Calibration, Decile};
use serde::{Deserialize, Serialize};

/// What is expected of a path's capacity, by a flow of this end whose scheduler forecasts.
/// `docs/BLOCKS.md` explains it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ForecastStatus {
    /// The flow that knows it.
    pub flow: u64,
    /// Mean, bits per second.
    pub mean_bps: u64,
    /// Standard deviation, bits per second.
    pub sd_bps: u64,
    /// How it comes about: `bank`, or of the paper's filter `slow-start`, `normal`, `down-step`,
    /// `up-step` or `outage`.
    pub mode: String,
    /// Probability that the path falls into an outage, 0 to 1.
    pub outage: f64,
    /// Promises that all packets of a block on this path are on time, unless lost, and what became
    /// of them.
    pub calibration: CalibrationStatus,
}

/// Promises against what became of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CalibrationStatus {
    /// Promises of which it is known what became of them.
    pub promises: u64,
    /// Mean probability that was promised; `None` without promises.
    pub promised: Option<f64>,
    /// Share of the promises that were kept; `None` without promises.
    pub kept: Option<f64>,
    /// The same by the tenth in which the promised probability lay, those without promises left
    /// out.
    pub deciles: Vec<DecileStatus>,
}

impl CalibrationStatus {
    pub(super) fn of(calibration: &Calibration) -> Self {
        let total = calibration.total();
        let rates = total.rates();
        let decile = |(tenth, decile): (usize, &Decile)| {
            let (promised, kept) = decile.rates()?;
            Some(DecileStatus {
                from: tenth as f64 / 10.0,
                promises: decile.promises,
                promised,
                kept,
            })
        };
        let deciles = calibration.deciles().iter().enumerate();
        CalibrationStatus {
            promises: total.promises,
            promised: rates.map(|(promised, _)| promised),
            kept: rates.map(|(_, kept)| kept),
            deciles: deciles.filter_map(decile).collect(),
        }
    }
}

/// What came of a path's law: when packets were to arrive, and which never were (docs/LAW.md).
/// About forty packets a second are followed up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LawStatus {
    /// Packets whose fate is known.
    pub packets: u64,
    /// Share of those that arrived that came in each tenth of their law, earliest first: 0.1 each
    /// if it is right; none before any arrived.
    pub deciles: Vec<f64>,
    /// How many of the packets were lost.
    pub lost: u64,
    /// How many of them were to be lost.
    pub expected_lost: f64,
}

impl LawStatus {
    pub(super) fn of(calibration: &law::Calibration) -> Option<Self> {
        let packets = calibration.packets();
        let arrived = packets - calibration.lost;
        let shares = calibration.deciles.iter();
        let shares = shares.map(|count| *count as f64 / arrived.max(1) as f64);
        (packets > 0).then(|| LawStatus {
            packets,
            deciles: if arrived > 0 {
                shares.collect()
            } else {
                Vec::new()
            },
            lost: calibration.lost,
            expected_lost: calibration.expected_lost,
        })
    }
}

/// Promises whose probability lay in one tenth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecileStatus {
    /// Lower end of the tenth.
    pub from: f64,
    /// How many.
    pub promises: u64,
    /// Their mean probability.
    pub promised: f64,
    /// Share of them that were kept.
    pub kept: f64,
}
