//! Live entries:
//! `udp://[IP]:PORT[,name=NAME][,latency=TIME][,target=RATE][,deadline=TIME][,reliability=P]
//! [,objects=off|auto|on][,scheduler=SCHEDULER][,priority=N]` at a client,
//! `udp://HOST:PORT[,name=NAME]` at a server.

use crate::destination::LiveName;
use crate::options::{self, LIVE_LATENCY, LIVE_PRIORITY, flow_to, live_latency, priority};
use crate::proxy::objects::AsObjects;
use crate::proxy::{Protocol, Target};
use marline_base::Rate;
use marline_base::text::{
    Keys, Pair, Problem, Takes, duration, list, listen_address, rate, suggest, unknown,
};
use marline_proto::FlowOptions;
use marline_proto::sched::{AUTO, Choice};
use marline_proto::wire::FlowKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

const IN_OPTIONS: &Keys = &[
    ("name", Takes::Value),
    ("latency", Takes::Value),
    ("target", Takes::Value),
    ("deadline", Takes::Value),
    ("reliability", Takes::Value),
    ("objects", Takes::Value),
    ("scheduler", Takes::Value),
    ("priority", Takes::Value),
];
/// What becomes of a video frame within this time is worth something.
const DEADLINE_RANGE: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(5)..=Duration::from_secs(10);
/// The reliability of entries with a deadline that name none.
const RELIABILITY: Reliability = Reliability(9_800);
/// The scheduler of frames: what cannot be on time as surely as asked is sent all the same, for a
/// video goes on.
const FRAME_SCHEDULER: &str = "hop-jump:refuse=off";
const OUT_OPTIONS: &Keys = &[("name", Takes::Value)];

/// A client's live entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveIn {
    /// By which the server knows where it goes.
    pub name: LiveName,
    /// Where local programs send to.
    pub listen: SocketAddr,
    /// How long a datagram is worth sending, and how long the receiver waits for one that is
    /// missing.
    pub latency: Duration,
    /// The rate that is needed; `None` to have it measured, or where it is [not looked
    /// after](Self::untargeted).
    pub needed_rate: Option<Rate>,
    /// Video frames go as blocks, with these terms.
    pub frames: Option<FrameTerms>,
    /// Video frames and PES packets go as objects: never, where they are recognised, or whatever
    /// comes.
    pub objects: AsObjects,
    /// `None` for that of packets flows.
    pub scheduler: Option<Choice>,
    /// Of what goes as objects; `None` for that of objects flows.
    pub objects_scheduler: Option<Choice>,
    /// 0 (served first) to 7.
    pub priority: u8,
}

/// A server's live entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOut {
    /// Of the clients' entries that end here.
    pub name: LiveName,
    /// Where datagrams are handed to.
    pub target: Target,
}

/// What is asked of each video frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTerms {
    /// From its first packet until it must be there.
    pub deadline: Duration,
    reliability: Reliability,
}

impl FrameTerms {
    /// Probability with which the deadline should be kept.
    pub fn reliability(&self) -> f64 {
        f64::from(self.reliability.0) / 1e4
    }
}

/// A probability in ten-thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reliability(u16);

/// What entries hold to that do not say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveDefaults {
    /// The latency budget.
    pub latency: Duration,
    /// The rate that is needed.
    pub needed_rate: Option<Rate>,
    /// Video frames go as blocks with this deadline.
    pub deadline: Option<Duration>,
    /// Probability with which the deadline should be kept.
    pub reliability: Option<Reliability>,
}

impl Default for LiveDefaults {
    fn default() -> Self {
        LiveDefaults {
            latency: LIVE_LATENCY,
            needed_rate: None,
            deadline: None,
            reliability: None,
        }
    }
}

impl LiveIn {
    /// An entry of datagrams that listens there.
    pub fn at(listen: SocketAddr, defaults: &LiveDefaults) -> Self {
        LiveIn {
            name: LiveName::default(),
            listen,
            latency: defaults.latency,
            needed_rate: defaults.needed_rate,
            frames: None,
            objects: AsObjects::Off,
            scheduler: None,
            objects_scheduler: None,
            priority: LIVE_PRIORITY,
        }
    }

    /// How long a datagram is worth something.
    pub fn budget(&self) -> Duration {
        self.frames.map_or(self.latency, |terms| terms.deadline)
    }

    /// How its flows are opened.
    pub fn options(&self) -> FlowOptions {
        let kind = match self.frames {
            Some(_) => FlowKind::Blocks,
            None => FlowKind::Packets,
        };
        FlowOptions {
            priority: self.priority,
            scheduler: self.scheduler,
            lifetime: self.frames.is_none().then_some(self.latency),
            ordered: self.frames.is_none(),
            ..flow_to(kind, self.name.encode())
        }
    }

