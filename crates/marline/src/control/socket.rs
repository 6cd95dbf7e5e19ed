//! Where the control socket lies, and how it is taken: never from a living instance, always from a dead one.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

use super::status::Role;

/// The default place: `$XDG_RUNTIME_DIR/marline/ROLE.sock`, else a folder of the user's own below the temporary folder.
pub fn default_path(role: Role) -> PathBuf {
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("marline"),
        _ => std::env::temp_dir().join(format!("marline-{}", rustix::process::geteuid().as_raw())),
    };
    folder.join(match role {
        Role::Client => "client.sock",
        Role::Server => "server.sock",
    })
}

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
    #[error("the folder {} is not ours alone", .0.display())]
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
                "set XDG_RUNTIME_DIR, or choose a place in a folder of your own: `--control PATH`"
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
    /// Opens the socket at `path` with mode 0600. A file that a dead instance left behind is replaced.
    ///
    /// # Errors
    /// See [`BindError`].
    pub async fn bind(path: &Path) -> Result<Self, BindError> {
        let io_error = |error| BindError::Io {
            path: path.to_owned(),
            error,
        };
        if let Some(folder) = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            if !folder.exists() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)
                    .map_err(io_error)?;
            }
            if path == default_path(Role::Client) || path == default_path(Role::Server) {
                private_folder(folder)?;
            }
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) if !is_socket(&metadata) => {
                return Err(BindError::NotASocket(path.to_owned()));
            }
            Ok(_) => {
                if UnixStream::connect(path).await.is_ok() {
                    return Err(BindError::InUse(path.to_owned()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error(error)),
        }
        // Bound under another name and renamed, so that nobody meets a socket with wider permissions than 0600, and a
        // stale file is replaced in one step.
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

fn is_socket(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_socket()
}

/// The default folder may lie in a temporary folder that everybody writes to: someone else could have made it first.
fn private_folder(folder: &Path) -> Result<(), BindError> {
    let metadata = fs::symlink_metadata(folder).map_err(|error| BindError::Io {
        path: folder.to_owned(),
        error,
    })?;
    let ours = metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o022 == 0;
    if ours {
        Ok(())
    } else {
        Err(BindError::ForeignFolder(folder.to_owned()))
    }
}
