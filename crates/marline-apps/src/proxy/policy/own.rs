//! Which addresses are the server's own host's.
//!
//! A service there may count on the host's firewall, or on the interface that it listens on, to
//! keep strangers out; a connection that begins on the host itself passes both. The system is asked
//! about each address, rather than for a list: it also knows of addresses that are on no interface
//! (`ip route add local`), of its networks' broadcast addresses and of IPv6 routers' anycast
//! addresses. What it said holds until it says that something has changed. Behind address
//! translation the host has addresses that it cannot know: those are named in the configuration.

mod interfaces;
#[cfg(target_os = "linux")]
mod kernel;

use marline::identity::Host;
use marline::support::lock;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// Most answers that are kept. Asking costs some microseconds; all are forgotten when there are
/// more.
const MAX_ANSWERS: usize = 4096;

/// A system that knows its own addresses.
trait System: Send + fmt::Debug {
    /// May answers be others than before?
    fn has_changed(&mut self) -> bool;

    /// Does a packet to `address` end in this host?
    fn is_own(&mut self, address: IpAddr) -> io::Result<bool>;
}

/// The addresses of the server's host.
#[derive(Debug)]
pub struct OwnAddresses {
    asked: Mutex<Asked>,
    /// What is advertised by address.
    advertised: BTreeSet<IpAddr>,
    /// What is advertised by name, each with the addresses that it had lately.
    names: BTreeMap<String, Mutex<Vec<IpAddr>>>,
}

#[derive(Debug)]
struct Asked {
    system: Box<dyn System>,
    answers: HashMap<IpAddr, bool>,
    /// When it was last asked for changes.
    fresh: Instant,
    /// The last question was not answered, and that was logged.
    silent: bool,
}

impl OwnAddresses {
    /// Those of this host as its system has them from now on, and those at which it is
    /// `advertised`: they reach it, though its system may not know, because others translate them.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn of_this_host(advertised: impl IntoIterator<Item = Host>) -> io::Result<Self> {
        let mut system = system();
        // It answers at all.
        system.is_own(Ipv4Addr::LOCALHOST.into())?;
        Ok(Self::of(system, advertised))
    }

    fn of(system: Box<dyn System>, advertised: impl IntoIterator<Item = Host>) -> Self {
        let mut own = OwnAddresses {
            asked: Mutex::new(Asked {
                system,
                answers: HashMap::new(),
                fresh: Instant::now(),
                silent: false,
            }),
            advertised: BTreeSet::new(),
            names: BTreeMap::new(),
        };
        for host in advertised {
            match host {
                Host::Ip(ip) => {
                    own.advertised.insert(ip.to_canonical());
                }
                Host::Name(name) => {
                    own.names.entry(name.to_ascii_lowercase()).or_default();
                }
            }
        }
        own
    }

    /// Names of this host, whose addresses are to be looked up.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The addresses of one of its [`names`](Self::names), instead of those that it had before.
    pub fn found(&self, name: &str, addresses: impl IntoIterator<Item = IpAddr>) {
        if let Some(known) = self.names.get(name) {
            *lock(known) = addresses.into_iter().map(|ip| ip.to_canonical()).collect();
        }
    }

    /// Is `address`, which was named `name` if it was, one of them? Where the system does not say,
    /// yes. Changes of the last `age` may be missed.
    pub(super) fn contains(&self, name: Option<&str>, address: IpAddr, age: Duration) -> bool {
        name.is_some_and(|name| self.names.contains_key(name))
            || self.advertised.contains(&address)
            || self
                .names
                .values()
                .any(|known| lock(known).contains(&address))
            || lock(&self.asked).contains(address, age)
    }
}

impl Asked {
    fn contains(&mut self, address: IpAddr, age: Duration) -> bool {
        let now = Instant::now();
        if now.duration_since(self.fresh) >= age {
            self.fresh = now;
            if self.system.has_changed() {
                self.answers.clear();
            }
        }
        if self.answers.len() >= MAX_ANSWERS {
            self.answers.clear();
        }
        if let Some(own) = self.answers.get(&address) {
            return *own;
        }
        match self.system.is_own(address) {
            Ok(own) => {
                self.silent = false;
                self.answers.insert(address, own);
                own
            }
            Err(error) => {
                if !self.silent {
                    tracing::warn!(%error, "the system does not say which addresses are this host's: targets are refused");
                }
                self.silent = true;
                true
            }
        }
    }
}

