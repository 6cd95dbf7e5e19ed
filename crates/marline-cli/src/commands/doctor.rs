//! `marline doctor`: looks for what keeps a client or a server, as it is configured, from working.
//!
//! | file | what |
//! | --- | --- |
//! | `finding.rs` | what a check found, and the exit code |
//! | `system.rs` | procfs and sysfs, at roots that a test may choose |
//! | `programs.rs`, `links.rs` | `ip` and `nft`: interfaces, routes, rule sets |
//! | `checks/` | the checks, a file each |
//! | `matching.rs` | which interfaces fit a path such as `wwan*` |
//! | `of_client.rs`, `of_server.rs` | which checks are made, of which paths |

mod checks;
mod finding;
mod links;
mod matching;
mod of_client;
mod of_server;
mod programs;
mod system;

use super::page::{Layout, Page};
use super::{CliError, client, output, runtime, server};
use crate::control;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::Status;
use finding::{Finding, Verdict, worst};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;
use system::System;
use tokio::time::timeout;

/// All checks together end after this.
const LIMIT: Duration = Duration::from_secs(14);

/// Look for what keeps a client or a server from working.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes the options and the configuration file of `marline client` or `marline server`, and checks
what they would use. Changes nothing, and takes at most 15 s. Exit code: 0 all is fine, 1 there are
warnings, 2 there are failures.

Examples:
  marline doctor client --server 'marline://...' --path wlan0 --path wwan0
  marline doctor client --config client.toml --json | jq '.findings[] | {verdict, check, text}'
  marline doctor server --config server.toml")]
pub(super) struct Args {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, clap::Subcommand)]
enum Side {
    /// Check what `marline client` would use: each path's interface, address, route, MTU, way to
    /// the server over UDP and TCP; names, key, firewall, clock, limits, privileges.
    Client(Box<OfClient>),
    /// Check what `marline server` would use: addresses, firewall, names, clock, limits,
    /// privileges.
    Server(Box<OfServer>),
}

#[derive(Debug, clap::Args)]
struct OfClient {
    #[command(flatten)]
    options: client::Args,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, clap::Args)]
struct OfServer {
    #[command(flatten)]
    options: server::Args,
    #[command(flatten)]
    how: How,
}

/// How to look, and how to tell.
#[derive(Debug, clap::Args)]
struct How {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Where procfs is.
    #[arg(long, value_name = "DIR", default_value = "/proc", hide = true)]
    proc_root: PathBuf,
    /// Where sysfs is.
    #[arg(long, value_name = "DIR", default_value = "/sys", hide = true)]
    sys_root: PathBuf,
}

pub(super) fn run(args: Args) -> Result<(), CliError> {
    let runtime = runtime()?;
    let result = match args.side {
        Side::Client(side) => {
            let config = side.options.configuration()?;
            let system = side.how.system();
            runtime
                .block_on(timed(of_client::examine(&config, &system)))
                .tell(side.how.json)
        }
        Side::Server(side) => {
            let config = side.options.configuration()?;
            let system = side.how.system();
            runtime
                .block_on(timed(of_server::examine(&config, &system)))
                .tell(side.how.json)
        }
    };
    // The look-up of a name may still hang in a thread of its own.
    runtime.shutdown_background();
    result
}

impl How {
    fn system(&self) -> System {
        System {
            proc: self.proc_root.clone(),
            sys: self.sys_root.clone(),
        }
    }
}

async fn timed(examination: impl Future<Output = Vec<Finding>>) -> Report {
    let findings = match timeout(LIMIT, examination).await {
        Ok(findings) => findings,
        Err(_) => vec![
            Finding::failure(
                "time",
                format!("the checks took more than {} s", LIMIT.as_secs()),
            )
            .mend("try again with one --path"),
        ],
    };
    Report {
        verdict: worst(&findings),
        findings,
    }
}

#[derive(Debug, Serialize)]
struct Report {
    verdict: Verdict,
    findings: Vec<Finding>,
}

impl Report {
    fn tell(&self, json: bool) -> Result<(), CliError> {
        if json {
            output::json(self)?;
        } else {
            output::line(self.page(Layout::of_output(false)).trim_end())?;
        }
        match self.verdict.exit_code() {
            0 => Ok(()),
            code => Err(CliError::told(code)),
        }
    }

    /// A line each, by path: those of the host first.
    fn page(&self, layout: Layout) -> String {
        let mut page = Page::new(layout);
        let mut of = &None;
        for finding in &self.findings {
            let Finding {
                check,
                path,
                verdict,
                text,
                mend,
            } = finding;
            if path != of {
                let name = path.as_deref().unwrap_or_default();
                page.gap();
                page.line(&format!("path {name}"));
                of = path;
            }
            page.line(&format!("{:<8} {check}: {text}", verdict.name()));
            if let Some(mend) = mend {
                page.note(&format!("mend: {mend}"));
            }
        }
        page.into_text()
    }
}

/// The status of the instance that answers at its control socket, if one does.
async fn running(place: Option<&control::Place>) -> Option<Status> {
    let (control::Place::Chosen(path) | control::Place::Usual(path)) = place?;
    match control::client::ask(path, Request::Status).await {
        Ok(Outcome::Status { status }) => Some(*status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_is_a_line_with_its_mend() {
        let findings = vec![
            Finding::fine("clock", "in 2026-11"),
            Finding::warning("udp", "no answer from 203.0.113.5:4433 within 4.0 s")
                .mend("open UDP port 4433 in the server's firewall, or use another network")
                .of("wlan0"),
        ];
        let report = Report {
            verdict: worst(&findings),
            findings,
        };
        let page = report.page(Layout {
            width: 80,
            details: false,
        });
        let expected = "\
fine     clock: in 2026-11

path wlan0
warning  udp: no answer from 203.0.113.5:4433 within 4.0 s
    mend: open UDP port 4433 in the server's firewall, or use another network
";
        assert_eq!(page, expected);
        let json = serde_json::to_string(&report).unwrap();
        assert!(
            json.starts_with(r#"{"verdict":"warning","findings":[{"check":"clock","#),
            "{json}"
        );
    }
}
