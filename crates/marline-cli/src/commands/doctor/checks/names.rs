//! Are the server's names found, and how fast?

use super::super::finding::Finding;
use marline::identity::{Host, HostPort};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::lookup_host;
use tokio::time::timeout;

const NAME: &str = "names";
/// How long a look-up may take: a path that waits longer is given up by who waits for it.
const PATIENCE: Duration = Duration::from_secs(3);
/// A look-up that takes longer delays every dial.
const SLOW: Duration = Duration::from_secs(1);

/// The addresses of the hosts, and what looking them up was like.
pub(in super::super) async fn check(hosts: &[HostPort]) -> (Vec<SocketAddr>, Vec<Finding>) {
    let (mut addresses, mut found) = (Vec::new(), Vec::new());
    for host in hosts {
        match &host.host {
            Host::Ip(ip) => addresses.push((*ip, host.port).into()),
            Host::Name(name) => {
                let began = Instant::now();
                let looked_up = timeout(PATIENCE, lookup_host((name.as_str(), host.port))).await;
                let result = match looked_up {
                    Ok(Ok(addresses)) => Ok(addresses.collect::<Vec<_>>()),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
                };
                found.push(judge(name, &result, began.elapsed()));
                addresses.extend(result.unwrap_or_default());
            }
        }
    }
    let mut unique: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        if !unique.contains(&address) {
            unique.push(address);
        }
    }
    if found.is_empty() {
        found.push(Finding::fine(NAME, "none to look up"));
    }
    (unique, found)
}

fn judge(name: &str, result: &Result<Vec<SocketAddr>, String>, after: Duration) -> Finding {
    let ms = after.as_millis();
    match result {
        Err(why) => Finding::failure(NAME, format!("`{name}` cannot be looked up: {why}"))
            .mend("check the name and /etc/resolv.conf, or use the server's address"),
        Ok(addresses) if addresses.is_empty() => {
            Finding::failure(NAME, format!("`{name}` has no address")).mend("check the name")
        }
        Ok(addresses) => {
            let texts: Vec<String> = addresses.iter().map(|a| a.ip().to_string()).collect();
            let text = format!("`{name}` is {}, after {ms} ms", texts.join(", "));
            match after > SLOW {
                false => Finding::fine(NAME, text),
                true => Finding::warning(NAME, format!("{text}, which is slow"))
                    .mend("use a nearer resolver, or the server's address"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[tokio::test]
    async fn addresses_need_no_look_up_and_are_taken_once() {
        let hosts = ["192.0.2.1:4433", "192.0.2.1:4433"].map(|host| host.parse().unwrap());
        let (addresses, found) = check(&hosts).await;
        assert_eq!(addresses.len(), 1);
        assert_eq!(found, [Finding::fine(NAME, "none to look up")]);
    }

    #[test]
    fn a_look_up_fails_or_is_slow() {
        let there = Ok(vec!["192.0.2.1:4433".parse().unwrap()]);
        let verdict =
            |result, seconds| judge("host", &result, Duration::from_secs(seconds)).verdict;
        assert_eq!(verdict(there.clone(), 0), Verdict::Fine);
        assert_eq!(verdict(there, 2), Verdict::Warning);
        assert_eq!(verdict(Ok(Vec::new()), 0), Verdict::Failure);
        assert_eq!(verdict(Err("no".into()), 0), Verdict::Failure);
    }
}
