//! From what a client names to the addresses that it may reach.

mod cache;
mod names;
mod own;
mod question;
mod shares;
mod threads;

use super::find::Find;
use super::policy::{DISCOVERY_NAME, Judge, Policy};
use super::reply::Refusal;
use super::{Host, Protocol, Target};
use marline::identity::PublicKey;
use marline::support::lock;
use marline::support::seldom::Seldom;
use names::{Names, Resolver};
pub(crate) use own::OwnTargets;
use question::{Failure, Found};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use threads::Threads;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;
/// How often the server's own names and translators are looked up again. The system's resolver does
/// not say how long an answer holds; a minute is what names that follow a changing address have at
/// the least.
const REFRESH: Duration = Duration::from_secs(60);
/// How soon after a failure.
const RETRY: Duration = Duration::from_secs(10);

/// Judges and finds the targets of all clients. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Targets {
    judge: Judge,
    /// Those of clients, by rules that may be their own.
    judges: Arc<Mutex<Judges>>,
    resolver: Resolver,
}

/// Who judges which client's targets.
#[derive(Debug, Default)]
struct Judges {
    /// Rules of clients that have some of their own.
    rules: HashMap<PublicKey, Arc<Policy>>,
    /// Of clients that had a session; no more than the operator lets in.
    known: HashMap<PublicKey, Judge>,
}

impl Targets {
    /// Judged by `judge`, found by the system's resolver.
    pub fn new(judge: Judge) -> Self {
        Targets {
            judge,
            judges: Arc::default(),
            resolver: Resolver::new(Threads),
        }
    }

    /// Judges these clients by rules of their own, too, from now on ([`Policy::with`]), and all
    /// others by the server's.
    pub fn set_rules(&self, own: &HashMap<PublicKey, Policy>) {
        let mut judges = lock(&self.judges);
        let of_server = self.judge.rules();
        let rules = own.iter();
        let rules = rules.map(|(key, own)| (*key, Arc::new(of_server.with(own))));
        judges.rules = rules.collect();
        for (key, judge) in &judges.known {
            let own = judges.rules.get(key).cloned();
            judge.set_rules(own.unwrap_or_else(|| Arc::clone(&of_server)));
        }
    }

    /// Who judges the targets of a client.
    pub(crate) fn judge(&self, client: Option<PublicKey>) -> Judge {
        let Some(client) = client else {
            return self.judge.clone();
        };
        let mut judges = lock(&self.judges);
        let Judges { rules, known } = &mut *judges;
        let new = || {
            let own = rules.get(&client).cloned();
            let rules = own.unwrap_or_else(|| self.judge.rules());
            self.judge.with_rules(rules)
        };
        known.entry(client).or_insert_with(new).clone()
    }

    /// For one session of a client; its other sessions share its part of the resolver.
    pub(crate) fn of(&self, client: Option<PublicKey>) -> Finder {
        Finder {
            client,
            judge: self.judge(client),
            names: self.resolver.of(client),
            over: CancellationToken::new(),
            refusals: Arc::default(),
            denials: Arc::default(),
        }
    }

    /// Looks up what judgements depend on, again and again: the addresses of the names under which
    /// this host is advertised, and if `discover` says so, the translators that its resolver knows
    /// of.
    pub async fn follow(&self, discover: bool) {
        let names = self.resolver.of(None);
        let ips = |found: &[SocketAddr]| found.iter().map(SocketAddr::ip).collect::<Vec<IpAddr>>();
        loop {
            let mut failed = false;
            if discover {
                let found = names.look_up(DISCOVERY_NAME).await.ok();
                failed |= found.is_none();
                self.judge
                    .translators()
                    .discovered(found.as_deref().map(ips).as_deref());
            }
            for name in self.judge.own().names() {
                match names.look_up(name).await {
                    Ok(found) => self.judge.own().found(name, ips(&found)),
                    Err(error) => {
                        failed = true;
                        tracing::debug!(%error, "cannot resolve {name}, under which this host is advertised");
                    }
                }
            }
            tokio::time::sleep(if failed { RETRY } else { REFRESH }).await;
        }
    }
}

