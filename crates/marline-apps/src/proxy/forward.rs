//! One forward:
//!
//! ```text
//! tcp|udp:LISTEN=HOST:PORT[,scheduler=SCHEDULER][,priority=N][,lifetime=TIME][,ordered][,objects]
//! ```

use crate::options::{datagrams_to, flow_to};
use crate::options::{priority, scheduler as scheduler_for};
use crate::proxy::{Protocol, Target};
use marline_base::text::{Keys, Problem, Takes, duration, list, listen_address};
use marline_proto::FlowOptions;
use marline_proto::sched::Choice;
use marline_proto::wire::FlowKind;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

const OPTIONS: &Keys = &[
    ("scheduler", Takes::Value),
    ("priority", Takes::Value),
    ("lifetime", Takes::Value),
    ("ordered", Takes::Nothing),
    ("objects", Takes::Nothing),
];

/// A local address whose connections or datagrams are carried to one target behind the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// Where this end listens.
    pub listen: SocketAddr,
    /// What the server connects to.
    pub target: Target,
    /// Scheduler of its flows; `None` for the default of their kind.
    pub scheduler: Option<Choice>,
    /// 0 (served first) to 7; `None` for the middle.
    pub priority: Option<u8>,
    /// How long a datagram is worth sending; UDP only. `None` for
    /// [`DATAGRAM_LIFETIME`](crate::options::DATAGRAM_LIFETIME).
    pub lifetime: Option<Duration>,
    /// Datagrams are delivered in order; UDP only.
    pub ordered: bool,
    /// Connections are carried as objects; TCP only.
    pub objects: bool,
}

impl Forward {
    /// The kind of flow that carries it.
    pub fn kind(&self) -> FlowKind {
        match self.target.protocol() {
            Protocol::Tcp if self.objects => FlowKind::Objects,
            Protocol::Tcp => FlowKind::Stream,
            Protocol::Udp => FlowKind::Packets,
        }
    }

    /// How its flows are opened.
    pub fn options(&self) -> FlowOptions {
        let target = self.target.encode();
        let mut options = match self.kind() {
            FlowKind::Packets => datagrams_to(target),
            kind => flow_to(kind, target),
        };
        options.scheduler = self.scheduler;
        options.ordered = self.ordered;
        options.priority = self.priority.unwrap_or(options.priority);
        options.lifetime = self.lifetime.or(options.lifetime);
        options
    }
}

impl FromStr for Forward {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let shape = || {
            Problem::new("not a forward").hint(
                "write tcp:LISTEN=HOST:PORT or udp:LISTEN=HOST:PORT, for example `tcp:127.0.0.1:8080=example.com:80`",
            )
        };
        let head = text.split(',').next().unwrap_or_default().trim();
        let (listen, target) = head.split_once('=').ok_or_else(shape)?;
        let (protocol, listen) = listen.split_once(':').ok_or_else(shape)?;
        let protocol: Protocol = protocol.parse()?;
        let mut forward = Forward {
            listen: listen_address(listen)?,
            target: Target::parse(protocol, target)?,
            scheduler: None,
            priority: None,
            lifetime: None,
            ordered: false,
            objects: false,
        };
        let mut scheduler = None;
        for (key, value) in list(text, OPTIONS)?.1 {
            match key {
                // Which may be chosen depends on the kind, which a later option may say.
                "scheduler" => scheduler = Some(value),
                "priority" => forward.priority = Some(priority(value)?),
                "lifetime" | "ordered" if protocol == Protocol::Tcp => {
                    return Err(Problem::new(format!("option `{key}` is for udp forwards"))
                        .hint("a tcp forward is a stream: reliable and in order for as long as it lives"));
                }
                "lifetime" => forward.lifetime = Some(lifetime(value)?),
                "ordered" => forward.ordered = true,
                _ if protocol == Protocol::Udp => {
                    return Err(Problem::new("option `objects` is for tcp forwards")
                        .hint("datagrams are carried one by one"));
                }
                _ => forward.objects = true,
            }
        }
        if let Some(name) = scheduler {
            forward.scheduler = scheduler_for(name, forward.kind())?;
        }
        Ok(forward)
    }
}

