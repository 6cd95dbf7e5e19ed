//! What the long-running subcommands have in common: metrics, page, control socket, signals, the
//! graceful stop.

use super::signals::{Signal, Signals};
use super::web_page::ServedPage;
use super::{CliError, descriptors, notify};
use crate::config::{CommonConfig, Listens, Source};
use crate::control::server::Wishes;
use crate::control::{self, ControlSocket, Manage};
use crate::metrics::{self, Names};
use marline_apps::proxy::Tasks;
use marline_apps::proxy::front::stranger;
use marline_apps::proxy::front::{ListenError, listen_tcp};
use marline_base::text::Problem;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long running flows may take to finish after the first signal.
const PATIENCE: Duration = Duration::from_secs(5);

/// Metrics and control, bound and not yet served.
#[derive(Debug)]
pub(super) struct Service {
    /// Listened to from here on: what is done to the system before anything is served must be
    /// undone, too.
    signals: Signals,
    metrics: Option<(TcpListener, Names)>,
    web: Option<ServedPage>,
    control: Option<ControlSocket>,
}

/// An address that `source` asks for and the system refuses.
pub(super) fn unbound<R: Listens>(source: &Source<R>, refused: &ListenError) -> CliError {
    let ListenError {
        key,
        address,
        error,
    } = refused;
    let place = source.place_of(key, *address);
    let hint = match (error.kind(), source.rival(key, *address)) {
        (ErrorKind::AddrInUse, Some(rival)) => {
            format!("{rival} has that port, too: choose another for one of them")
        }
        (ErrorKind::AddrInUse, None) => {
            let key = place.key();
            format!("another program has that port: stop it, or choose another with {key}")
        }
        (ErrorKind::AddrNotAvailable, _) => {
            format!("{} is not an address of this host", address.ip())
        }
        (ErrorKind::PermissionDenied, _) => {
            "ports below 1024 need more rights: choose a higher one".to_owned()
        }
        _ => format!("choose another address with {}", place.key()),
    };
    CliError::runtime(format!("{place}: cannot listen there: {error}")).hint(hint)
}

/// Reads the configuration again, as a service manager can see.
async fn read_again(reload: &mut impl AsyncFnMut() -> Result<(), Problem>) -> Result<(), Problem> {
    notify::reloading();
    let result = reload().await;
    notify::ready();
    result
}

impl Service {
    /// Binds what `config` asks for, which was read from `source`.
    pub(super) async fn bind<R: Listens>(
        source: &Source<R>,
        config: &CommonConfig,
    ) -> Result<Self, CliError> {
        descriptors::raise_limit();
        let control = match &config.control {
            Some(place) => ControlSocket::open(place).await.map_err(|error| {
                let hint = error.hint();
                CliError::runtime(error).hint(hint)
            })?,
            None => None,
        };
        let metrics = match config.metrics {
            Some(address) => {
                let listener = listen_tcp("metrics", address).await;
                let listener = listener.map_err(|error| unbound(source, &error))?;
                let names = Names::of_this_host(config.metrics_names.iter().cloned());
                Some((listener, names))
            }
            None => None,
        };
        let web = match &config.web {
            Some(page) => {
                let listener = listen_tcp("web", page.address).await;
                let listener = listener.map_err(|error| unbound(source, &error))?;
                Some(ServedPage::new(listener, page)?)
            }
            None => None,
        };
        Ok(Service {
            signals: Signals::new()?,
            metrics,
            web,
            control,
        })
    }

    /// What `begun` comes to. A signal to stop cancels `stop` and waits until `begun` has cleaned
    /// up.
    ///
    /// # Errors
    /// Such a signal came.
    pub(super) async fn unless_stopped<T>(
        &mut self,
        begun: impl Future<Output = T>,
        stop: &CancellationToken,
    ) -> Result<T, CliError> {
        tokio::pin!(begun);
        tokio::select! {
            done = &mut begun => Ok(done),
            () = self.signals.stop() => {
                tracing::info!("stopping: what was done so far is undone");
                stop.cancel();
                drop(begun.await);
                Err(CliError::runtime("stopped by a signal before it served"))
            }
        }
    }

    /// Serves until a signal or a request to stop, then lets `tasks` finish. SIGHUP calls `reload`.
    /// `ended` completes with the reason when there is nothing left to serve.
    pub(super) async fn run<M: Manage>(
        self,
        managed: Arc<M>,
        tasks: Tasks,
        mut reload: impl AsyncFnMut() -> Result<(), Problem>,
        ended: impl Future<Output = CliError>,
    ) -> Result<(), CliError> {
        let mut signals = self.signals;
        let (wishes, mut asked) = Wishes::new();
        let mut sides = JoinSet::new();
        if let Some((listener, names)) = self.metrics {
            if let Ok(address) = listener.local_addr() {
                tracing::info!("metrics at http://{address}/metrics");
                if stranger(address) {
                    tracing::info!("every host that reaches {address} may read the metrics");
                }
            }
            sides.spawn(metrics::serve(listener, Arc::clone(&managed), names));
        }
        if let Some(page) = self.web {
            page.log();
            sides.spawn(page.serve(Arc::clone(&managed)));
        }
        if let Some(socket) = self.control {
            tracing::info!("control socket at {}", socket.path().display());
            let managed = Arc::clone(&managed);
            sides.spawn(control::server::serve(socket, managed, wishes.clone()));
        }
        sides.spawn(notify::keep_telling(managed));
        notify::ready();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    // What was wrong is logged.
                    Signal::Reload => drop(read_again(&mut reload).await),
                    Signal::Stop => break,
                },
                Some(answer) = asked.recv() => {
                    let _ = answer.send(read_again(&mut reload).await);
                }
                () = wishes.stop.cancelled() => break,
                reason = &mut ended => {
                    // Waited for: what a task did to the system is undone as it ends.
                    tasks.finish(Duration::ZERO).await;
                    sides.shutdown().await;
                    return Err(reason);
                }
            }
        }
        notify::stopping();
        tracing::info!(
            "stopping: open connections may finish within {} s; a second signal ends them at once",
            PATIENCE.as_secs()
        );
        tokio::select! {
            left = tasks.finish(PATIENCE) => match left {
                0 => tracing::info!("stopped"),
                left => tracing::warn!("stopped; {left} connections did not finish and were reset"),
            },
            () = signals.stop() => {
                tasks.finish(Duration::ZERO).await;
                tracing::warn!("stopped at once; open connections were reset");
            }
        }
        // Waited for, so that the control socket's file is gone when we are.
        sides.shutdown().await;
        Ok(())
    }
}
