//! The keys of published ports: `publish` of a client, `allow-publish` and `publish-address` of a
//! server.

use super::error::Placed as _;
use super::source::Source;
use super::{ConfigError, RawClient, RawServer};
use marline_apps::publish::{MOST, Permit, Permits, Publication};
use marline_base::text::Problem;
use std::net::IpAddr;

/// The ports that a client publishes, each once.
pub(super) fn publications(source: &Source<RawClient>) -> Result<Vec<Publication>, ConfigError> {
    let mut all: Vec<Publication> = Vec::new();
    for value in &source.raw.publish {
        let publication = source.read("publish", value, |text| {
            let publication: Publication = text.parse()?;
            let port = publication.port;
            if let Some(other) = all.iter().find(|other| other.port == port) {
                return Err(
                    Problem::new(format!("{port} leads to {} already", other.target))
                        .hint("choose another port of the server for one of them"),
                );
            }
            if all.len() == MOST {
                return Err(Problem::new(format!(
                    "a client publishes at most {MOST} ports"
                )));
            }
            Ok(publication)
        })?;
        all.push(publication);
    }
    Ok(all)
}

/// What a server's clients may publish, and at which of its addresses; none for all.
pub(super) fn permits(source: &Source<RawServer>) -> Result<(Permits, Vec<IpAddr>), ConfigError> {
    let raw = &source.raw;
    let read = |value| source.read("allow-publish", value, str::parse::<Permit>);
    let permits: Vec<Permit> = raw
        .allow_publish
        .iter()
        .map(read)
        .collect::<Result<_, _>>()?;
    if let ([], Some(value)) = (&permits[..], raw.publish_address.first()) {
        return Err(Problem::new("no client may publish a port there")
            .hint("say which may: --allow-publish KEY=tcp:PORT")
            .at(source.place("publish-address", value)));
    }
    let mut addresses = Vec::new();
    for value in &raw.publish_address {
        addresses.push(source.read("publish-address", value, |text| {
            let address: IpAddr = text.parse().map_err(|_| {
                Problem::new(format!("`{text}` is no address"))
                    .hint("write an address of this host without a port, for example `203.0.113.5`")
            })?;
            match addresses.contains(&address) {
                true => Err(Problem::new(format!("`{text}` is given twice"))),
                false => Ok(address),
            }
        })?);
    }
    Ok((Permits::new(permits), addresses))
}
