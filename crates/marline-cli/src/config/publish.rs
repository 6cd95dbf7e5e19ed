//! The keys of published ports: `publish` of a client, `allow-publish` and `publish-address` of a
//! server.

use super::error::Placed as _;
use super::source::Source;
use super::{ConfigError, RawClient, RawServer};
use marline_apps::publish::{MOST, Permits, Publication};
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

/// At which of its addresses a server opens clients' ports; none for all.
pub(super) fn publish_addresses(
    source: &Source<RawServer>,
    permits: &Permits,
) -> Result<Vec<IpAddr>, ConfigError> {
    let raw = &source.raw;
    // A list of clients may have some later.
    let none = permits.is_empty() && raw.allow_clients_file.is_none();
    if let (true, Some(value)) = (none, raw.publish_address.first()) {
        return Err(Problem::new("no client may publish a port there")
            .hint(
                "say which may: --allow-publish KEY=tcp:PORT, or `publish=tcp:PORT` before its key",
            )
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
    Ok(addresses)
}
