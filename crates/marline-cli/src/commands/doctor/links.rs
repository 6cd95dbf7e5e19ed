//! Routes as `ip -j` shows them.

use super::programs::{NoAnswer, ask};
use marline::carrier::Bind;
use serde::Deserialize;
use std::net::IpAddr;

/// What `ip` says of the way that packets take to an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Route {
    pub(super) dev: String,
    pub(super) gateway: Option<String>,
    prefsrc: Option<String>,
}

impl Route {
    /// The source address.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.prefsrc.as_ref()?.parse().ok()
    }
}

/// Why no route is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoRoute {
    /// The kernel has none.
    #[error("{0}")]
    None(&'static str),
    /// The tool has not said.
    #[error(transparent)]
    Unknown(#[from] NoAnswer),
}

/// The way of a path's packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) route: Route,
    /// An entry of the routing tables leads there. The kernel sends without one what is bound to an
    /// interface, as if the address were on its link.
    pub(super) is_listed: bool,
}

/// The way that packets to `remote` take from what a path is bound to. `addresses`: this host's,
/// each with its interface.
pub(super) async fn way(
    remote: IpAddr,
    bind: &Bind,
    addresses: &[(String, IpAddr)],
) -> Result<Way, NoRoute> {
    if let Bind::Address(ip) = bind
        && let Some((owner, _)) = addresses.iter().find(|(_, own)| own == ip)
        && !remote.is_loopback()
    {
        // As the path's socket does: by the address's own interface if a route leads there.
        let owner = Bind::Interface(owner.clone());
        if asked(remote, &owner, &["fibmatch"]).await.is_ok() {
            let mut route = asked(remote, &owner, &[]).await?;
            route.prefsrc = Some(ip.to_string());
            return Ok(Way {
                route,
                is_listed: true,
            });
        }
    }
    let mut route = asked(remote, bind, &[]).await?;
    if let Bind::Address(ip) = bind {
        route.prefsrc = Some(ip.to_string());
    }
    let is_listed = match bind {
        Bind::Interface(_) => match asked(remote, bind, &["fibmatch"]).await {
            Ok(_) => true,
            Err(NoRoute::None(_)) => false,
            Err(unknown) => return Err(unknown),
        },
        Bind::Any | Bind::Matching(_) | Bind::Address(_) | Bind::Network(_) => true,
    };
    Ok(Way { route, is_listed })
}

async fn asked(remote: IpAddr, bind: &Bind, how: &[&str]) -> Result<Route, NoRoute> {
    let remote = remote.to_string();
    let bound = match bind {
        Bind::Any | Bind::Matching(_) | Bind::Network(_) => None,
        Bind::Interface(name) => Some(("oif", name.clone())),
        Bind::Address(ip) => Some(("from", ip.to_string())),
    };
    let mut words = vec!["-j", "route", "get"];
    words.extend(how);
    words.push(&remote);
    if let Some((word, value)) = &bound {
        words.extend([word, value.as_str()]);
    }
    match ask("ip", &words).await {
        Ok(json) => Ok(read(&json)?),
        Err(no_answer) => Err(understood(no_answer)),
    }
}

fn read(json: &[u8]) -> Result<Route, NoAnswer> {
    let odd = |why: String| NoAnswer::Broken { program: "ip", why };
    let routes: Vec<Route> =
        serde_json::from_slice(json).map_err(|error| odd(error.to_string()))?;
    let known = routes.into_iter().find(|route| !route.dev.is_empty());
    known.ok_or_else(|| odd("its answer has no device".to_owned()))
}

/// What the kernel says of routes, by the words of strerror(3): ip-route(8) explains the types
/// unreachable, prohibit and blackhole.
const NONE: [(&str, &str); 4] = [
    ("Network is unreachable", "no route leads there"),
    ("No route to host", "no route leads there"),
    ("Permission denied", "the routing tables prohibit it"),
    ("Invalid argument", "the routing tables drop it (blackhole)"),
];

fn understood(no_answer: NoAnswer) -> NoRoute {
    if let NoAnswer::Refused { complaint, .. } = &no_answer
        && let Some(said) = complaint.strip_prefix("RTNETLINK answers: ")
        && let Some((_, why)) = NONE.iter().find(|(word, _)| *word == said)
    {
        return NoRoute::None(why);
    }
    NoRoute::Unknown(no_answer)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn route(dev: &str, source: &str) -> Route {
        Route {
            dev: dev.into(),
            gateway: Some("10.0.0.1".into()),
            prefsrc: Some(source.into()),
        }
    }

    #[test]
    fn what_ip_says_is_read_and_odd_answers_are_no_panic() {
        let json = br#"[{"dst":"1.2.3.4","gateway":"192.168.1.1","dev":"wlan0",
            "prefsrc":"192.168.1.4","flags":[],"uid":0,"cache":[]}]"#;
        assert_eq!(read(json).unwrap().source(), "192.168.1.4".parse().ok());
        for odd in [
            &b""[..],
            b"{}",
            b"[{\"dev\":7}]",
            b"[]",
            b"\xff\xfe",
            b"[[[[",
        ] {
            assert!(matches!(read(odd), Err(NoAnswer::Broken { .. })));
        }
    }

    #[test]
    fn only_the_kernel_says_that_there_is_no_route() {
        let said = |complaint: &str| {
            let complaint = complaint.to_owned();
            understood(NoAnswer::Refused {
                program: "ip",
                complaint,
            })
        };
        for complaint in [
            "RTNETLINK answers: Network is unreachable",
            "RTNETLINK answers: No route to host",
        ] {
            assert_eq!(said(complaint), NoRoute::None("no route leads there"));
        }
        // As BusyBox answers, and of an interface that has gone.
        for complaint in ["ip: invalid option -- 'j'", "Cannot find device \"w1\""] {
            let unknown = matches!(said(complaint), NoRoute::Unknown(_));
            assert!(unknown, "{complaint}");
        }
        let absent = understood(NoAnswer::Absent("ip"));
        assert_eq!(absent.to_string(), "`ip` is not installed");
    }
}
