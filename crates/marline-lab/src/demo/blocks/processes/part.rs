//! What a process of the demo does.

use super::super::content::Content;
use super::super::{RunError, session, tcp};
use super::words::{Aloud, Anchor, Go, Order, Role, Word};
use marline::identity::{Identity, PublicKey};
use marline_proto::sched::Choice;
use serde::de::DeserializeOwned;
use std::io;
use std::thread;
use tokio::sync::mpsc;

/// Plays the part that standard input names, until that is over or standard input ends.
///
/// # Errors
/// Why the part could not be played. It has been said on standard output, too.
pub async fn part() -> Result<(), String> {
    let mut lines = lines();
    let played = match lines.recv().await.as_deref().map(read) {
        Some(Ok(order)) => play(order, &mut lines).await,
        Some(Err(error)) => Err(error),
        None => Err(failed("standard input told no part")),
    };
    played.map_err(|error| {
        let text = error.to_string();
        Word::Failed(text.clone()).say();
        text
    })
}

/// The lines of standard input; they end with it.
fn lines() -> mpsc::UnboundedReceiver<String> {
    let (tell, told) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let lines = io::stdin().lines().map_while(Result::ok);
        for line in lines {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

fn failed(text: &str) -> RunError {
    RunError::Failed(text.to_owned())
}

fn read<T: DeserializeOwned>(line: &str) -> Result<T, RunError> {
    let read = serde_json::from_str(line);
    read.map_err(|error| RunError::Failed(format!("cannot read what to do: {error}")))
}

fn scheduler(name: &str) -> Result<Choice, RunError> {
    let choice: Result<Choice, _> = name.parse();
    choice.map_err(|error| RunError::Failed(error.to_string()))
}

fn key(text: &str) -> Result<PublicKey, RunError> {
    let key: Result<PublicKey, _> = text.parse();
    key.map_err(|error| RunError::Failed(error.to_string()))
}

async fn play(order: Order, lines: &mut mpsc::UnboundedReceiver<String>) -> Result<(), RunError> {
    let (task, notes) = (order.task, Aloud(Anchor::new()));
    let identity = Identity::generate()?;
    let sent = match order.role {
        Role::Client { scheduler: name } => {
            Word::Key(identity.public_key().to_string()).say();
            let go = go(lines).await?;
            let server = go.server.as_deref().map(key);
            let server = server.ok_or_else(|| failed("no server's key"))??;
            let ends = (server, identity);
            let sent = session::deliver(ends, &go.entries, scheduler(&name)?, &task, &notes);
            until_alone(sent, lines).await?
        }
        Role::Sender { shares } => {
            let go = go(lines).await?;
            let clock = tcp::Clock::start();
            let near = |entry: &_| tcp::near_end(*entry, clock, task.seed);
            let ends: Result<Vec<_>, _> = go.entries.iter().map(near).collect();
            let sent = tcp::deliver(ends?, &shares, clock, &task, &notes);
            until_alone(sent, lines).await?
        }
        Role::Server {
            scheduler: name,
            client,
        } => {
            let own = identity.public_key().to_string();
            let server = session::bind(identity, key(&client)?, scheduler(&name)?)?;
            let addrs = server.local_addrs().to_vec();
            Word::Listens {
                key: Some(own),
                addrs,
            }
            .say();
            let content = Content::new(task.seed, task.load.size);
            let received = async {
                session::receive(&server, &content, &notes).await;
                // What is late beyond the session's end is nobody's any more.
                std::future::pending().await
            };
            until_alone(received, lines).await?
        }
        Role::Receiver { shares } => {
            let ends: Result<Vec<_>, _> = shares.iter().map(|_| tcp::far_end()).collect();
            let ends = ends?;
            let addrs: io::Result<Vec<_>> = ends.iter().map(|(end, _)| end.local_addr()).collect();
            Word::Listens {
                key: None,
                addrs: addrs?,
            }
            .say();
            let received = async {
                tcp::collect(ends, &shares, tcp::Clock::start(), &notes).await?;
                Err(failed("the receiver ended before its time"))
            };
            until_alone(received, lines).await?
        }
    };
    Word::Over(sent).say();
    Ok(())
}

async fn go(lines: &mut mpsc::UnboundedReceiver<String>) -> Result<Go, RunError> {
    let line = lines.recv().await;
    read(&line.ok_or_else(|| failed("nobody said where to send to"))?)
}

/// Does `work` as long as somebody holds the other end of standard input.
async fn until_alone(
    work: impl Future<Output = Result<f64, RunError>>,
    lines: &mut mpsc::UnboundedReceiver<String>,
) -> Result<f64, RunError> {
    tokio::select! {
        done = work => done,
        None = lines.recv() => Err(failed("the demo is gone")),
    }
}
