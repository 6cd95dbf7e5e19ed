//! Traffic of others on a link: it takes its share of the queue and tells no session.

mod raw;
mod tcp;

use marline_base::{Instant, Rng};

use crate::engine::{End, Engine};
use crate::measure::Meter;
use crate::scenario::{CrossPlan, CrossSource};
use crate::tcp::TcpConfigError;
use raw::{Arrivals, Raw};
use tcp::Connection;

/// A source of cross traffic on one link.
#[derive(Debug)]
pub(crate) struct Source {
    link: usize,
    from: End,
    kind: Kind,
    pub(crate) meter: Meter,
}

#[derive(Debug)]
enum Kind {
    Raw(Raw),
    Tcp(Box<Connection>),
}

impl Source {
    /// # Errors
    /// Parameters that a TCP connection cannot have.
    pub(crate) fn new(plan: &CrossPlan, rng: Rng, meter: Meter) -> Result<Self, TcpConfigError> {
        let stops = plan.stops.unwrap_or(Instant::FAR_FUTURE);
        let raw = |arrivals, rate, size| {
            let times = (plan.starts, stops);
            Kind::Raw(Raw::new((arrivals, rate, size), times, rng.clone()))
        };
        let kind = match plan.source {
            CrossSource::Constant { rate, size } => raw(Arrivals::Constant, rate, size),
            CrossSource::Poisson { rate, size } => raw(Arrivals::Poisson, rate, size),
            CrossSource::OnOff {
                rate,
                size,
                on,
                off,
            } => raw(Arrivals::OnOff { on, off }, rate, size),
            CrossSource::Tcp {
                ref congestion,
                bytes,
            } => {
                let seed = rng.clone().next_u64();
                let connection = Connection::new(congestion, bytes, (plan.starts, stops), seed)?;
                Kind::Tcp(Box::new(connection))
            }
        };
        Ok(Self {
            link: plan.link,
            from: plan.from,
            kind,
            meter,
        })
    }

    /// When it acts next; `None` when it has stopped.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        match &self.kind {
            Kind::Raw(raw) => raw.next_at(),
            Kind::Tcp(tcp) => tcp.next_at(),
        }
    }

    /// Does what is due.
    pub(crate) fn act(&mut self, engine: &mut Engine) {
        let (now, meter) = (engine.now(), &mut self.meter);
        match &mut self.kind {
            Kind::Raw(raw) => raw.send(now, engine.link(self.link, self.from), meter),
            Kind::Tcp(tcp) => tcp.act(engine, (self.link, self.from), meter),
        }
    }

    /// A link went dark: what waited in its queue is lost.
    pub(crate) fn on_dark(&mut self, now: Instant, link: usize, up: bool, down: bool) {
        if let Kind::Tcp(tcp) = &mut self.kind
            && link == self.link
        {
            let (forth, back) = match self.from {
                End::Client => (up, down),
                End::Server => (down, up),
            };
            tcp.lose(now, forth, back);
        }
    }
}
