//! The files under `experiments/` become part of the program, in one compressed archive: they are
//! text, an eighth as long so.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The best that deflate does; it takes a fraction of a second.
const LEVEL: u8 = 10;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=experiments");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    find(Path::new("experiments"), &mut files)?;
    // The same bytes wherever it is built.
    files.sort();
    let mut archive = Vec::new();
    for file in files {
        let content = fs::read(&file)?;
        let parts: Vec<_> = file
            .iter()
            .skip(1)
            .map(|part| part.to_string_lossy())
            .collect();
        // As `experiments.rs` reads it: path and length in a line, then the bytes.
        archive.extend(format!("{} {}\n", parts.join("/"), content.len()).bytes());
        archive.extend(content);
    }
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let compressed = miniz_oxide::deflate::compress_to_vec(&archive, LEVEL);
    fs::write(Path::new(&out).join("experiments"), compressed)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => find(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}
