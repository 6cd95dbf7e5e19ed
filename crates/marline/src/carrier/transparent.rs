use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

use quinn::Connection;
use quinn::congestion::{Controller, ControllerFactory};

/// Above 2³² bytes quinn neither blocks nor paces.
const WINDOW: u64 = 1 << 40;

/// The largest UDP payload (bytes) that a connection sends, as it is now. quinn reports changes to
/// congestion controllers alone, and asking the connection takes its lock.
#[derive(Clone, Debug)]
pub(super) struct PacketSize(Arc<AtomicU16>);

impl PacketSize {
    /// That of a connection with a [`Transparent`] controller.
    pub(super) fn of(connection: &Connection) -> Option<Self> {
        let controller = connection.congestion_state().into_any();
        let controller = controller.downcast::<Transparent>().ok()?;
        Some(controller.size)
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
}

/// Makes [`Transparent`] for a connection, and holds something as long as there is anything left of
/// the connection: quinn keeps its configuration until the last late packet can have come.
#[derive(Debug)]
pub(super) struct Holding<T> {
    _held: T,
    /// One for all controllers of the connection: each address that it moves to has its own.
    size: PacketSize,
}

impl<T> Holding<T> {
    pub(super) fn new(held: T) -> Self {
        Self {
            _held: held,
            size: PacketSize(Arc::default()),
        }
    }
}

impl<T: Send + Sync + 'static> ControllerFactory for Holding<T> {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        self.size.set(current_mtu);
        Box::new(Transparent {
            size: self.size.clone(),
        })
    }
}

impl Controller for Transparent {
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
