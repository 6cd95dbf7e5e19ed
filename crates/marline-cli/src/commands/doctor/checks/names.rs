//! Are the server's names found, and how fast?

use super::super::finding::Finding;
use super::super::limits::PATIENCE;
use marline::identity::{Host, HostPort};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::timeout;

const NAME: &str = "names";
/// A look-up that takes longer is slow: each dial of a path waits for it, and a modem that is
/// plugged in again is to be back within a second (CHANGELOG).
const SLOW: Duration = Duration::from_secs(1);

/// What looking a name up was like.
struct LookedUp {
    /// Its place among the hosts.
    index: usize,
    name: String,
    result: Result<Vec<SocketAddr>, String>,
    after: Duration,
}

/// The addresses of the hosts, and what looking them up was like. All names are asked for at once.
pub(in super::super) async fn check(hosts: &[HostPort]) -> (Vec<SocketAddr>, Vec<Finding>) {
    let mut asked = JoinSet::new();
    for (index, host) in hosts.iter().enumerate() {
        if let Host::Name(name) = &host.host {
            asked.spawn(look_up(index, name.clone(), host.port));
        }
    }
    let mut answers = asked.join_all().await;
    answers.sort_by_key(|answer| answer.index);
    let mut found: Vec<Finding> = answers.iter().map(judge).collect();
    if found.is_empty() {
        found.push(Finding::fine(NAME, "none to look up"));
    }
    let mut answers = answers.into_iter();
    let mut unique: Vec<SocketAddr> = Vec::new();
    for host in hosts {
        let addresses = match &host.host {
            Host::Ip(ip) => vec![(*ip, host.port).into()],
            Host::Name(_) => answers
                .next()
                .and_then(|it| it.result.ok())
                .unwrap_or_default(),
        };
        for address in addresses {
            if !unique.contains(&address) {
                unique.push(address);
            }
        }
    }
    (unique, found)
}

async fn look_up(index: usize, name: String, port: u16) -> LookedUp {
    let began = Instant::now();
    let result = match timeout(PATIENCE, lookup_host((name.as_str(), port))).await {
        Ok(Ok(addresses)) => Ok(addresses.collect()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    };
    LookedUp {
        index,
        name,
        result,
        after: began.elapsed(),
    }
}

fn judge(answer: &LookedUp) -> Finding {
    let (name, ms) = (&answer.name, answer.after.as_millis());
    match &answer.result {
        Err(why) => Finding::failure(NAME, format!("`{name}` cannot be looked up: {why}"))
            .fix("check the name and /etc/resolv.conf, or use the server's address"),
        Ok(addresses) if addresses.is_empty() => {
            Finding::failure(NAME, format!("`{name}` has no address")).fix("check the name")
        }
        Ok(addresses) => {
            let texts: Vec<String> = addresses.iter().map(|a| a.ip().to_string()).collect();
            let text = format!("`{name}` is {}, after {ms} ms", texts.join(", "));
            match answer.after > SLOW {
                false => Finding::fine(NAME, text),
                true => Finding::warning(NAME, format!("{text}, which is slow"))
                    .fix("use a nearer resolver, or the server's address"),
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

    #[tokio::test]
    async fn names_stay_in_their_order() {
        // Of RFC 6761 they lead to this host, without any server.
        let hosts = ["192.0.2.1:1", "localhost:2", "192.0.2.3:3", "localhost:4"];
        let (addresses, found) = check(&hosts.map(|host| host.parse().unwrap())).await;
        let ports: Vec<u16> = addresses.iter().map(SocketAddr::port).collect();
        assert!(ports.is_sorted(), "{addresses:?}");
        assert_eq!((ports.first(), ports.last()), (Some(&1), Some(&4)));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_look_up_fails_or_is_slow() {
        let there = Ok(vec!["192.0.2.1:4433".parse().unwrap()]);
        let verdict = |result, seconds| {
            let answer = LookedUp {
                index: 0,
                name: "host".into(),
                result,
                after: Duration::from_secs(seconds),
            };
            judge(&answer).verdict
        };
        assert_eq!(verdict(there.clone(), 0), Verdict::Fine);
        assert_eq!(verdict(there, 2), Verdict::Warning);
        assert_eq!(verdict(Ok(Vec::new()), 0), Verdict::Failure);
        assert_eq!(verdict(Err("no".into()), 0), Verdict::Failure);
    }
}