/// Finds the targets of one session.
#[derive(Debug, Clone)]
pub(crate) struct Finder {
    client: Option<PublicKey>,
    judge: Judge,
    names: Names,
    over: CancellationToken,
    /// A client asks as often as it likes, which the log must not.
    refusals: Arc<Seldom>,
    denials: Arc<Seldom>,
}

impl Finder {
    /// Gives up what is still looked up once this is dropped.
    pub(crate) fn while_held(&self) -> DropGuard {
        self.over.clone().drop_guard()
    }

    async fn addresses(&self, name: &str, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
        let found = tokio::select! {
            found = self.names.look_up(name) => found,
            () = self.over.cancelled() => return Err(Refusal::Failed),
        };
        at_port(found, target)
    }
}

impl Find for Finder {
    /// Resolves a target, and keeps the addresses that the rules allow.
    async fn find(&self, target: &Target, protocol: Protocol) -> Result<Vec<SocketAddr>, Refusal> {
        if target.protocol() != protocol {
            tracing::debug!(%target, "a client opened the wrong kind of flow for its target");
            return Err(Refusal::BadTarget);
        }
        let mut found = match target.host() {
            Host::Ip(address) => vec![(*address, target.port()).into()],
            Host::Name(name) => self.addresses(name, target).await?,
        };
        if found.is_empty() {
            return Err(Refusal::NameNotFound);
        }
        for address in &mut found {
            // Judged and connected in the same form: an IPv4-mapped address reaches the IPv4 host.
            address.set_ip(address.ip().to_canonical());
            self.judge.ready(address.ip()).await;
        }
        found.retain(|address| self.allows(target, *address));
        match found.is_empty() {
            true => {
                self.refusals.say(|left_out| match self.client {
                    Some(client) => tracing::info!("{client} may not reach {target}{left_out}"),
                    None => tracing::info!("{target} may not be reached{left_out}"),
                });
                Err(Refusal::NotAllowed)
            }
            false => Ok(found),
        }
    }

    fn allows(&self, target: &Target, address: SocketAddr) -> bool {
        let judged = self.judge.check(target.host(), address);
        if let Err(denied) = &judged {
            self.denials.say(|left_out| {
                tracing::info!(%target, %address, %denied, "a target is not allowed{left_out}");
            });
        }
        judged.is_ok()
    }

    fn still_allows(&self, target: &Target, address: SocketAddr) -> bool {
        let judged = self.judge.check_again(target.host(), address);
        if let Err(denied) = &judged {
            self.denials.say(|left_out| {
                tracing::info!(%target, %address, %denied, "a target is no longer allowed{left_out}");
            });
        }
        judged.is_ok()
    }
}

