use crate::{
    Capacity, Delay, LinkConfig, Loss, Outage, OutageMode, Outages, QueueLimit, RateDist, Redraw,
    ServiceTime,
};
use core::fmt::{self, Display, Write};
use core::time::Duration;
use marline_base::text::units::{show_rate, show_share, show_size, show_time};
use marline_base::{Instant, Rate};

/// The text form, which reads back as the same configuration, provided that a uniform delay is a
/// whole even number of nanoseconds wide, a constant delay is not held, and a trace's name holds no
/// comma.
impl Display for LinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Pairs { f, first: true };
        capacity(&mut out, &self.capacity)?;
        delay(&mut out, self.delay)?;
        match self.redraw {
            Redraw::EachPacket => {}
            Redraw::Every(time) => out.pair("jitter-hold", show_time(time))?,
            Redraw::AfterOutage => out.pair("jitter-hold", "outage")?,
        }
        if self.overtaking {
            out.pair("overtake", "yes")?;
        }
        loss(&mut out, self.loss)?;
        match self.queue {
            QueueLimit::Unlimited => {}
            QueueLimit::Bytes(bytes) => out.pair("queue", show_size(bytes))?,
            QueueLimit::Packets(packets) => out.pair("queue", format_args!("{packets}p"))?,
            QueueLimit::Time(time) => out.pair("queue", show_time(time))?,
        }
        if let Some(codel) = self.codel {
            let (target, interval) = (show_time(codel.target), show_time(codel.interval));
            out.pair("codel", format_args!("{target}/{interval}"))?;
        }
        outages(&mut out, &self.outages)?;
        if self.outage_mode == OutageMode::Hold {
            out.pair("outage-mode", "hold")?;
        }
        if self.duplicate != 0.0 {
            out.pair("dup", show_share(self.duplicate))?;
        }
        if let Some(mtu) = self.mtu {
            out.pair("mtu", mtu)?;
        }
        if let Some(seed) = self.seed {
            out.pair("seed", seed)?;
        }
        if out.first {
            f.write_str("rate=unlimited")?;
        }
        Ok(())
    }
}

struct Pairs<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    first: bool,
}

impl Pairs<'_, '_> {
    fn pair(&mut self, key: &str, value: impl Display) -> fmt::Result {
        if !core::mem::replace(&mut self.first, false) {
            self.f.write_char(',')?;
        }
        write!(self.f, "{key}={value}")
    }

    /// Writes a time unless it is zero.
    fn time(&mut self, key: &str, time: Duration) -> fmt::Result {
        if time.is_zero() {
            return Ok(());
        }
        self.pair(key, show_time(time))
    }
}

fn capacity(out: &mut Pairs<'_, '_>, capacity: &Capacity) -> fmt::Result {
    match capacity {
        Capacity::Unlimited => Ok(()),
        Capacity::Constant(rate) => out.pair("rate", show_rate(*rate)),
        Capacity::Bucket(bucket) => {
            out.pair("rate", show_rate(bucket.rate))?;
            out.pair("bucket", show_size(bucket.depth))
        }
        Capacity::Varying(varying) => {
            out.pair("rate", show_rate(varying.mean))?;
            out.pair("rate-sd", show_rate(varying.sd))?;
            match varying.dist {
                RateDist::Normal => {}
                RateDist::Uniform => out.pair("rate-dist", "uniform")?,
                RateDist::Gamma => out.pair("rate-dist", "gamma")?,
                RateDist::LogNormal => out.pair("rate-dist", "lognormal")?,
            }
            if varying.min != Rate::ZERO {
                out.pair("rate-min", show_rate(varying.min))?;
            }
            out.pair("rate-every", show_time(varying.every))?;
            out.time("rate-phase", varying.phase)
        }
        Capacity::Service(times) => {
            out.pair("service", show_time(times.mean()))?;
            out.time("service-sd", times.sd())?;
            match times {
                ServiceTime::Normal { .. } => Ok(()),
                ServiceTime::Gamma { .. } => out.pair("service-dist", "gamma"),
                ServiceTime::LogNormal { .. } => out.pair("service-dist", "lognormal"),
            }
        }
        Capacity::Trace(trace) => out.pair("trace", trace.name()),
        Capacity::Rates(trace) => {
            let (name, column) = (trace.name(), trace.column());
            out.pair("trace", format_args!("{name}#{column}"))?;
            if trace.scale() == 1.0 {
                return Ok(());
            }
            out.pair("trace-scale", trace.scale())
        }
    }
}

fn delay(out: &mut Pairs<'_, '_>, delay: Delay) -> fmt::Result {
    match delay {
        Delay::Constant(delay) => out.time("delay", delay),
        Delay::Normal { mean, sd, min } => {
            out.pair("delay", show_time(mean))?;
            out.pair("jitter", show_time(sd))?;
            out.time("delay-min", min)
        }
        Delay::Uniform { min, max } => {
            let half = max.saturating_sub(min) / 2;
            out.pair("delay", show_time(min + half))?;
            out.pair("jitter", show_time(half))?;
            out.pair("jitter-dist", "uniform")
        }
        Delay::Gamma { mean, sd, min } => {
            out.pair("delay", show_time(mean))?;
            out.pair("jitter", show_time(sd))?;
            out.pair("jitter-dist", "gamma")?;
            out.time("delay-min", min)
        }
    }
}

fn loss(out: &mut Pairs<'_, '_>, loss: Loss) -> fmt::Result {
    match loss {
        Loss::None => Ok(()),
        Loss::Independent(p) => out.pair("loss", show_share(p)),
        Loss::GilbertElliott {
            to_bad,
            to_good,
            loss_in_bad,
            loss_in_good,
        } => {
            let [a, b, c, d] = [to_bad, to_good, loss_in_bad, loss_in_good].map(show_share);
            out.pair("loss", format_args!("ge:{a}/{b}/{c}/{d}"))
        }
    }
}

fn outages(out: &mut Pairs<'_, '_>, outages: &Outages) -> fmt::Result {
    let shown = |outage: &Outage| {
        let start = show_time(outage.start.since(Instant::ZERO));
        alloc::format!("{start}+{}", show_time(outage.length))
    };
    match outages {
        Outages::Never => Ok(()),
        Outages::Scheduled(list) => list
            .iter()
            .try_for_each(|outage| out.pair("outage", shown(outage))),
        Outages::Periodic { first, every } => out.pair(
            "outage",
            format_args!("{}/{}", shown(first), show_time(*every)),
        ),
        Outages::Random {
            mean_lit,
            mean_dark,
        } => out.pair(
            "outage",
            format_args!("random:{}+{}", show_time(*mean_lit), show_time(*mean_dark)),
        ),
    }
}
