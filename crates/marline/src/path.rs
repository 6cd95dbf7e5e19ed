//! One path as it is configured:
//!
//! ```text
//! LOCAL[,except=NAMES][,standby][,cost=N][,budget=SIZE][,server=HOST:PORT]
//!      [,carrier=auto|quic|tcp][,tcp-cc=NAME][,name=NAME]
//! ```

use crate::carrier::{Bind, CarrierChoice, Network};
use crate::identity::HostPort;
use crate::interfaces::Selector;
use marline_base::text::{Problem, Takes, list, size, units::show_large_size as size_text};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Longest interface name that Linux accepts (`IFNAMSIZ` less the closing zero).
const MAX_INTERFACE: usize = 15;
/// Longest path name.
const MAX_NAME: usize = 64;
/// Longest name of a congestion control that Linux takes (`TCP_CA_NAME_MAX` less the closing zero).
const MAX_CONTROL: usize = 15;

/// A path as the user wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The name that `marline status` shows and `marline paths` takes. Unique within a session.
    pub name: String,
    /// What the path's socket is bound to.
    pub local: Bind,
    /// Used only when no path that is not on standby works.
    pub standby: bool,
    /// Cost rank, 0 is cheapest; a path carries what those of lower ranks do not carry in time.
    pub cost: u8,
    /// Bytes that the path may carry in a month, both ways; beyond it the path stands by.
    pub budget: Option<u64>,
    /// Address of the server over this path, where it differs from those in the connection string.
    pub server: Option<HostPort>,
    /// What may carry the path.
    pub carrier: CarrierChoice,
    /// Congestion control of the kernel, as it calls it, where TCP carries the path; `None` for the
    /// system's own choice.
    pub tcp_cc: Option<String>,
}

/// Each of these makes a path, and the methods say what is different about it:
///
/// ```
/// use marline::Path;
///
/// let modem = Path::interface("wwan0").cost(2).standby().named("modem");
/// assert_eq!(modem, "wwan0,standby,cost=2,name=modem".parse()?);
/// # Ok::<(), marline::Problem>(())
/// ```
impl Path {
    /// The path that the routing table chooses.
    pub fn any() -> Self {
        Self::default()
    }

    /// Over this network interface.
    pub fn interface(name: impl Into<String>) -> Self {
        Self::over(Bind::Interface(name.into()))
    }

    /// Over each network interface that fits: a path for each, with the same cost and, together,
    /// the same budget.
    pub fn matching(selector: Selector) -> Self {
        Self::over(Bind::Matching(Box::new(selector)))
    }

    /// Over a network that the application binds sockets to.
    pub fn network(network: Network) -> Self {
        Self::over(Bind::Network(network))
    }

    /// From this address of the host.
    pub fn address(address: IpAddr) -> Self {
        Self::over(Bind::Address(address))
    }

    fn over(local: Bind) -> Self {
        Self {
            name: default_name(&local, None),
            local,
            ..Self::default()
        }
    }

    /// Under another name than that of what it is bound to.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Used only when no path that is not on standby works.
    #[must_use]
    pub fn standby(mut self) -> Self {
        self.standby = true;
        self
    }

    /// With this cost rank, 0 is cheapest.
    #[must_use]
    pub fn cost(mut self, cost: u8) -> Self {
        self.cost = cost;
        self
    }

    /// To this address of the server, instead of those in the connection string; the path's name
    /// follows it unless it was given another.
    #[must_use]
    pub fn server(mut self, server: HostPort) -> Self {
        if self.name == default_name(&self.local, self.server.as_ref()) {
            self.name = default_name(&self.local, Some(&server));
        }
        self.server = Some(server);
        self
    }

    /// Carried by this.
    #[must_use]
    pub fn carrier(mut self, carrier: CarrierChoice) -> Self {
        self.carrier = carrier;
        self
    }

    /// What may follow the local address, for help and hints.
    pub const OPTIONS: [(&str, Takes); 8] = [
        ("except", Takes::Value),
        ("standby", Takes::Nothing),
        ("cost", Takes::Value),
        ("budget", Takes::Value),
        ("server", Takes::Value),
        ("carrier", Takes::Value),
        ("tcp-cc", Takes::Value),
        ("name", Takes::Value),
    ];
}

