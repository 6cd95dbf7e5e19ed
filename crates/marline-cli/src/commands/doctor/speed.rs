//! `--speed`: what each path carries, measured over a session of its own.

use super::board::Board;
use super::checks::key;
use super::finding::{Finding, Speed, SpeedOf, Verdict};
use super::limits::PATIENCE;
use super::running::{Running, running};
use crate::budget::{Ledger, Month, account, carried};
use crate::commands::signals::Signals;
use crate::config::ClientConfig;
use crate::control::status::Role;
use crate::control::words;
use marline::endpoint::client::assigned;
use marline::endpoint::{Client, ClientOptions, Session};
use marline::identity::Identity;
use marline::{Bind, Path};
use marline_apps::destination::Way;
use marline_apps::measure::{self, Measured, NotMeasured, Seen};
use marline_base::text;
use std::io::{self, Write as _};
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const NAME: &str = "speed";
/// What a path carries at most where nobody says otherwise (bytes): 5 s each way at 200 Mb/s.
const USUAL: u64 = 250_000_000;
/// How long is waited for the end of the session (one round trip), as in `checks/key.rs`.
const END: Duration = Duration::from_secs(1);
/// A path is left alone for this long after its first packets, so that its round trip is its own.
const SETTLES: Duration = Duration::from_millis(300);
/// How long others may take that write the file of budgets.
const WRITTEN: Duration = Duration::from_millis(500);

#[derive(Debug, Default, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// Measure each path in turn for this many seconds, half of them down and half up: rate, round
    /// trip under load, loss. 2 to 58; comes on top of the 15 s that the checks take at most. A
    /// path of --path alone is measured alone.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(2..=58))]
    speed: Option<u64>,
    /// With --speed: what a path carries for it at most, both ways together [default: 250MB]. A
    /// path that has a budget or a cost is measured only if this is given, and within its budget,
    /// in which it counts.
    #[arg(long, value_name = "SIZE", value_parser = text::size, requires = "speed")]
    speed_bytes: Option<u64>,
}

/// Measures each path in turn, if that was asked for.
pub(super) async fn check(args: &Args, config: &ClientConfig, board: &Board) {
    let Some(seconds) = args.speed else {
        return;
    };
    let identity = match Identity::load(&config.identity) {
        Ok(identity) => identity,
        // The check of the key says why.
        Err(_) => return,
    };
    let running = running(config.common.control.as_ref(), Role::Client).await;
    let known = key::known(&running, config.server.server());
    let disturbs = known.filter(|found| found.verdict != Verdict::Fine);
    // What was carried until then counts in a path's budget, also when the user ends it.
    let stop = CancellationToken::new();
    if let Ok(mut signals) = Signals::new() {
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.stop().await;
            stop.cancel();
        });
    }
    for path in assigned(&config.paths, &config.sysfs) {
        if stop.is_cancelled() {
            break;
        }
        let begun = board.begin(Some(&path.name), NAME);
        let found = match &disturbs {
            Some(found) => Finding::unknown(NAME, found.text.clone()),
            None => {
                let of_path = OfPath {
                    config,
                    path: &path,
                    identity: &identity,
                    each: Duration::from_secs(seconds) / 2,
                    bytes: args.speed_bytes,
                    beside: matches!(running, Running::Answers(_)),
                    stop: &stop,
                };
                of_path.found().await
            }
        };
        begun.end([found]);
    }
}

struct OfPath<'a> {
    config: &'a ClientConfig,
    path: &'a Path,
    identity: &'a Identity,
    /// How long each direction is measured.
    each: Duration,
    /// The bound that was asked for.
    bytes: Option<u64>,
    /// A client runs here, whose traffic takes its part.
    beside: bool,
    /// The user has had enough.
    stop: &'a CancellationToken,
}

