//! TCP endpoints as pure state machines: greedy or limited, on top of any controller of
//! [`marline_proto::congestion`].
//!
//! They are what users run *inside* a tunnel, and what else crosses a link that a tunnel shares.
//! Payload does not exist: a [`Segment`] is a range of bytes of a stream, an [`Ack`] says which of
//! them arrived. Both are small and `Copy`, so that they can ride beside a size through a
//! [`marline_link::Link`], and both have a byte form, so that they can be messages of a packets
//! flow.
//!
//! ```text
//!  TcpSender ── Segment ─▶ any network ─▶ TcpReceiver
//!      ▲                                       │
//!      └────────────── Ack ◀───────────────────┘
//! ```
//!
//! # What is modelled
//!
//! A connection after its handshake, one way, as Linux runs it by default:
//!
//! | file | holds |
//! | --- | --- |
//! | `segment.rs` | what travels, and its bytes |
//! | `receiver.rs` | reassembly, delayed acknowledgements, SACK, DSACK, timestamp echo |
//! | `scoreboard.rs` | what is in flight, lost and selectively acknowledged |
//! | `rack.rs` | loss detection by time and its adaptation to reordering (RFC 8985 §6) |
//! | `rtt.rs` | round-trip time and retransmission time-out (RFC 6298) |
//! | `sender/` | sending, acknowledgements, tail loss probes (RFC 8985 §7), time-outs |
//!
//! The receiver follows RFC 1122 §4.2.3.2 and RFC 5681 §4.2 (delayed acknowledgements), RFC 2018
//! (SACK), RFC 2883 (DSACK) and RFC 7323 §4.3 (timestamp echo).
//!
//! The congestion window counts payload, in the controller's bytes; pacing happens only if the
//! controller names a rate, as BBR does. The others are clocked by acknowledgements.
//!
//! Not modelled: the handshake and the close, ECN, proportional rate reduction (after a loss the
//! window falls at once, as in RFC 5681), the restart of slow start after idling
//! (`tcp_slow_start_after_idle=0`), and segmentation offload.
//!
//! # Calling
//!
//! After every input of a [`TcpSender`] take [`TcpSender::poll_transmit`] until it yields `None`,
//! then ask [`TcpSender::poll_timeout`]; the same for [`TcpReceiver`] and its acknowledgements.
//! Time never runs backwards. Calling at other moments is harmless.
//!
//! ```
//! use marline_sim::tcp::{TcpConfig, TcpReceiver, TcpSender};
//! use marline_sim::{Duration, Instant};
//!
//! let config = TcpConfig {
//!     limit: Some(100_000),
//!     ..TcpConfig::new("cubic")
//! };
//! let mut now = Instant::ZERO;
//! let mut sender = TcpSender::new(&config, now, 1)?;
//! let mut receiver = TcpReceiver::new(&config)?;
//! // A network that takes 10 ms there and no time back, and loses nothing.
//! while !sender.is_done() {
//!     let flight: Vec<_> = std::iter::from_fn(|| sender.poll_transmit(now)).collect();
//!     now += Duration::from_millis(10);
//!     for segment in flight {
//!         receiver.handle_segment(now, &segment);
//!         if let Some(ack) = receiver.poll_ack(now) {
//!             sender.handle_ack(now, &ack);
//!         }
//!     }
//!     if receiver.poll_timeout().is_some_and(|at| at <= now + Duration::from_millis(40)) {
//!         now += Duration::from_millis(40);
//!         receiver.handle_timeout(now);
//!         receiver.poll_ack(now).iter().for_each(|ack| sender.handle_ack(now, ack));
//!     }
//! }
//! assert_eq!(receiver.delivered(), 100_000);
//! assert_eq!(sender.counters().retransmitted, 0);
//! # Ok::<(), marline_sim::tcp::TcpConfigError>(())
//! ```

mod config;
mod rack;
mod receiver;
mod rtt;
mod scoreboard;
mod segment;
mod sender;

pub use config::{TcpConfig, TcpConfigError};
pub use receiver::TcpReceiver;
pub use segment::{Ack, DecodeError, MAX_BLOCKS, Segment};
pub use sender::{TcpCounters, TcpSender};
