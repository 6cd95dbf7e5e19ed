//! Who else can read or change a file that the program relies on.

use std::fs::Metadata;

/// Permission bits (octal in messages) that let others do what they must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooOpen {
    /// All permission bits of the file.
    pub mode: u32,
}

/// Refuses a file of secrets that others than its owner may use.
///
/// As PostgreSQL does with its keys: a file of root's may be readable by a group of ours, because
/// that is how an administrator, and systemd's credentials, hand a secret to a service without
/// giving it away. Pipes and devices are not judged.
pub fn secret(metadata: &Metadata) -> Result<(), TooOpen> {
    let of_root = owner(metadata) == Some(0) && user() != Some(0);
    refuse(metadata, if of_root { 0o037 } else { 0o077 })
}

/// Refuses a file of rules that everybody may change. To read it is no harm, and a group that may
/// write it was meant to: in many systems each user has a group of their own.
pub fn rules(metadata: &Metadata) -> Result<(), TooOpen> {
    refuse(metadata, 0o002)
}

fn refuse(metadata: &Metadata, bits: u32) -> Result<(), TooOpen> {
    match mode(metadata) {
        Some(mode) if metadata.is_file() && mode & bits != 0 => Err(TooOpen { mode }),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::mode(metadata) & 0o777)
}

#[cfg(unix)]
fn owner(metadata: &Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(metadata))
}

#[cfg(unix)]
fn user() -> Option<u32> {
    Some(rustix::process::geteuid().as_raw())
}

#[cfg(not(unix))]
fn mode(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn owner(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(not(unix))]
fn user() -> Option<u32> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_its_owners_and_rules_are_not_everybodys_to_write() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, as_secret, as_rules) in [
            (0o600, true, true),
            (0o400, true, true),
            (0o640, false, true),
            (0o604, false, true),
            (0o644, false, true),
            (0o660, false, true),
            (0o602, false, false),
            (0o666, false, false),
        ] {
            let file = file.as_file();
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
            let metadata = file.metadata().unwrap();
            assert_eq!(secret(&metadata).is_ok(), as_secret, "{mode:03o}");
            assert_eq!(rules(&metadata).is_ok(), as_rules, "{mode:03o}");
        }
    }

    #[test]
    fn what_is_no_file_is_not_judged() {
        let device = File::open("/dev/null").unwrap().metadata().unwrap();
        assert!(mode(&device).unwrap() & 0o002 != 0);
        assert_eq!((secret(&device), rules(&device)), (Ok(()), Ok(())));
    }
}
