//! The server's names, looked up by the system for all paths together and by each path itself, and
//! again and again while no answer comes.
//!
//! The first answer counts. The system knows what is in no DNS (hosts(5), names of the local
//! network), but asks by the routing table, and so perhaps over a link that is dead; a path asks by
//! itself (`resolver/`). What a name stood for last is dialled meanwhile (`dial.rs`).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::MAX_PATHS;
use super::kept::Kept;
use crate::carrier::{Bind, SocketSpec};
use crate::identity::MAX_ADDRESSES;
use crate::resolver::Resolver;
use crate::support::lock;

/// A look-up that was begun longer ago is begun again beside it: a resolver asks again only after
/// 5 s (resolv.conf(5)), in which a network may have come.
const AGAIN: Duration = Duration::from_millis(750);
/// Look-ups of a name at a time. By the system each is a thread that nothing ends before the
/// resolver gives up: by default after 10 s for each of its name servers. With two of them, one
/// ends every 0.8 s.
const AT_A_TIME: usize = 24;
/// Names that are remembered beyond those that are being looked up: as many as all paths have, and
/// that of NAT64, by each and by the system.
const MOST: usize = (MAX_PATHS + 1) * (MAX_ADDRESSES + 1);
/// Head start of the system over the path's own look-up: what is in a file is found by then, and
/// wins over what a name server says, as on any host.
const HEAD_START: Duration = Duration::from_millis(50);

/// Names and their addresses. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookups(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    names: Mutex<BTreeMap<Key, Name>>,
    resolver: Resolver,
    kept: Kept,
}

/// A name, and by whom it is looked up: by paths that are bound alike, or by the system.
type Key = (String, Option<Bind>);

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
    /// What is found is kept in `file`, if there is one.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner {
            kept: Kept::load(file),
            ..Inner::default()
        }))
    }

    /// The addresses of `name` for a path with such a socket.
    ///
    /// # Errors
    /// Neither the system nor the path finds any now: in words.
    pub(super) async fn find(&self, name: &str, socket: &SocketSpec) -> Answer {
        let mut system = pin!(self.answer(name, None));
        if !Resolver::takes(name, &socket.bind) {
            return system.await;
        }
        let mut own = pin!(async {
            sleep(HEAD_START).await;
            self.answer(name, Some(socket)).await
        });
        tokio::select! {
            found = &mut system => match found {
                Ok(found) => Ok(found),
                Err(system) => own.await.map_err(|own| format!("{system}; {own}")),
            },
            found = &mut own => match found {
                Ok(found) => Ok(found),
                Err(own) => system.await.map_err(|system| format!("{system}; {own}")),
            },
        }
    }

    /// What the name stood for last, as a path that is bound so has found it or else as anybody
    /// has; nothing if it was never found.
    pub(super) fn known(&self, name: &str, bind: &Bind) -> Vec<IpAddr> {
        let own = {
            let names = lock(&self.0.names);
            let own = names.get(&(name.to_owned(), Some(bind.clone())));
            own.map_or_else(Vec::new, |it| it.known.clone())
        };
        match own.is_empty() {
            true => self.0.kept.get(name),
            false => own,
        }
    }

    /// What one of both answers: the path, or the system.
    async fn answer(&self, name: &str, socket: Option<&SocketSpec>) -> Answer {
        let mut answers = self.begin(name, socket);
        // The sender outlives the look-up that was begun or joined.
        while timeout(AGAIN, answers.changed()).await.is_err() {
            self.begin(name, socket);
        }
        answers.borrow().clone()
    }

    /// Has a look-up of `name` running that is young enough.
    fn begin(&self, name: &str, socket: Option<&SocketSpec>) -> watch::Receiver<Answer> {
        let key = (name.to_owned(), socket.map(|socket| socket.bind.clone()));
        let mut all = lock(&self.0.names);
        if all.len() >= MOST && !all.contains_key(&key) {
            all.retain(|_, name| name.running > 0);
        }
        let entry = all.entry(key.clone()).or_default();
        let answers = entry.answers.subscribe();
        let is_young = |at: Instant| at.elapsed() < AGAIN;
        let joins = entry.running > 0 && entry.began.is_some_and(is_young);
        if !joins && entry.running < AT_A_TIME {
            entry.running += 1;
            entry.began = Some(Instant::now());
            let (names, socket) = (self.clone(), socket.cloned());
            tokio::spawn(async move {
                let found = match socket {
                    None => by_system(&key.0).await,
                    Some(socket) => names.0.resolver.look_up(&key.0, &socket).await,
                };
                names.end(&key, found);
            });
        }
        answers
    }

    fn end(&self, key: &Key, answer: Answer) {
        if let Ok(found) = &answer
            && !found.is_empty()
            && let Some(writing) = self.0.kept.learn(&key.0, found)
        {
            tokio::task::spawn_blocking(|| writing.write());
        }
        if let Some(entry) = lock(&self.0.names).get_mut(key) {
            entry.running -= 1;
            if let Ok(found) = &answer {
                entry.known.clone_from(found);
            }
            // Those who waited have had what it replaces.
            let _ = entry.answers.send_replace(answer);
        }
    }
}

