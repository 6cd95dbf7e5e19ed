//! Text that people write: one grammar for times, rates and sizes, one for lists of options, and
//! what to say when a text is none of these.

mod list;
mod nearest;
mod problem;
pub mod units;

use alloc::format;
use alloc::string::String;
use core::net::SocketAddr;

pub use list::{Keys, Pair, Takes, list, pairs, unknown};
pub use nearest::nearest;
pub use problem::Problem;

use crate::{Duration, Rate};

/// A sentence that names the known word nearest to `word`, or lists all when none is near.
pub fn suggest(word: &str, known: &[&str], what: &str) -> String {
    match nearest(word, known) {
        Some(meant) => format!("did you mean the {what} `{meant}`?"),
        None => format!("known {what}s: {}", known.join(", ")),
    }
}

/// Redundancy as a share of what it protects, such as `50%` (0.5).
///
/// # Errors
/// What is wrong with the text, and how to write it.
pub fn redundancy(text: &str) -> Result<f64, Problem> {
    let share = text.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
    share
        .filter(|share| (0.0..=400.0).contains(share))
        .map(|share| share / 100.0)
        .ok_or_else(|| {
            Problem::new(format!("`{text}` is not a share from 0% to 400%"))
                .hint("write for example `25%`; `0%` sends no repair symbols")
        })
}

/// Splits `HOST:PORT`; the brackets of an IPv6 address are taken off.
///
/// # Errors
/// What is wrong with the text, and how to write it.
pub fn split_host_port(text: &str) -> Result<(&str, u16), Problem> {
    let wrong = |message: String| {
        Problem::new(message)
            .hint("write HOST:PORT, for example `example.com:443`, `192.0.2.1:443` or `[2001:db8::1]:443`")
    };
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| wrong(format!("`{text}` has no port")))?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner
            .strip_suffix(']')
            .ok_or_else(|| wrong(format!("`{host}` lacks its closing `]`")))?,
        None if host.contains(':') => {
            return Err(wrong(format!(
                "`{text}`: an IPv6 address needs brackets before its port"
            )));
        }
        None => host,
    };
    if host.is_empty() {
        return Err(wrong(format!("`{text}` has no host")));
    }
    match port.parse::<u16>() {
        Ok(port) if port != 0 => Ok((host, port)),
        _ => Err(wrong(format!("`{port}` is not a port from 1 to 65535"))),
    }
}

/// An address to listen on, `IP:PORT`. Port 0 lets the system choose.
///
/// # Errors
/// What is wrong with the text, and how to write it.
pub fn listen_address(text: &str) -> Result<SocketAddr, Problem> {
    text.parse().map_err(|_| {
        let wrong = Problem::new(format!("`{text}` is not an address to listen on"));
        match text.split_once(':') {
            Some(("localhost", port)) => wrong.hint(format!("write `127.0.0.1:{port}`")),
            Some(("" | "*", port)) => {
                wrong.hint(format!("write `0.0.0.0:{port}` or `[::]:{port}`"))
            }
            _ => wrong.hint("write IP:PORT, for example `127.0.0.1:1080` or `[::1]:1080`"),
        }
    })
}

/// A duration with its unit, `200ms`, `5s`, `2m`.
///
/// # Errors
/// What is wrong with the text, and how to write it.
pub fn duration(text: &str) -> Result<Duration, Problem> {
    units::time(text).ok_or_else(|| {
        Problem::new(format!("`{text}` is not a duration"))
            .hint("write a number and its unit, for example `200ms`, `5s` or `2m`")
    })
}

/// A rate in bits per second with its unit, `64kbit`, `20Mbit` or `1Gbit`, also with `bps` for
/// `bit`; more than 0.
///
/// # Errors
/// What is wrong with the text, and how to write it.
pub fn rate(text: &str) -> Result<Rate, Problem> {
    let rate = units::rate(text).filter(|rate| (1..1_000_000_000_000_000).contains(&rate.as_bps()));
    rate.ok_or_else(|| {
        Problem::new(format!("`{text}` is not a rate"))
            .hint("write a number and its unit: `64kbit`, `20Mbit` or `1Gbit`")
    })
}

/// An amount of data in bytes with its unit, `500MB`, `20GB` or `1.5GiB`; more than 0.
///
/// # Errors
/// What is wrong with the text, and how to write it.
pub fn size(text: &str) -> Result<u64, Problem> {
    let bytes = units::size(text).filter(|bytes| (1..1_000_000_000_000_000_000).contains(bytes));
    bytes.ok_or_else(|| {
        Problem::new(format!("`{text}` is not an amount of data"))
            .hint("write a number and its unit: `500MB`, `20GB` or `1TB`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_need_a_unit() {
        assert_eq!(rate("20Mbit"), Ok(Rate::from_mbps(20)));
        assert_eq!(rate("10mbps"), Ok(Rate::from_mbps(10)));
        assert_eq!(rate("1.5 gbit/s"), Ok(Rate::from_mbps(1500)));
        for wrong in [
            "20", "Mbit", "-1kbit", "0kbit", "NaNkbit", "infGbit", "20MB",
        ] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_of_data_need_a_unit() {
        for (text, bytes) in [
            ("20GB", 20_000_000_000),
            ("1.5 gb", 1_500_000_000),
            ("2GiB", 2 << 30),
            ("7b", 7),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for wrong in [
            "20", "GB", "-1GB", "0B", "NaNGB", "infTB", "20Gbit", "1e9TB",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_and_ports() {
        assert_eq!(split_host_port("example.com:80"), Ok(("example.com", 80)));
        assert_eq!(split_host_port("[::1]:80"), Ok(("::1", 80)));
        for wrong in [
            "example.com",
            ":80",
            "::1:80",
            "[::1:80",
            "h:0",
            "h:65536",
            "h:http",
            "",
        ] {
            assert!(split_host_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_name_to_listen_on_gets_the_address_to_write() {
        let problem = listen_address("localhost:9").unwrap_err();
        assert_eq!(problem.hint.as_deref(), Some("write `127.0.0.1:9`"));
        let problem = listen_address(":9").unwrap_err();
        assert!(problem.hint.unwrap().contains("0.0.0.0:9"));
    }

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert!(duration("200").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn a_far_word_gets_the_whole_list() {
        assert_eq!(
            suggest("edfp", &["edpf", "auto"], "scheduler"),
            "did you mean the scheduler `edpf`?"
        );
        assert_eq!(
            suggest("zzzzzz", &["edpf", "auto"], "scheduler"),
            "known schedulers: edpf, auto"
        );
    }

    #[test]
    fn redundancy_is_a_percentage() {
        assert_eq!(redundancy("25%").unwrap(), 0.25);
        assert_eq!(redundancy("0%").unwrap(), 0.0);
        assert_eq!(redundancy("12.5%").unwrap(), 0.125);
        for wrong in ["0.25", "%", "-1%", "401%", "NaN%", "much"] {
            let problem = redundancy(wrong).unwrap_err();
            assert!(problem.message.contains("0% to 400%"), "{wrong}");
        }
    }
}
