//! A stream to a target behind the server, for whoever asks a proxy for one.

use std::io;
use std::net::SocketAddr;

use marline_proto::wire::FlowKind;

use super::reply::{self, Refusal};
use super::{AsObjects, OpenError, Target, Tunnel};
use crate::options::flow_to;

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreached {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{target}: {refusal}")]
    Refused { target: Target, refusal: Refusal },
    /// The session ended meanwhile.
    #[error(transparent)]
    Lost(#[from] io::Error),
}

/// Asks the server for `target`; the stream, and the server's end of its connection.
pub(super) async fn reach<T: Tunnel>(
    target: Target,
    objects: AsObjects,
    tunnel: &T,
) -> Result<(T::Stream, SocketAddr), Unreached> {
    let kind = match objects.applies(target.port()) {
        true => FlowKind::Objects,
        false => FlowKind::Stream,
    };
    let options = flow_to(kind, target.encode());
    let mut flow = tunnel.open_stream(options).await?;
    match reply::read(&mut flow).await? {
        Ok(bound) => Ok((flow, bound)),
        Err(refusal) => Err(Unreached::Refused { target, refusal }),
    }
}
