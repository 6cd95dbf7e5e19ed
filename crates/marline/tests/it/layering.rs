//! Arrows between the crates point down only (ARCHITECTURE.md).

use std::process::Command;

use serde_json::Value;

/// Lowest first; a crate may use those before it.
const LAYERS: [&str; 7] = [
    "marline-base",
    "marline-fec",
    "marline-link",
    "marline-proto",
    "marline-sim",
    "marline",
    "marline-hostile",
];
/// Both stand on the base, and neither may know the other.
const APART: [&str; 2] = ["marline-link", "marline-proto"];

#[test]
fn crates_depend_downwards_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let layer = |name: &str| LAYERS.iter().position(|l| *l == name);
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
            assert!(
                !(APART.contains(&name) && APART.contains(&on)),
                "{name} and {on} must not know each other"
            );
        }
    }
    assert!(arrows >= 6, "only {arrows} arrows were found");
}
