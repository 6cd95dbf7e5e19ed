//! The client asks for a port whenever there is a session, and says in the log what became of it.

use super::board::{Board, Shown};
use super::status::PublishedState as State;
use super::{Publication, Standing};
use crate::options::stream_to;
use crate::proxy::associations::AGAIN;
use crate::proxy::reply::{self, Refusal, Reply};
use crate::proxy::{OpenError, Tunnel};
use marline::identity::PublicKey;
use marline::support::seldom::Seldom;
use std::io;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::time::{sleep, timeout};

/// How long the server may take to open the port: it waits a second for one that is in use.
const ANSWER: Duration = Duration::from_secs(10);
/// Wait after a refusal: a stream each half minute costs next to nothing, and a port that has
/// become free is had soon.
const REFUSED: Duration = Duration::from_secs(30);
/// Wait after a port was lost while its session goes on, which a server that stops does, too.
const LOST: Duration = Duration::from_secs(1);

/// What is logged of one port; most of it is caused by the server.
#[derive(Debug, Default)]
struct Lines {
    /// What was complained of last, which is not repeated.
    complaint: Option<String>,
    refused: Seldom,
    open: Seldom,
    standing: Seldom,
}

/// Asks for the port of `publication` again and again. Never completes.
pub(super) async fn keep<T: Tunnel>(
    tunnel: T,
    publication: Publication,
    own: PublicKey,
    board: Board,
) {
    let shown = board.show(
        &publication.port.to_string(),
        &publication.target.to_string(),
    );
    let mut lines = Lines::default();
    loop {
        shown.say(State::Asking, None);
        tunnel.session_is_there().await;
        let options = stream_to(publication.role().encode(publication.port));
        let mut flow = match tunnel.open_stream(options).await {
            Ok(flow) => flow,
            // It may be there and about to end.
            Err(OpenError::NoSession(_)) => {
                sleep(AGAIN).await;
                continue;
            }
            Err(error) => {
                shown.say(State::Refused, Some(error.to_string()));
                lines.complain(&publication, error.to_string());
                sleep(REFUSED).await;
                continue;
            }
        };
        let answer = timeout(ANSWER, reply::read(&mut flow)).await;
        let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        let pause = match answer {
            Ok(Reply::Ok(at)) => {
                lines.complaint = None;
                let Publication { port, target, .. } = &publication;
                shown.say(State::Open, Some(at.to_string()));
                lines.open.say(|left_out| {
                    tracing::info!("{port} of the server, at {at}, leads to {target}{left_out}");
                });
                hear(&mut flow, &publication, &lines, &shown).await;
                LOST
            }
            Ok(Reply::Err(refusal)) => {
                let why = why(refusal, &publication, own);
                shown.say(State::Refused, Some(why.clone()));
                lines.complain(&publication, why);
                REFUSED
            }
            // Mostly the session has ended.
            Err(error) => {
                tracing::debug!(%error, "no answer about a published port");
                LOST
            }
        };
        drop(flow);
        sleep(pause).await;
    }
}

/// Follows what the server says until the port is lost.
async fn hear(
    flow: &mut (impl AsyncReadExt + Unpin),
    publication: &Publication,
    lines: &Lines,
    shown: &Shown,
) {
    let port = publication.port;
    while let Ok(byte) = flow.read_u8().await {
        match Standing::decode(byte) {
            Some(Standing::Has) => {
                shown.say(State::Open, None);
                lines.standing.say(|left_out| {
                    tracing::info!("{port} of the server leads here again{left_out}");
                });
            }
            Some(Standing::SetAside) => {
                shown.say(State::SetAside, None);
                lines.standing.say(|left_out| {
                    tracing::warn!(
                        "{port} of the server leads to a newer session of this client's key; if that is another \
                         machine, give each a key of its own{left_out}"
                    );
                });
            }
            None => {}
        }
    }
}

/// Why there is no port, and the mend.
fn why(refusal: Refusal, publication: &Publication, own: PublicKey) -> String {
    let port = publication.port;
    match refusal {
        Refusal::NotAllowed => format!(
            "the server does not let this client have it; add `--allow-publish {own}={port}` at the server, or \
             `publish={port}` before the key in its list of clients"
        ),
        Refusal::BadTarget => {
            "the server does not know published ports, or none with `live`: it is older than this client"
                .to_owned()
        }
        Refusal::PortTaken => {
            format!(
                "{refusal}; choose another port: --publish {}:PORT=...",
                port.protocol
            )
        }
        Refusal::Failed => format!("{refusal}; its log says why"),
        refusal => refusal.to_string(),
    }
}

impl Lines {
    fn complain(&mut self, publication: &Publication, why: String) {
        if self.complaint.as_ref() == Some(&why) {
            return;
        }
        self.refused.say(|left_out| {
            tracing::warn!("{} is not published: {why}{left_out}", publication.port);
        });
        self.complaint = Some(why);
    }
}