fn lifetime(text: &str) -> Result<Duration, Problem> {
    let lifetime = duration(text)?;
    if lifetime.is_zero() {
        return Err(Problem::new("a lifetime of zero would drop everything"));
    }
    Ok(lifetime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::DATAGRAM_LIFETIME;

    fn parse(text: &str) -> Forward {
        text.parse()
            .unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    #[test]
    fn reads_both_protocols_and_every_option() {
        let tcp = parse("tcp:127.0.0.1:8080=host:80,scheduler=min-rtt,priority=7");
        assert_eq!(tcp.kind(), FlowKind::Stream);
        assert_eq!(tcp.target.to_string(), "tcp:host:80");
        assert_eq!(tcp.scheduler, Some("min-rtt".parse().unwrap()));
        let told = parse("udp:127.0.0.1:1=h:1,scheduler=edpf:horizon=1s:revise=5ms,ordered");
        assert_eq!(
            told.scheduler,
            Some("edpf:horizon=1s:revise=5ms".parse().unwrap())
        );
        assert!(told.ordered);
        assert_eq!(tcp.priority, Some(7));
        assert_eq!(tcp.options().kind, FlowKind::Stream);
        let objects = parse("tcp:127.0.0.1:8080=host:80,scheduler=sos,objects");
        assert_eq!(objects.kind(), FlowKind::Objects);
        assert_eq!(objects.options().kind, FlowKind::Objects);
        let udp =
            parse("udp:[::1]:5353=[2001:db8::1]:53,scheduler=redundant,lifetime=200ms,ordered");
        assert_eq!(udp.kind(), FlowKind::Packets);
        assert_eq!(udp.listen, "[::1]:5353".parse().unwrap());
        assert_eq!(udp.lifetime, Some(Duration::from_millis(200)));
        assert!(udp.ordered);
        let options = udp.options();
        assert_eq!(options.target, udp.target.encode());
        assert_eq!((options.priority, options.ordered), (3, true));
        assert_eq!(options.lifetime, udp.lifetime);
        let plain = parse("udp:127.0.0.1:1=h:1").options();
        assert_eq!(plain.lifetime, Some(DATAGRAM_LIFETIME));
        assert_eq!(tcp.options().lifetime, None);
    }

    #[test]
    fn wrong_forwards_are_refused_with_the_reason() {
        for (text, reason) in [
            ("8080:host:80", "not a forward"),
            ("sctp:127.0.0.1:1=h:1", "neither `tcp` nor `udp`"),
            ("tcp:8080=host:80", "not an address to listen on"),
            ("tcp:127.0.0.1:8080=host", "no port"),
            ("tcp:127.0.0.1:8080=ho st:80", "host name"),
            ("tcp:127.0.0.1:1=h:1,priority=8", "0 (served first) to 7"),
            ("tcp:127.0.0.1:1=h:1,lifetime=1s", "for udp"),
            ("tcp:127.0.0.1:1=h:1,ordered", "for udp"),
            ("tcp:127.0.0.1:1=h:1,scheduler=sos", "does not serve stream"),
            ("tcp:127.0.0.1:1=h:1,objects=yes", "takes no value"),
            ("udp:127.0.0.1:1=h:1,objects", "for tcp"),
            ("udp:127.0.0.1:1=h:1,lifetime=0s", "zero"),
            ("udp:127.0.0.1:1=h:1,lifetime=5", "not a duration"),
            ("udp:127.0.0.1:1=h:1,ordered=yes", "takes no value"),
            ("udp:127.0.0.1:1=h:1,ordered,ordered", "twice"),
            (
                "udp:127.0.0.1:1=h:1,scheduler=edfp",
                "unknown scheduler `edfp`",
            ),
            ("udp:127.0.0.1:1=h:1,shedule=edpf", "unknown option"),
            (
                "udp:127.0.0.1:1=h:1,scheduler=edpf:horizon=1",
                "`horizon` does not take `1`",
            ),
        ] {
            let problem = text.parse::<Forward>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
    }
}
