//! Which client has which number of the pool, kept in a file so that it stays so.
//!
//! ```toml
//! [[client]]
//! key = "marline-pub:..."
//! number = 2
//! ```
//! The one that asked longest ago comes first.

use super::pool::{FIRST, Pool};
use crate::identity::PublicKey;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Numbers of clients.
#[derive(Debug, Default)]
pub struct Leases {
    file: Option<PathBuf>,
    /// In the order in which they asked last.
    held: Vec<(PublicKey, u32)>,
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
    /// The leases that `file` holds; none when there is no such file. With `None`, none are kept.
    ///
    /// # Errors
    /// The file cannot be read, or is not what this program writes.
    pub fn load(file: Option<PathBuf>) -> Result<Self, LeasesError> {
        let Some(path) = &file else {
            return Ok(Leases::default());
        };
        let error = |problem: String| LeasesError {
            file: path.clone(),
            problem,
        };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => String::new(),
            Err(problem) => return Err(error(format!("cannot be read: {problem}"))),
        };
        let stored: Stored = toml::from_str(&text)
            .map_err(|problem| error(format!("is damaged: {}", problem.message())))?;
        let mut held: Vec<(PublicKey, u32)> = Vec::new();
        for StoredClient { key, number } in stored.client {
            let key: PublicKey = key
                .parse()
                .map_err(|problem| error(format!("key `{key}`: {problem}")))?;
            if held.iter().any(|(k, n)| *k == key || *n == number) {
                return Err(error(format!(
                    "key {key} or number {number} is there twice"
                )));
            }
            held.push((key, number));
        }
        Ok(Leases { file, held })
    }

    /// The number of the client `key`: the one that it had, or the lowest free one, or else that of the client which
    /// asked longest ago and is not `present`. `None` when all are.
    pub fn take(
        &mut self,
        pool: &Pool,
        key: PublicKey,
        present: impl Fn(&PublicKey) -> bool,
    ) -> Option<u32> {
        let numbers = FIRST..=pool.last();
        // The pool may have shrunk since.
        self.held.retain(|(_, number)| numbers.contains(number));
        let own = self.held.iter().position(|(other, _)| *other == key);
        let number = match own {
            Some(index) => self.held.remove(index).1,
            None => {
                let free = |number: &u32| self.held.iter().all(|(_, held)| held != number);
                match numbers.clone().find(free) {
                    Some(number) => number,
                    None => {
                        let oldest = self.held.iter().position(|(other, _)| !present(other))?;
                        self.held.remove(oldest).1
                    }
                }
            }
        };
        self.held.push((key, number));
        if let Some(file) = &self.file
            && let Err(error) = self.save(file)
        {
            tracing::error!(
                "cannot keep the tunnel's leases in {}: {error}; clients may get other addresses after a restart",
                file.display()
            );
        }
        Some(number)
    }

    fn save(&self, file: &Path) -> io::Result<()> {
        let client = self.held.iter().map(|(key, number)| StoredClient {
            key: key.to_string(),
            number: *number,
        });
        let stored = Stored {
            client: client.collect(),
        };
        let text = toml::to_string(&stored).map_err(io::Error::other)?;
        write_whole(file, text.as_bytes())
    }
}

/// Writes a file so that after a crash it holds the old or the new bytes; its folder is made when there is none.
pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
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
        let mut leases = Leases::load(Some(file.clone())).unwrap();
        assert_eq!(leases.take(&pool, key(1), nobody), Some(2));
        assert_eq!(leases.take(&pool, key(2), nobody), Some(3));
        let mut again = Leases::load(Some(file.clone())).unwrap();
        assert_eq!(again.take(&pool, key(3), nobody), Some(4));
        assert_eq!(again.take(&pool, key(2), nobody), Some(3));
        // Another pool, too small for the second.
        let small: Pool = "10.9.0.0/30".parse().unwrap();
        let mut other = Leases::load(Some(file)).unwrap();
        assert_eq!(other.take(&small, key(1), nobody), Some(2));
    }

    #[test]
    fn a_full_pool_gives_away_what_was_unused_longest() {
        let pool: Pool = "10.77.0.0/29".parse().unwrap();
        let mut leases = Leases::load(None).unwrap();
        for number in 1..=5 {
            assert_eq!(
                leases.take(&pool, key(number), nobody),
                Some(u32::from(number) + 1)
            );
        }
        assert_eq!(leases.take(&pool, key(1), nobody), Some(2));
        // The second is there, so the third's goes.
        assert_eq!(leases.take(&pool, key(6), |k| *k == key(2)), Some(4));
        assert_eq!(leases.take(&pool, key(3), |_| true), None);
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
            let error = Leases::load(Some(file.clone())).unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("leases.toml"),
                "{error}"
            );
        }
    }
}
