//! Sessions: their configuration and paths. A scenario with one session writes its keys at the
//! top, without `[[sessions]]`.

use marline_base::text::Problem;
use marline_base::{Duration, Instant};
use marline_proto::{Config, MAX_PATHS};

use super::around::Around;
use super::links::is_name;
use super::mistake::nearest;
use super::plan::{PathPlan, SessionPlan};
use super::reader::Reader;
use super::{schedulers, workloads};

/// What a scenario's only session is called.
const ONLY: &str = "main";
/// Bytes of repair symbols for each byte of source symbols, as `--repair-budget` takes them.
const MOST_REPAIRS: f64 = 4.0;

/// Reads the sessions; the caller finishes `top`.
pub(super) fn read(top: &Reader<'_>, around: &Around<'_>) -> Vec<SessionPlan> {
    let shared = config(top, &Config::default());
    let Some(list) = top.tables("sessions") else {
        return session(top, around, ONLY.into(), shared, None)
            .into_iter()
            .collect();
    };
    for key in ["paths", "workloads"] {
        if let Some(node) = top.get(key) {
            let mend = format!("with [[sessions]], write it as [[sessions.{key}]]");
            top.wrong(key, node, "belongs to no session", mend);
        }
    }
    if list.is_empty() {
        top.missing("sessions", "at least one [[sessions]], or none of the key");
    }
    let mut sessions: Vec<SessionPlan> = Vec::new();
    for (i, one) in list.iter().enumerate() {
        let name = one
            .text("name")
            .unwrap_or_else(|| format!("session-{}", i + 1));
        if !is_name(&name) {
            let mend = "use small letters, digits and hyphens";
            one.wrong_at(
                &one.place,
                &one.key("name"),
                format!("`{name}` is no name"),
                mend,
            );
        }
        if sessions.iter().any(|other| other.name == name) {
            let mend = "give each session a name of its own";
            one.wrong_at(
                &one.place,
                &one.key("name"),
                format!("`{name}` comes twice"),
                mend,
            );
        }
        let config = config(one, &shared);
        let scheduler = schedulers::read(one);
        sessions.extend(session(one, around, name, config, scheduler));
        one.finish();
    }
    sessions
}

fn session(
    reader: &Reader<'_>,
    around: &Around<'_>,
    name: String,
    config: Config,
    scheduler: Option<String>,
) -> Option<SessionPlan> {
    let paths = paths(reader, around);
    let workloads = workloads::read(reader, around);
    Some(SessionPlan {
        name,
        config,
        paths: paths?,
        workloads: workloads?,
        scheduler,
    })
}

fn config(reader: &Reader<'_>, default: &Config) -> Config {
    let mut config = default.clone();
    if let Some(text) = reader.text("congestion")
        && let Some(node) = reader.get("congestion")
    {
        match text.parse() {
            Ok(congestion) => config.congestion = congestion,
            Err(Problem { message, hint }) => {
                reader.wrong("congestion", node, message, hint.unwrap_or_default());
            }
        }
    }
    let Some(settings) = reader.inner("settings") else {
        return config;
    };
    let [ms, day] = [Duration::from_millis, |_| Duration::from_secs(86_400)];
    let times = [
        ("idle-timeout", &mut config.idle_timeout, ms(100)..=day(0)),
        ("keep-alive", &mut config.keep_alive, ms(10)..=day(0)),
        ("dead-after", &mut config.dead_after, ms(10)..=day(0)),
        ("ack-delay", &mut config.max_ack_delay, ms(0)..=ms(1_000)),
    ];
    for (key, value, range) in times {
        *value = settings.time_in(key, range).unwrap_or(*value);
    }
    let sizes = [
        ("flow-window", &mut config.flow_window, 1 << 32),
        ("session-window", &mut config.session_window, 1 << 36),
        ("send-buffer", &mut config.send_buffer, 1 << 32),
    ];
    for (key, value, most) in sizes {
        *value = settings.bytes(key, 1_024..=most).unwrap_or(*value);
    }
    config.repair_budget = settings
        .share("repair-budget", 0.0..=MOST_REPAIRS)
        .or(config.repair_budget);
    config.max_flows = settings
        .whole("max-flows", 1..=1 << 20)
        .unwrap_or(config.max_flows);
    config.begin_blind = settings.flag("begin-blind").unwrap_or(config.begin_blind);
    settings.finish();
    config
}

fn paths(reader: &Reader<'_>, around: &Around<'_>) -> Option<Vec<PathPlan>> {
    if reader.get("paths").is_none() {
        let plain = |link| PathPlan {
            link,
            cost: 0,
            standby: false,
            joins: Instant::ZERO,
            leaves: None,
        };
        return Some((0..around.links.len()).map(plain).collect());
    }
    let list = reader.tables("paths")?;
    if list.is_empty() || list.len() > MAX_PATHS {
        let message = format!("{} paths", list.len());
        let mend = format!("write 1 to {MAX_PATHS}, or none of the key for one path a link");
        reader.wrong("paths", reader.get("paths")?, message, mend);
    }
    list.iter().map(|one| path(one, around)).collect()
}

fn path(reader: &Reader<'_>, around: &Around<'_>) -> Option<PathPlan> {
    let link = link(reader, around);
    let cost = reader.whole("cost", 0..=u64::from(u32::MAX)).unwrap_or(0);
    let standby = reader.flag("standby").unwrap_or(false);
    let joins = reader.moment("joins").unwrap_or(Instant::ZERO);
    let leaves = reader.moment("leaves");
    if let Some(node) = reader.get("leaves")
        && leaves.is_some_and(|leaves| leaves <= joins)
    {
        let mend = "give a time after `joins`";
        reader.wrong("leaves", node, "the path leaves before it has joined", mend);
    }
    if let Some(node) = reader.get("joins")
        && around.never(joins)
    {
        let mend = "give a time before `duration`";
        reader.wrong("joins", node, "the run is over by then", mend);
    }
    reader.finish();
    Some(PathPlan {
        link: link?,
        cost: cost as u32,
        standby,
        joins,
        leaves,
    })
}

/// The key `link`: the index of a link of the scenario.
pub(super) fn link(reader: &Reader<'_>, around: &Around<'_>) -> Option<usize> {
    reader.needed("link", "\"a\"");
    let name = reader.text("link")?;
    let index = around.links.iter().position(|link| link.plan.name == name);
    if index.is_none() {
        let known: Vec<&str> = around.links.iter().map(|l| l.plan.name.as_str()).collect();
        let mend = nearest(&name, &known, "link");
        reader.wrong(
            "link",
            reader.get("link")?,
            format!("no link is called `{name}`"),
            mend,
        );
    }
    index
}