#[cfg(target_os = "linux")]
fn system() -> Box<dyn System> {
    let kernel = kernel::Kernel::open().and_then(|mut kernel| {
        kernel.is_own(Ipv4Addr::LOCALHOST.into())?;
        Ok(kernel)
    });
    match kernel {
        Ok(kernel) => Box::new(kernel),
        Err(error) => {
            tracing::warn!(%error, "cannot ask for routes: only addresses of interfaces are known as this host's");
            Box::new(interfaces::Interfaces)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn system() -> Box<dyn System> {
    Box::new(interfaces::Interfaces)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::time::sleep;

    /// A host whose addresses the test has in its hands.
    #[derive(Debug, Clone, Default)]
    struct Fake(Arc<Mutex<FakeState>>);

    #[derive(Debug, Default)]
    struct FakeState {
        own: BTreeSet<IpAddr>,
        changed: bool,
        silent: bool,
        asked: usize,
    }

    impl System for Fake {
        fn has_changed(&mut self) -> bool {
            std::mem::take(&mut lock(&self.0).changed)
        }

        fn is_own(&mut self, address: IpAddr) -> io::Result<bool> {
            let mut state = lock(&self.0);
            state.asked += 1;
            match state.silent {
                true => Err(io::ErrorKind::OutOfMemory.into()),
                false => Ok(state.own.contains(&address)),
            }
        }
    }

    /// A host that has these addresses.
    pub(crate) fn host_with(addresses: &[&str]) -> OwnAddresses {
        let fake = Fake::default();
        lock(&fake.0).own = addresses.iter().map(|text| ip(text)).collect();
        OwnAddresses::of(Box::new(fake), [])
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_answer_holds_until_something_changes() {
        let fake = Fake::default();
        let own = OwnAddresses::of(Box::new(fake.clone()), []);
        for _ in 0..3 {
            assert!(!own.contains(None, ip("1.2.3.4"), Duration::ZERO));
        }
        assert_eq!(lock(&fake.0).asked, 1);
        lock(&fake.0).own.insert(ip("1.2.3.4"));
        lock(&fake.0).changed = true;
        for _ in 0..3 {
            assert!(own.contains(None, ip("1.2.3.4"), Duration::ZERO));
        }
        assert_eq!(lock(&fake.0).asked, 2);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_are_asked_for_as_often_as_is_wanted() {
        let fake = Fake::default();
        let own = OwnAddresses::of(Box::new(fake.clone()), []);
        let age = Duration::from_millis(1);
        assert!(!own.contains(None, ip("1.2.3.4"), Duration::ZERO));
        lock(&fake.0).own.insert(ip("1.2.3.4"));
        lock(&fake.0).changed = true;
        assert!(!own.contains(None, ip("1.2.3.4"), age));
        sleep(age).await;
        assert!(own.contains(None, ip("1.2.3.4"), age));
    }

    #[test]
    fn no_answer_means_own_and_is_not_kept() {
        let fake = Fake::default();
        let own = OwnAddresses::of(Box::new(fake.clone()), []);
        lock(&fake.0).silent = true;
        assert!(own.contains(None, ip("1.2.3.4"), Duration::ZERO));
        lock(&fake.0).silent = false;
        assert!(!own.contains(None, ip("1.2.3.4"), Duration::ZERO));
    }

    #[test]
    fn answers_are_bounded() {
        let fake = Fake::default();
        let own = OwnAddresses::of(Box::new(fake), []);
        for number in 0..3 * MAX_ANSWERS as u32 {
            assert!(!own.contains(None, Ipv4Addr::from_bits(number).into(), Duration::ZERO));
            assert!(lock(&own.asked).answers.len() <= MAX_ANSWERS);
        }
    }

    #[test]
    fn what_is_advertised_is_own_in_any_form() {
        let advertised = [
            Host::Ip(ip("::ffff:9.9.9.9")),
            Host::Name("VPN.example.com".into()),
        ];
        let own = OwnAddresses::of(Box::new(Fake::default()), advertised);
        assert!(own.contains(None, ip("9.9.9.9"), Duration::ZERO));
        assert_eq!(own.names().collect::<Vec<_>>(), ["vpn.example.com"]);
        // Before it is known which addresses the name has, and from when it is.
        assert!(own.contains(Some("vpn.example.com"), ip("8.8.8.8"), Duration::ZERO));
        assert!(!own.contains(None, ip("8.8.8.8"), Duration::ZERO));
        own.found("vpn.example.com", [ip("8.8.8.8"), ip("2606:4700::9")]);
        assert!(
            own.contains(None, ip("8.8.8.8"), Duration::ZERO)
                && own.contains(None, ip("2606:4700::9"), Duration::ZERO)
        );
        own.found("vpn.example.com", [ip("8.8.4.4")]);
        assert!(
            !own.contains(None, ip("8.8.8.8"), Duration::ZERO)
                && own.contains(None, ip("8.8.4.4"), Duration::ZERO)
        );
    }

    #[test]
    fn this_host_has_its_loopback_and_the_system_says_so() {
        let own = OwnAddresses::of_this_host([]).unwrap();
        assert!(own.contains(None, ip("127.0.0.1"), Duration::ZERO));
        assert!(!own.contains(None, ip("192.0.2.77"), Duration::ZERO));
    }
}
