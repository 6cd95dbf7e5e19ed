use super::{Pairs, units};
use crate::{Bucket, Capacity, ConfigError, RateDist, RateTrace, ServiceTime, Trace, VaryingRate};
use alloc::string::String;
use core::time::Duration;
use marline_base::Rate;

const A_SIZE: &str = "give a size such as 32kB (B, kB, MB, KiB, MiB)";

pub(super) fn capacity(
    pairs: &mut Pairs<'_>,
    read_file: impl FnOnce(&str) -> Result<String, String>,
) -> Result<Capacity, ConfigError> {
    let one = "give only one of rate, trace and service";
    let capacity = if let Some(value) = pairs.take("trace") {
        pairs.refuse(&["rate", "service"], one)?;
        recorded(pairs, value, read_file)?
    } else if let Some(mean) = pairs.time("service")? {
        pairs.refuse(&["rate"], one)?;
        Capacity::Service(service(pairs, mean)?)
    } else {
        match pairs.take("rate") {
            None | Some("unlimited") => Capacity::Unlimited,
            Some(value) => {
                let rate = units::rate(value)
                    .ok_or_else(|| ConfigError::new("rate", value, units::A_RATE))?;
                rate_process(pairs, rate)?
            }
        }
    };
    pairs.refuse(
        &[
            "rate-sd",
            "rate-dist",
            "rate-min",
            "rate-every",
            "rate-phase",
        ],
        "needs rate and rate-every (and no trace or service)",
    )?;
    pairs.refuse(&["bucket"], "needs a constant rate")?;
    pairs.refuse(&["service-sd", "service-dist"], "needs service")?;
    pairs.refuse(
        &["trace-scale"],
        "needs a trace of rates, such as trace=link.csv#down",
    )?;
    Ok(capacity)
}

/// A table of rates if the file's name ends with `.csv`, otherwise delivery opportunities.
fn recorded(
    pairs: &mut Pairs<'_>,
    value: &str,
    read_file: impl FnOnce(&str) -> Result<String, String>,
) -> Result<Capacity, ConfigError> {
    let is_table = |path: &str| path.to_ascii_lowercase().ends_with(".csv");
    let (path, column) = match value.rsplit_once('#') {
        Some((path, column)) if is_table(path) => (path, Some(column)),
        _ => (value, None),
    };
    let read = || read_file(path).map_err(|why| ConfigError::new("trace", value, why));
    let refused = |error| ConfigError::new("trace", "", error);
    if !is_table(path) {
        let trace = Trace::parse(path, &read()?).map_err(refused)?;
        return Ok(Capacity::Trace(trace));
    }
    let scale = pairs.take_as(
        "trace-scale",
        |value| {
            let factor: f64 = value.parse().ok()?;
            (factor.is_finite() && factor > 0.0).then_some(factor)
        },
        "give a factor above 0, such as 0.1",
    )?;
    let trace = RateTrace::parse(path, column, scale.unwrap_or(1.0), &read()?).map_err(refused)?;
    Ok(Capacity::Rates(trace))
}

fn rate_process(pairs: &mut Pairs<'_>, mean: Rate) -> Result<Capacity, ConfigError> {
    let Some(every) = pairs.time("rate-every")? else {
        let depth = pairs.take_as("bucket", units::size, A_SIZE)?;
        return Ok(match depth {
            Some(depth) => Capacity::Bucket(Bucket { rate: mean, depth }),
            None => Capacity::Constant(mean),
        });
    };
    let mut rate = |key| pairs.take_as(key, units::rate, units::A_RATE);
    let sd = rate("rate-sd")?.unwrap_or(Rate::ZERO);
    let min = rate("rate-min")?.unwrap_or(Rate::ZERO);
    let family = |value: &str| match value {
        "normal" => Some(RateDist::Normal),
        "uniform" => Some(RateDist::Uniform),
        "gamma" => Some(RateDist::Gamma),
        "lognormal" => Some(RateDist::LogNormal),
        _ => None,
    };
    let dist = pairs.take_as(
        "rate-dist",
        family,
        "give normal, uniform, gamma or lognormal",
    )?;
    Ok(Capacity::Varying(VaryingRate {
        dist: dist.unwrap_or_default(),
        mean,
        sd,
        min,
        every,
        phase: pairs.time("rate-phase")?.unwrap_or(Duration::ZERO),
    }))
}

fn service(pairs: &mut Pairs<'_>, mean: Duration) -> Result<ServiceTime, ConfigError> {
    let sd = pairs.time("service-sd")?.unwrap_or(Duration::ZERO);
    let read = |value: &str| match value {
        "normal" => Some(ServiceTime::Normal { mean, sd }),
        "gamma" => Some(ServiceTime::Gamma { mean, sd }),
        "lognormal" => Some(ServiceTime::LogNormal { mean, sd }),
        _ => None,
    };
    let times = pairs.take_as("service-dist", read, "give normal, gamma or lognormal")?;
    Ok(times.unwrap_or(ServiceTime::Normal { mean, sd }))
}
