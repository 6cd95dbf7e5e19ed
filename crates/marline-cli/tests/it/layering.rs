//! Arrows between the crates, and between the folders of a crate, point down only
//! (ARCHITECTURE.md).

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
const FOLDERS: [(&str, &[&[&str]]); 5] = [
    (
        "marline-proto",
        &[
            &["ranges", "wire", "congestion"],
            &["flow"],
            &["path"],
            &["sched", "event", "observe"],
            &["config", "stats"],
            &["session"],
        ],
    ),
    (
        "marline",
        &[
            &["support"],
            &["identity"],
            &["carrier"],
            &["path"],
            &["endpoint"],
        ],
    ),
    (
        "marline-apps",
        &[
            &["destination", "lru", "options", "whole"],
            &["proxy"],
            &["live", "tun", "object_stream"],
            &["carried", "serve"],
            &["session"],
        ],
    ),
    ("marline-lab", &[&["emulate"], &["process"], &["demo"]]),
    (
        "marline-cli",
        &[
            &["control"],
            &["budget", "config", "metrics"],
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

/// What a file names of its own crate outside of its tests: the first word after each `crate::`.
fn uses(text: &str) -> Vec<String> {
    let code = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for part in code.split("crate::").skip(1) {
        // `use crate::{a::B, c::D}` names several.
        let words = match part.strip_prefix('{') {
            Some(list) => list.split(['}', ';']).next().unwrap_or_default(),
            None => part
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default(),
        };
        for word in words.split(',') {
            let word = word.trim().split("::").next().unwrap_or_default();
            found.push(word.to_owned());
        }
    }
    found
}

/// Arrows between the folders of a crate that do not point down.
fn wrong(folder: &Path, layers: &[&[&str]]) -> (usize, Vec<String>) {
    let layer = |module: &str| layers.iter().position(|layer| layer.contains(&module));
    let (mut arrows, mut wrong) = (0, Vec::new());
    for file in sources(folder) {
        let inside = file
            .strip_prefix(folder)
            .expect("inside")
            .to_string_lossy()
            .into_owned();
        let module = inside
            .split('/')
            .next()
            .unwrap_or_default()
            .trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let own = layer(module).unwrap_or_else(|| panic!("{module} has no layer: add it here"));
        let text = fs::read_to_string(&file).expect("a text");
        for on in uses(&text) {
            let Some(below) = layer(&on).filter(|_| on != module) else {
                continue;
            };
            arrows += 1;
            if below >= own {
                wrong.push(format!("{inside} must not use crate::{on}"));
            }
        }
    }
    (arrows, wrong)
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
