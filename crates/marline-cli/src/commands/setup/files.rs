//! Where files lie, below a root that may be staged. A configuration is never overwritten.

use super::super::CliError;
use super::super::owner::give;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Where configurations, the key and the list of clients are.
const OWN: &str = "/etc/marline";

/// The system, or a staged one.
#[derive(Debug)]
pub(super) struct Files {
    /// `None`: the system itself.
    staged: Option<PathBuf>,
}

impl Files {
    /// Below `root`, or of this system.
    ///
    /// # Errors
    /// This user may not write there.
    pub(super) fn below(root: Option<&Path>) -> Result<Self, CliError> {
        if root.is_none() && !rustix::process::geteuid().is_root() {
            return Err(CliError::usage(
                "only root may write below /etc/marline and install a service",
            )
            .hint("begin the command with `sudo`, or have the files elsewhere: --root DIR"));
        }
        let staged = root.map(std::path::absolute).transpose();
        let staged = staged.map_err(|error| CliError::usage(format!("--root: {error}")))?;
        Ok(Files { staged })
    }

    /// Is it not this system that is set up?
    pub(super) fn are_staged(&self) -> bool {
        self.staged.is_some()
    }

    /// Where `path`, which begins with `/`, lies now.
    pub(super) fn at(&self, path: &str) -> PathBuf {
        match &self.staged {
            Some(root) => root.join(path.trim_start_matches('/')),
            None => PathBuf::from(path),
        }
    }

    /// Refuses to begin where the configuration is there already.
    ///
    /// # Errors
    /// It is.
    pub(super) fn refuse(&self, configuration: &Path, unit: &str) -> Result<(), CliError> {
        if fs::symlink_metadata(configuration).is_err() {
            return Ok(());
        }
        let file = configuration.display();
        let error = CliError::usage(format!("{file} is there already, and is not overwritten"));
        Err(error.hint(format!(
            "edit it, then `systemctl reload-or-restart {unit}`; or to begin anew: `mv {file} {file}.old`"
        )))
    }

    /// Writes a new file, whole or not at all.
    ///
    /// # Errors
    /// What the system said; there is one already.
    pub(super) fn write_new(&self, file: &Path, text: &str, mode: u32) -> Result<(), CliError> {
        let failed = |error: io::Error| {
            CliError::runtime(format!("cannot write {}: {error}", file.display()))
        };
        let folder = file.parent().unwrap_or(Path::new("/"));
        make_folder(folder).map_err(failed)?;
        let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        new.write_all(text.as_bytes()).map_err(failed)?;
        new.as_file()
            .set_permissions(Permissions::from_mode(mode))
            .map_err(failed)?;
        new.as_file().sync_all().map_err(failed)?;
        new.persist_noclobber(file)
            .map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Makes /etc/marline, which the services' user reads, unless it is there.
    ///
    /// # Errors
    /// What the system said.
    pub(super) fn make_own(&self) -> Result<(), CliError> {
        let folder = self.at(OWN);
        make_folder(&folder).map_err(|error| {
            CliError::runtime(format!("cannot make {}: {error}", folder.display()))
        })
    }

    /// Does `file` lie below /etc/marline? What lies elsewhere belongs to whoever put it there.
    pub(super) fn are_own(&self, file: &Path) -> bool {
        let is_up = |part| part == Component::ParentDir;
        file.starts_with(self.at(OWN)) && !file.components().any(is_up)
    }

    /// Gives `file` to `user`, where there is such a user and this is no staged system. Returns
    /// whether it did.
    ///
    /// # Errors
    /// What the system said.
    pub(super) fn give(&self, file: &Path, user: &str) -> Result<bool, CliError> {
        match self.are_staged() {
            true => Ok(false),
            false => give(file, user),
        }
    }
}

/// Makes `folder` and those above it, open to everybody's reading whatever this process's umask is.
fn make_folder(folder: &Path) -> io::Result<()> {
    const MODE: u32 = 0o755;
    let missing: Vec<&Path> = folder.ancestors().take_while(|it| !it.exists()).collect();
    DirBuilder::new()
        .recursive(true)
        .mode(MODE)
        .create(folder)?;
    let mut made = missing.into_iter().filter(|it| it.is_dir());
    made.try_for_each(|folder| fs::set_permissions(folder, Permissions::from_mode(MODE)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A system that nothing is written to.
    pub(in super::super) fn staged() -> Files {
        Files {
            staged: Some(PathBuf::from("/nowhere")),
        }
    }

    #[test]
    fn only_what_lies_below_the_own_folder_is_given_away() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::below(Some(root.path())).unwrap();
        for (file, own) in [
            ("/etc/marline/identity", true),
            ("/etc/marline/keys/a", true),
            ("/etc/marline/../shadow", false),
            ("/etc/marlines/identity", false),
        ] {
            assert_eq!(files.are_own(&files.at(file)), own, "{file}");
        }
        assert!(!files.are_own(Path::new("/etc/marline/identity")));
    }

    #[test]
    fn nothing_is_overwritten_and_what_to_do_is_said() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::below(Some(root.path())).unwrap();
        let file = files.at("/etc/marline/server.toml");
        assert_eq!(file, root.path().join("etc/marline/server.toml"));
        files.refuse(&file, "marline-server").unwrap();
        files.write_new(&file, "first\n", 0o640).unwrap();
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let error = files.refuse(&file, "marline-server").unwrap_err();
        let error = error.in_one();
        assert!(error.contains("mv ") && error.contains("reload"), "{error}");
        files.write_new(&file, "second\n", 0o640).unwrap_err();
        assert_eq!(fs::read_to_string(&file).unwrap(), "first\n");
        assert!(!give(&file, "no-such-user-of-marline").unwrap());
    }
}
