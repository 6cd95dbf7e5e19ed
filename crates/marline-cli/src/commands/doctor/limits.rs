//! How long the doctor takes.

use std::time::Duration;

/// All checks together end after this: the page of `marline doctor --help` promises 15 s, and
/// starting and printing take less than one.
pub(super) const LIMIT: Duration = Duration::from_secs(14);

/// How long one answer is waited for, of a tool, a resolver, the server or a running Marline.
/// Within it a first packet of QUIC is sent again after 0.3, 0.9 and 2.1 s, one of TCP after 1 and
/// 3 s (RFC 6298). Names, then a handshake, then the end of a session are within [`LIMIT`] with it.
pub(super) const PATIENCE: Duration = Duration::from_secs(4);
