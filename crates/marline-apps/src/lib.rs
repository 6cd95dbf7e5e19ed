//! How programs that know nothing of Marline use it, over the library's sessions.
//!
//! | folder | what |
//! | --- | --- |
//! | `destination/` | what a flow is for, in the bytes that open it |
//! | `proxy/` | SOCKS5, forwards and the way to their targets: policy, names, relays |
//! | `live/` | live streams: entries of encoders and of contribution tools |
//! | `publish/` | ports at the server that lead to services behind a client |
//! | `measure/` | what a path carries, from one end to the other |
//! | `tun/` | a tunnel for IP packets |
//! | `firewall.rs` | what becomes of a packet in a chain of nftables |
//! | `serve.rs` | what a server does with the flows of a client |
//! | `session.rs`, `carried.rs`, `object_stream.rs` | the library's flows as these use them |
//! | `options.rs` | what options of flows have in common |

mod carried;
pub mod destination;
pub mod firewall;
pub mod grant;
pub mod live;
pub mod lru;
pub mod measure;
mod object_stream;
pub mod options;
pub mod proxy;
pub mod publish;
pub mod serve;
mod session;
pub mod tun;
pub mod whole;

pub use carried::Carried;
pub use object_stream::ObjectStream;