impl OfPath<'_> {
    async fn found(&self) -> Finding {
        let path = self.path;
        if matches!(path.local, Bind::Matching(_)) {
            return Finding::unknown(NAME, "not measured: it has no interface now");
        }
        let ledger = Ledger::load(self.config.usage.clone(), Month::now());
        let mut ledger = match (path.budget, ledger) {
            (None, _) => None,
            (Some(_), Ok(ledger)) => Some(ledger),
            (Some(_), Err(error)) => {
                return Finding::unknown(NAME, format!("not measured: {error}"));
            }
        };
        let used = ledger.as_ref().map(|it| it.used(account(&path.name)));
        let bytes = match allowed(path, self.bytes, used) {
            Ok(bytes) => bytes,
            Err(found) => return found,
        };
        let seconds = 2 * self.each.as_secs_f64() as u64;
        // Who looks on is told before anything is spent; the answer goes to standard output.
        let _ = writeln!(
            io::stderr(),
            "path {}: measured for {seconds} s, at most {}",
            path.name,
            words::bytes(bytes)
        );
        let options = ClientOptions {
            sysfs: self.config.sysfs.clone(),
            mark: self.config.mark(),
            ..ClientOptions::new(
                &self.config.server,
                self.identity.clone(),
                vec![Path {
                    standby: false,
                    ..path.clone()
                }],
            )
        };
        let client = match Client::start(options) {
            Ok(client) => client,
            Err(error) => return Finding::unknown(NAME, error.to_string()),
        };
        let measuring = async {
            match client.connect(PATIENCE).await {
                Ok(session) => self.measure(&session, bytes).await,
                Err(_) => Err(NotMeasured::Failed(
                    "no session came up over it: see its other checks".to_owned(),
                )),
            }
        };
        let measured = tokio::select! {
            measured = measuring => measured,
            () = self.stop.cancelled() => Err(NotMeasured::Failed("stopped".to_owned())),
        };
        let spent = client.session().and_then(|session| spent(&session));
        let _ = timeout(END, client.stop("the measurement is over")).await;
        if let (Some(ledger), Some(spent)) = (&mut ledger, spent) {
            ledger.count(account(&path.name), &path.name, spent);
            keep(ledger).await;
        }
        match measured {
            Ok(speed) => self.said(&speed),
            Err(why) => Finding::unknown(NAME, format!("not measured: {why}")),
        }
    }

    async fn measure(&self, session: &Session, bytes: u64) -> Result<Speed, NotMeasured> {
        sleep(SETTLES).await;
        let run = async |way| {
            let see = || seen(session, way);
            measure::run(session, way, self.each, bytes / 2, see).await
        };
        let down = run(Way::Down).await?;
        // What was on its way has come, and the path is as it was.
        sleep(SETTLES).await;
        let up = run(Way::Up).await?;
        Ok(Speed {
            down: of(&down),
            up: of(&up),
            bytes: spent(session).unwrap_or(0),
        })
    }

    fn said(&self, speed: &Speed) -> Finding {
        let way = |name: &str, it: &SpeedOf| {
            let loss = it.lost_packets as f64 / it.packets.max(1) as f64;
            let ms = |us: u64| words::figure(us as f64 / 1e3);
            format!(
                "{name} {}, round trip {} ms ({} ms idle), {} % lost{}",
                words::rate(it.bps),
                ms(it.rtt_us),
                ms(it.idle_rtt_us),
                words::percent(loss),
                if it.bounded {
                    ", ended by its bytes"
                } else {
                    ""
                }
            )
        };
        let beside = match self.beside {
            true => "; beside what the client that runs here carries",
            false => "",
        };
        let text = format!(
            "{}; {}; {} used{beside}",
            way("down", &speed.down),
            way("up", &speed.up),
            words::bytes(speed.bytes)
        );
        Finding {
            speed: Some(Box::new(*speed)),
            ..Finding::fine(NAME, text)
        }
    }
}

