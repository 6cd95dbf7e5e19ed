//! Arrows between the crates, and between the folders of a crate, point down only
//! (ARCHITECTURE.md).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Lowest first; a crate may use those before it.
const CRATES: [&str; 11] = [
    "marline-base",
    "marline-fec",
    "marline-link",
    "marline-proto",
    "marline-sim",
    "marline",
    "marline-apps",
    "marline-lab",
    "marline-cli",
    "marline-hostile",
    "most-room",
];
/// Neither of two may know the other.
const APART: [(&str, &str); 4] = [
    ("marline-link", "marline-proto"),
    // The library is real time, the simulator virtual: an embedder has no use for a simulator.
    ("marline", "marline-sim"),
    ("marline", "marline-link"),
    ("marline-apps", "marline-sim"),
];

/// The modules of a crate, lowest first; those of one line may not know each other. A module that
/// stands in no line is private to the crate's root.
const FOLDERS: [(&str, &[&[&str]]); 6] = [
    (
        "marline-proto",
        &[
            &["ranges", "wire", "congestion", "law"],
            &["flow"],
            &["path"],
            &["sched", "event", "observe"],
            &["config", "stats"],
            &["session"],
        ],
    ),
    (
        "marline-sim",
        &[
            &["results", "engine", "tcp", "traces", "hostile"],
            &["measure", "experiments", "world"],
            &["report"],
            &["model"],
            &["scenario"],
            &["workload", "cross"],
            &["run"],
            &["batch"],
            &["repro", "field"],
            &["law"],
        ],
    ),
    (
        "marline",
        &[
            &["support"],
            &["identity", "interfaces"],
            &["carrier"],
            &["path", "resolver"],
            &["endpoint"],
            &["loopback"],
        ],
    ),
    (
        "marline-apps",
        &[
            &["destination", "firewall", "lru", "options", "whole"],
            &["proxy"],
            &["live", "measure", "publish", "tun", "object_stream"],
            &["carried", "grant", "serve"],
            &["session"],
        ],
    ),
    ("marline-lab", &[&["emulate"], &["process"], &["demo"]]),
    (
        "marline-cli",
        &[
            &["platform"],
            &["qlog", "recording"],
            &["control"],
            &["budget", "config", "metrics", "web"],
            &["commands"],
            &["main"],
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn crates_depend_downwards_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let layer = |name: &str| CRATES.iter().position(|l| *l == name);
    let mut arrows = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let own = layer(name).unwrap_or_else(|| panic!("{name} has no layer: add it here"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("a name");
            if dependency["kind"] == "dev" || !on.starts_with("marline") {
                continue;
            }
            arrows += 1;
            let below = layer(on).expect("a layer");
            assert!(below < own, "{name} must not use {on}");
            let apart = |pair: &(&str, &str)| *pair == (name, on) || *pair == (on, name);
            assert!(!APART.iter().any(apart), "{name} must not know {on}");
        }
    }
    assert!(arrows >= 20, "only {arrows} arrows were found");
}

/// Files of a folder and its folders, those of tests left out.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found
}

/// What is compiled of a file outside of its tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let code = text.split("mod tests {").next().unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first word of what follows a `::`, or those of its list: `a` and `c` of
/// `{a::B, c::{D, E}}`.
fn words(rest: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let first = |part: &str| part.find(|c| !is_word(c)).unwrap_or(part.len());
    let Some(list) = rest.strip_prefix('{') else {
        return vec![&rest[..first(rest)]];
    };
    let deeper = |c: char| i32::from(c == '{') - i32::from(c == '}');
    let mut depth = 1;
    let end = list.find(|c| {
        depth += deeper(c);
        depth == 0
    });
    let mut depth = 0;
    let parts = list[..end.unwrap_or(list.len())].split(|c| {
        depth += deeper(c);
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim_start);
    parts.map(|part| &part[..first(part)]).collect()
}

/// What follows each `prefix` that no longer path ends in.
fn behind<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let found = code.match_indices(prefix);
    let found = found.filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':')
    });
    let found = found.flat_map(|(at, prefix)| words(&code[at + prefix.len()..]));
    found.collect()
}

/// Items of a folder's modules that the folder's own file hands on, with their modules.
fn handed_on(folder: &Path) -> BTreeMap<String, String> {
    let own = ["lib.rs", "mod.rs"].map(|name| folder.join(name));
    let own = own.into_iter().chain([folder.with_extension("rs")]);
    let code: String = own.map(|file| code(&file)).collect();
    let uses = code
        .split(';')
        .filter_map(|line| line.rsplit_once("use ")?.1.split_once("::"));
    let items = uses.flat_map(|(module, rest)| {
        let names = words(rest).into_iter();
        names.map(move |name| (name.to_owned(), module.to_owned()))
    });
    items.collect()
}

/// From a module of a folder to another one that it names.
struct Arrow {
    /// The file, from the folder on.
    file: String,
    from: String,
    to: String,
}