    /// How flows are opened of what goes as objects.
    pub fn options_of_objects(&self) -> FlowOptions {
        FlowOptions {
            priority: self.priority,
            scheduler: self.objects_scheduler,
            lifetime: Some(self.latency),
            ..flow_to(FlowKind::Objects, self.name.encode())
        }
    }

    /// The option for which nothing has a target rate, if nothing has: schedulers of blocks and
    /// objects judge each by itself. With `objects=auto`, what is not recognised has one.
    pub fn untargeted(&self) -> Option<&'static str> {
        match (self.frames, self.objects) {
            (Some(_), _) => Some("deadline"),
            (None, AsObjects::On) => Some("objects=on"),
            (None, AsObjects::Off | AsObjects::Auto) => None,
        }
    }

    /// Reads an entry; what it does not say is as in `defaults`.
    ///
    /// # Errors
    /// What is wrong with the text, and the hint.
    pub fn parse(text: &str, defaults: &LiveDefaults) -> Result<Self, Problem> {
        let (address, options) = split(text, IN_OPTIONS)?;
        let listen = listen_at(address)?;
        let mut entry = LiveIn::at(listen, defaults);
        let (mut deadline, mut reliability) = (defaults.deadline, defaults.reliability);
        let (mut scheduler, mut targeted) = (None, false);
        for (key, value) in options {
            match key {
                "deadline" => deadline = Some(live_deadline(value)?),
                "reliability" => reliability = Some(live_reliability(value)?),
                "name" => entry.name = value.parse()?,
                "latency" => entry.latency = live_latency(value)?,
                "target" => (entry.needed_rate, targeted) = (live_target(value)?, true),
                "objects" => entry.objects = live_objects(value)?,
                "scheduler" => scheduler = Some(value),
                _ => entry.priority = priority(value)?,
            }
        }
        entry.frames = match (deadline, reliability) {
            (Some(deadline), reliability) => Some(FrameTerms {
                deadline,
                reliability: reliability.unwrap_or(RELIABILITY),
            }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(Problem::new("a reliability is for frames with a deadline")
                    .hint("add one, for example `deadline=80ms`"));
            }
        };
        if entry.objects != AsObjects::Off && entry.frames.is_some() {
            let wrong = Problem::new("`deadline` makes video frames blocks, and `objects` objects");
            return Err(wrong.hint(
                "leave one of them out; with `objects`, `latency` bounds how late a frame may be",
            ));
        }
        if let Some(option) = entry.untargeted() {
            if targeted {
                return Err(
                    Problem::new(format!("`target` does not go with `{option}`")).hint(
                        "leave one of them out: a target rate is for datagrams that go one by one",
                    ),
                );
            }
            entry.needed_rate = None;
        }
        let (kind, usual) = match entry.frames {
            Some(_) => (FlowKind::Blocks, FRAME_SCHEDULER),
            None => (FlowKind::Packets, AUTO),
        };
        let chosen = scheduler.filter(|name| *name != AUTO);
        // With `auto`, a sender may get either kind of flow, and the scheduler must serve both.
        if entry.objects != AsObjects::On {
            entry.scheduler = options::scheduler(chosen.unwrap_or(usual), kind)?;
        }
        if entry.objects != AsObjects::Off {
            let chosen = chosen.unwrap_or(AUTO);
            entry.objects_scheduler = options::scheduler(chosen, FlowKind::Objects)?;
        }
        Ok(entry)
    }
}

impl FromStr for LiveOut {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (address, options) = split(text, OUT_OPTIONS)?;
        let target = Target::parse(Protocol::Udp, address)?;
        if let crate::proxy::Host::Ip(ip) = target.host() {
            refuse_multicast(*ip)?;
        }
        let mut entry = LiveOut {
            name: LiveName::default(),
            target,
        };
        for (_, value) in options {
            entry.name = value.parse()?;
        }
        Ok(entry)
    }
}

/// Where a client's entry listens.
pub fn listen(text: &str) -> Result<SocketAddr, Problem> {
    listen_at(split(text, IN_OPTIONS)?.0)
}

fn listen_at(address: &str) -> Result<SocketAddr, Problem> {
    let listen = match address.strip_prefix(':') {
        Some(port) => {
            let any = listen_address(&format!("0.0.0.0:{port}"));
            any.map_err(|_| {
                Problem::new(format!("`{port}` is not a port")).hint(
                    "write a number up to 65535, and options after a comma: `udp://:5000,latency=150ms`",
                )
            })?
        }
        None => listen_address(address)?,
    };
    refuse_multicast(listen.ip())?;
    Ok(listen)
}

