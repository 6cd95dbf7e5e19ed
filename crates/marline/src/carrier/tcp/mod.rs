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

/// Names of the congestion controls that this system's TCP has, as `tcp-cc` takes them; empty where
/// the system does not report it.
pub(super) fn congestion_controls() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let list = list.unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}
