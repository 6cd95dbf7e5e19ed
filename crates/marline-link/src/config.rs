use crate::capacity::packets_within;
use crate::{
    Capacity, Codel, Delay, Loss, OutageMode, Outages, QueueLimit, RateDist, Redraw, Replay,
    ServiceTime,
};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;
use marline_base::Rate;

/// Everything about one direction of a link. The default delivers every packet at once.
///
/// The text form (`FromStr`, `Display`) is described at [`LinkConfig::parse_with`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkConfig {
    /// How fast the queue is served.
    pub capacity: Capacity,
    /// Propagation delay.
    pub delay: Delay,
    /// When a random delay is drawn again.
    pub redraw: Redraw,
    /// Lets a packet arrive before one that left earlier. By default arrival times never decrease:
    /// a packet whose delay was drawn too short arrives together with its predecessor.
    pub overtaking: bool,
    /// Random loss.
    pub loss: Loss,
    /// How much the queue holds.
    pub queue: QueueLimit,
    /// CoDel on the queue, in addition to its limit.
    pub codel: Option<Codel>,
    /// When the link is dark.
    pub outages: Outages,
    /// What an outage does to packets.
    pub outage_mode: OutageMode,
    /// Probability that a delivered packet arrives a second time, with a delay of its own.
    pub duplicate: f64,
    /// Largest packet in bytes; larger ones are dropped. [`LinkConfig::MAX_MTU`] by default.
    pub mtu: Option<u32>,
    /// Delays and losses of a recording, in the place of [`delay`](Self::delay) and beside
    /// [`loss`](Self::loss). The text form says nothing of it.
    pub replay: Option<Replay>,
    /// Replaces the seed that is given to [`Link::new`](crate::Link::new).
    pub seed: Option<u64>,
}

/// A link's parameter that cannot be used: which one, what it was, and what would be accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    key: String,
    value: String,
    accepted: String,
}

impl ConfigError {
    pub(crate) fn new(key: &str, value: impl ToString, accepted: impl ToString) -> Self {
        Self {
            key: key.to_string(),
            value: value.to_string(),
            accepted: accepted.to_string(),
        }
    }

    /// The parameter's name in the text form.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What was given; empty when the rest says all.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What is wrong with it, and what would be accepted.
    pub fn accepted(&self) -> &str {
        &self.accepted
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            value,
            accepted,
        } = self;
        if value.is_empty() {
            write!(f, "{key}: {accepted}")
        } else {
            write!(f, "{key}={value}: {accepted}")
        }
    }
}

impl core::error::Error for ConfigError {}

/// No time in a configuration is longer, so that sums of them stay far from the end of time.
const LONGEST: Duration = Duration::from_secs(86_400);
const LEAST_RATE: Rate = Rate::from_kbps(1);
const LEAST_TURN: Duration = Duration::from_millis(1);
const LEAST_SLOT: Duration = Duration::from_micros(100);

impl LinkConfig {
    /// The largest packet of the Internet Protocol; no link carries a larger one.
    pub const MAX_MTU: u32 = 65_535;

    /// Checks every parameter and answers the queue's limits in bytes and packets.
    pub(crate) fn check(&self) -> Result<(u64, u32), ConfigError> {
        self.check_capacity()?;
        self.check_delay()?;
        self.check_loss()?;
        self.check_outages()?;
        if let Some(codel) = self.codel {
            positive("codel", codel.target)?;
            positive("codel", codel.interval)?;
        }
        probability("dup", self.duplicate)?;
        if let Some(mtu) = self.mtu
            && !(1..=Self::MAX_MTU).contains(&mtu)
        {
            return Err(ConfigError::new(
                "mtu",
                mtu,
                "must be from 1 to 65535 bytes",
            ));
        }
        self.queue_limits()
    }

    fn check_capacity(&self) -> Result<(), ConfigError> {
        match &self.capacity {
            Capacity::Unlimited | Capacity::Trace(_) | Capacity::Rates(_) => Ok(()),
            Capacity::Constant(rate) => at_least("rate", *rate, LEAST_RATE),
            Capacity::Bucket(bucket) if bucket.depth == 0 => {
                let mend = "must be more than zero, or be left out";
                Err(ConfigError::new("bucket", 0, mend))
            }
            Capacity::Bucket(bucket) => at_least("rate", bucket.rate, LEAST_RATE),
            Capacity::Varying(varying) => {
                at_least("rate", varying.mean, LEAST_RATE)?;
                longest("rate-every", varying.every)?;
                at_least_time("rate-every", varying.every, LEAST_SLOT)?;
                if varying.dist == RateDist::Gamma && varying.sd == Rate::ZERO {
                    let mend = "must be more than 0 with rate-dist=gamma";
                    return Err(ConfigError::new("rate-sd", "0", mend));
                }
                if varying.phase >= varying.every {
                    return Err(ConfigError::new(
                        "rate-phase",
                        format!("{:?}", varying.phase),
                        format!("must be less than rate-every, {:?}", varying.every),
                    ));
                }
                Ok(())
            }
            Capacity::Service(times) => {
                positive("service", times.mean())?;
                longest("service-sd", times.sd())?;
                match times {
                    ServiceTime::Gamma { sd, .. } => positive("service-sd", *sd),
                    ServiceTime::Normal { .. } | ServiceTime::LogNormal { .. } => Ok(()),
                }
            }
        }
    }

