//! A flow of objects.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use marline_proto::flow::{Fate, ObjectOptions, SendError};
use marline_proto::stats::{Delays, FlowCounters};
use marline_proto::wire::FlowId;

use super::report::Settled;
use super::shared::Shared;
use super::units::{Incoming, Units};

/// Objects over all paths of a session: each arrives reliably and on its own, the urgent ones
/// first.
///
/// Dropping it ends both directions; objects that were written whole are still delivered.
///
/// ```
/// use bytes::Bytes;
/// use marline::{Accepted, FlowOptions, Object, ObjectOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let marline::loopback::Loopback { session, mut incomings, client, server } =
/// #     marline::loopback::loopback().await?;
/// let objects = session.open_objects(FlowOptions::default())?;
/// let number = objects
///     .send(&Bytes::from_static(b"an image"), &ObjectOptions::default())
///     .await?;
///
/// // At the server:
/// let (_, flow) = incomings.accept().await?;
/// if let Accepted::Objects(objects) = flow {
///     let data = Bytes::from_static(b"an image");
///     assert_eq!(objects.recv().await, Some(Object::Whole { number, data }));
/// }
/// # drop((client, server));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Objects {
    units: Units,
    partial: Mutex<Partial>,
}

/// Objects of which pieces came, for applications that want them whole.
#[derive(Debug, Default)]
struct Partial {
    objects: BTreeMap<u64, BytesMut>,
    /// Bytes of all of them.
    bytes: usize,
}

impl Partial {
    /// What has come of an object, which is forgotten.
    fn take(&mut self, object: u64) -> BytesMut {
        let data = self.objects.remove(&object).unwrap_or_default();
        self.bytes -= data.len();
        data
    }
}

/// A whole object, or a notice of one that will not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// Here it is.
    Whole {
        /// Its number in the flow.
        number: u64,
        /// Its bytes.
        data: Bytes,
    },
    /// It will not come, or not the rest of it.
    Gone {
        /// Its number in the flow.
        number: u64,
        /// Why not.
        fate: Fate,
    },
}

impl Objects {
    /// What [`recv`](Self::recv) puts together at a time, all objects taken together (bytes).
    pub const WHOLE: usize = 64 << 20;
    /// Code with which it refuses an object for which there is no room.
    pub const TOO_LARGE: u64 = 1;

    pub(super) fn new(shared: Arc<Shared>, flow: FlowId) -> Self {
        Self {
            units: Units { shared, flow },
            partial: Mutex::default(),
        }
    }

    /// The flow, to be used otherwise.
    #[doc(hidden)]
    pub fn into_units(self) -> Units {
        self.units
    }

    /// The flow's number in its session.
    pub fn id(&self) -> FlowId {
        self.units.flow
    }

    /// Sends an object whole and returns its number, waiting while the flow has no room. Objects
    /// larger than the send buffer are opened and written in pieces.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if this object is too long or its options are wrong; any
    /// other kind if the flow is over.
    pub async fn send(&self, object: &Bytes, options: &ObjectOptions) -> io::Result<u64> {
        self.units
            .write(|session, now, flow| session.send_object(now, flow, object, options))
            .await
    }

