//! `marline doctor`: looks for what keeps a client or a server, as it is configured, from working.
//!
//! | file | what |
//! | --- | --- |
//! | `finding.rs`, `board.rs` | what a check found, and the exit code; what has not ended |
//! | `limits.rs` | how long all of it takes |
//! | `system.rs` | procfs and sysfs |
//! | `programs.rs`, `links.rs` | `ip`, `nft` and `timedatectl`: routes, rule sets, the clock |
//! | `running.rs` | the client or server that runs here already |
//! | `checks/` | the checks, a file each |
//! | `speed.rs` | what each path carries, if that is asked for |
//! | `of_client.rs`, `of_server.rs` | which checks are made, and of which paths |

mod board;
mod checks;
mod finding;
mod limits;
mod links;
mod of_client;
mod of_server;
mod programs;
mod running;
mod speed;
mod system;

use super::page::{Layout, Page};
use super::{CliError, client, output, runtime, server};
use board::Board;
use finding::{Finding, Verdict, worst};
use limits::LIMIT;
use marline::interfaces::Sysfs;
use serde::Serialize;
#[cfg(unix)]
use std::{
    io::{self, Write as _},
    path::Path,
};
use system::System;
use tokio::time::timeout;

/// Look for what keeps a client or a server from working.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Takes the options and the configuration file of `marline client` or `marline server`, and checks
what they would use. Changes nothing, and takes at most 15 s; --speed takes its own time after
that. Exit code: 0 all is fine, 1 there are warnings, 2 there are failures.

Examples:
  marline doctor client --server 'marline://...' --path wlan0 --path wwan0
  marline doctor client --config client.toml --json | jq '.findings[] | {verdict, check, text}'
  marline doctor client --config client.toml --path wwan0 --speed 10 --speed-bytes 50MB
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
    speed: speed::Args,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct OfServer {
    #[command(flatten)]
    options: server::Args,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> Result<(), CliError> {
    match args.side {
        Side::Client(side) => client_report(&side.options, &side.speed)?.print(side.json),
        Side::Server(side) => server_report(&side.options)?.print(side.json),
    }
}

/// Checks a client as `file` configures it, on standard error, whatever is found.
#[cfg(unix)]
pub(super) fn of_client(file: &Path) -> Result<(), CliError> {
    client_report(&client::Args::of_file(file), &speed::Args::default())?.say("client", file);
    Ok(())
}

/// Checks a server as `file` configures it, on standard error, whatever is found.
#[cfg(unix)]
pub(super) fn of_server(file: &Path) -> Result<(), CliError> {
    server_report(&server::Args::of_file(file))?.say("server", file);
    Ok(())
}

fn client_report(options: &client::Args, speed: &speed::Args) -> Result<Report, CliError> {
    let config = options.configuration()?;
    let system = System::with(config.sysfs.clone());
    report(
        async |board: &Board| of_client::examine(&config, &system, board).await,
        async |board: &Board| speed::check(speed, &config, board).await,
    )
}

fn server_report(options: &server::Args) -> Result<Report, CliError> {
    let config = options.configuration()?;
    let system = System::with(Sysfs::default());
    report(
        async |board: &Board| of_server::examine(&config, &system, board).await,
        async |_: &Board| {},
    )
}

/// What the checks find in their time, and what is measured in its own.
fn report(
    examine: impl AsyncFnOnce(&Board),
    measure: impl AsyncFnOnce(&Board),
) -> Result<Report, CliError> {
    let (runtime, board) = (runtime()?, Board::default());
    let report = runtime.block_on(async {
        timed(examine(&board)).await;
        measure(&board).await;
        Report::of(&board)
    });
    // The look-up of a name may still hang in a thread of its own.
    runtime.shutdown_background();
    Ok(report)
}

/// The examination, until its time is over. What has not ended by then is on the board.
async fn timed(examination: impl Future<Output = ()>) {
    let _ = timeout(LIMIT, examination).await;
}

#[derive(Debug, Serialize)]
struct Report {
    verdict: Verdict,
    findings: Vec<Finding>,
}

impl Report {
    /// What is known now.
    fn of(board: &Board) -> Self {
        let findings = board.findings();
        Report {
            verdict: worst(&findings),
            findings,
        }
    }

    fn print(&self, json: bool) -> Result<(), CliError> {
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

    /// What `marline doctor SIDE --config FILE` finds, for people, beside what a command prints.
    #[cfg(unix)]
    fn say(&self, side: &str, file: &Path) {
        let page = self.page(Layout::of_output(false));
        // Nobody is left to tell when it is closed.
        let _ = writeln!(
            io::stderr(),
            "marline doctor {side} --config {}:\n{}",
            file.display(),
            page.trim_end()
        );
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
                speed: _,
                fix,
            } = finding;
            if path != of {
                let name = path.as_deref().unwrap_or_default();
                page.gap();
                page.line(&format!("path {name}"));
                of = path;
            }
            page.line(&format!("{:<8} {check}: {text}", verdict.name()));
            if let Some(fix) = fix {
                page.note(&format!("fix: {fix}"));
            }
        }
        page.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_known_is_shown_when_the_time_is_over() {
        let board = Board::default();
        let examination = async {
            board.add(None, Finding::fine("gso", "64 datagrams in one call"));
            let _hangs = board.begin(None, "clock");
            std::future::pending().await
        };
        timed(examination).await;
        let Report { verdict, findings } = Report::of(&board);
        let checks: Vec<_> = findings.iter().map(|it| (it.check, it.verdict)).collect();
        assert_eq!(
            checks,
            [("gso", Verdict::Fine), ("clock", Verdict::Warning)]
        );
        assert_eq!(verdict, Verdict::Warning);
    }

    #[test]
    fn every_finding_is_a_line_with_its_fix() {
        let findings = vec![
            Finding::fine("clock", "in 2026-11"),
            Finding {
                path: Some("wlan0".into()),
                ..Finding::warning("udp", "no answer from 203.0.113.5:4433 within 4.0 s")
                    .fix("open UDP port 4433 in the server's firewall, or use another network")
            },
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
    fix: open UDP port 4433 in the server's firewall, or use another network
";
        assert_eq!(page, expected);
        let json = serde_json::to_string(&report).unwrap();
        assert!(
            json.starts_with(r#"{"verdict":"warning","findings":[{"check":"clock","#),
            "{json}"
        );
    }
}
