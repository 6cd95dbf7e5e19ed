//! Which client has which number of the pool, kept in a file so that it stays so.
//!
//! ```toml
//! [[client]]
//! key = "marline-pub:..."
//! number = 2
//! ```
//! The one that asked longest ago comes first.

use super::pool::{FIRST, Pool};
use crate::whole::{folder_of, write_whole};
use marline::identity::PublicKey;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Numbers of clients.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Leases {
    /// In the order in which they asked last.
    held: Vec<(PublicKey, u32)>,
}

/// Numbers that the operator gave to clients, each to one.
pub(super) type Fixed = HashMap<PublicKey, u32>;

/// What a client's asking has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    Nothing,
    /// Only who asked longest ago.
    Order,
    /// The client's number is not the one that it had, or it had none.
    Number,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    #[serde(default)]
    client: Vec<StoredClient>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredClient {
    key: String,
    number: u32,
}

/// The file of leases cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the tunnel's state file {}: {problem}", file.display())]
pub struct LeasesError {
    file: PathBuf,
    problem: String,
}

impl Leases {
    /// The leases that `file` holds; none when there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or is not what this program writes.
    pub(super) fn load(file: &Path) -> Result<Self, LeasesError> {
        let error = |problem: String| LeasesError {
            file: file.to_owned(),
            problem,
        };
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(error(format!("cannot be read: {problem}"))),
        };
        let stored: Stored = toml::from_str(&text)
            .map_err(|problem| error(format!("is damaged: {}", problem.message())))?;
        let (mut held, mut keys, mut numbers) = (Vec::new(), HashSet::new(), HashSet::new());
        for StoredClient { key, number } in stored.client {
            let key: PublicKey = key
                .parse()
                .map_err(|problem| error(format!("key `{key}`: {problem}")))?;
            if !keys.insert(key) || !numbers.insert(number) {
                return Err(error(format!(
                    "key {key} or number {number} is there twice"
                )));
            }
            held.push((key, number));
        }
        Ok(Leases { held })
    }

    /// The number of the client `key`, and what has changed by it: the one that it had, or the
    /// lowest free one, or else that of the client which asked longest ago and is not `present`.
    /// `None` when all are. Those that are `fixed` are nobody else's.
    pub(super) fn take(
        &mut self,
        pool: &Pool,
        key: PublicKey,
        present: impl Fn(&PublicKey) -> bool,
        fixed: &Fixed,
    ) -> Option<(u32, Change)> {
        let numbers = FIRST..=pool.last();
        let given: HashSet<u32> = fixed.values().copied().collect();
        // The pool may have shrunk since, and the operator given numbers away.
        let may_have = |key: &PublicKey, number: &u32| {
            let own = match fixed.get(key) {
                Some(own) => own == number,
                None => !given.contains(number),
            };
            own && numbers.contains(number)
        };
        if let Some((last, number)) = self.held.last()
            && *last == key
            && may_have(last, number)
        {
            return Some((*number, Change::Nothing));
        }
        self.held.retain(|(key, number)| may_have(key, number));
        let own = self.held.iter().position(|(other, _)| *other == key);
        let (number, change) = match own {
            Some(index) => (self.held.remove(index).1, Change::Order),
            None => {
                let held = self.held.iter().map(|(_, number)| *number);
                let taken: HashSet<u32> = held.chain(given.iter().copied()).collect();
                let free = || numbers.clone().find(|number| !taken.contains(number));
                let number = match fixed.get(&key).copied().or_else(free) {
                    Some(number) => number,
                    None => {
                        let may_go = |(other, _): &(PublicKey, u32)| {
                            !present(other) && !fixed.contains_key(other)
                        };
                        let oldest = self.held.iter().position(may_go)?;
                        self.held.remove(oldest).1
                    }
                };
                (number, Change::Number)
            }
        };
        self.held.push((key, number));
        Some((number, change))
    }

    /// Replaces `file` by one that holds these; it is on the disk when this returns.
    pub(super) fn store(&self, file: &Path) -> io::Result<()> {
        let client = self.held.iter().map(|(key, number)| StoredClient {
            key: key.to_string(),
            number: *number,
        });
        let stored = Stored {
            client: client.collect(),
        };
        let text = toml::to_string(&stored).map_err(io::Error::other)?;
        write_whole(file, text.as_bytes())?;
        // Its new name has to outlive a loss of power as well.
        File::open(folder_of(file))?.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    fn nobody(_: &PublicKey) -> bool {
        false
    }

    #[test]
    fn a_client_keeps_its_number_across_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/leases.toml");
        let pool: Pool = "10.77.0.0/24".parse().unwrap();
        let mut leases = Leases::load(&file).unwrap();
        let take = |leases: &mut Leases, pool: &Pool, number: u8| {
            leases
                .take(pool, key(number), nobody, &Fixed::new())
                .unwrap()
        };
        assert_eq!(take(&mut leases, &pool, 1), (2, Change::Number));
        assert_eq!(take(&mut leases, &pool, 1), (2, Change::Nothing));
        assert_eq!(take(&mut leases, &pool, 2), (3, Change::Number));
        leases.store(&file).unwrap();
        let mut again = Leases::load(&file).unwrap();
        assert_eq!(again, leases);
        assert_eq!(take(&mut again, &pool, 3), (4, Change::Number));
        assert_eq!(take(&mut again, &pool, 2), (3, Change::Order));
        // Another pool, too small for the second.
        let small: Pool = "10.9.0.0/30".parse().unwrap();
        let mut other = Leases::load(&file).unwrap();
        assert_eq!(take(&mut other, &small, 1), (2, Change::Order));
        assert_eq!(other.take(&small, key(2), |_| true, &Fixed::new()), None);
        assert_eq!(take(&mut other, &small, 2), (2, Change::Number));
    }

    #[test]
    fn a_full_pool_gives_away_what_was_unused_longest() {
        let pool: Pool = "10.77.0.0/29".parse().unwrap();
        let (mut leases, none) = (Leases::default(), Fixed::new());
        for number in 1..=5 {
            let given = leases.take(&pool, key(number), nobody, &none);
            assert_eq!(given, Some((u32::from(number) + 1, Change::Number)));
        }
        assert_eq!(
            leases.take(&pool, key(1), nobody, &none),
            Some((2, Change::Order))
        );
        // The second is there, so the third's goes.
        assert_eq!(
            leases.take(&pool, key(6), |k| *k == key(2), &none),
            Some((4, Change::Number))
        );
        assert_eq!(leases.take(&pool, key(3), |_| true, &none), None);
    }

    #[test]
    fn a_number_that_the_operator_gave_is_one_client_s_alone() {
        let pool: Pool = "10.77.0.0/29".parse().unwrap();
        let (mut leases, none) = (Leases::default(), Fixed::new());
        for number in 1..=3 {
            leases.take(&pool, key(number), nobody, &none).unwrap();
        }
        // The third client gets the second's number, and the second one the next that is free.
        let fixed = Fixed::from([(key(3), 3), (key(9), 6)]);
        let mut take = |number| leases.take(&pool, key(number), nobody, &fixed);
        assert_eq!(take(3), Some((3, Change::Number)));
        assert_eq!(take(3), Some((3, Change::Nothing)));
        assert_eq!(take(2), Some((4, Change::Number)));
        assert_eq!(take(1), Some((2, Change::Order)));
        assert_eq!(take(4), Some((5, Change::Number)));
        // The pool is full: a fixed number is not given away, though its client is not there.
        assert_eq!(take(5), Some((4, Change::Number)));
        assert_eq!(take(9), Some((6, Change::Number)));
        assert_eq!(take(3), Some((3, Change::Order)));
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leases.toml");
        let client = |number: u8| format!("[[client]]\nkey = \"{}\"\nnumber = 2\n", key(number));
        for (text, reason) in [
            ("nonsense", "is damaged"),
            ("[[client]]\nkey = \"x\"\nnumber = 2\n", "key `x`"),
            ("[[client]]\nkey = 1\nnumber = 2\n", "is damaged"),
            (&(client(1) + &client(2)), "twice"),
        ] {
            std::fs::write(&file, text).unwrap();
            let error = Leases::load(&file).unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("leases.toml"),
                "{error}"
            );
        }
    }
}
