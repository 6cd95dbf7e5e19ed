//! `marline status`: asks a running client or server, and prints a page or JSON.
//!
//! | file | what |
//! | --- | --- |
//! | `paths.rs`, `flows.rs`, `live.rs` | the parts of the page |

mod flows;
mod live;
mod paths;

use super::page::{Layout, Page};
use super::{CliError, output, runtime};
use crate::control::client::{AskError, ask};
use crate::control::protocol::{Outcome, Request};
use crate::control::status::{
    ClientStatus, PathStatus, PublishedState, PublishedStatus, Role, SessionStatus, Status,
};
use crate::control::words::{bytes, some, spoken};
use crate::control::{is_trusted, service_sockets, usual_paths};
use marline_apps::tun::status::TunnelStatus;
use std::path::PathBuf;

/// Show the paths and flows of a running client or server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Paths: how long they have been in their state (in doubt or dead: since the doubt began), round trip,
loss, rate and bytes of this end. Flows are summed up by kind and scheduler: sent by this end, of
that arrived at the other, delivered by this end; p95 of the slowest; extra: what is sent besides,
for the bytes sent. In the details of flows, tau: one packet in this number of those sent is a
repair symbol now. Repairs used recovered something at the other end before it arrived, wasted ones
reached it for nothing.

Examples:
  marline status                       the client of this user, or its server if there is no client
  marline status --details             every flow, and all figures of paths
  marline status --json | jq '.sessions[].paths[] | {name, state, for_s, rtt_ms}'
  marline status --control /run/marline/server.sock")]
pub(super) struct Args {
    /// Control socket of the instance to ask.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Show every flow, and all figures of paths.
    #[arg(long, short = 'v')]
    details: bool,
    /// Print JSON, with everything.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    match request(args.control.as_ref(), &Request::Status)? {
        Outcome::Status { status } if args.json => output::json(&status),
        Outcome::Status { status } => {
            output::line(page(&status, Layout::of_output(args.details)).trim_end())
        }
        other => Err(CliError::runtime(format!("unexpected answer: {other:?}"))),
    }
}

/// Asks the instance at `control`, or else this user's client, or else this user's server.
pub(super) fn request(control: Option<&PathBuf>, request: &Request) -> Result<Outcome, CliError> {
    request_of(&[Role::Client, Role::Server], control, request)
}

/// Asks the instance at `control`, or else this user's of the first of these roles that runs.
pub(super) fn request_of(
    roles: &[Role],
    control: Option<&PathBuf>,
    request: &Request,
) -> Result<Outcome, CliError> {
    asked_of(roles, control, request)?
}

/// The same; the inner error is that no program answers, the outer one anything else.
pub(super) fn asked_of(
    roles: &[Role],
    control: Option<&PathBuf>,
    request: &Request,
) -> Result<Result<Outcome, CliError>, CliError> {
    let answered = answered_of(roles, control, request)?;
    Ok(answered.map(|(_, outcome)| outcome))
}

/// The same, with the socket of the instance that answered.
pub(super) fn answered_of(
    roles: &[Role],
    control: Option<&PathBuf>,
    request: &Request,
) -> Result<Result<(PathBuf, Outcome), CliError>, CliError> {
    let candidates = match control {
        Some(path) => vec![path.clone()],
        None => roles.iter().flat_map(|role| usual_paths(*role)).collect(),
    };
    // A host has one server's service; of clients there may be several.
    let services = service_sockets(Role::Client);
    let runtime = runtime()?;
    let (mut asked, mut foreign) = (Vec::new(), Vec::new());
    for path in &candidates {
        let folder = path.parent().filter(|_| control.is_none());
        if folder.is_some_and(|folder| !is_trusted(folder)) {
            // Nobody knows who put it there, so it is not believed.
            foreign.push(path.display().to_string());
            continue;
        }
        if control.is_none() && services.len() > 1 && services.contains(path) {
            let all: Vec<String> = services.iter().map(|it| it.display().to_string()).collect();
            let message = format!("several clients run here: {}", all.join(", "));
            let hint = format!("name one by its socket: `--control {}`", path.display());
            return Err(CliError::usage(message).hint(hint));
        }
        asked.push(path.display().to_string());
        match runtime.block_on(ask(path, request.clone())) {
            Err(AskError::NotRunning(_)) => {}
            Ok(Outcome::Error { message, hint }) => {
                let error = CliError::runtime(message);
                return Err(match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                });
            }
            Ok(outcome) => return Ok(Ok((path.clone(), outcome))),
            Err(error) => return Err(CliError::runtime(error)),
        }
    }
    let mut message = format!("no running marline answers at {}", asked.join(", "));
    if !foreign.is_empty() {
        let foreign = foreign.join(", ");
        message += &format!("; not asked, because others may write there: {foreign}");
    }
    Ok(Err(CliError::runtime(message).hint(
        "start `marline client` or `marline server`, or name its socket with `--control PATH`",
    )))
}

