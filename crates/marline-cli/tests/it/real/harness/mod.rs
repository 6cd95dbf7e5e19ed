//! What the tests by real processes have in common: the program as a child process, keys, emulated
//! links, applications.
//!
//! | file | what |
//! | --- | --- |
//! | `program.rs` | a child process: its output as it comes, signals, exit; killed when dropped |
//! | `relay.rs` | an emulated link as a process of its own |
//! | `site.rs` | a folder with keys; servers and clients started from it, and asked for their status |
//! | `skip.rs` | tests that are left out, and say so |
//! | `socks.rs` | a SOCKS5 client for one connection |
//! | `tap.rs` | what ffmpeg sends, kept on its way to a live entry |
//! | `target.rs` | what clients talk to behind the server |
//! | `pattern.rs` | bytes that are known without being kept, and their digests |
//! | `handover.rs` | timestamped messages while the better link goes dark |
//! | `namespace.rs` | a network of its own |
//! | `namespaces.rs` | networks of their own for a client, a server and a router between them |
//! | `live.rs` | live entries of a client and a server over two links; MPEG transport streams |

mod handover;
mod live;
pub(crate) mod namespace;
pub(crate) mod namespaces;
mod pattern;
mod program;
mod relay;
mod site;
mod skip;
mod socks;
mod tap;
mod target;

pub(crate) use handover::{Figures, HandoverPlan, handover};
pub(crate) use live::{Live, receive, roomy_socket, transport};
pub(crate) use pattern::{Digest, pattern};
pub(crate) use program::{Program, marline};
pub(crate) use relay::Relay;
pub(crate) use site::{
    ClientProgram, ServerProgram, Site, client_of, link, links, path, path_by, status,
};
pub(crate) use skip::{not_installed, skipped};
pub(crate) use socks::{socks_connect, socks_reply};
pub(crate) use tap::{Tapped, ffmpeg, tapped};
pub(crate) use target::{http_server, tcp_echo, udp_echo};

use std::time::{Duration, Instant};

/// How long anything that must happen may take. It is no measure of speed: what happens ends the
/// wait at once, and the machine may be busy with other things.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40);

/// Asks `poll` until it has an answer.
///
/// # Panics
/// After [`DEADLINE`], with `what` was waited for.
pub(crate) fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(Instant::now() < end, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
