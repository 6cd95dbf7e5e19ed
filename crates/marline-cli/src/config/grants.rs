//! What each client is granted: the options before its key in `allow-client` or in the file of
//! `allow-clients-file`, together with `allow-publish` and `allow-prefix`.

use super::error::Placed as _;
use super::source::Source;
use super::{ConfigError, Place, RawServer};
use marline::endpoint::ClientLimits;
use marline::identity::{AllowList, AllowedClient, PublicKey};
use marline_apps::grant::{Grant, GrantError};
use marline_apps::proxy::policy::Policy;
use marline_apps::publish::{Permit, Permits};
use marline_apps::tun::{Pool, Prefix, Prefixes};
use marline_base::text::Problem;
use std::collections::HashMap;
use std::net::IpAddr;

/// What clients are granted, by their keys.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Rates of those that have some.
    pub limits: HashMap<PublicKey, ClientLimits>,
    /// Rules for targets of those that have some of their own.
    pub targets: HashMap<PublicKey, Policy>,
    /// Ports that they may publish.
    pub permits: Permits,
    /// Networks behind them.
    pub prefixes: Prefixes,
    /// Their addresses in the tunnel.
    pub addresses: HashMap<PublicKey, IpAddr>,
    /// Where these are written.
    places: Vec<(IpAddr, Place)>,
}

impl Grants {
    /// What was written for the clients of `allow`, which was read from `source`.
    ///
    /// # Errors
    /// The first option that cannot be granted, with its place and the mend.
    pub(super) fn read(source: &Source<RawServer>, allow: &AllowList) -> Result<Self, ConfigError> {
        let raw = &source.raw;
        let mut grants = Grants::default();
        // Without a tunnel they are refused as a key of one.
        let prefixes = raw.allow_prefix.iter().filter(|_| raw.tun.is_some());
        for value in prefixes {
            source.read("allow-prefix", value, |text| {
                grants.prefixes.add(text.parse::<Prefix>()?)
            })?;
        }
        let read = |value| source.read("allow-publish", value, str::parse::<Permit>);
        let permits = raw.allow_publish.iter().map(read);
        let permits: Vec<Permit> = permits.collect::<Result<_, _>>()?;
        grants.add(allow, permits, |client, option| {
            match in_list(allow, client, option) {
                Some(place) => place,
                None => among_flags(source, client),
            }
        })
    }

    /// What the lines of a file grant, by themselves.
    ///
    /// # Errors
    /// An option that is none, with a value that is none, or that contradicts another's.
    pub fn of_list(allow: &AllowList) -> Result<Self, ConfigError> {
        Grants::default().add(allow, Vec::new(), |client, option| {
            in_list(allow, client, option).unwrap_or(Place::Flag {
                key: "allow-client".to_owned(),
                value: String::new(),
            })
        })
    }

    fn add(
        self,
        allow: &AllowList,
        mut permits: Vec<Permit>,
        place: impl Fn(&AllowedClient, &str) -> Place,
    ) -> Result<Self, ConfigError> {
        let mut grants = self;
        for client in allow.clients() {
            let place = |option: &str| place(&client, option);
            let grant = Grant::read(client.key, &client.options);
            let grant =
                grant.map_err(|GrantError { option, problem }| problem.at(place(&option)))?;
            if grant.limits != ClientLimits::default() {
                grants.limits.insert(client.key, grant.limits);
            }
            if let Some(targets) = grant.targets {
                grants.targets.insert(client.key, targets);
            }
            permits.extend(grant.publish);
            for prefix in grant.prefixes {
                let added = grants.prefixes.add(prefix);
                added.map_err(|problem| problem.at(place("prefix")))?;
            }
            if let Some(address) = grant.address {
                let other = grants.places.iter().find(|(other, _)| *other == address);
                if let Some((_, other)) = other {
                    return Err(
                        Problem::new(format!("`{address}` is given already, by {other}"))
                            .hint("give each client an address of its own")
                            .at(place("address")),
                    );
                }
                grants.places.push((address, place("address")));
                grants.addresses.insert(client.key, address);
            }
        }
        grants.permits = Permits::new(permits);
        Ok(grants)
    }

    /// Checks them against the networks that a tunnel's clients have addresses of.
    ///
    /// # Errors
    /// An address that no client can have, a network that overlaps those, with the place.
    pub fn fit(&self, pool: &Pool) -> Result<(), ConfigError> {
        let mut numbers = HashMap::new();
        for (address, place) in &self.places {
            let Some(number) = pool.number(*address) else {
                let problem = Problem::new(format!("`{address}` is no client's address in {pool}"));
                let hint = "choose one of these networks, not the first, which is the server's, or \
                            have others with --tun-pool";
                return Err(problem.hint(hint).at(place.clone()));
            };
            if let Some(other) = numbers.insert(number, address) {
                return Err(Problem::new(format!(
                    "who has `{other}` has `{address}`, too: clients have one number in both families"
                ))
                .hint("give each client another number")
                .at(place.clone()));
            }
        }
        match self.prefixes.overlap(pool.networks()) {
            None => Ok(()),
            Some(net) => Err(Problem::new(format!("`{net}` overlaps the tunnel's own {pool}"))
                .hint("choose other addresses for the tunnel, --tun-pool, or another network behind the client")
                .at(Place::Flag {
                    key: "allow-prefix".to_owned(),
                    value: net.to_string(),
                })),
        }
    }
}

/// Where an option of `client` is written, if it is from a file of clients.
fn in_list(allow: &AllowList, client: &AllowedClient, option: &str) -> Option<Place> {
    let (file, line) = (allow.file()?, client.line?);
    let words = client.options.split(',');
    let is_its = |word: &&str| word.split_once('=').map_or(*word, |(name, _)| name) == option;
    Some(Place::File {
        file,
        line: Some(line),
        key: Some(option.to_owned()),
        // Of an option that stands several times, all of it is to be looked at.
        value: words.filter(is_its).collect::<Vec<_>>().join(","),
    })
}

fn among_flags(source: &Source<RawServer>, client: &AllowedClient) -> Place {
    let is_its = |text: &str| {
        let read = text.parse::<AllowedClient>();
        read.is_ok_and(|read| read.key == client.key)
    };
    let mut written = source.raw.allow_client.iter().rev();
    match written.find(|value| is_its(&value.text)) {
        Some(value) => source.place("allow-client", value),
        None => source.missing("allow-client"),
    }
}
