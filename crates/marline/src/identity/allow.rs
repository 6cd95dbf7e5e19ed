use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use super::key::{KeyTextError, PublicKey};
use crate::support::access;

/// Longest `allowed clients` file that is read (bytes): about ten thousand keys with names.
pub const MAX_ALLOW_LIST_BYTES: u64 = 1 << 20;

type Clients = BTreeMap<PublicKey, AllowedClient>;

/// What every key begins with in its text form.
const KEY: &str = "marline-pub:";

/// A line of the list: `[OPTIONS] KEY [NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedClient {
    /// Its public key.
    pub key: PublicKey,
    /// What stands behind the key, perhaps nothing.
    pub name: String,
    /// What stands before the key, perhaps nothing: words for whoever serves the client, such as
    /// the program `marline`, which this library keeps and does not read.
    pub options: String,
    /// The line of the file that it was read from, counted from 1.
    pub line: Option<usize>,
}

impl AllowedClient {
    /// Without a name and without options.
    pub fn new(key: PublicKey) -> Self {
        Self {
            key,
            name: String::new(),
            options: String::new(),
            line: None,
        }
    }
}

impl FromStr for AllowedClient {
    type Err = KeyTextError;

    fn from_str(line: &str) -> Result<Self, KeyTextError> {
        let cut = |text: &'_ str| -> (String, String) {
            let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            (word.to_owned(), rest.trim().to_owned())
        };
        let (first, rest) = cut(line.trim());
        // Whatever comes before a key; a first word that nothing of the kind follows was meant to
        // be one.
        let (options, key, name) = match first.starts_with(KEY) || !rest.starts_with(KEY) {
            true => (String::new(), first, rest),
            false => {
                let (key, name) = cut(&rest);
                (first, key, name)
            }
        };
        Ok(Self {
            key: key.parse()?,
            name,
            options,
            line: None,
        })
    }
}

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
        "list of allowed clients {}, line {line}: {source} (a line is `[OPTIONS] marline-pub:... \
         [NAME]`; what is in brackets may be left out, comments start with `#`)",
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
/// The file has one key a line with an optional name after it, and words without blanks before it
/// if whoever serves the client knows such ([`AllowedClient::options`]); empty lines and `#`
/// comments.
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
        Self::from_clients(keys.into_iter().map(AllowedClient::new))
    }

    /// The same with what else is known of each; of those with one key the last holds.
    pub fn from_clients(clients: impl IntoIterator<Item = AllowedClient>) -> Self {
        let clients = clients.into_iter().map(|client| (client.key, client));
        Self::of(None, clients.collect())
    }

    /// Reads a file of allowed clients. An empty list is allowed: it lets nobody in.
    pub fn load(path: &Path) -> Result<Self, AllowListError> {
        Ok(Self::of(Some(path.to_owned()), read(path)?))
    }

    /// A list as [`load`](Self::load) makes it, of a `text` that the file at `path` has or is to
    /// have.
    ///
    /// # Errors
    /// A line that is none, a key that stands twice.
    pub fn parse(path: &Path, text: &str) -> Result<Self, AllowListError> {
        Ok(Self::of(Some(path.to_owned()), parse(path, text)?))
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
        let name = listed.clients.get(key).map(|client| &client.name);
        name.filter(|name| !name.is_empty()).cloned()
    }

    /// All clients, by their keys.
    pub fn clients(&self) -> Vec<AllowedClient> {
        self.read().clients.values().cloned().collect()
    }

    /// The file behind it.
    pub fn file(&self) -> Option<PathBuf> {
        self.read().path.clone()
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
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Clients, AllowListError> {
    let mut clients = Clients::new();
    let mut lines = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut client: AllowedClient = line.parse().map_err(|source| AllowListError::Line {
            path: path.to_owned(),
            line: number,
            source,
        })?;
        client.line = Some(number);
        let key = client.key;
        if let Some(first) = lines.insert(key, number) {
            return Err(AllowListError::Twice {
                path: path.to_owned(),
                line: number,
                first,
            });
        }
        clients.insert(key, client);
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
    fn options_stand_before_the_key_and_are_kept_for_who_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clients");
        fs::write(
            &path,
            format!("\n up=5mbit,down=9mbit\t{}  a boat\n", key(1)),
        )
        .unwrap();
        let clients = AllowList::load(&path).unwrap().clients();
        let boat = AllowedClient {
            key: key(1),
            name: "a boat".to_owned(),
            options: "up=5mbit,down=9mbit".to_owned(),
            line: Some(2),
        };
        assert_eq!(clients, [boat]);
        // Blanks within options, and a name in the key's place.
        for line in [
            format!("up=1 down=2 {}", key(1)),
            format!("boat # {}", key(1)),
        ] {
            assert!(line.parse::<AllowedClient>().is_err(), "{line}");
        }
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
