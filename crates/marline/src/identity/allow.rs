use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::key::{KeyTextError, PublicKey};
use crate::support::access;

/// Longest `allowed clients` file that is read (bytes): about ten thousand keys with names.
pub const MAX_ALLOW_LIST_BYTES: u64 = 1 << 20;

type Clients = BTreeMap<PublicKey, String>;

/// Why a list of allowed clients could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AllowListError {
    /// The file cannot be read.
    #[error("list of allowed clients {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Everybody may write it, and so let anybody in.
    #[error(
        "list of allowed clients {}: its permissions are {mode:03o}, so everybody on this host may let clients in; run \
         `chmod o-w {}`, and see whose keys it holds",
        path.display(), path.display()
    )]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file is longer than [`MAX_ALLOW_LIST_BYTES`].
    #[error(
        "list of allowed clients {}: it is longer than {MAX_ALLOW_LIST_BYTES} bytes",
        path.display()
    )]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// A line does not start with a public key.
    #[error(
        "list of allowed clients {}, line {line}: {source} (a line is `marline-pub:... NAME`; the \
         name may be left out, comments start with `#`)",
        path.display()
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        source: KeyTextError,
    },
    /// The same key stands on two lines, so one of the names would be lost.
    #[error(
        "list of allowed clients {}, line {line}: the key of line {first} once more; remove one of \
         the two",
        path.display()
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// The later line, counted from 1.
        line: usize,
        /// The earlier one.
        first: usize,
    },
}

/// What [`AllowList::reload`] or [`AllowList::replace`] changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowListChange {
    /// Keys that are let in from now on.
    pub added: Vec<PublicKey>,
    /// Keys that are not let in any longer. Their sessions go on until somebody ends them.
    pub removed: Vec<PublicKey>,
}

/// The client keys that a server lets in. Clones share one list, so a reload is seen everywhere.
///
/// The file has one key a line with an optional name after it, empty lines and `#` comments.
#[derive(Clone, Debug)]
pub struct AllowList {
    listed: Arc<RwLock<Listed>>,
}

#[derive(Clone, Debug)]
struct Listed {
    /// The file behind it.
    path: Option<PathBuf>,
    clients: Clients,
}

impl AllowList {
    /// A list that is not backed by a file; reloading leaves it as it is.
    pub fn from_keys(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let clients = keys.into_iter().map(|key| (key, String::new())).collect();
        Self::of(None, clients)
    }

    /// Reads a file of allowed clients. An empty list is allowed: it lets nobody in.
    pub fn load(path: &Path) -> Result<Self, AllowListError> {
        Ok(Self::of(Some(path.to_owned()), read(path)?))
    }

    fn of(path: Option<PathBuf>, clients: Clients) -> Self {
        Self {
            listed: Arc::new(RwLock::new(Listed { path, clients })),
        }
    }

    /// Reads the file again and says what changed. After an error the list is what it was.
    pub fn reload(&self) -> Result<AllowListChange, AllowListError> {
        let path = self.read().path.clone();
        match path {
            Some(path) => Ok(self.replace(&Self::load(&path)?)),
            None => Ok(AllowListChange::default()),
        }
    }

    /// Becomes what `other` is now, the file behind it included, and says what changed.
    pub fn replace(&self, other: &Self) -> AllowListChange {
        // Copied first: `other` may be this very list.
        let new = other.read().clone();
        let mut listed = self.listed.write().unwrap_or_else(PoisonError::into_inner);
        let missing_in = |other: &Clients, one: &Clients| {
            let absent = one.keys().filter(|key| !other.contains_key(*key));
            absent.copied().collect()
        };
        let change = AllowListChange {
            added: missing_in(&listed.clients, &new.clients),
            removed: missing_in(&new.clients, &listed.clients),
        };
        *listed = new;
        change
    }

    /// Whether this key is let in.
    pub fn contains(&self, key: &PublicKey) -> bool {
        self.read().clients.contains_key(key)
    }

    /// The name beside this key; `None` when the key is not listed or has no name.
    pub fn name(&self, key: &PublicKey) -> Option<String> {
        let listed = self.read();
        let name = listed.clients.get(key);
        name.filter(|name| !name.is_empty()).cloned()
    }

