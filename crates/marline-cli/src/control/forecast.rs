//! What is expected of paths, and how often that was right: part of a [`Status`](super::Status).

use marline_proto::path::forecast::{Calibration, Decile};
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
