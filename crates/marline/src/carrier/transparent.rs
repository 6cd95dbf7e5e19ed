use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn::congestion::{Controller, ControllerFactory};

/// Above 2³² bytes quinn neither blocks nor paces.
const WINDOW: u64 = 1 << 40;

/// A congestion controller that holds nothing back: the session controls and paces every path
/// itself, and a second controller below it would only fight the first.
#[derive(Clone, Debug)]
pub(super) struct Transparent;

/// Makes [`Transparent`] for a connection, and holds something as long as there is anything left of
/// the connection: quinn keeps its configuration until the last late packet can have come.
#[derive(Debug)]
pub(super) struct Holding<T>(pub(super) T);

impl<T: Send + Sync + 'static> ControllerFactory for Holding<T> {
    fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Transparent)
    }
}

impl Controller for Transparent {
    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: u64) {}

    fn on_mtu_update(&mut self, _: u16) {}

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
