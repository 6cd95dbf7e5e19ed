//! Who may open or join a session: one question and one answer on each new carrier, before the
//! session's first datagram (`docs/CARRIER.md`).
//!
//! | file | what |
//! | --- | --- |
//! | `message.rs` | [`Hello`] and [`Reply`], and their bytes |
//! | `proof.rs` | [`SessionKey`] and the [`Proof`] that a further path belongs to a session |
//! | `session_id.rs` | [`SessionId`] |
//! | `exchange.rs` | the messages on a reliable byte stream |

mod exchange;
mod message;
mod proof;
mod session_id;

pub(super) use exchange::{ExchangeError, receive, send};
pub use message::{
    DecodeError, Hello, MAX_MESSAGE, MAX_PARAMS, MAX_REASON, RefuseCode, Reply, VERSION,
};
pub(super) use proof::Exported;
pub use proof::{EXPORTER_LABEL, Proof, SessionKey, WrongProof};
pub use session_id::SessionId;
