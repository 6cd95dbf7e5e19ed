use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

use super::batches::{Judge, Sending, Singly};

/// Above 2³² bytes quinn neither blocks nor paces.
const WINDOW: u64 = 1 << 40;

/// The largest UDP payload (bytes) that a connection sends, as it is now. quinn reports changes to
/// congestion controllers alone, and asking the connection takes its lock.
#[derive(Clone, Debug)]
pub(super) struct PacketSize(Arc<AtomicU16>);

impl PacketSize {
    /// That of a connection whose controller is [`Transparent`].
    pub(super) fn of(controller: Box<dyn Controller>) -> Option<Self> {
        Some(Transparent::of(controller)?.size)
    }

    pub(super) fn get(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, bytes: u16) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

/// A congestion controller that holds nothing back: the session controls and paces every path
/// itself, and a second controller below it would only fight the first.
#[derive(Clone, Debug)]
pub(super) struct Transparent {
    size: PacketSize,
    /// Judges whether batches of packets arrive; where that is decided already, nobody does.
    judge: Option<Judge>,
}

impl Transparent {
    /// The destinations to which the connection's socket sends packets singly.
    pub(super) fn singly(controller: Box<dyn Controller>) -> Option<Singly> {
        Some(Self::of(controller)?.judge?.sending().socket())
    }

    fn of(controller: Box<dyn Controller>) -> Option<Box<Self>> {
        controller.into_any().downcast().ok()
    }
}

/// Makes [`Transparent`] for a connection, and holds something as long as there is anything left of
/// the connection: quinn keeps its configuration until the last late packet can have come.
#[derive(Debug)]
pub(super) struct Holding<T> {
    _held: T,
    /// One for all controllers of the connection: each address that it moves to has its own.
    size: PacketSize,
    /// How it sends, if that may change.
    sending: Option<Arc<Sending>>,
}

impl<T> Holding<T> {
    pub(super) fn new(held: T, sending: Option<Sending>) -> Self {
        Self {
            _held: held,
            size: PacketSize(Arc::default()),
            sending: sending.map(Arc::new),
        }
    }
}

impl<T: Send + Sync + 'static> ControllerFactory for Holding<T> {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.size.set(current_mtu);
        Box::new(Transparent {
            size: self.size.clone(),
            judge: self.sending.clone().map(Judge::new),
        })
    }
}

impl Controller for Transparent {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        if let Some(judge) = &mut self.judge {
            judge.sent(now, bytes, last_packet_number, self.size.get());
        }
    }

    fn on_ack(&mut self, _: Instant, sent: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        if let Some(judge) = &mut self.judge {
            judge.came(sent, bytes);
        }
    }

    fn on_end_acks(&mut self, now: Instant, _: u64, _: bool, _: Option<u64>) {
        if let Some(judge) = &mut self.judge {
            judge.acknowledged(now);
        }
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.size.set(new_mtu);
    }

    fn window(&self) -> u64 {
        WINDOW
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