/// The addresses that were found of a target's name, with its port.
fn at_port(found: Found, target: &Target) -> Result<Vec<SocketAddr>, Refusal> {
    let found = found.map_err(|error| {
        tracing::debug!(%target, %error, "cannot resolve");
        match error {
            Failure::TooMany => Refusal::TooManyFlows,
            _ => Refusal::NameNotFound,
        }
    })?;
    let at_port = found.iter().copied().map(|mut address| {
        address.set_port(target.port());
        address
    });
    Ok(at_port.take(MAX_ADDRESSES).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use super::names::tests::{Fake, SILENCE};
    use super::*;
    use tokio::time::{Instant, sleep};

    /// With these allow rules, and names that are answered with 192.0.2.1, or not at all if they
    /// end in `.silent`.
    pub(in crate::proxy) fn targets(allow: &[&str]) -> (Targets, Fake) {
        let rules = allow.iter().map(|text| text.parse().unwrap()).collect();
        let fake = Fake::default();
        let targets = Targets {
            judge: Judge::here(Policy::new(rules, Vec::new())).unwrap(),
            judges: Arc::default(),
            resolver: Resolver::new(fake.clone()),
        };
        (targets, fake)
    }

    fn tcp(text: &str) -> Target {
        Target::parse(Protocol::Tcp, text).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn targets_are_found_and_judged() {
        let (targets, _) = targets(&["192.0.2.0/24:80"]);
        let finder = targets.of(None);
        let found = finder.find(&tcp("a.example:80"), Protocol::Tcp).await;
        let addresses = found.unwrap();
        assert_eq!(addresses, ["192.0.2.1:80".parse().unwrap()]);
        for (target, refusal) in [
            ("a.example:81", Refusal::NotAllowed),
            ("127.0.0.1:80", Refusal::NotAllowed),
            ("a.wrong:80", Refusal::NameNotFound),
            ("a.silent:80", Refusal::NameNotFound),
        ] {
            let found = finder.find(&tcp(target), Protocol::Tcp).await;
            assert_eq!(found.unwrap_err(), refusal, "{target}");
        }
        let wrong_kind = finder.find(&tcp("a.example:80"), Protocol::Udp).await;
        assert_eq!(wrong_kind.unwrap_err(), Refusal::BadTarget);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_s_own_rules_hold_for_it_alone_and_change_while_it_is_there() {
        let (targets, _) = targets(&["192.0.2.0/24:80"]);
        let [one, other] = [[1; 32], [2; 32]].map(|key| Some(PublicKey::from_bytes(key)));
        let rule = |text: &str| vec![text.parse().unwrap()];
        let finder = targets.of(one);
        let found = async |finder: &Finder, target: &str| {
            let found = finder.find(&tcp(target), Protocol::Tcp).await;
            found.is_ok()
        };
        for (own, at_80, at_81, private) in [
            (None, true, false, false),
            (
                Some(Policy::new(rule("10.1.0.0/16"), vec![])),
                false,
                false,
                true,
            ),
            (
                Some(Policy::new(rule("192.0.2.1:81"), vec![])),
                false,
                true,
                false,
            ),
            (
                Some(Policy::new(vec![], rule("192.0.2.1"))),
                false,
                false,
                false,
            ),
            (None, true, false, false),
        ] {
            let own = own.map(|own| (one.unwrap(), own));
            targets.set_rules(&own.into_iter().collect());
            // Those of a session that goes on, and of one that begins.
            for finder in [&finder, &targets.of(one)] {
                assert_eq!(found(finder, "a.example:80").await, at_80);
                assert_eq!(found(finder, "a.example:81").await, at_81);
                assert_eq!(found(finder, "10.1.2.3:80").await, private);
            }
            assert!(found(&targets.of(other), "a.example:80").await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_looked_up_for_a_session_that_is_over() {
        let (targets, fake) = targets(&[]);
        let finder = targets.of(None);
        let held = finder.while_held();
        let start = Instant::now();
        let looking = {
            let finder = finder.clone();
            tokio::spawn(async move { finder.find(&tcp("a.silent:80"), Protocol::Tcp).await })
        };
        sleep(SILENCE / 100).await;
        drop(held);
        assert_eq!(looking.await.unwrap().unwrap_err(), Refusal::Failed);
        assert_eq!(start.elapsed(), SILENCE / 100);
        assert_eq!(fake.asked("a.silent"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_judgements_depend_on_is_looked_up_again_and_again() {
        let fake = Fake::default();
        let advertised = marline::identity::Host::Name("vpn.example".to_owned());
        let own = super::super::policy::OwnAddresses::of_this_host([advertised]).unwrap();
        let translators = super::super::policy::Translators::to_be_discovered();
        let judge = Judge::new(Policy::default(), own.into(), translators.into());
        let targets = Targets {
            judge: judge.clone(),
            judges: Arc::default(),
            resolver: Resolver::new(fake.clone()),
        };
        assert!(!judge.is_own([192, 0, 2, 1].into()));
        let following = tokio::spawn(async move { targets.follow(true).await });
        sleep(REFRESH / 2).await;
        assert!(judge.is_own([192, 0, 2, 1].into()));
        judge.ready("2a00::1".parse().unwrap()).await;
        sleep(REFRESH).await;
        for name in ["vpn.example", DISCOVERY_NAME] {
            assert_eq!(fake.asked(name), 2, "{name}");
        }
        following.abort();
    }
}
