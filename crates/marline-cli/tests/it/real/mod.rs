//! Real processes over loopback: the program as client and server, emulated links between them,
//! ordinary applications.
//!
//! | file | what it proves |
//! | --- | --- |
//! | `budget.rs` | a path that has carried its budget stands by, also after a restart |
//! | `bulk.rs` | a download outlives the paths that it began on |
//! | `clients.rs` | a client is let in and revoked while the server runs |
//! | `connections.rs` | 200 connections at once, each with its own bytes and half-close |
//! | `datagrams.rs` | a UDP forward keeps message boundaries |
//! | `descriptors.rs` | a server without descriptors turns connections away, and raises its limit where it may |
//! | `devices.rs` | an emulated link between network namespaces |
//! | `doctor.rs` | what `marline doctor` finds at a client and a server |
//! | `encoder.rs` | an encoder that follows what the links carry, by a script beside the client |
//! | `experiments.rs` | ffmpeg over `marline link` processes: every datagram of 10 Mb/s, in order |
//! | `handover.rs` | nothing is lost when the better link goes dark |
//! | `live.rs` | live entries: order, losses, budgets, senders, targets |
//! | `hostile_tunnel.rs` | what a hostile server gets of a client's addresses, routes and packets |
//! | `links.rs` | an emulated link changes while it runs |
//! | `many.rs` | one server serves many clients |
//! | `objects.rs` | connections carried as objects: curl, records |
//! | `observe.rs` | metrics and status |
//! | `own_addresses.rs` | the server's own addresses are closed to clients unless a rule names them |
//! | `outages.rs` | dead first path; all paths dark, shorter and longer than the idle limit |
//! | `refusals.rs` | whatever is wrong is named, with the mend and the right exit code |
//! | `server_killed.rs` | a server that crashes and comes back |
//! | `signals.rs` | SIGINT, SIGTERM, SIGHUP |
//! | `status_page.rs` | what `marline status` prints: many flows, a lost path, one in reserve |
//! | `tools.rs` | ffmpeg, RTP, SRT and RIST through live entries |
//! | `tunnel.rs` | kernel traffic through a tunnel between network namespaces |
//! | `udp_blocked.rs` | paths over TCP where the network blocks UDP |

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures and logs of processes are shown with a failed test"
)]

mod budget;
mod bulk;
mod clients;
mod connections;
mod datagrams;
mod descriptors;
mod devices;
mod doctor;
mod encoder;
mod experiments;
mod handover;
pub(crate) mod harness;
mod hostile_tunnel;
mod links;
mod live;
mod many;
mod objects;
mod observe;
mod outages;
mod own_addresses;
mod refusals;
mod server_killed;
mod signals;
mod status_page;
mod tools;
mod tunnel;
mod udp_blocked;