/// A deadline of video frames.
pub fn live_deadline(text: &str) -> Result<Duration, Problem> {
    let deadline = duration(text)?;
    if DEADLINE_RANGE.contains(&deadline) {
        Ok(deadline)
    } else {
        let wrong = Problem::new(format!("`{text}` is not between 5ms and 10s"));
        Err(wrong.hint(
            "write more than the way of the slowest path that is to help, for example `80ms`",
        ))
    }
}

/// A probability with which deadlines should be kept.
pub fn live_reliability(text: &str) -> Result<Reliability, Problem> {
    let p = text.parse::<f64>().ok();
    let p = p.filter(|p| (0.5..=0.9999).contains(p)).ok_or_else(|| {
        Problem::new(format!("`{text}` is not a probability from 0.5 to 0.9999"))
            .hint("write for example `0.99`: one frame in a hundred may be late")
    })?;
    // At most 9999.
    Ok(Reliability((p * 1e4).round() as u16))
}

/// Which senders' units go as objects.
fn live_objects(text: &str) -> Result<AsObjects, Problem> {
    text.parse().map_err(|()| {
        Problem::new(format!("`{text}` is not one of off, auto and on")).hint(suggest(
            text,
            &AsObjects::NAMES,
            "value",
        ))
    })
}

/// A target rate; `auto` has it measured.
///
/// # Errors
/// What is wrong with the text, and the hint.
pub fn live_target(text: &str) -> Result<Option<Rate>, Problem> {
    match text {
        "auto" => Ok(None),
        text => rate(text).map(Some),
    }
}

fn refuse_multicast(ip: IpAddr) -> Result<(), Problem> {
    if ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        let wrong = Problem::new(format!("{ip} is not the address of one host"));
        return Err(wrong.hint("multicast is not carried; relay it to a port of this host first"));
    }
    Ok(())
}