impl Default for Path {
    /// The path that is used when none is configured: the routing table's choice.
    fn default() -> Self {
        Path {
            name: "any".to_owned(),
            local: Bind::Any,
            standby: false,
            cost: 0,
            budget: None,
            server: None,
            carrier: CarrierChoice::Auto,
            tcp_cc: None,
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&local_text(&self.local))?;
        if let Bind::Matching(selector) = &self.local
            && let Some(names) = selector.exceptions()
        {
            write!(f, ",except={names}")?;
        }
        if self.standby {
            f.write_str(",standby")?;
        }
        if self.cost != 0 {
            write!(f, ",cost={}", self.cost)?;
        }
        if let Some(budget) = self.budget {
            write!(f, ",budget={}", size_text(budget))?;
        }
        if let Some(server) = &self.server {
            write!(f, ",server={server}")?;
        }
        if self.carrier != CarrierChoice::Auto {
            write!(f, ",carrier={}", self.carrier)?;
        }
        if let Some(control) = &self.tcp_cc {
            write!(f, ",tcp-cc={control}")?;
        }
        if self.name != default_name(&self.local, self.server.as_ref()) {
            write!(f, ",name={}", self.name)?;
        }
        Ok(())
    }
}

/// As `--path` takes it.
fn local_text(local: &Bind) -> String {
    match local {
        Bind::Any => "any".to_owned(),
        Bind::Interface(name) => name.clone(),
        Bind::Matching(selector) => selector.to_string(),
        Bind::Address(address) => address.to_string(),
        Bind::Network(network) => network.name().to_owned(),
    }
}

fn default_name(local: &Bind, server: Option<&HostPort>) -> String {
    let local = local_text(local);
    match server {
        None => local,
        // Two paths may leave by the same local address to different relays; their names must
        // differ too.
        Some(server) => format!("{local}/{server}"),
    }
}

fn local(text: &str) -> Result<Bind, Problem> {
    if text == "any" {
        return Ok(Bind::Any);
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return match address {
            address if address.is_unspecified() => Ok(Bind::Any),
            address if address.is_multicast() => {
                Err(Problem::new(format!("`{address}` is a multicast address"))
                    .hint("give an address of this host, or the name of an interface"))
            }
            address => Ok(Bind::Address(address)),
        };
    }
    if let Some(selector) = Selector::read(text)? {
        return Ok(Bind::Matching(Box::new(selector)));
    }
    let plausible = !text.is_empty()
        && text.len() <= MAX_INTERFACE
        && text
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '='))
        && text != "."
        && text != "..";
    // Four numbers with dots are meant as an address even when they are not one.
    let numeric = text.contains('.') && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !plausible || numeric {
        return Err(Problem::new(format!(
            "`{text}` is neither an interface name nor an IP address"
        ))
        .hint(
            "write an interface such as `wlan0`, or what it is known by, such as `wwan*` or \
             `usb:1-1.4`, a source address such as `192.168.1.7`, or `any`",
        ));
    }
    Ok(Bind::Interface(text.to_owned()))
}

impl FromStr for Path {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (head, options) = list(text, &Path::OPTIONS)?;
        let mut spec = Path {
            local: local(head)?,
            name: String::new(),
            ..Path::default()
        };
        for (key, value) in options {
            match key {
                "except" => match spec.local {
                    Bind::Matching(selector) => {
                        spec.local = Bind::Matching(Box::new(selector.except(value)?));
                    }
                    _ => {
                        return Err(Problem::new("`except` says nothing of one path")
                            .hint("write it with `all` or a pattern: `all,except=docker0`"));
                    }
                },
                "standby" => spec.standby = true,
                "cost" => {
                    spec.cost = value.parse().map_err(|_| {
                        Problem::new(format!("cost `{value}` is not a number from 0 to 255"))
                    })?;
                }
                "budget" => spec.budget = Some(size(value)?),
                "server" => {
                    let server = value.parse::<HostPort>();
                    spec.server = Some(server.map_err(|error| Problem::new(error.to_string()))?);
                }
                "carrier" => {
                    spec.carrier = value.parse().map_err(|choices| {
                        Problem::new(format!("carrier `{value}` is not {choices}"))
                    })?;
                }
                "tcp-cc" => spec.tcp_cc = Some(tcp_congestion(value)?),
                _ => spec.name = name(value)?,
            }
        }
        if spec.tcp_cc.is_some() && spec.carrier == CarrierChoice::Quic {
            return Err(Problem::new("`tcp-cc` says nothing with `carrier=quic`")
                .hint("leave one of them out"));
        }
        if spec.name.is_empty() {
            spec.name = default_name(&spec.local, spec.server.as_ref());
        }
        Ok(spec)
    }
}

