//! How the control socket is taken: never from a living instance, always from a dead one.

use super::place::{Place, is_private};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;
pub use tokio::net::UnixStream as Stream;

/// The folder of root's sockets, in which services, of another user, have folders of their own: it
/// is closed to nobody. Who may ask is decided by the sockets' permissions.
const SHARED: &str = "/run/marline";

/// Why the control socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A living process answers there.
    #[error("another instance is running: it answers at the control socket {}", .0.display())]
    InUse(PathBuf),
    /// Something that is not a socket lies there.
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// The folder belongs to somebody else, or others may write in it.
    #[error("the folder {} is not this user's alone", .0.display())]
    ForeignFolder(PathBuf),
    /// Any other failure of the file system.
    #[error("cannot open the control socket {}: {error}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl BindError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            BindError::InUse(_) => {
                "stop it, or give this one a socket of its own: `--control PATH`"
            }
            BindError::NotASocket(_) => "remove it, or choose another place: `--control PATH`",
            BindError::ForeignFolder(_) => {
                "remove it, set XDG_RUNTIME_DIR, or choose a place in a folder of your own: `--control PATH`"
            }
            BindError::Io { .. } => {
                "choose another place with `--control PATH`, or `--control off`"
            }
        }
    }
}

/// An open control socket. Its file is removed when this is dropped, if it is still ours.
#[derive(Debug)]
pub struct ControlSocket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl ControlSocket {
    /// Opens the socket at `place`. `None`, with a warning, where the usual place cannot be had:
    /// nobody else's file there may keep the program from its work.
    ///
    /// # Errors
    /// See [`BindError`]. At the usual place only [`BindError::InUse`].
    pub async fn open(place: &Place) -> Result<Option<Self>, BindError> {
        let path = match place {
            Place::Chosen(path) => return Self::bind(path).await.map(Some),
            Place::Usual(path) => path,
        };
        match Self::bind_privately(path).await {
            Ok(socket) => Ok(Some(socket)),
            Err(error @ BindError::InUse(_)) => Err(error),
            Err(error) => {
                let hint = error.hint();
                tracing::warn!("`marline status` will find nothing here: {error}; {hint}");
                Ok(None)
            }
        }
    }

    /// Opens the socket at `path` in a folder in which nobody else can have put anything.
    async fn bind_privately(path: &Path) -> Result<Self, BindError> {
        let folder = made_folder(path)?;
        match is_private(folder) {
            Ok(true) => Self::bind(path).await,
            Ok(false) => Err(BindError::ForeignFolder(folder.to_owned())),
            Err(error) => Err(BindError::Io {
                path: path.to_owned(),
                error,
            }),
        }
    }

    /// Opens the socket at `path` with mode 0600. A file that a dead instance left behind is
    /// replaced.
    ///
    /// # Errors
    /// See [`BindError`].
    pub async fn bind(path: &Path) -> Result<Self, BindError> {
        made_folder(path)?;
        let io_error = |error| BindError::Io {
            path: path.to_owned(),
            error,
        };
        match fs::symlink_metadata(path) {
            Ok(metadata) if !is_socket(&metadata) => {
                return Err(BindError::NotASocket(path.to_owned()));
            }
            Ok(_) => {
                if Self::connect(path).await.is_ok() {
                    return Err(BindError::InUse(path.to_owned()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(error)),
        }
        // Bound under another name and renamed, so that nobody meets a socket with wider
        // permissions than 0600, and a stale file is replaced in one step.
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let draft = PathBuf::from(draft);
        let _ = fs::remove_file(&draft);
        let listener = UnixListener::bind(&draft).map_err(io_error)?;
        let finish = || {
            fs::set_permissions(&draft, Permissions::from_mode(0o600))?;
            let inode = fs::symlink_metadata(&draft)?.ino();
            fs::rename(&draft, path)?;
            Ok(inode)
        };
        match finish() {
            Ok(inode) => Ok(ControlSocket {
                listener,
                path: path.to_owned(),
                inode,
            }),
            Err(error) => {
                let _ = fs::remove_file(&draft);
                Err(io_error(error))
            }
        }
    }

    /// A connection to the socket at `path`.
    ///
    /// # Errors
    /// What the system said.
    pub async fn connect(path: &Path) -> io::Result<Stream> {
        Stream::connect(path).await
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let ours = fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode);
        if ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The folder of `path`, which is made if there is none.
fn made_folder(path: &Path) -> Result<&Path, BindError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => return Ok(Path::new(".")),
    };
    if !folder.exists() {
        make(folder, Path::new(SHARED)).map_err(|error| BindError::Io {
            path: path.to_owned(),
            error,
        })?;
    }
    Ok(folder)
}

/// Makes `folder`, this user's alone, but for `shared`, which is open to everybody.
fn make(folder: &Path, shared: &Path) -> io::Result<()> {
    let is_new = folder.starts_with(shared) && !shared.exists();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    match is_new {
        // Whatever the umask is.
        true => fs::set_permissions(shared, Permissions::from_mode(0o755)),
        false => Ok(()),
    }
}

fn is_socket(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_socket()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_services_is_open_and_every_other_is_its_users_alone() {
        let root = tempfile::tempdir().unwrap();
        let mode = |folder: &Path| fs::metadata(folder).unwrap().mode() & 0o777;
        let shared = root.path().join("marline");
        make(&shared, &shared).unwrap();
        assert_eq!(mode(&shared), 0o755);
        let own = shared.join("client-a");
        make(&own, &shared).unwrap();
        assert_eq!(mode(&own), 0o700);
        let other = root.path().join("marline-7");
        make(&other, &shared).unwrap();
        assert_eq!(mode(&other), 0o700);
        // What somebody has closed on purpose stays closed.
        fs::set_permissions(&shared, Permissions::from_mode(0o700)).unwrap();
        make(&shared.join("client-b"), &shared).unwrap();
        assert_eq!(mode(&shared), 0o700);
    }
}
