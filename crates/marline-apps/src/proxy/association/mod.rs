//! Associations: all datagrams of one program over one flow, and out of one port of the server.
//!
//! A program behind an address translator learns from one host (a STUN server, a game's lobby) at
//! which address others reach it. That holds only if all that it sends comes from one external
//! port, whoever it goes to: endpoint-independent mapping (RFC 4787 REQ-1). Answers are let in from
//! every address that the program has sent to, whatever their port: address-dependent filtering
//! (REQ-8), which lets a peer answer from another port and keeps strangers out.
//!
//! The flow is one of unordered messages, each with the address of its other end: no destination
//! waits for another. The server's first message is empty and says that it knows associations; a
//! server that does not closes the flow, and each destination has a flow and a port of its own
//! there, as before there were associations.

mod contacts;
mod external;
mod message;
mod program;

pub(crate) use external::{refuse, serve};
pub(super) use program::{Datagram, Knowledge, carry};
