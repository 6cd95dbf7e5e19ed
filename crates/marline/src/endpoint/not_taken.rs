//! Why something that was written was not taken, as tokio says it.

use std::io;

use marline_proto::flow::SendError;

/// [`io::ErrorKind::BrokenPipe`] when the flow is over, [`io::ErrorKind::InvalidInput`] when it is
/// not. Public for `marline-apps`, and free to change.
#[doc(hidden)]
pub fn not_taken(error: SendError) -> io::Error {
    let kind = match error {
        SendError::Closed => io::ErrorKind::BrokenPipe,
        _ => io::ErrorKind::InvalidInput,
    };
    io::Error::new(kind, error)
}