    /// Opens an object, to be written by [`write`](Self::write), and returns its number.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn open(&self, options: &ObjectOptions) -> io::Result<u64> {
        self.units
            .write(|session, now, flow| session.open_object(now, flow, options))
            .await
    }

    /// Appends to an object, waiting while the flow has no room; `last`: the object ends with it.
    ///
    /// # Errors
    /// As [`send`](Self::send); also if the object has ended.
    pub async fn write(&self, object: u64, data: &Bytes, last: bool) -> io::Result<()> {
        self.units
            .write(|session, now, flow| session.write_object(now, flow, object, data, last))
            .await
    }

    /// Sends an object whole and at once, or says why not.
    ///
    /// # Errors
    /// As [`SendError`] says; it was not taken.
    pub fn try_send(&self, object: &Bytes, options: &ObjectOptions) -> Result<u64, SendError> {
        self.units
            .with(|session, now, flow| session.send_object(now, flow, object, options))
    }

    /// Opens an object at once, or says why not.
    ///
    /// # Errors
    /// As [`SendError`] says; nothing was opened.
    pub fn try_open(&self, options: &ObjectOptions) -> Result<u64, SendError> {
        self.units
            .with(|session, now, flow| session.open_object(now, flow, options))
    }

    /// Appends to an object at once, or says why not; `last`: the object ends with it.
    ///
    /// # Errors
    /// As [`SendError`] says; nothing was taken.
    pub fn try_write(&self, object: u64, data: &Bytes, last: bool) -> Result<(), SendError> {
        self.units
            .with(|session, now, flow| session.write_object(now, flow, object, data, last))
    }

    /// Changes an object's priority (RFC 9218).
    ///
    /// # Errors
    /// [`SendError::NoObject`] if it is settled, [`SendError::Urgency`] beyond 7.
    pub fn reprioritise(
        &self,
        object: u64,
        urgency: u8,
        incremental: bool,
    ) -> Result<(), SendError> {
        self.units
            .with(|session, _, flow| session.reprioritise(flow, object, urgency, incremental))
    }

    /// Cancels an object that was opened here, with a code for the receiver.
    pub fn cancel(&self, object: u64, code: u64) {
        self.units
            .with(|session, now, flow| session.cancel_object(now, flow, object, code));
    }

    /// Refuses an object of the other end's, with a code for its sender.
    pub fn refuse(&self, object: u64, code: u64) {
        self.partial().take(object);
        self.units
            .with(|session, now, flow| session.refuse_object(now, flow, object, code));
    }

    fn partial(&self) -> std::sync::MutexGuard<'_, Partial> {
        self.partial.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next object that is whole, or a notice of one that will not come; `None` when nothing
    /// more will. Objects of several pieces are put together here, at most [`WHOLE`](Self::WHOLE)
    /// bytes at a time: one for which there is no room is refused, and reported as gone for that.
    /// [`recv_piece`](Self::recv_piece) knows no such bound. A flow should be read by one of the
    /// two.
    pub async fn recv(&self) -> Option<Object> {
        loop {
            let piece = match self.units.recv().await? {
                Incoming::Piece(piece) => piece,
                Incoming::Gone { number, fate } => {
                    self.partial().take(number);
                    return Some(Object::Gone { number, fate });
                }
            };
            let number = piece.number;
            if piece.last && piece.offset == 0 {
                let data = piece.data;
                return Some(Object::Whole { number, data });
            }
            let mut partial = self.partial();
            let have = partial.objects.get(&number).map_or(0, BytesMut::len);
            if piece.offset != have as u64 {
                // It was refused when this had already come.
                continue;
            }
            if partial.bytes + piece.data.len() > Self::WHOLE {
                drop(partial);
                self.refuse(number, Self::TOO_LARGE);
                let fate = Fate::Refused(Self::TOO_LARGE);
                return Some(Object::Gone { number, fate });
            }
            partial.bytes += piece.data.len();
            let object = partial.objects.entry(number).or_default();
            object.extend_from_slice(&piece.data);
            if piece.last {
                let data = partial.take(number).freeze();
                return Some(Object::Whole { number, data });
            }
        }
    }

    /// The next piece of any object, or a notice of one that will not come; `None` when nothing
    /// more will. Pieces of one object come in order and without gaps; of different objects, mixed.
    pub async fn recv_piece(&self) -> Option<Incoming> {
        self.units.recv().await
    }

    /// What became of an object that was sent here, in the order in which that became known; the
    /// oldest of more than 4096 that nobody asks for are forgotten. `None` when the flow is
    /// over or the other end wants no more of it.
    pub async fn settled(&self) -> Option<Settled> {
        self.units.settled().await
    }

    /// Nobody will ask by [`settled`](Self::settled): nothing is kept for it any more.
    pub fn ignore_settled(&self) {
        self.units.ignore_settled();
    }

    /// How long what is sent is worth something, as the opener of the flow said; `None` if that was
    /// not said, or the flow is forgotten.
    pub fn lifetime(&self) -> Option<Duration> {
        let state = self.units.shared.lock();
        state.session.flow_info(self.units.flow)?.lifetime
    }

    /// Is the session over or about to be, and not this flow alone?
    pub fn is_session_over(&self) -> bool {
        self.units.shared.is_over()
    }

    /// Pieces of objects that the other end is not known to have and that are not given up, oldest
    /// first, each with its object's number; see [`Packets::unsettled`](super::Packets::unsettled).
    pub fn unsettled(&self) -> Vec<(u64, Bytes)> {
        self.units.unsettled()
    }

    /// Waits until the flow takes more, or is over.
    pub async fn room(&self) {
        self.units.room().await;
    }

    /// How long objects took until this end knew that the other has them in order; `None` once
    /// its session has forgotten the flow.
    pub fn delays(&self) -> Option<Delays> {
        self.units.delays()
    }

    /// What the flow has counted; `None` once it is forgotten.
    pub fn counters(&self) -> Option<FlowCounters> {
        let state = self.units.shared.lock();
        state.session.flow_counters(self.units.flow)
    }

    /// No more objects will be sent; those that are not written to their end are cancelled.
    pub fn finish(&self) {
        self.units.finish();
    }
}
