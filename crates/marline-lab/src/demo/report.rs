//! What a demo found. The field names are the JSON names; fields may be added.

use super::live::LiveFigures;
use serde::Serialize;

/// The whole demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this format: 1.
    pub version: u32,
    /// Seed of everything random in the links and in the download's body.
    pub seed: u64,
    /// Length of each run, seconds.
    pub seconds: f64,
    /// The links, in the order of their names.
    pub links: Vec<LinkReport>,
    /// The darkness in the middle of each run that has the better link.
    pub dark: Dark,
    /// The live stream that every run carries.
    pub live: LiveSetup,
    /// One run a row of the table, in its order.
    pub runs: Vec<RunReport>,
    /// What bonding gained and what it cost.
    pub sentence: String,
}

/// One emulated link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// `A` or `B`.
    pub name: &'static str,
    /// Its parameters in the text form of [`marline_link::LinkConfig`], both directions alike.
    pub config: String,
}

/// When a link carries nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dark {
    /// Name of the link, the better one.
    pub link: &'static str,
    /// Seconds from the beginning of the run.
    pub at_s: f64,
    /// Length, seconds.
    pub for_s: f64,
}

/// The live stream's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LiveSetup {
    /// Rate of the messages, bits a second.
    pub bits_per_second: u64,
    /// Size of a message.
    pub message_bytes: usize,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// As the table names it.
    pub name: String,
    /// Names of the links in use: one, or several when bonded.
    pub links: Vec<&'static str>,
    /// The scheduler of all flows; `auto` for that of each flow by default.
    pub scheduler: String,
    /// Why the run failed, if it did.
    pub error: Option<String>,
    /// What was measured; `None` if the run failed.
    pub figures: Option<Figures>,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The HTTP download through the SOCKS5 proxy.
    pub download: DownloadFigures,
    /// The live stream through the live entry.
    pub live: LiveFigures,
    /// Of the data of both: (bytes sent − source bytes) / source bytes.
    pub redundancy: f64,
}

/// How the download fared.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DownloadFigures {
    /// Bits of bodies that came during the run over its length, 10⁶ bit/s.
    pub goodput_mbps: f64,
    /// Bytes of bodies that came during the run.
    pub bytes: u64,
    /// Bodies that came whole.
    pub bodies: u64,
    /// Every whole body had the SHA-256 that the server announced, and what came of the last that
    /// of as long a prefix.
    pub sha256_ok: bool,
}

impl RunReport {
    /// Whether the run is bonded.
    pub fn bonded(&self) -> bool {
        self.links.len() > 1
    }

    /// What went wrong in it: it failed, or what came was not what was sent.
    pub fn failure(&self) -> Option<String> {
        let figures = match (&self.error, &self.figures) {
            (Some(error), _) => return Some(error.clone()),
            (None, None) => return Some("nothing was measured".to_owned()),
            (None, Some(figures)) => figures,
        };
        if !figures.download.sha256_ok {
            return Some("the download's SHA-256 differs from the server's".to_owned());
        }
        match figures.live.damaged {
            0 => None,
            damaged => Some(format!("{damaged} live messages arrived damaged")),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::demo::live::Delays;

    /// A run that succeeded, with these figures: goodput in Mb/s, median and 99th percentile of the
    /// delay, longest stall, redundancy.
    pub(in crate::demo) fn run(links: &[&'static str], figures: [f64; 5]) -> RunReport {
        let [goodput_mbps, p50, p99, longest_stall_ms, redundancy] = figures;
        RunReport {
            name: links.join("+"),
            links: links.to_vec(),
            scheduler: "edpf".to_owned(),
            error: None,
            figures: Some(Figures {
                download: DownloadFigures {
                    goodput_mbps,
                    bytes: 1,
                    bodies: 1,
                    sha256_ok: true,
                },
                live: LiveFigures {
                    sent: 100,
                    received: 100,
                    lost: 0,
                    damaged: 0,
                    delay_ms: Some(Delays {
                        p50,
                        p95: p99,
                        p99,
                        worst: p99,
                    }),
                    longest_stall_ms,
                },
                redundancy,
            }),
        }
    }

    #[test]
    fn a_run_fails_by_an_error_a_checksum_or_damage() {
        let fine = run(&["A"], [1.0; 5]);
        assert_eq!(fine.failure(), None);
        let mut failed = fine.clone();
        failed.error = Some("no session".to_owned());
        assert_eq!(failed.failure().unwrap(), "no session");
        let mut differs = fine.clone();
        differs.figures.as_mut().unwrap().download.sha256_ok = false;
        assert!(differs.failure().unwrap().contains("SHA-256"));
        let mut damaged = fine;
        damaged.figures.as_mut().unwrap().live.damaged = 2;
        assert!(damaged.failure().unwrap().contains("2 live messages"));
    }
}
