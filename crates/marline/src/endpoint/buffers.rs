//! Memory of datagrams on their way from a session to its carriers.

use std::cell::RefCell;

use bytes::Bytes;

/// Bytes from which a datagram takes its buffer with it. A shorter one is copied, which costs less
/// than to lend the buffer.
const LONG: usize = 512;

/// Buffers that a thread keeps: what a driver hands to its carriers in one turn. Each has room for
/// a datagram, so that all are some 100 KB.
const KEPT: usize = 64;

/// Bytes of a buffer of more than a datagram over Ethernet, which is not kept.
const LARGEST: usize = 2048;

thread_local! {
    /// The one that was given back last is lent first: it is in the cache still.
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer that returns to the thread that has done with it.
struct Lent(Vec<u8>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.0.capacity() > LARGEST {
            return;
        }
        let buffer = std::mem::take(&mut self.0);
        // A thread that ends keeps none.
        let _ = BUFFERS.try_with(|buffers| {
            if let Ok(mut buffers) = buffers.try_borrow_mut()
                && buffers.len() < KEPT
            {
                buffers.push(buffer);
            }
        });
    }
}

/// The datagram in `buf`, which is another buffer afterwards if this one went with it.
pub(super) fn lend(buf: &mut Vec<u8>) -> Bytes {
    if buf.len() < LONG {
        return Bytes::copy_from_slice(buf);
    }
    let next = BUFFERS.try_with(|buffers| buffers.try_borrow_mut().ok()?.pop());
    let next = next.ok().flatten();
    let next = next.unwrap_or_else(|| Vec::with_capacity(buf.len()));
    Bytes::from_owner(Lent(std::mem::replace(buf, next)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_datagram_takes_its_buffer_which_is_lent_again_after_it() {
        let mut buf = vec![7; LONG];
        let first = buf.as_ptr();
        let datagram = lend(&mut buf);
        assert_eq!((datagram.as_ptr(), datagram.len()), (first, LONG));
        assert!(datagram.iter().all(|byte| *byte == 7));
        assert_ne!(buf.as_ptr(), first);
        drop(datagram);
        buf.resize(LONG, 8);
        let other = lend(&mut buf);
        assert_eq!(other, vec![8; LONG]);
        assert_eq!(buf.as_ptr(), first);
        // A short one leaves it.
        buf.clear();
        buf.push(9);
        assert_eq!(lend(&mut buf), [9][..]);
        assert_eq!(buf.as_ptr(), first);
    }

    #[test]
    fn no_more_are_kept_than_a_turn_needs() {
        let mut buf = Vec::new();
        let mut held = Vec::new();
        for _ in 0..2 * KEPT {
            buf.clear();
            buf.resize(LONG, 0);
            held.push(lend(&mut buf));
        }
        drop(held);
        BUFFERS.with_borrow(|buffers| assert_eq!(buffers.len(), KEPT));
    }
}
