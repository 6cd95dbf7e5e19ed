//! What a configuration reload changes: the paths of a running client, and keys.

use super::Raw;
use marline::Path;
use serde_json::Value;

/// One change to a running session's paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathChange {
    /// Remove the path of this name.
    Remove(String),
    /// Dial this path.
    Add(Path),
    /// Put the path of this name on standby (`true`) or call it back.
    Standby(String, bool),
}

/// The changes that turn the paths `old` into `new`, in the order in which to make them.
///
/// New paths come up before old ones go, so that a session keeps a path where it can. A path whose
/// address or cost changed must be dialled again under its old name, so that one goes first.
pub fn path_changes(old: &[Path], new: &[Path]) -> Vec<PathChange> {
    let mut first = Vec::new();
    let mut last = Vec::new();
    for path in new {
        match old.iter().find(|other| other.name == path.name) {
            None => first.push(PathChange::Add(path.clone())),
            Some(other) if other == path => {}
            Some(other) => {
                let rested = Path {
                    standby: path.standby,
                    ..other.clone()
                };
                if rested == *path {
                    first.push(PathChange::Standby(path.name.clone(), path.standby));
                } else {
                    last.push(PathChange::Remove(path.name.clone()));
                    last.push(PathChange::Add(path.clone()));
                }
            }
        }
    }
    for path in old {
        if !new.iter().any(|other| other.name == path.name) {
            last.push(PathChange::Remove(path.name.clone()));
        }
    }
    first.extend(last);
    first
}

/// Keys that have other values in `new` than in `old`.
pub fn changed_keys<R: Raw>(old: &R, new: &R) -> Vec<String> {
    // Text, options and lists of it: nothing that JSON could refuse.
    let values = |raw| serde_json::to_value(raw).unwrap_or_default();
    let (old, new) = (values(old), values(new));
    match new {
        Value::Object(new) => {
            let changed = new
                .into_iter()
                .filter(|(key, value)| old.get(key) != Some(value));
            changed.map(|(key, _)| key).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::keys;
    use crate::config::{Entry, RawClient, RawServer, Written};
    use proptest::prelude::*;

    #[test]
    fn keys_that_changed_are_found_by_their_values() {
        let written = |text| Written::flag(text).unwrap();
        let entry = |text| Entry::flag(text).unwrap();
        let old = RawClient {
            socks: Some(written("off")),
            path: vec![written("a"), written("b")],
            live: vec![entry("udp://:1")],
            metrics: Some(written("127.0.0.1:1")),
            ..RawClient::default()
        };
        assert!(changed_keys(&old, &old.clone()).is_empty());
        let new = RawClient {
            path: vec![written("b"), written("a")],
            live: vec![entry("udp://:2")],
            metrics: None,
            tun_setup: Some(written("on")),
            ..old.clone()
        };
        let changed = ["live", "metrics", "path", "tun-setup"];
        let mut found = changed_keys(&old, &new);
        found.sort();
        assert_eq!(found, changed);
        // Under the names of the flags.
        let names = keys::<RawClient>();
        assert!(
            changed
                .iter()
                .all(|key| names.iter().any(|name| name == key))
        );
    }

    #[test]
    fn every_key_of_a_server_is_compared() {
        let all = serde_json::to_value(RawServer::default()).unwrap();
        for key in keys::<RawServer>() {
            assert!(all.get(&key).is_some(), "{key}");
        }
    }

    fn paths(list: &[&str]) -> Vec<Path> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn additions_come_before_removals() {
        let changes = path_changes(&paths(&["wlan0", "eth0"]), &paths(&["eth0", "wwan0"]));
        assert_eq!(
            changes,
            [
                PathChange::Add("wwan0".parse().unwrap()),
                PathChange::Remove("wlan0".into())
            ]
        );
    }

    #[test]
    fn standby_is_changed_in_place_and_everything_else_is_dialled_anew() {
        let changes = path_changes(
            &paths(&["a", "b,standby", "c"]),
            &paths(&["a,standby", "b", "c,cost=2"]),
        );
        assert_eq!(
            changes,
            [
                PathChange::Standby("a".into(), true),
                PathChange::Standby("b".into(), false),
                PathChange::Remove("c".into()),
                PathChange::Add("c,cost=2".parse().unwrap()),
            ]
        );
    }

    fn any_paths() -> impl Strategy<Value = Vec<Path>> {
        proptest::collection::btree_map(0..5_u8, (any::<bool>(), 0..2_u8), 0..5).prop_map(|paths| {
            paths
                .into_iter()
                .map(|(number, (standby, cost))| Path {
                    name: format!("p{number}"),
                    local: marline::carrier::Bind::Interface(format!("if{number}")),
                    standby,
                    cost,
                    ..Path::default()
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn the_changes_lead_from_old_to_new(old in any_paths(), new in any_paths()) {
            let mut paths = old.clone();
            for change in path_changes(&old, &new) {
                match change {
                    PathChange::Add(path) => {
                        prop_assert!(!paths.iter().any(|other| other.name == path.name));
                        paths.push(path);
                    }
                    PathChange::Remove(name) => {
                        let before = paths.len();
                        paths.retain(|path| path.name != name);
                        prop_assert_eq!(paths.len() + 1, before);
                    }
                    PathChange::Standby(name, standby) => {
                        let path = paths.iter_mut().find(|path| path.name == name);
                        path.unwrap().standby = standby;
                    }
                }
            }
            paths.sort_by(|a, b| a.name.cmp(&b.name));
            prop_assert_eq!(paths, new);
        }
    }
}
