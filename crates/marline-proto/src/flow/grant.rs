//! Credit that an end gives its peer: what the peer may send before more is read. A stream counts
//! its bytes, a flow of units theirs and what each costs besides, a session both of all its flows.

/// See the [module](self). All are bytes since the beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    granted: u64,
    taken: u64,
    returned: u64,
}

impl Grant {
    /// The peer begins with `granted`.
    pub(crate) fn new(granted: u64) -> Self {
        Self {
            granted,
            taken: 0,
            returned: 0,
        }
    }

    /// What the peer may send in all.
    pub(crate) fn granted(&self) -> u64 {
        self.granted
    }

    /// What it has sent.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// What was read of that, or dropped.
    pub(crate) fn returned(&self) -> u64 {
        self.returned
    }

    /// What this end holds for the peer.
    pub(crate) fn held(&self) -> u64 {
        self.taken - self.returned
    }

    /// What the peer may still send.
    pub(crate) fn left(&self) -> u64 {
        self.granted.saturating_sub(self.taken)
    }

    /// The peer has sent `bytes` more. Was it allowed to?
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        self.taken += bytes;
        self.taken <= self.granted
    }

    /// `bytes` more were read or dropped.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.returned += bytes;
    }

    /// Would `window` bytes beyond what was given back be at least `least` bytes more than the peer
    /// was granted?
    pub(crate) fn is_due(&self, window: u64, least: u64) -> bool {
        self.returned + window >= self.granted + least
    }

    /// Grants that window, if so.
    pub(crate) fn renew(&mut self, window: u64, least: u64) -> bool {
        let due = self.is_due(window, least);
        if due {
            self.granted = self.returned + window;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_taken_given_back_and_renewed_in_steps() {
        let mut grant = Grant::new(100);
        assert!(grant.take(100) && !grant.renew(100, 25));
        assert_eq!((grant.left(), grant.held()), (0, 100));
        grant.give_back(24);
        assert!(!grant.renew(100, 25));
        grant.give_back(1);
        assert!(grant.renew(100, 25));
        assert_eq!((grant.granted(), grant.left(), grant.held()), (125, 25, 75));
        assert!(!grant.take(26));
        assert_eq!(grant.left(), 0);
    }
}
