use super::{Pairs, units};
use crate::{Capacity, ConfigError, ServiceTime, Trace, VaryingRate};
use core::time::Duration;
use marline_base::Rate;

pub(super) fn capacity(
    pairs: &mut Pairs<'_>,
    load: impl FnOnce(&str) -> Result<Trace, ConfigError>,
) -> Result<Capacity, ConfigError> {
    let one = "give only one of rate, trace and service";
    let capacity = if let Some(path) = pairs.take("trace") {
        pairs.refuse(&["rate", "service"], one)?;
        Capacity::Trace(load(path)?)
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
        &["rate-sd", "rate-min", "rate-every", "rate-phase"],
        "needs rate and rate-every (and no trace or service)",
    )?;
    pairs.refuse(&["service-sd", "service-dist"], "needs service")?;
    Ok(capacity)
}

fn rate_process(pairs: &mut Pairs<'_>, mean: Rate) -> Result<Capacity, ConfigError> {
    let Some(every) = pairs.time("rate-every")? else {
        return Ok(Capacity::Constant(mean));
    };
    let mut rate = |key| pairs.take_as(key, units::rate, units::A_RATE);
    let sd = rate("rate-sd")?.unwrap_or(Rate::ZERO);
    let min = rate("rate-min")?.unwrap_or(Rate::ZERO);
    Ok(Capacity::Varying(VaryingRate {
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
