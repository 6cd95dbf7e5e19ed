use super::{Pairs, units};
use crate::{Codel, ConfigError, Loss, Outage, OutageMode, Outages, QueueLimit};
use alloc::vec::Vec;
use marline_base::Instant;

pub(super) fn loss(pairs: &mut Pairs<'_>) -> Result<Loss, ConfigError> {
    let Some(value) = pairs.take("loss") else {
        pairs.refuse(&["burst"], "needs loss")?;
        return Ok(Loss::None);
    };
    if let Some(states) = value.strip_prefix("ge:") {
        pairs.refuse(&["burst"], "cannot be combined with loss=ge:")?;
        let shares: Option<Vec<f64>> = states.split('/').map(units::share).collect();
        return match shares.as_deref() {
            Some(&[to_bad, to_good, loss_in_bad, loss_in_good]) => Ok(Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            }),
            _ => Err(ConfigError::new(
                "loss",
                value,
                "give four shares: ge:TO_BAD/TO_GOOD/LOSS_IN_BAD/LOSS_IN_GOOD",
            )),
        };
    }
    let rate =
        units::share(value).ok_or_else(|| ConfigError::new("loss", value, units::A_SHARE))?;
    let burst: Option<f64> = pairs.take_as(
        "burst",
        |value| {
            value
                .parse()
                .ok()
                .filter(|burst: &f64| *burst >= 1.0 && burst.is_finite())
        },
        "give the mean length in packets, at least 1",
    )?;
    match burst {
        Some(burst) => {
            // Beyond this share the good state would have to last less than a packet.
            if rate > burst / (burst + 1.0) {
                return Err(ConfigError::new(
                    "loss",
                    value,
                    "too much for bursts of this length; at most burst / (burst + 1)",
                ));
            }
            Ok(Loss::in_bursts(rate, burst))
        }
        None if rate == 0.0 => Ok(Loss::None),
        None => Ok(Loss::Independent(rate)),
    }
}

pub(super) fn queue(pairs: &mut Pairs<'_>) -> Result<QueueLimit, ConfigError> {
    let read = |value: &str| {
        if value == "unlimited" {
            Some(QueueLimit::Unlimited)
        } else if let Some(packets) = value.strip_suffix('p') {
            packets.parse().ok().map(QueueLimit::Packets)
        } else {
            units::size(value)
                .map(QueueLimit::Bytes)
                .or_else(|| units::time(value).map(QueueLimit::Time))
        }
    };
    let accepted =
        "give a time at the mean rate (200ms), packets (100p), bytes (64kB) or unlimited";
    Ok(pairs.take_as("queue", read, accepted)?.unwrap_or_default())
}

pub(super) fn codel(pairs: &mut Pairs<'_>) -> Result<Option<Codel>, ConfigError> {
    let read = |value: &str| match value {
        "" | "yes" => Some(Some(Codel::default())),
        "no" => Some(None),
        _ => {
            let (target, interval) = value.split_once('/')?;
            Some(Some(Codel {
                target: units::time(target)?,
                interval: units::time(interval)?,
            }))
        }
    };
    let accepted = "give yes, no, or TARGET/INTERVAL such as 5ms/100ms";
    Ok(pairs.take_as("codel", read, accepted)?.flatten())
}

pub(super) fn outages(pairs: &mut Pairs<'_>) -> Result<Outages, ConfigError> {
    let accepted = "give START+LENGTH (10s+2s), START+LENGTH/PERIOD (10s+2s/60s) or \
                    random:LIT+DARK (random:30s+2s)";
    let mut list = Vec::new();
    let mut only: Option<Outages> = None;
    while let Some(value) = pairs.take("outage") {
        let read = read_outage(value).ok_or_else(|| ConfigError::new("outage", value, accepted))?;
        if only.is_some() || (!list.is_empty() && !matches!(read, Outages::Scheduled(_))) {
            return Err(ConfigError::new(
                "outage",
                value,
                "only outages of the form START+LENGTH can be repeated",
            ));
        }
        match read {
            Outages::Scheduled(more) => list.extend(more),
            other => only = Some(other),
        }
    }
    Ok(match only {
        Some(only) => only,
        None if list.is_empty() => Outages::Never,
        None => Outages::Scheduled(list),
    })
}

fn read_outage(value: &str) -> Option<Outages> {
    if let Some(means) = value.strip_prefix("random:") {
        let (lit, dark) = means.split_once('+')?;
        return Some(Outages::Random {
            mean_lit: units::time(lit)?,
            mean_dark: units::time(dark)?,
        });
    }
    let (start, rest) = value.split_once('+')?;
    let (length, every) = match rest.split_once('/') {
        Some((length, every)) => (length, Some(every)),
        None => (rest, None),
    };
    let outage = Outage {
        start: Instant::ZERO + units::time(start)?,
        length: units::time(length)?,
    };
    Some(match every {
        Some(every) => Outages::Periodic {
            first: outage,
            every: units::time(every)?,
        },
        None => Outages::Scheduled([outage].into()),
    })
}

pub(super) fn outage_mode(pairs: &mut Pairs<'_>) -> Result<OutageMode, ConfigError> {
    let read = |value: &str| match value {
        "drop" => Some(OutageMode::Drop),
        "hold" => Some(OutageMode::Hold),
        _ => None,
    };
    let mode = pairs.take_as("outage-mode", read, "give drop or hold")?;
    Ok(mode.unwrap_or_default())
}
