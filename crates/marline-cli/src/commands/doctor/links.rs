//! Interfaces and routes as `ip -j` tells of them.

use super::programs::ask;
use marline::carrier::Bind;
use serde::Deserialize;
use std::net::IpAddr;

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Device {
    pub(super) ifname: String,
    addr_info: Vec<Address>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Address {
    local: String,
    scope: String,
}

impl Device {
    /// Its addresses that reach beyond the link.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        let far = self.addr_info.iter().filter(|a| a.scope != "link");
        far.filter_map(|address| address.local.parse().ok())
            .collect()
    }
}

/// All interfaces, or in words why they are not known.
pub(super) async fn devices() -> Result<Vec<Device>, String> {
    read_devices(&ask("ip", &["-j", "addr"]).await?)
}

fn read_devices(json: &[u8]) -> Result<Vec<Device>, String> {
    serde_json::from_slice(json).map_err(|error| format!("`ip` answers oddly: {error}"))
}

/// The way to an address.
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

/// The way that packets to `remote` take from what a path is bound to, or why there is none.
pub(super) async fn route(remote: IpAddr, bind: &Bind) -> Result<Route, String> {
    let (remote, bound) = (
        remote.to_string(),
        match bind {
            Bind::Any | Bind::Matching(_) => None,
            Bind::Interface(name) => Some(("oif", name.clone())),
            Bind::Address(ip) => Some(("from", ip.to_string())),
        },
    );
    let mut words = vec!["-j", "route", "get", &remote];
    if let Some((word, value)) = &bound {
        words.extend([word, value.as_str()]);
    }
    let mut route = read_route(&ask("ip", &words).await?)?;
    if let Bind::Address(ip) = bind {
        route.prefsrc = Some(ip.to_string());
    }
    Ok(route)
}

fn read_route(json: &[u8]) -> Result<Route, String> {
    let routes: Vec<Route> =
        serde_json::from_slice(json).map_err(|error| format!("`ip` answers oddly: {error}"))?;
    let known = routes.into_iter().find(|route| !route.dev.is_empty());
    known.ok_or_else(|| "`ip` knows no way".to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn device(name: &str, addresses: &[&str]) -> Device {
        let address = |local: &&str| Address {
            local: (*local).to_owned(),
            scope: "global".into(),
        };
        Device {
            ifname: name.into(),
            addr_info: addresses.iter().map(address).collect(),
        }
    }

    pub(in super::super) fn way(dev: &str, source: &str) -> Route {
        Route {
            dev: dev.into(),
            gateway: Some("10.0.0.1".into()),
            prefsrc: Some(source.into()),
        }
    }

    #[test]
    fn what_ip_says_is_read_and_odd_answers_are_no_panic() {
        let json = br#"[{},{"ifname":"wlan0","mtu":1500,"addr_info":[
            {"family":"inet","local":"192.168.1.4","prefixlen":24,"scope":"global"},
            {"family":"inet6","local":"fe80::1","scope":"link"},{"local":"nonsense"}]}]"#;
        let devices = read_devices(json).unwrap();
        assert_eq!(devices[1].ifname, "wlan0");
        assert_eq!(
            devices[1].addresses(),
            ["192.168.1.4".parse::<IpAddr>().unwrap()]
        );
        let json = br#"[{"dst":"1.2.3.4","gateway":"192.168.1.1","dev":"wlan0",
            "prefsrc":"192.168.1.4","flags":[],"uid":0,"cache":[]}]"#;
        let route = read_route(json).unwrap();
        assert_eq!(route.source(), "192.168.1.4".parse().ok());
        for odd in [
            &b""[..],
            b"{}",
            b"[{\"dev\":7}]",
            b"[]",
            b"\xff\xfe",
            b"[[[[",
        ] {
            assert!(read_route(odd).is_err());
        }
        assert!(read_devices(b"[{\"ifname\":[]}]").is_err());
    }
}
