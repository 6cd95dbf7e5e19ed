//! Control of a running Marline over a local Unix socket (Windows: a named pipe), newline-delimited
//! JSON, versioned. Never an open port.

pub mod client;
mod counters;
#[cfg(any(test, feature = "generate"))]
pub(crate) mod example;
pub mod forecast;
mod managed;
#[cfg(windows)]
mod pipe;
#[cfg(unix)]
mod place;
pub mod protocol;
mod seen;
pub mod server;
mod session;
#[cfg(unix)]
mod socket;
pub mod status;
#[cfg(all(test, unix))]
mod tests;
pub(crate) mod words;

pub(crate) use counters::Metric;
pub use managed::Managed;
#[cfg(windows)]
pub use pipe::{
    BindError, ControlSocket, Place, Stream, is_trusted, service_sockets, usual_path, usual_paths,
};
#[cfg(unix)]
pub use place::{Place, is_private, is_trusted, service_sockets, usual_path, usual_paths};
pub use seen::Seen;
#[cfg(unix)]
pub use socket::{BindError, ControlSocket, Stream};
pub use status::Status;

use crate::recording::Part;
use marline::Path;
use marline_base::Rate;
pub use marline_base::text::Problem;
use std::future::Future;

/// What the control socket, the metrics and a configuration reload do to a running session.
pub trait Manage: Send + Sync + 'static {
    /// A snapshot of everything.
    fn status(&self) -> impl Future<Output = Status> + Send;

    /// Starts to dial a further path.
    fn add_path(&self, path: Path) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Removes the path of that name or number.
    fn remove_path(&self, name: &str) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Puts the path of that name or number on standby, or calls it back.
    fn set_standby(
        &self,
        name: &str,
        standby: bool,
    ) -> impl Future<Output = Result<(), Problem>> + Send;

    /// Gives the live entry of that name, or the only one, another target rate; `None` has it
    /// measured.
    fn set_live_target(
        &self,
        live: Option<&str>,
        target: Option<Rate>,
    ) -> impl Future<Output = Result<(), Problem>> + Send {
        let _ = (live, target);
        std::future::ready(Err(Problem::new("this instance has no live entries")))
    }

    /// What was recorded of the paths: see [`Recorder::ask`](crate::recording::Recorder::ask).
    ///
    /// # Errors
    /// Nothing is recorded here.
    fn record(&self, since_ms: Option<u64>, all: bool) -> Result<Part, Problem> {
        let _ = (since_ms, all);
        Err(
            Problem::new("paths are recorded at clients, and this is a server")
                .hint("run `marline record` where `marline client` runs"),
        )
    }
}
