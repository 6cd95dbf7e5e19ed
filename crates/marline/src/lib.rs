//! Several unreliable links twisted into one low-latency connection.
//!
//! A [`Client`] keeps one session with a [`Server`] up over all of its [`Path`]s. Over the
//! [`Session`] either end opens flows: streams of bytes ([`Stream`]), messages ([`Packets`]),
//! blocks with deadlines ([`Blocks`]), objects that arrive each on its own ([`Objects`]). A
//! scheduler per flow ([`sched`]) decides which path carries what; links may jitter, lose and go
//! dark.
//!
//! ```no_run
//! use std::time::Duration;
//! use marline::{Client, ClientOptions, FlowOptions, Identity, Path};
//! use tokio::io::AsyncWriteExt;
//!
//! # async fn client() -> Result<(), Box<dyn std::error::Error>> {
//! let server = "marline://KEY@server.example:4433".parse()?;
//! let paths = vec![Path::interface("wlan0"), Path::interface("wwan0").cost(1)];
//! let client = Client::start(ClientOptions::new(&server, Identity::generate()?, paths))?;
//! let session = client.connect(Duration::from_secs(10)).await?;
//! let mut stream = session.open_stream(FlowOptions::default())?;
//! stream.write_all(b"hello").await?;
//! stream.shutdown().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything needs a tokio runtime; nothing here blocks. [`proto`] is the same session without
//! sockets, clocks and threads, for those who bring their own.

pub mod carrier;
pub mod endpoint;
pub mod identity;
pub mod interfaces;
#[doc(hidden)]
pub mod loopback;
mod path;
mod resolver;
/// What the other crates of this project share with this one; not for users, and free to change.
#[doc(hidden)]
pub mod support;

pub use carrier::{Bind, CarrierChoice, CarrierKind, Offload, QuicConfig};
pub use endpoint::{
    Accepted, AddPathError, BindError, Blocks, Client, ClientLimits, ClientOptions, Closed,
    ConnectError, GivenUp, Incoming, Incomings, NoSession, Object, Objects, Packets, PathInfo,
    RateReport, ReadHalf, RemovePathError, Server, ServerOptions, Session, SessionInfo,
    SessionState, Settled, Stream, UnknownPath, WriteHalf,
};
pub use identity::{AllowList, ConnectionString, Host, HostPort, Identity, PublicKey};
pub use interfaces::Selector;
pub use marline_base::{Rate, text::Problem};
pub use marline_proto as proto;
pub use marline_proto::congestion::Congestion;
pub use marline_proto::flow::{BlockTerms, Fate, ObjectOptions, SendError};
pub use marline_proto::path::PathState;
pub use marline_proto::wire::{FlowId, FlowKind, PathId};
pub use marline_proto::{CloseReason, Config, FlowInfo, FlowOptions, OpenError, sched};
pub use path::{Path, tcp_congestion};
