//! The server's names, looked up for all paths together, and again and again while no answer comes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::support::lock;

/// A look-up that was begun longer ago is begun again beside it: a resolver asks again only after
/// 5 s (resolv.conf(5)), in which a network may have come.
const AGAIN: Duration = Duration::from_millis(750);
/// Look-ups of a name at a time, each in a thread that nothing ends before the resolver gives up:
/// by default after 10 s for each of its name servers. With two of them, one ends every 0.8 s.
const AT_A_TIME: usize = 24;
/// Names that are remembered beyond those that are being looked up: as many as all paths have.
const MOST: usize = 16;

/// Names and their addresses. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookups(Arc<Mutex<BTreeMap<String, Name>>>);

/// What was found, or why nothing.
type Answer = Result<Vec<IpAddr>, String>;

#[derive(Debug)]
struct Name {
    began: Option<Instant>,
    running: usize,
    answers: watch::Sender<Answer>,
    /// What it stood for last.
    known: Vec<IpAddr>,
}

impl Default for Name {
    fn default() -> Self {
        Self {
            began: None,
            running: 0,
            answers: watch::Sender::new(Ok(Vec::new())),
            known: Vec::new(),
        }
    }
}

impl Lookups {
    /// The addresses of `name`. Where it cannot be looked up now, those that it had before.
    ///
    /// # Errors
    /// It cannot be looked up, and never could.
    pub(super) async fn find(&self, name: &str) -> Answer {
        let mut answers = self.begin(name);
        // The sender outlives the look-up that was begun or joined.
        while timeout(AGAIN, answers.changed()).await.is_err() {
            self.begin(name);
        }
        let answer = answers.borrow().clone();
        answer.or_else(|error| match self.known(name) {
            known if known.is_empty() => Err(error),
            known => Ok(known),
        })
    }

    /// What the name stood for last; nothing if it was never found.
    pub(super) fn known(&self, name: &str) -> Vec<IpAddr> {
        lock(&self.0)
            .get(name)
            .map_or_else(Vec::new, |it| it.known.clone())
    }

    /// Has a look-up of `name` running that is young enough.
    fn begin(&self, name: &str) -> watch::Receiver<Answer> {
        let mut all = lock(&self.0);
        if all.len() >= MOST && !all.contains_key(name) {
            all.retain(|_, name| name.running > 0);
        }
        let entry = all.entry(name.to_owned()).or_default();
        let answers = entry.answers.subscribe();
        let is_young = |at: Instant| at.elapsed() < AGAIN;
        let joins = entry.running > 0 && entry.began.is_some_and(is_young);
        if !joins && entry.running < AT_A_TIME {
            entry.running += 1;
            entry.began = Some(Instant::now());
            let (names, name) = (self.clone(), name.to_owned());
            tokio::spawn(async move {
                let found = lookup_host((name.as_str(), 0)).await;
                names.end(&name, found);
            });
        }
        answers
    }

    fn end(&self, name: &str, found: std::io::Result<impl Iterator<Item = SocketAddr>>) {
        let answer: Answer = match found {
            Ok(found) => Ok(found.map(|address| address.ip()).collect()),
            Err(error) => Err(error.to_string()),
        };
        if let Some(entry) = lock(&self.0).get_mut(name) {
            entry.running -= 1;
            if let Ok(found) = &answer {
                entry.known.clone_from(found);
            }
            // Those who waited have had what it replaces.
            let _ = entry.answers.send_replace(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(last: u8) -> std::io::Result<std::vec::IntoIter<SocketAddr>> {
        Ok(vec![SocketAddr::from(([192, 0, 2, last], 0))].into_iter())
    }

    fn nothing() -> std::io::Result<std::vec::IntoIter<SocketAddr>> {
        Err(std::io::Error::other("no name server"))
    }

    fn hanging() -> Lookups {
        hanging_for("server.invalid")
    }

    /// A name whose look-up was begun just now, and hangs.
    fn hanging_for(name: &str) -> Lookups {
        let lookups = Lookups::default();
        let entry = Name {
            began: Some(Instant::now()),
            running: 1,
            ..Name::default()
        };
        lock(&lookups.0).insert(name.into(), entry);
        lookups
    }

    #[tokio::test]
    async fn a_look_up_that_hangs_has_another_beside_it() {
        let lookups = hanging_for("localhost");
        let found = lookups.find("localhost").await.unwrap();
        assert!(found.iter().any(IpAddr::is_loopback), "{found:?}");
        // The one that hangs is still counted.
        assert_eq!(lock(&lookups.0)["localhost"].running, 1);
    }

    #[tokio::test]
    async fn paths_share_a_look_up_and_what_was_known_is_kept() {
        let lookups = hanging();
        let mut one = lookups.begin("server.invalid");
        let mut other = lookups.begin("server.invalid");
        assert_eq!(lock(&lookups.0)["server.invalid"].running, 1);
        lookups.end("server.invalid", found(1));
        one.changed().await.unwrap();
        other.changed().await.unwrap();
        let first = IpAddr::from([192, 0, 2, 1]);
        assert_eq!(*one.borrow(), Ok(vec![first]));
        let entry = Name {
            began: Some(Instant::now()),
            running: 1,
            known: lookups.known("server.invalid"),
            ..Name::default()
        };
        lock(&lookups.0).insert("server.invalid".into(), entry);
        let later = lookups.clone();
        let (answer, ()) = tokio::join!(lookups.find("server.invalid"), async {
            later.end("server.invalid", nothing());
        });
        assert_eq!(answer, Ok(vec![first]));
    }

    #[tokio::test]
    async fn a_name_that_was_never_found_is_an_error() {
        let lookups = hanging();
        let later = lookups.clone();
        let (answer, ()) = tokio::join!(lookups.find("server.invalid"), async {
            later.end("server.invalid", nothing());
        });
        assert_eq!(answer, Err("no name server".to_owned()));
    }
}
