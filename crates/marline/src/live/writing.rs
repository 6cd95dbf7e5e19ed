//! What is written in several parts.

use crate::endpoint::not_taken;
use marline_proto::flow::SendError;
use std::io;

/// Writes all parts, for one that is not taken does not keep the next; the first error, if there was one.
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

#[cfg(test)]
mod tests {
    use super::*;

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