/// The name of a kernel's congestion control. Whether this one has it shows when it is asked for.
pub fn tcp_congestion(text: &str) -> Result<String, Problem> {
    let fine = !text.is_empty()
        && text.len() <= MAX_CONTROL
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if fine {
        Ok(text.to_owned())
    } else {
        Err(
            Problem::new(format!("`{text}` is no name of a TCP congestion control"))
                .hint("write one of `sysctl net.ipv4.tcp_available_congestion_control`, as `bbr`"),
        )
    }
}

fn name(text: &str) -> Result<String, Problem> {
    let fine = !text.is_empty()
        && text.len() <= MAX_NAME
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._:/@-[]".contains(c));
    if fine {
        Ok(text.to_owned())
    } else {
        Err(Problem::new(format!("name `{text}` is not usable"))
            .hint(format!("use 1 to {MAX_NAME} letters, digits or ._:/@-")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Path {
        text.parse()
            .unwrap_or_else(|problem| panic!("{text}: {problem}"))
    }

    #[test]
    fn reads_every_option() {
        let spec = parse("wwan0,standby,cost=2,budget=1.5GB,server=[2001:db8::1]:4433,name=modem");
        assert_eq!(spec.local, Bind::Interface("wwan0".into()));
        assert!(spec.standby);
        assert_eq!(spec.cost, 2);
        assert_eq!(spec.budget, Some(1_500_000_000));
        assert_eq!(spec.server, Some("[2001:db8::1]:4433".parse().unwrap()));
        assert_eq!(spec.name, "modem");
    }

    #[test]
    fn a_written_path_reads_back_the_same() {
        for text in [
            "any",
            "wlan0",
            "192.168.1.7,standby",
            "fe80::1,cost=7",
            "127.0.0.1,server=127.0.0.1:5001",
            "wwan0,budget=20GB",
            "wwan0,budget=1073741824B",
            "wwan0,standby,cost=2,server=h:1,name=modem",
            "wwan0,carrier=tcp,tcp-cc=bbr",
            "wwan0,carrier=quic",
            "wwan*,cost=2",
            "usb:1-1.4,budget=20GB,name=modem",
            "mac:02:1e:10:1f:00:00",
            "driver:cdc_mbim,standby",
            "all,except=docker0+veth*,cost=1",
        ] {
            assert_eq!(parse(text).to_string(), text);
            assert_eq!(parse(&parse(text).to_string()), parse(text));
        }
    }

    #[test]
    fn paths_to_different_relays_have_different_names() {
        let a = parse("127.0.0.1,server=127.0.0.1:5001");
        let b = parse("127.0.0.1,server=127.0.0.1:5002");
        assert_ne!(a.name, b.name);
    }

    #[test]
    fn wrong_paths_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "neither an interface"),
            ("192.168.1", "neither an interface"),
            ("192.168.1.300", "neither an interface"),
            ("an-interface-far-too-long", "neither an interface"),
            ("224.0.0.1", "multicast"),
            ("usb:1", "not a USB port"),
            ("mac:1", "not a MAC address"),
            ("wlan0,except=eth0", "says nothing"),
            ("all,except=", "needs a value"),
            ("wlan0,cost=x", "not a number"),
            ("wlan0,cost=256", "not a number"),
            ("wlan0,cost", "needs a value"),
            ("wlan0,budget=20", "not an amount of data"),
            ("wlan0,budget=0GB", "not an amount of data"),
            ("wlan0,standby=yes", "takes no value"),
            ("wlan0,standby,standby", "twice"),
            ("wlan0,stanby", "unknown option `stanby`"),
            ("wlan0,server=host:port", "port"),
            ("wlan0,name=a b", "not usable"),
            ("wlan0,carrier=udp", "is not auto, quic or tcp"),
            ("wlan0,tcp-cc=", "needs a value"),
            ("wlan0,carrier=quic,tcp-cc=bbr", "says nothing"),
        ] {
            let problem = text.parse::<Path>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
        let hint = "wlan0,stanby".parse::<Path>().unwrap_err().hint.unwrap();
        assert!(hint.contains("`standby`"), "{hint}");
    }
}
