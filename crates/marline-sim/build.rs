//! The scenarios under `experiments/` are part of the crate: a new file there is a reason to build.

fn main() {
    println!("cargo::rerun-if-changed=experiments");
}