    fn check_delay(&self) -> Result<(), ConfigError> {
        if let Redraw::Every(time) = self.redraw {
            positive("jitter-hold", time)?;
        }
        match self.delay {
            Delay::Constant(delay) => longest("delay", delay),
            Delay::Normal { mean, sd, min } => {
                longest("delay", mean)?;
                longest("jitter", sd)?;
                longest("delay-min", min)
            }
            Delay::Uniform { min, max } => {
                longest("delay", max)?;
                if min > max {
                    return Err(ConfigError::new(
                        "delay",
                        format!("{min:?} to {max:?}"),
                        "the lower bound must not exceed the upper one",
                    ));
                }
                Ok(())
            }
            Delay::Gamma { mean, sd, min } => {
                positive("delay", mean)?;
                longest("jitter", sd)?;
                positive("jitter", sd)?;
                if min >= mean {
                    return Err(ConfigError::new(
                        "delay-min",
                        format!("{min:?}"),
                        format!("must be less than delay, {mean:?}, with gamma jitter"),
                    ));
                }
                Ok(())
            }
        }
    }

    fn check_loss(&self) -> Result<(), ConfigError> {
        match self.loss {
            Loss::None => Ok(()),
            Loss::Independent(p) => probability("loss", p),
            Loss::GilbertElliott {
                to_bad,
                to_good,
                loss_in_bad,
                loss_in_good,
            } => [to_bad, to_good, loss_in_bad, loss_in_good]
                .into_iter()
                .try_for_each(|p| probability("loss", p)),
        }
    }

    fn check_outages(&self) -> Result<(), ConfigError> {
        match &self.outages {
            Outages::Never => Ok(()),
            Outages::Scheduled(list) => list
                .iter()
                .try_for_each(|outage| positive("outage", outage.length)),
            Outages::Periodic { first, every } => {
                positive("outage", first.length)?;
                longest("outage", *every)?;
                if *every <= first.length {
                    return Err(ConfigError::new(
                        "outage",
                        format!("{:?} every {every:?}", first.length),
                        "the period must exceed the outage, or the link is dark for ever",
                    ));
                }
                at_least_time("outage", *every, LEAST_TURN)
            }
            Outages::Random {
                mean_lit,
                mean_dark,
            } => [*mean_lit, *mean_dark].into_iter().try_for_each(|mean| {
                longest("outage", mean)?;
                at_least_time("outage", mean, LEAST_TURN)
            }),
        }
    }

    fn queue_limits(&self) -> Result<(u64, u32), ConfigError> {
        let accepted = "must be more than zero, or queue=unlimited";
        match self.queue {
            QueueLimit::Unlimited => Ok((u64::MAX, u32::MAX)),
            QueueLimit::Bytes(0) | QueueLimit::Packets(0) => {
                Err(ConfigError::new("queue", 0, accepted))
            }
            QueueLimit::Bytes(bytes) => Ok((bytes, u32::MAX)),
            QueueLimit::Packets(packets) => Ok((u64::MAX, packets)),
            QueueLimit::Time(time) => {
                positive("queue", time)?;
                match (&self.capacity, self.capacity.mean_rate()) {
                    (_, Some(rate)) => Ok((rate.bytes_in(time).max(1), u32::MAX)),
                    (Capacity::Service(times), None) => {
                        let packets = libm::ceil(packets_within(times, time));
                        Ok((u64::MAX, packets as u32))
                    }
                    (_, None) => Err(ConfigError::new(
                        "queue",
                        format!("{time:?}"),
                        "a queue in time needs a rate; set rate, or give the queue in bytes \
                         (64kB) or packets (100p)",
                    )),
                }
            }
        }
    }
}

fn probability(key: &str, p: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&p) {
        return Ok(());
    }
    Err(ConfigError::new(key, p, "must be from 0 to 1 (0% to 100%)"))
}

fn positive(key: &str, time: Duration) -> Result<(), ConfigError> {
    if time.is_zero() {
        return Err(ConfigError::new(key, "0", "must be more than zero"));
    }
    longest(key, time)
}

fn longest(key: &str, time: Duration) -> Result<(), ConfigError> {
    if time <= LONGEST {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!("{time:?}"),
        "must be at most a day",
    ))
}

fn at_least_time(key: &str, time: Duration, least: Duration) -> Result<(), ConfigError> {
    if time >= least {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        format!("{time:?}"),
        format!("must be at least {least:?}"),
    ))
}

fn at_least(key: &str, rate: Rate, least: Rate) -> Result<(), ConfigError> {
    if rate >= least {
        return Ok(());
    }
    Err(ConfigError::new(
        key,
        rate,
        format!("must be at least {least}; for a link that carries nothing use outage"),
    ))
}
