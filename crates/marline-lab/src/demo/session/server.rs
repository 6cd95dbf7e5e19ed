use super::counted::Counted;
use super::{Keys, LOOK, SessionError, Targets, config};
use crate::demo::Scheduling;
use crate::demo::worker::Worker;
use marline::endpoint::{self, ServerOptions, Session};
use marline::identity::AllowList;
use marline_apps::live::{LiveName, LiveOut, Outlets};
use marline_apps::measure::Measures;
use marline_apps::proxy::policy::{Judge, Policy, Rule};
use marline_apps::proxy::{FlowsByClient, Host, Places, Ports, Protocol, Target, Tasks};
use marline_apps::publish::Publisher;
use marline_apps::serve::{ServerSettings, serve};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

/// Most flows at a time; the demo has two.
const MAX_FLOWS: usize = 64;

/// A running server.
#[derive(Debug)]
pub(in crate::demo) struct Server {
    worker: Worker<Counted>,
    addr: SocketAddr,
}

impl Server {
    /// Starts a server that lets the client of `keys` reach `targets` and nothing else.
    pub(in crate::demo) async fn start(
        keys: &Keys,
        targets: Targets,
        scheduling: Scheduling,
    ) -> Result<Self, SessionError> {
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut options = ServerOptions::new(
            vec![any_port],
            keys.server.clone(),
            AllowList::from_keys([keys.client.public_key()]),
        );
        options.session = config(scheduling);
        let settings = Arc::new(ServerSettings {
            targets: marline_apps::proxy::Targets::new(Judge::here(policy(targets))?),
            live: Outlets::new(&[live(targets)?]),
            tunnel: None,
            publisher: Publisher::default(),
            places: Places::new(2 * MAX_FLOWS, MAX_FLOWS),
            ports: Ports::of_this_host(),
            measures: Measures::default(),
            flows: FlowsByClient::default(),
        });
        let (tell, told) = oneshot::channel();
        let worker = Worker::start("demo server", move |stop| {
            run(options, settings, tell, stop)
        })?;
        let addr = told.await.map_err(|_| SessionError::Ended("server"))??;
        Ok(Server { worker, addr })
    }

    /// Where it listens.
    pub(in crate::demo) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops it and says what its flows sent.
    pub(in crate::demo) async fn stop(self) -> Result<Counted, SessionError> {
        let counted = self.worker.stop().await;
        counted.ok_or(SessionError::Ended("server"))
    }
}

/// Loopback is closed to clients unless rules name it: the web server's port and no other.
fn policy(targets: Targets) -> Policy {
    let rule = targets.origin.to_string().parse::<Rule>();
    Policy::new(rule.into_iter().collect(), Vec::new())
}

/// Where the live entry ends.
fn live(targets: Targets) -> Result<LiveOut, SessionError> {
    let (host, port) = (Host::Ip(targets.live.ip()), targets.live.port());
    Ok(LiveOut {
        name: LiveName::default(),
        target: Target::new(Protocol::Udp, host, port).map_err(io::Error::other)?,
    })
}

async fn run(
    options: ServerOptions,
    settings: Arc<ServerSettings>,
    tell: oneshot::Sender<Result<SocketAddr, SessionError>>,
    stop: CancellationToken,
) -> Counted {
    let mut counted = Counted::default();
    let server = match endpoint::Server::bind(options) {
        Ok(server) => server,
        Err(error) => {
            let _ = tell.send(Err(error.into()));
            return counted;
        }
    };
    let Some(addr) = server.local_addrs().first() else {
        return counted;
    };
    // Gone when the run was given up, and then `stop` is cancelled too.
    let _ = tell.send(Ok(*addr));
    let tasks = Tasks::new();
    let mut session: Option<Session> = None;
    let mut looks = interval(LOOK);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(incomings) = server.accept() => {
                session = Some(incomings.handle().clone());
                tasks.spawn(serve(incomings, Arc::clone(&settings), tasks.clone()));
            }
            _ = looks.tick() => {
                if let Some(session) = &session {
                    counted.look(&session.stats());
                }
            }
        }
    }
    tasks.cut();
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_reaches_the_web_server_and_no_other_port() {
        let target = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let policy = policy(Targets {
            origin: target(4000),
            live: target(5000),
        });
        let judge = Judge::here(policy).unwrap();
        let allowed = |port| {
            let host = Host::Ip(Ipv4Addr::LOCALHOST.into());
            judge.check(&host, target(port)).is_ok()
        };
        assert!(allowed(4000));
        assert!(!allowed(22) && !allowed(4001) && !allowed(5000));
    }
}
