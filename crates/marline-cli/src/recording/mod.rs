//! How paths behaved, as a file: what was sent and lost, when it arrived and how long it took, for
//! each path and direction, every 20 ms. No content, no addresses.
//!
//! ```text
//!  session ─ observer ─▶ Recorder ─ lines ─▶ `marline record FILE`
//!                                            `marline demo --record DIR`
//!  FILE ─▶ Recording ─▶ links ─▶ `marline sim run --links FILE`
//! ```
//!
//! One end sees both directions. What it sent the peer acknowledges, with the times of arrival. Of
//! what the peer sent, the numbers show what is missing, and acknowledgements say when they were
//! written. The clocks of both ends differ by what nobody can know. It is taken that the quickest
//! path is as quick there as back; the others follow, for the peer has one clock.
//!
//! | file | what |
//! | --- | --- |
//! | `format.rs` | the file: lines of JSON |
//! | `recorder.rs` | from a session's records to lines, in bounded memory |
//! | `draft.rs` | a path while its lines are read |
//! | `read.rs` | from a file to what happened on each path |
//! | `clock.rs` | the difference of the clocks |
//! | `replay.rs` | links that behave like that |

#[cfg(feature = "experiments")]
mod clock;
#[cfg(feature = "experiments")]
mod draft;
mod format;
#[cfg(feature = "experiments")]
mod read;
mod recorder;
#[cfg(feature = "experiments")]
mod replay;

pub use format::{Header, Line, Way};
#[cfg(feature = "experiments")]
pub use read::{Recording, RecordingError};
pub use recorder::{Part, Recorder};
#[cfg(feature = "experiments")]
pub use replay::{ReplayedLink, links};