/// What the system's resolver finds.
async fn by_system(name: &str) -> Answer {
    match lookup_host((name, 0)).await {
        Ok(found) => Ok(found.map(|address| address.ip()).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolver;
    use tokio::net::UdpSocket;

    const NAME: &str = "server.invalid";

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn found(last: u8) -> Answer {
        Ok(vec![ip(last)])
    }

    fn nothing() -> Answer {
        Err("no name server".to_owned())
    }

    fn system(name: &str) -> Key {
        (name.to_owned(), None)
    }

    fn path() -> SocketSpec {
        SocketSpec {
            bind: Bind::Address([127, 0, 0, 1].into()),
            ..SocketSpec::default()
        }
    }

    fn hanging() -> Lookups {
        hanging_for(NAME)
    }

    /// A name whose look-up by the system was begun just now, and hangs.
    fn hanging_for(name: &str) -> Lookups {
        let lookups = Lookups::default();
        let entry = Name {
            began: Some(Instant::now()),
            running: 1,
            ..Name::default()
        };
        lock(&lookups.0.names).insert(system(name), entry);
        lookups
    }

    /// One by the system that never ends, however long it is waited for, and these name servers.
    fn without_system(servers: Vec<std::net::SocketAddr>, file: Option<PathBuf>) -> Lookups {
        let lookups = Lookups(Arc::new(Inner {
            resolver: Resolver::of(servers),
            kept: Kept::load(file),
            ..Inner::default()
        }));
        let entry = Name {
            running: AT_A_TIME,
            ..Name::default()
        };
        lock(&lookups.0.names).insert(system(NAME), entry);
        lookups
    }

    #[tokio::test]
    async fn a_look_up_that_hangs_has_another_beside_it() {
        let lookups = hanging_for("localhost");
        let any = SocketSpec::default();
        let found = lookups.find("localhost", &any).await.unwrap();
        assert!(found.iter().any(IpAddr::is_loopback), "{found:?}");
        // The one that hangs is still counted.
        let names = lock(&lookups.0.names);
        assert_eq!(names[&system("localhost")].running, 1);
    }

    #[tokio::test]
    async fn paths_share_a_look_up_and_what_was_known_is_kept() {
        let lookups = hanging();
        let mut one = lookups.begin(NAME, None);
        let mut other = lookups.begin(NAME, None);
        assert_eq!(lock(&lookups.0.names)[&system(NAME)].running, 1);
        lookups.end(&system(NAME), found(1));
        one.changed().await.unwrap();
        other.changed().await.unwrap();
        assert_eq!(*one.borrow(), found(1));
        lookups.begin(NAME, None);
        lookups.end(&system(NAME), nothing());
        assert_eq!(lookups.known(NAME, &Bind::Any), [ip(1)]);
    }

    #[tokio::test]
    async fn a_name_that_was_never_found_is_an_error() {
        let lookups = hanging();
        let later = lookups.clone();
        let any = SocketSpec::default();
        let (answer, ()) = tokio::join!(lookups.find(NAME, &any), async {
            later.end(&system(NAME), nothing());
        });
        assert_eq!(answer, nothing());
        assert!(lookups.known(NAME, &Bind::Any).is_empty());
    }

    #[tokio::test]
    async fn a_path_finds_by_itself_what_the_system_does_not_and_that_is_kept() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(resolver::tests::serve(server, ip(7)));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("addresses");
        let lookups = without_system(vec![address], Some(file.clone()));
        assert_eq!(lookups.find(NAME, &path()).await, found(7));
        assert_eq!(lookups.known(NAME, &path().bind), [ip(7)]);
        // Others dial it, too.
        assert_eq!(lookups.known(NAME, &Bind::Any), [ip(7)]);
        let written = async {
            while Kept::load(Some(file.clone())).get(NAME) != [ip(7)] {
                sleep(Duration::from_millis(1)).await;
            }
        };
        written.await;
        // After a restart, without any resolver:
        let lookups = without_system(Vec::new(), Some(file));
        assert_eq!(lookups.known(NAME, &path().bind), [ip(7)]);
    }

    #[tokio::test]
    async fn the_system_is_waited_for_when_the_path_finds_nothing_and_both_say_why() {
        for (answer, expected) in [
            (found(1), found(1)),
            (
                nothing(),
                Err("no name server; this host names no server for it".to_owned()),
            ),
        ] {
            let lookups = without_system(Vec::new(), None);
            let later = lookups.clone();
            let path = path();
            let (answered, ()) = tokio::join!(lookups.find(NAME, &path), async {
                sleep(2 * HEAD_START).await;
                later.end(&system(NAME), answer);
            });
            assert_eq!(answered, expected);
        }
    }
}