    /// All keys, with the names beside them.
    pub fn clients(&self) -> Vec<(PublicKey, String)> {
        let listed = self.read();
        let clients = listed.clients.iter();
        clients.map(|(key, name)| (*key, name.clone())).collect()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.read().clients.len()
    }

    /// Whether nobody is let in.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Listed> {
        self.listed.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Clients, AllowListError> {
    let io = |source| AllowListError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let metadata = file.metadata().map_err(io)?;
    access::rules(&metadata).map_err(|access::TooOpen { mode }| AllowListError::TooOpen {
        path: path.to_owned(),
        mode,
    })?;
    let mut text = String::new();
    file.take(MAX_ALLOW_LIST_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(io)?;
    if text.len() as u64 > MAX_ALLOW_LIST_BYTES {
        return Err(AllowListError::TooLong {
            path: path.to_owned(),
        });
    }
    let mut clients = Clients::new();
    let mut lines = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let key = key
            .parse::<PublicKey>()
            .map_err(|source| AllowListError::Line {
                path: path.to_owned(),
                line: number,
                source,
            })?;
        if let Some(first) = lines.insert(key, number) {
            return Err(AllowListError::Twice {
                path: path.to_owned(),
                line: number,
                first,
            });
        }
        clients.insert(key, name.trim().to_owned());
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    #[test]
    fn keys_names_and_comments_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        fs::write(
            &path,
            format!("# ours\n\n{} van in Turin \r\n  {}\n", key(1), key(2)),
        )
        .unwrap();
        let list = AllowList::load(&path).unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(list.name(&key(1)).as_deref(), Some("van in Turin"));
        assert_eq!(list.name(&key(2)), None);
        assert!(list.contains(&key(2)) && !list.contains(&key(3)));
    }

    #[test]
    fn a_reload_is_seen_by_every_clone_and_an_error_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        fs::write(&path, format!("{}\n{}\n", key(1), key(2))).unwrap();
        let list = AllowList::load(&path).unwrap();
        let clone = list.clone();
        fs::write(&path, format!("{}\n{}\n", key(2), key(3))).unwrap();
        assert_eq!(
            list.reload().unwrap(),
            AllowListChange {
                added: vec![key(3)],
                removed: vec![key(1)]
            }
        );
        assert!(clone.contains(&key(3)) && !clone.contains(&key(1)));
        fs::write(&path, format!("{}\nmarline-pub:oops joe\n", key(9))).unwrap();
        let error = list.reload().unwrap_err().to_string();
        assert!(error.contains("clients, line 2:"), "{error}");
        assert!(clone.contains(&key(3)) && !clone.contains(&key(9)));
    }

    #[test]
    fn a_list_becomes_another_one_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        fs::write(&path, format!("{} van\n", key(2))).unwrap();
        let list = AllowList::from_keys([key(1), key(2)]);
        let clone = list.clone();
        let change = list.replace(&AllowList::load(&path).unwrap());
        assert_eq!((change.added, change.removed), (vec![], vec![key(1)]));
        assert_eq!(clone.name(&key(2)).as_deref(), Some("van"));
        fs::write(&path, format!("{}\n", key(3))).unwrap();
        assert_eq!(clone.reload().unwrap().added, [key(3)]);
        assert_eq!(list.replace(&list), AllowListChange::default());
    }

    #[cfg(unix)]
    #[test]
    fn a_list_that_everybody_may_write_is_refused_with_its_mend() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        fs::write(&path, format!("{}\n", key(1))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o646)).unwrap();
        let error = AllowList::load(&path).unwrap_err().to_string();
        let mend = format!("chmod o-w {}", path.display());
        assert!(error.contains("646") && error.contains(&mend), "{error}");
    }

    #[test]
    fn a_key_that_stands_twice_is_an_error_with_both_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        fs::write(&path, format!("{} a\n\n{} b\n", key(1), key(1))).unwrap();
        let error = AllowList::load(&path).unwrap_err();
        assert!(matches!(
            error,
            AllowListError::Twice {
                line: 3,
                first: 1,
                ..
            }
        ));
    }

    #[test]
    fn a_list_without_a_file_reloads_to_itself() {
        let list = AllowList::from_keys([key(1)]);
        assert_eq!(list.reload().unwrap(), AllowListChange::default());
        assert!(list.contains(&key(1)));
    }
}
