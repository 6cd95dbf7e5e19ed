//! Datagrams of frames by hand, one after another, over as many sessions as it takes.

use std::future::Future;
use std::time::Duration;

use marline::carrier::{Attempt, ListenConfig, Listener};
use marline::identity::AllowList;
use marline_apps::proxy::Protocol;
use marline_proto::wire::Params;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::attack::{Failure, Knobs, Outcome};
use crate::by_hand::{ByHand, params};
use crate::frames::{Site, WAVES, Wave};
use crate::server::announce;

/// Datagrams follow each other in bursts, this far apart.
const BURST: Duration = Duration::from_millis(2);
/// Until a session is asked for again, after one was refused.
const AGAIN: Duration = Duration::from_millis(100);

fn wave(name: &str) -> Result<&'static Wave, Failure> {
    let known = || {
        WAVES
            .iter()
            .map(|wave| wave.name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = WAVES.iter().find(|wave| wave.name == name);
    Ok(found.ok_or_else(|| format!("no wave `{name}`; there are {}", known()))?)
}

/// What became of it.
#[derive(Debug, Default)]
struct Tally {
    datagrams: u64,
    sessions: u64,
    refused: u64,
    end: Option<String>,
}

impl Tally {
    fn report(&self) {
        let (datagrams, sessions, refused) = (self.datagrams, self.sessions, self.refused);
        let end = self.end.as_deref().unwrap_or("by itself");
        println!(
            "{datagrams} datagrams in {sessions} sessions, {refused} refused; the last one ended: {end}"
        );
    }
}

/// Sends the wave over sessions one after another: the next when one is over.
async fn flood<F>(knobs: &Knobs, site: &Site, mut open: impl FnMut() -> F) -> Result<Tally, Failure>
where
    F: Future<Output = Result<ByHand, Failure>>,
{
    let (wave, end) = (wave(&knobs.wave)?, knobs.end());
    let burst = (knobs.rate * BURST.as_millis() as u64 / 1000).max(1);
    let mut tally = Tally::default();
    while let Ok(opened) = timeout_at(end, open()).await {
        let Ok(mut session) = opened else {
            tally.refused += 1;
            sleep(AGAIN).await;
            continue;
        };
        tally.sessions += 1;
        let (mut number, mut frames) = (0, Vec::new());
        let over = 'session: loop {
            if Instant::now() >= end {
                return Ok(tally);
            }
            for _ in 0..burst {
                frames.clear();
                (wave.fill)(&site.of(&mut session), number, &mut frames);
                match session.turn(&frames, wave.step).await {
                    Ok(true) => number += 1,
                    Ok(false) => break,
                    Err(why) => break 'session why,
                }
                tally.datagrams += 1;
            }
            sleep(BURST).await;
        };
        tally.end = Some(over);
    }
    Ok(tally)
}

/// As a client.
pub(crate) async fn from_client(knobs: Knobs) -> Outcome {
    wave(&knobs.wave)?;
    let site = Site {
        client: true,
        stream: knobs.target(Protocol::Tcp)?,
        messages: knobs.target(Protocol::Udp)?,
        ..Site::default()
    };
    println!("ready: {} are sent", knobs.wave);
    let mut floods = JoinSet::new();
    for _ in 0..knobs.sessions {
        let (knobs, site) = (knobs.clone(), site.clone());
        floods.spawn(async move { flood(&knobs, &site, || ByHand::dial(&knobs)).await });
    }
    while let Some(tally) = floods.join_next().await {
        tally??.report();
    }
    Ok(())
}

/// As a server, towards one client after another.
pub(crate) async fn from_server(knobs: Knobs) -> Outcome {
    wave(&knobs.wave)?;
    let identity = knobs.identity()?;
    let config = ListenConfig::new(vec![knobs.listen]);
    let allowed = AllowList::from_keys(knobs.allow.iter().copied());
    let listener = Listener::bind(config, &identity, allowed)?;
    announce(&identity, &listener.local_addrs())?;
    let listener = tokio::sync::Mutex::new(listener);
    let open = || async {
        let mut listener = listener.lock().await;
        loop {
            match listener.accept().await {
                Attempt::New(attempt) => {
                    let (path, theirs) = (attempt.path(), Params::decode(attempt.params())?);
                    let (carrier, _) = attempt.accept(params())?;
                    return Ok(ByHand::new(carrier, path, &theirs));
                }
                // One path is enough.
                attempt @ Attempt::Join(_) => drop(attempt),
            }
        }
    };
    flood(&knobs, &Site::default(), open).await?.report();
    Ok(())
}
