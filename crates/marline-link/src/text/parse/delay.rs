use super::{Pairs, units};
use crate::{ConfigError, Delay, Redraw};
use core::time::Duration;

pub(super) fn delay(pairs: &mut Pairs<'_>) -> Result<Delay, ConfigError> {
    let mean = pairs.time("delay")?.unwrap_or(Duration::ZERO);
    let Some(sd) = pairs.time("jitter")? else {
        pairs.refuse(&["jitter-dist", "delay-min"], "needs jitter")?;
        return Ok(Delay::Constant(mean));
    };
    let min = pairs.time("delay-min")?;
    match pairs.take("jitter-dist").unwrap_or("normal") {
        "normal" => Ok(Delay::Normal {
            mean,
            sd,
            min: min.unwrap_or(Duration::ZERO),
        }),
        "gamma" => Ok(Delay::Gamma {
            mean,
            sd,
            min: min.unwrap_or(Duration::ZERO),
        }),
        "uniform" => Ok(Delay::Uniform {
            min: mean.saturating_sub(sd).max(min.unwrap_or(Duration::ZERO)),
            max: mean.saturating_add(sd),
        }),
        other => Err(ConfigError::new(
            "jitter-dist",
            other,
            "give normal, uniform or gamma",
        )),
    }
}

/// Before [`delay`], which takes the jitter that this is about.
pub(super) fn redraw(pairs: &mut Pairs<'_>) -> Result<Redraw, ConfigError> {
    if !pairs.has("jitter") {
        pairs.refuse(&["jitter-hold"], "needs jitter")?;
    }
    let read = |value: &str| match value {
        "outage" => Some(Redraw::AfterOutage),
        _ => units::time(value).map(Redraw::Every),
    };
    let accepted = "give a time such as 200ms, or outage for a new delay after each outage";
    Ok(pairs
        .take_as("jitter-hold", read, accepted)?
        .unwrap_or_default())
}
