use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::key::{Identity, KeyTextError};
use crate::support::access;

/// A key file holds one line of 71 bytes; more than this is some other file.
const MAX_FILE_BYTES: u64 = 4096;

/// Why a key file could not be read or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// No file of this name.
    #[error(
        "key file {}: no such file; make one with `marline identity new {}`",
        path.display(), path.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file is there, but cannot be read or written.
    #[error("key file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Others than the owner may read or write the secret.
    #[error(
        "key file {}: its permissions are {mode:03o}, so others than its owner may use the secret \
         key; run `chmod 600 {}`, and make a new key if somebody may have read this one",
        path.display(), path.display()
    )]
    TooOpen {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line is not a secret key.
    #[error("key file {}, line {line}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong.
        source: KeyTextError,
    },
    /// There is no key in the file, or more than one, or far too much of something else.
    #[error(
        "key file {}: it must hold one line `marline-secret:...` and nothing else but comments \
         that start with `#`; it {found}",
        path.display()
    )]
    NotOneKey {
        /// The file.
        path: PathBuf,
        /// What it holds instead.
        found: &'static str,
    },
    /// A file of this name exists, and a key is never overwritten.
    #[error(
        "key file {}: it exists already; a key is never overwritten: choose another name, or move \
         that file away",
        path.display()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
}

impl Identity {
    /// Reads a key file: one line `marline-secret:...`, besides empty lines and `#` comments.
    ///
    /// On Unix a file that anybody but its owner may read or write is refused, unless it is root's
    /// and a group of ours may read it.
    pub fn load(path: &Path) -> Result<Self, KeyFileError> {
        let io = |source: io::Error| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::NotFound => KeyFileError::Missing { path },
                _ => KeyFileError::Io { path, source },
            }
        };
        let not_one = |found| KeyFileError::NotOneKey {
            path: path.to_owned(),
            found,
        };
        let file = File::open(path).map_err(io)?;
        // Of the open file, not of its name: nobody can exchange it in between.
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(not_one("is not a regular file"));
        }
        access::secret(&metadata).map_err(|access::TooOpen { mode }| KeyFileError::TooOpen {
            path: path.to_owned(),
            mode,
        })?;
        let mut text = Zeroizing::new(String::new());
        file.take(MAX_FILE_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|source| match source.kind() {
                io::ErrorKind::InvalidData => not_one("is not text"),
                _ => io(source),
            })?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(not_one("is longer than 4096 bytes"));
        }
        let mut identity = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if identity.is_some() {
                return Err(not_one("holds more than one line"));
            }
            identity =
                Some(
                    Self::from_secret_text(line).map_err(|source| KeyFileError::Malformed {
                        path: path.to_owned(),
                        line: index + 1,
                        source,
                    })?,
                );
        }
        identity.ok_or_else(|| not_one("holds no key"))
    }

    /// Writes a new key file that only its owner may read (mode 0600 on Unix). Never overwrites.
    pub fn save_new(&self, path: &Path) -> Result<(), KeyFileError> {
        let io = |source: io::Error| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::AlreadyExists => KeyFileError::Exists { path },
                _ => KeyFileError::Io { path, source },
            }
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(io)?;
        let mut line = self.secret_text();
        line.push('\n');
        file.write_all(line.as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(path: &Path, text: &[u8]) {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path).unwrap().write_all(text).unwrap();
    }

    #[test]
    fn a_saved_key_is_read_back_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.key");
        let identity = Identity::generate().unwrap();
        identity.save_new(&path).unwrap();
        assert_eq!(
            Identity::load(&path).unwrap().public_key(),
            identity.public_key()
        );
        assert!(matches!(
            identity.save_new(&path),
            Err(KeyFileError::Exists { .. })
        ));
        write(
            &path,
            format!("# laptop\n\n {} \r\n", *identity.secret_text()).as_bytes(),
        );
        assert_eq!(
            Identity::load(&path).unwrap().public_key(),
            identity.public_key()
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_refused_with_its_mend() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.key");
        Identity::generate().unwrap().save_new(&path).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Identity::load(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("{mode:03o}")), "{error}");
            assert!(
                error.contains(&format!("chmod 600 {}", path.display())),
                "{error}"
            );
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        Identity::load(&path).unwrap();
    }

    #[test]
    fn what_is_no_key_file_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.key");
        assert!(matches!(
            Identity::load(&path),
            Err(KeyFileError::Missing { .. })
        ));
        assert!(matches!(
            Identity::load(folder.path()),
            Err(KeyFileError::NotOneKey { .. } | KeyFileError::Io { .. })
        ));
        let identity = Identity::generate().unwrap();
        let secret = identity.secret_text();
        write(&path, format!("# mine\n{}x\n", *secret).as_bytes());
        let error = Identity::load(&path).unwrap_err().to_string();
        assert!(error.contains("host.key, line 2:"), "{error}");
        assert!(!error.contains(&secret[15..40]), "the secret is in {error}");
        write(&path, identity.public_key().to_string().as_bytes());
        assert!(matches!(
            Identity::load(&path),
            Err(KeyFileError::Malformed {
                line: 1,
                source: KeyTextError::PublicForSecret,
                ..
            })
        ));
        for (text, found) in [
            (&b"# nothing\n"[..], "holds no key"),
            (&[0xff, 0xfe, 0xfd], "is not text"),
            (&[b'#'; 5000], "is longer than 4096 bytes"),
            (
                format!("{}\n{}\n", *secret, *secret).as_bytes(),
                "holds more than one line",
            ),
        ] {
            write(&path, text);
            let error = Identity::load(&path).unwrap_err().to_string();
            assert!(error.ends_with(found), "{error}");
        }
    }
}