/// Parts `udp://ADDRESS,KEY=VALUE,...`: the address of an entry, and its options with their values.
fn split<'a>(text: &'a str, known: &Keys) -> Result<(&'a str, Vec<Pair<'a>>), Problem> {
    let head = text.split(',').next().unwrap_or_default().trim();
    let address = match head.split_once("://") {
        Some(("udp", address)) => address,
        Some((other, rest)) => {
            return Err(
                Problem::new(format!("`{other}` is not `udp`")).hint(format!(
                    "SRT, RIST and RTP are datagrams and pass unchanged: write `udp://{rest}`"
                )),
            );
        }
        None => {
            return Err(Problem::new("not a live entry")
                .hint("write udp://[HOST]:PORT, for example `udp://:5000`"));
        }
    };
    let options = list(text, known).map_err(|wrong| {
        // At a server, perhaps an option of the other end.
        let mut of_client = IN_OPTIONS.iter().map(|(key, _)| *key);
        match of_client.find(|key| unknown(key).message == wrong.message) {
            Some(key) => unknown(key).hint(format!("`{key}` is for the client's --live")),
            None => wrong,
        }
    });
    Ok((address, options?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LiveIn, Problem> {
        let defaults = LiveDefaults {
            needed_rate: Some(Rate::from_mbps(9)),
            ..LiveDefaults::default()
        };
        LiveIn::parse(text, &defaults)
    }

    #[test]
    fn an_entry_is_what_it_says_or_else_the_default() {
        let plain = read("udp://:5000").unwrap();
        assert_eq!(plain.listen, "0.0.0.0:5000".parse().unwrap());
        assert_eq!(plain.needed_rate, Some(Rate::from_mbps(9)));
        let options = plain.options();
        assert_eq!(options.lifetime, Some(LIVE_LATENCY));
        assert!(options.ordered && options.priority < FlowOptions::MIDDLE_PRIORITY);
        let full = read(
            "udp://[::1]:5001, name=cam-2, latency=150ms, target=10mbps, scheduler=redundant, priority=0",
        )
        .unwrap();
        let expected = LiveIn {
            name: "cam-2".parse().unwrap(),
            listen: "[::1]:5001".parse().unwrap(),
            latency: Duration::from_millis(150),
            needed_rate: Some(Rate::from_mbps(10)),
            frames: None,
            objects: AsObjects::Off,
            scheduler: Some("redundant".parse().unwrap()),
            objects_scheduler: None,
            priority: 0,
        };
        assert_eq!(full, expected);
        assert_eq!(read("udp://:1,target=auto").unwrap().needed_rate, None);
        let frames = read("udp://:1,deadline=80ms,reliability=0.99").unwrap();
        let terms = frames.frames.unwrap();
        assert_eq!(terms.deadline, Duration::from_millis(80));
        assert_eq!(terms.reliability(), 0.99);
        assert_eq!(frames.budget(), terms.deadline);
        // The one for all holds for datagrams.
        assert_eq!(
            (frames.needed_rate, frames.untargeted()),
            (None, Some("deadline"))
        );
        assert_eq!(frames.scheduler, Some(FRAME_SCHEDULER.parse().unwrap()));
        let own = read("udp://:1,scheduler=hop-leap,deadline=80ms").unwrap();
        assert_eq!(own.scheduler, Some("hop-leap".parse().unwrap()));
        assert_eq!(own.frames.unwrap().reliability(), 0.98);
        let objects = read("udp://:1,objects=on,scheduler=sos").unwrap();
        assert_eq!(objects.objects_scheduler, Some("sos".parse().unwrap()));
        assert_eq!(objects.options_of_objects().lifetime, Some(LIVE_LATENCY));
        assert_eq!(
            (objects.needed_rate, objects.untargeted()),
            (None, Some("objects=on"))
        );
        let either = read("udp://:1,objects=auto,scheduler=edpf").unwrap();
        assert_eq!(
            (either.needed_rate, either.untargeted()),
            (plain.needed_rate, None)
        );
        let edpf = Some("edpf".parse().unwrap());
        assert_eq!((either.objects, either.scheduler), (AsObjects::Auto, edpf));
        assert_eq!(either.options_of_objects().scheduler, edpf);
        assert_eq!(
            read("udp://:1,objects=auto").unwrap().objects_scheduler,
            None
        );
        let out: LiveOut = "udp://studio.example:6000,name=cam-2".parse().unwrap();
        assert_eq!(out.target.to_string(), "udp:studio.example:6000");
        assert_eq!(out.name, full.name);
    }

    #[test]
    fn wrong_entries_are_refused_with_the_reason() {
        for (text, reason) in [
            ("5000", "not a live entry"),
            ("srt://:5000", "`srt` is not `udp`"),
            ("udp://:70000", "`70000` is not a port"),
            ("udp://studio:5000", "not an address to listen on"),
            ("udp://239.0.0.1:5000", "not the address of one host"),
            ("udp://:1,latency=5", "not a duration"),
            ("udp://:1,latency=1ms", "between 10ms and 60s"),
            ("udp://:1,latency", "needs a value"),
            ("udp://:1,target=fast", "not a rate"),
            (
                "udp://:1,target=9mbps,deadline=80ms",
                "`target` does not go with `deadline`",
            ),
            (
                "udp://:1,objects=on,target=auto",
                "`target` does not go with `objects=on`",
            ),
            ("udp://:1,name=My Cam", "not usable"),
            ("udp://:1,name=a,name=b", "twice"),
            ("udp://:1,priority=9", "0 (served first) to 7"),
            ("udp://:1,scheduler=edfp", "unknown scheduler"),
            ("udp://:1,budget=5ms", "unknown option `budget`"),
            ("udp://:1,deadline=1ms", "between 5ms and 10s"),
            ("udp://:1,reliability=0.99", "frames with a deadline"),
            (
                "udp://:1,deadline=80ms,reliability=1",
                "probability from 0.5",
            ),
            ("udp://:1,objects", "needs a value"),
            ("udp://:1,objects=yes", "not one of off, auto and on"),
            ("udp://:1,objects=on,deadline=80ms", "`deadline` makes"),
            // Of objects only, and of packets only.
            (
                "udp://:1,objects=auto,scheduler=sos",
                "does not serve packets",
            ),
            (
                "udp://:1,objects=on,scheduler=hop-jump",
                "does not serve objects",
            ),
            // Of streams and packets only.
            (
                "udp://:1,deadline=80ms,scheduler=s-edpf",
                "does not serve blocks",
            ),
        ] {
            let problem = read(text).expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
        for (text, reason) in [
            ("udp://:6000", "has no host"),
            ("udp://studio", "no port"),
            ("udp://224.0.0.1:6000", "not the address of one host"),
            ("udp://h:1,latency=150ms", "unknown option `latency`"),
        ] {
            let problem = text.parse::<LiveOut>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
        let hint = "udp://h:1,latency=150ms"
            .parse::<LiveOut>()
            .unwrap_err()
            .hint;
        assert_eq!(
            hint.as_deref(),
            Some("`latency` is for the client's --live")
        );
    }
}
