//! What is written in several parts.

use marline::endpoint::not_taken;
use marline_proto::flow::SendError;
use std::io;

/// Writes all parts, for one that is not taken does not keep the next; the first error, if there
/// was one.
pub(super) fn write_all<T>(
    parts: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T) -> Result<(), SendError>,
) -> io::Result<()> {
    let mut written = Ok(());
    for part in parts {
        written = written.and(write(part));
    }
    written.map_err(not_taken)
}

/// Parts that are kept of a flow that is over: as many as may come before it is known to be.
const UNWRITTEN: usize = 16;

/// Keeps a part that a flow did not take because it is over, for the next session. The receiver
/// learns of the end; a server that goes on sending and takes nothing is left when this much is
/// kept.
///
/// # Errors
/// [`SendError::Closed`]: the part was not kept.
pub(super) fn keep<T: Clone>(unwritten: &mut Vec<T>, part: &T) -> Result<(), SendError> {
    if unwritten.len() == UNWRITTEN {
        return Err(SendError::Closed);
    }
    unwritten.push(part.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_takes_nothing_does_not_fill_memory() {
        let mut unwritten = Vec::new();
        let kept = (0..10 * UNWRITTEN).filter(|part| keep(&mut unwritten, part).is_ok());
        assert_eq!(kept.count(), UNWRITTEN);
        assert_eq!(unwritten.len(), UNWRITTEN);
    }

    #[test]
    fn a_part_that_is_not_taken_does_not_keep_the_next() {
        let mut seen = Vec::new();
        let written = write_all([1, 2, 3], |part| {
            seen.push(part);
            match part {
                1 => Err(SendError::Full),
                2 => Err(SendError::Closed),
                _ => Ok(()),
            }
        });
        assert_eq!(seen, [1, 2, 3]);
        // Of the first error, which does not end the flow.
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
