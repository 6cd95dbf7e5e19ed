//! Sessions whose carriers a benchmark opens itself.

use bytes::Bytes;
use marline::carrier::{Carrier as _, PathCarrier};
use marline::endpoint::{Driver, Session};
use marline_proto::path::PathParams;
use marline_proto::wire::{Params, PathId};
use marline_proto::{Config, Session as Machine, Side};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What an end says of itself.
pub(crate) fn params() -> Bytes {
    let mut params = Vec::new();
    Config::default().params().encode(&mut params);
    params.into()
}

/// A session with a peer that has said this of itself.
pub(crate) fn session(side: Side, theirs: &[u8]) -> Result<(Driver, Session), Failure> {
    let theirs = Params::decode(theirs)?;
    Ok(Driver::new(|now| {
        Machine::new(now, side, Config::default(), theirs, 1)
    })?)
}

/// Adds a path.
pub(crate) fn add(handle: &Session, path: PathId, mut carrier: PathCarrier) -> Result<(), Failure> {
    let params = PathParams {
        max_datagram: carrier.least_datagram(),
        rtt: carrier.rtt(),
        ..PathParams::default()
    };
    Ok(handle.add_path(path, "bench", &params, Box::new(carrier))?)
}