/// The bytes that the path may carry for it, after it has `used` this much of its budget.
fn allowed(path: &Path, asked: Option<u64>, used: Option<u64>) -> Result<u64, Finding> {
    let bytes = asked.unwrap_or(USUAL);
    let amount = words::bytes(bytes);
    if asked.is_none() && (path.budget.is_some() || path.cost > 0) {
        let why = match path.budget {
            Some(_) => "a budget",
            None => "a cost",
        };
        let text = format!("not measured: it has {why}, and would carry up to {amount}");
        let fix = "--speed-bytes SIZE has it measured with that much at most, such as 20MB";
        return Err(Finding::unknown(NAME, text).fix(fix));
    }
    if let (Some(budget), Some(used)) = (path.budget, used)
        && used.saturating_add(bytes) > budget
    {
        let left = words::bytes(budget.saturating_sub(used));
        let text = format!("not measured: {left} of its budget are left, and it takes {amount}");
        return Err(Finding::unknown(NAME, text).fix("--speed-bytes with less than that"));
    }
    Ok(bytes)
}

/// The session's one path.
fn counters(session: &Session) -> Option<marline_proto::stats::PathStats> {
    session.stats().paths.into_iter().next()
}

/// What the path has carried both ways, headers included, as budgets count it.
fn spent(session: &Session) -> Option<u64> {
    let counted = counters(session)?.counters;
    Some(carried(
        counted.sent_packets + counted.received_packets,
        counted.sent_bytes + counted.received_bytes,
    ))
}

fn seen(session: &Session, way: Way) -> Option<Seen> {
    let stats = counters(session)?;
    let counted = stats.counters;
    let (arrived, sent, lost) = match way {
        Way::Down => (
            counted.received_bytes,
            counted.numbered_packets,
            counted.missing_packets(),
        ),
        Way::Up => (
            counted.acked_bytes,
            counted.sent_packets,
            counted.lost_packets.saturating_sub(counted.spurious_losses),
        ),
    };
    Some(Seen {
        arrived,
        sent,
        lost,
        carried: spent(session)?,
        trip: stats.srtt,
        least_trip: stats.min_rtt,
    })
}

fn of(measured: &Measured) -> SpeedOf {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    SpeedOf {
        bps: measured.rate.as_bps(),
        rtt_us: us(measured.trip),
        idle_rtt_us: us(measured.idle_trip),
        packets: measured.sent,
        lost_packets: measured.lost,
        bounded: measured.bounded,
    }
}

/// Others may be writing the file for a moment.
async fn keep(ledger: &mut Ledger) {
    const AGAIN: Duration = Duration::from_millis(20);
    let kept = async {
        loop {
            match ledger.save(Month::now()) {
                Ok(true) => return,
                Ok(false) => sleep(AGAIN).await,
                Err(error) => {
                    let _ = writeln!(io::stderr(), "{error}; what was measured is not counted");
                    return;
                }
            }
        }
    };
    let _ = timeout(WRITTEN, kept).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metered_path_is_measured_on_request_and_within_its_budget() {
        let judged = |path: &str, asked, used| {
            let found = allowed(&path.parse().unwrap(), asked, used);
            found.map_err(|finding| (finding.verdict, finding.text, finding.fix.is_some()))
        };
        let refused = |text: &str| Err((Verdict::Unknown, text.to_owned(), true));
        assert_eq!(judged("wlan0", None, None), Ok(USUAL));
        assert_eq!(judged("wlan0", Some(7), None), Ok(7));
        assert_eq!(
            judged("wwan0,cost=2", None, None),
            refused("not measured: it has a cost, and would carry up to 250.0 MB")
        );
        assert_eq!(
            judged("wwan0,budget=1GB", None, Some(0)),
            refused("not measured: it has a budget, and would carry up to 250.0 MB")
        );
        assert_eq!(judged("wwan0,cost=2", Some(7), None), Ok(7));
        let budget = "wwan0,budget=1GB";
        assert_eq!(
            judged(budget, Some(20_000_000), Some(980_000_000)),
            Ok(20_000_000)
        );
        assert_eq!(
            judged(budget, Some(20_000_000), Some(990_000_000)),
            refused("not measured: 10.0 MB of its budget are left, and it takes 20.0 MB")
        );
    }
}