fn page(status: &Status, layout: Layout) -> String {
    let mut page = Page::new(layout);
    let role = match status.role {
        Role::Client => "client",
        Role::Server => "server",
    };
    page.line(&format!(
        "{role} {}, up {}",
        status.version,
        spoken(status.uptime_s)
    ));
    if status.sessions.is_empty() {
        page.line("no session");
    }
    for session in &status.sessions {
        page.gap();
        push_session(&mut page, session);
    }
    let paths = status.sessions.iter().flat_map(|session| &session.paths);
    let paths: Vec<&PathStatus> = paths.collect();
    for entry in &status.live {
        page.gap();
        live::push(&mut page, entry, &paths);
    }
    if let Some(tunnel) = &status.tunnel {
        page.gap();
        page.line(&of_tunnel(tunnel));
    }
    if !status.published.is_empty() {
        page.gap();
        let lines = status.published.iter();
        lines.for_each(|port| page.line(&of_published(port, &status.clients)));
    }
    page.into_text()
}

fn push_session(page: &mut Page, session: &SessionStatus) {
    let SessionStatus {
        id,
        peer,
        state,
        paths,
        flows,
        flows_opened,
        carried,
    } = session;
    let opened = some(*flows_opened, "flow");
    page.line(&format!("session {id}: {state}, {opened} opened so far"));
    page.line(&format!("with {peer}"));
    page.line(&format!(
        "sent {}, of which {} arrived; delivered {}",
        bytes(carried.sent_bytes),
        bytes(carried.acked_bytes),
        bytes(carried.delivered_bytes)
    ));
    page.gap();
    paths::push(page, paths, flows);
    page.gap();
    flows::push(page, flows);
}

fn of_tunnel(tunnel: &TunnelStatus) -> String {
    let TunnelStatus {
        device,
        addresses,
        mtu,
        standing,
        dropped_packets,
    } = tunnel;
    let mut text = format!("tunnel {device}: ");
    if !addresses.is_empty() {
        text += &format!("{}, MTU {mtu}, ", addresses.join(", "));
    }
    text += standing.as_str();
    if *dropped_packets > 0 {
        text += &format!("; {dropped_packets} packets of the server dropped");
    }
    text
}

/// A published port; at a server its client by its name, if it has one.
fn of_published(port: &PublishedStatus, clients: &[ClientStatus]) -> String {
    let PublishedStatus {
        port,
        leads_to,
        state,
        about,
    } = port;
    let client = clients.iter().find(|client| client.key == *leads_to);
    let name = client.map(|client| client.name.as_str());
    let leads_to = name.filter(|name| !name.is_empty()).unwrap_or(leads_to);
    let text = format!("published {port}, leads to {leads_to}: {}", state.as_str());
    match (state, about) {
        (PublishedState::Open, Some(at)) => format!("{text} at {at}"),
        (_, Some(about)) => format!("{text}: {about}"),
        (_, None) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    fn text(details: bool) -> String {
        let text = page(&example(), Layout { width: 80, details });
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{text}");
        text
    }

    #[test]
    fn the_page_shows_what_the_status_says_in_80_columns() {
        let text = text(false);
        for expected in [
            "client 0.1.0, up 1m 1s",
            "session 0: established, 5 flows opened so far",
            "with server-key",
            "sent 12.3 MB, of which 12.1 MB arrived; delivered 1.2 GB",
            "31.2",
            "20.0",
            "no answer for 14 s; cost 2; 4.5 GB of 20.0 GB used in 2026-11",
            "min-rtt",
            "3.0 MB",
            "12.5",
            "live cam:",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
        let published = "published tcp:8443, leads to tcp:127.0.0.1:443: open at [::]:8443";
        assert!(text.contains(published), "{text}");
        let tunnel = "tunnel marline0: 10.77.0.2, fd77::2, MTU 1330, up; 61 packets of the server\n    dropped";
        assert!(text.contains(tunnel), "{text}");
        assert!(
            !text.contains("flow 4"),
            "details were not asked for\n{text}"
        );
    }

    #[test]
    fn details_show_every_flow_and_what_is_expected_of_paths() {
        let text = text(true).replace("\n    ", " ");
        for expected in [
            "flow 4: stream",
            "path 0 wlan0: validated; round trip at least 30.0 ms; window 120.0 kB",
            "forecast 39.5 ± 8.1 Mb/s (bank), outage 2.0 %; 900 promises, promised on time 95.3 %",
            "of 2000 packets followed 12.0 % came in the last tenth of the time",
        ] {
            assert!(text.contains(expected), "{expected} is not in\n{text}");
        }
    }
}