/// The arrows between the modules of a folder, which is `place` (`crate::` and its modules).
fn arrows(folder: &Path, place: &str) -> Vec<Arrow> {
    let handed_on = handed_on(folder);
    let parts_of = |file: &Path| -> Vec<String> {
        let inside = file.strip_prefix(folder).expect("inside");
        let inside = inside.with_extension("");
        let parts = inside
            .iter()
            .map(|part| part.to_string_lossy().into_owned());
        parts.filter(|part| part != "mod").collect()
    };
    let files = sources(folder);
    let modules: BTreeSet<String> = files
        .iter()
        .filter_map(|file| parts_of(file).first().cloned())
        .collect();
    let mut arrows = Vec::new();
    for file in &files {
        let parts = parts_of(file);
        let Some(from) = parts.first().filter(|from| *from != "lib") else {
            continue;
        };
        let code = code(file);
        let names = [place.to_owned(), "super::".repeat(parts.len())];
        for name in names.iter().flat_map(|prefix| behind(&code, prefix)) {
            let to = match modules.get(name) {
                Some(module) => module,
                None => handed_on
                    .get(name)
                    .filter(|module| modules.contains(*module))
                    .map_or(from, |module| module),
            };
            if to != from {
                arrows.push(Arrow {
                    file: file
                        .strip_prefix(folder)
                        .expect("inside")
                        .display()
                        .to_string(),
                    from: from.clone(),
                    to: to.clone(),
                });
            }
        }
    }
    arrows
}

/// Arrows between the folders of a crate that do not point down.
fn wrong(folder: &Path, layers: &[&[&str]]) -> (usize, Vec<String>) {
    let layer = |module: &str| {
        let found = layers.iter().position(|layer| layer.contains(&module));
        found.unwrap_or_else(|| panic!("{module} has no layer: add it here"))
    };
    let arrows = arrows(folder, "crate::");
    let wrong = arrows
        .iter()
        .filter(|arrow| layer(&arrow.to) >= layer(&arrow.from));
    let wrong = wrong.map(|arrow| format!("{} must not use crate::{}", arrow.file, arrow.to));
    (arrows.len(), wrong.collect())
}

/// Modules that know each other in a circle, in this folder and those in it.
fn circles(folder: &Path, place: &str) -> Vec<String> {
    let arrows = arrows(folder, place).into_iter();
    let mut left: BTreeSet<(String, String)> = arrows.map(|arrow| (arrow.from, arrow.to)).collect();
    // What leads nowhere is in no circle, and neither is what nothing leads to.
    loop {
        let ends: (BTreeSet<_>, BTreeSet<_>) = left.iter().cloned().unzip();
        let before = left.len();
        left.retain(|(from, to)| ends.0.contains(to) && ends.1.contains(from));
        if left.len() == before {
            break;
        }
    }
    let shown = left
        .iter()
        .map(|(from, to)| format!("{place}{from} uses {to}"));
    let mut found: Vec<String> = shown.collect();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && name != "tests" {
            found.extend(circles(&path, &format!("{place}{name}::")));
        }
    }
    found
}

#[test]
fn folders_depend_downwards_only() {
    for (name, layers) in FOLDERS {
        let (arrows, wrong) = wrong(&root().join("crates").join(name).join("src"), layers);
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        assert!(
            arrows > 0,
            "{name} has no arrows: is this test still looking?"
        );
    }
}

#[test]
fn modules_of_a_folder_know_each_other_in_no_circle() {
    for name in CRATES {
        let folder = root().join("crates").join(name).join("src");
        // Some of them have other folders.
        if folder.is_dir() {
            let circles = circles(&folder, "crate::");
            assert!(circles.is_empty(), "{name}: {circles:#?}");
        }
    }
}

#[test]
fn one_use_upwards_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("written");
    write(
        "low.rs",
        "//! crate::high\nuse std::io;\n#[cfg(test)]\nmod tests { use crate::high; }\n",
    );
    write("high.rs", "use crate::low::Thing;\n");
    let layers: &[&[&str]] = &[&["low"], &["high"]];
    assert_eq!(wrong(folder.path(), layers), (1, Vec::new()));
    write("low.rs", "use crate::{high::Thing, Other};\n");
    let expected = vec!["low.rs must not use crate::high".to_owned()];
    assert_eq!(wrong(folder.path(), layers), (2, expected));
}

#[test]
fn a_circle_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("made");
        fs::write(file, text).expect("written");
    };
    write("mod.rs", "pub use high::{High, Higher};\n");
    write("low/mod.rs", "use super::{alone::{A, B}, other};\n");
    write("low/deep.rs", "use super::high;\n");
    write("high.rs", "use super::low;\n");
    write("alone.rs", "use std::io;\n");
    assert_eq!(circles(folder.path(), "crate::"), Vec::<String>::new());
    write("low/deep.rs", "fn f() -> super::super::Higher {}\n");
    let expected = ["crate::high uses low", "crate::low uses high"];
    assert_eq!(circles(folder.path(), "crate::"), expected);
}
