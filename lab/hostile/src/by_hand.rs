//! A session whose frames are written by hand, over a real carrier.

use std::future::poll_fn;
use std::ops::RangeInclusive;
use std::task::{Context, Poll};

use bytes::Bytes;
use marline::carrier::{Carrier, Dial, PathCarrier, SendError};
use marline::identity::Identity;
use marline_proto::Config;
use marline_proto::wire::{self, Ack, Arrival, Frame, Header, Params, PathId};
use tokio::time::Instant;

use crate::attack::{Failure, Knobs};

/// Datagrams that are taken at once.
const BATCH: usize = 256;

/// What this end says that it is ready to take: everything.
pub(crate) fn params() -> Bytes {
    let mut bytes = Vec::new();
    let greedy = Params {
        max_data: wire::varint::MAX,
        max_flow_data: wire::varint::MAX,
        max_flows: 1 << 20,
        max_units: wire::MAX_UNITS,
        max_repairs: wire::MAX_REPAIRS,
        ..Config::default().params()
    };
    greedy.encode(&mut bytes);
    bytes.into()
}

/// One path of such a session, which is all that it has.
#[derive(Debug)]
pub(crate) struct ByHand {
    carrier: PathCarrier,
    path: PathId,
    /// The next packet's number.
    next: u64,
    /// The newest packets without a gap.
    received: Option<RangeInclusive<u64>>,
    /// Flows that the other end lets this one open.
    pub(crate) max_flows: u64,
    started: Instant,
}

impl ByHand {
    /// A session that this end has opened.
    pub(crate) async fn dial(knobs: &Knobs) -> Result<Self, Failure> {
        let dialled = dial(knobs).await?.connect(&knobs.identity()?).await?;
        let opened = dialled.open(PathId(0), params()).await?;
        let theirs = Params::decode(&opened.params)?;
        Ok(Self::new(opened.carrier, PathId(0), &theirs))
    }

    /// A session that begins with this carrier.
    pub(crate) fn new(carrier: PathCarrier, path: PathId, theirs: &Params) -> Self {
        Self {
            carrier,
            path,
            next: 0,
            received: None,
            max_flows: theirs.max_flows,
            started: Instant::now(),
        }
    }

    /// Bytes of frames that a datagram takes.
    pub(crate) fn room(&mut self) -> usize {
        self.carrier.max_datagram()
            - Header {
                packet: wire::varint::MAX,
            }
            .encoded_len()
    }

    /// Takes what has come and acknowledges it, then sends a datagram with these frames, if there
    /// is room for it: else `false`. Each packet's number is `step` above the last one's.
    ///
    /// # Errors
    /// Why the session is over.
    pub(crate) async fn turn(&mut self, frames: &[u8], step: u64) -> Result<bool, String> {
        let sent = poll_fn(|cx| Poll::Ready(self.exchange(cx, frames, step))).await;
        // What was queued leaves now.
        tokio::task::yield_now().await;
        sent
    }

    fn exchange(&mut self, cx: &mut Context<'_>, frames: &[u8], step: u64) -> Result<bool, String> {
        let mut came = Vec::new();
        while let Poll::Ready(taken) = self.carrier.poll_recv(cx, &mut came, BATCH) {
            taken.map_err(|end| end.to_string())?;
        }
        for datagram in &came {
            self.take(datagram)?;
        }
        if !came.is_empty()
            && let Some(ack) = self.ack()
        {
            self.send(&ack, 1)?;
        }
        let sent = self.send(frames, step)?;
        let _ = self.carrier.poll_flush(cx);
        Ok(sent)
    }

    fn take(&mut self, datagram: &[u8]) -> Result<(), String> {
        let (header, frames) = wire::decode(datagram).map_err(|error| error.to_string())?;
        let packet = header.packet;
        self.received = Some(match self.received.take() {
            Some(run) if packet == run.end() + 1 => *run.start()..=packet,
            Some(run) if packet <= *run.end() => run,
            _ => packet..=packet,
        });
        for frame in frames {
            match frame {
                Ok(Frame::Close(close)) => {
                    return Err(format!("CLOSE {:#x}: {}", close.code, close.reason));
                }
                Ok(Frame::MaxFlows(credit)) => self.max_flows = self.max_flows.max(credit.max),
                _ => {}
            }
        }
        Ok(())
    }

    fn ack(&self) -> Option<Vec<u8>> {
        let run = self.received.clone()?;
        let arrival = Arrival {
            packet: *run.end(),
            at_us: self.started.elapsed().as_micros() as u64,
        };
        let ack = Ack {
            path: self.path,
            delay_us: 0,
            ranges: vec![run],
            arrivals: vec![arrival],
        };
        let mut bytes = Vec::new();
        ack.encode(&mut bytes);
        Some(bytes)
    }

    fn send(&mut self, frames: &[u8], step: u64) -> Result<bool, String> {
        let mut datagram = Vec::new();
        Header { packet: self.next }.encode(&mut datagram);
        datagram.extend_from_slice(frames);
        match self.carrier.send(datagram.into()) {
            Ok(()) => {
                self.next += step;
                Ok(true)
            }
            Err(SendError::Full(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// The way to the server that the knobs describe.
pub(crate) async fn dial(knobs: &Knobs) -> Result<Dial, Failure> {
    let (addr, path) = (knobs.server_addr().await?, knobs.path()?);
    let mut dial = Dial::new(addr, knobs.server()?.server());
    dial.carrier = path.carrier;
    dial.socket.bind = path.local;
    // Thousands of sockets at once.
    dial.socket.buffer = 64 << 10;
    Ok(dial)
}

/// A key that nobody has seen before.
pub(crate) fn unlisted() -> Result<Identity, Failure> {
    Ok(Identity::generate()?)
}
