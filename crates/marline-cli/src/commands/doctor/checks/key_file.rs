//! What to do about a key file that cannot be used.

use super::super::finding::Finding;
use marline::identity::KeyFileError;

pub(in super::super) fn unusable(error: &KeyFileError) -> Finding {
    let finding = Finding::failure("key", error.to_string());
    match error {
        KeyFileError::Missing { path } => {
            finding.fix(format!("marline identity new {}", path.display()))
        }
        KeyFileError::TooOpen { path, .. } => finding.fix(format!("chmod 600 {}", path.display())),
        KeyFileError::Io { path, .. } => finding.fix(format!(
            "let this user read {}, or name another file with --identity FILE",
            path.display()
        )),
        KeyFileError::Malformed { path, .. } | KeyFileError::NotOneKey { path, .. } => {
            let path = path.display();
            finding.fix(format!(
                "restore {path} from a copy, or move it away and make a new key: marline identity \
                 new {path}; the other side has to know the new one"
            ))
        }
        _ => finding.fix("name another file with --identity FILE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::identity::Identity;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_mistake_has_its_own_fix() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let fix = || {
            let finding = unusable(&Identity::load(&file).unwrap_err());
            finding.fix.unwrap().replace(file.to_str().unwrap(), "KEY")
        };
        assert_eq!(fix(), "marline identity new KEY");
        fs::write(&file, "nonsense\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(fix(), "chmod 600 KEY");
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert!(fix().starts_with("restore KEY from a copy"), "{}", fix());
        fs::write(&file, "\n").unwrap();
        assert!(fix().starts_with("restore KEY from a copy"), "{}", fix());
    }
}
