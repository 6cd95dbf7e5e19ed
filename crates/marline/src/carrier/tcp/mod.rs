//! The carrier for networks that block UDP: TLS 1.3 over TCP (`docs/CARRIER.md`).
//!
//! | file | what |
//! | --- | --- |
//! | `stream.rs` | one end of a TLS connection whose keys are proved |
//! | `carrier.rs` | [`TcpCarrier`]: datagrams on it, framed |
//! | `frame.rs` | the frames and their bytes |
//! | `kernel.rs` | what the kernel reports of its congestion control |
//! | `farewell.rs` | how a connection is left |

mod carrier;
mod farewell;
mod frame;
mod kernel;
mod stream;

pub use carrier::TcpCarrier;
pub(super) use farewell::{LINGER, farewell};
pub(super) use stream::{TcpLink, prepare};
