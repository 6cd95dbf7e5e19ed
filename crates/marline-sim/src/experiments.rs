//! The scenario files under `experiments/`, which are part of the program.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

/// All files by their paths from `experiments/` on, as `build.rs` has packed them.
static FILES: LazyLock<BTreeMap<String, Vec<u8>>> = LazyLock::new(|| {
    let packed = include_bytes!(concat!(env!("OUT_DIR"), "/experiments"));
    miniz_oxide::inflate::decompress_to_vec(packed)
        .ok()
        .and_then(|archive| files(&archive))
        .unwrap_or_default()
});

/// What is in the archive: for each file its path and length in a line, then its bytes.
fn files(mut archive: &[u8]) -> Option<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    while !archive.is_empty() {
        let end = archive.iter().position(|byte| *byte == b'\n')?;
        let (path, length) = str::from_utf8(&archive[..end]).ok()?.rsplit_once(' ')?;
        let rest = &archive[end + 1..];
        let (content, rest) = rest.split_at_checked(length.parse().ok()?)?;
        files.insert(path.to_owned(), content.to_vec());
        archive = rest;
    }
    Some(files)
}

/// A scenario file: `experiments/FOLDER/NAME.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Experiment {
    /// The folder: a publication or a question.
    pub folder: &'static str,
    /// The file without `.toml`.
    pub name: &'static str,
    /// From `experiments/` on: `FOLDER/NAME.toml`.
    pub path: &'static str,
    /// What is written in it.
    pub text: &'static str,
}

/// All scenario files, by folder and name.
pub fn all() -> Vec<Experiment> {
    let mut found: Vec<Experiment> = FILES.iter().filter_map(experiment).collect();
    found.sort();
    found
}

/// What the names of measured traces begin with in scenario files. They do not come with the
/// program.
const TRACES: &str = "traces/";

impl Experiment {
    /// Does it need measured traces, which do not come with the program?
    pub fn needs_traces(&self) -> bool {
        self.text.contains(&format!("\"{TRACES}"))
    }

    /// The text of a file that it names; measured traces are in the folder `traces`.
    ///
    /// # Errors
    /// What is not there, or is no text.
    pub fn read(&self, name: &str, traces: Option<&Path>) -> Result<String, String> {
        if let Some(trace) = name.strip_prefix(TRACES) {
            let folder = traces.ok_or("measured traces do not come with the program")?;
            return crate::traces::read(&folder.join(trace)).map_err(|error| error.to_string());
        }
        let path = format!("{}/{name}", self.folder);
        let bytes = file(&path).ok_or_else(|| format!("no experiments/{path}"))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| format!("experiments/{path} is not text"))
    }
}

/// The bytes of a file that scenarios may refer to, by its path from `experiments/` on.
pub fn file(path: &str) -> Option<&'static [u8]> {
    FILES.get(path).map(Vec::as_slice)
}

fn experiment((path, content): (&'static String, &'static Vec<u8>)) -> Option<Experiment> {
    let (folder, name) = path.split_once('/')?;
    Some(Experiment {
        folder,
        name: name
            .strip_suffix(".toml")
            .filter(|name| !name.contains('/'))?,
        path,
        text: str::from_utf8(content).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_file_is_there_and_nothing_else() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
        let mut wanted = Vec::new();
        for folder in std::fs::read_dir(root)
            .unwrap()
            .flatten()
            .filter(|e| e.path().is_dir())
        {
            for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
                let path = file.path();
                if path
                    .extension()
                    .is_some_and(|extension| extension == "toml")
                {
                    wanted.push(std::fs::read_to_string(path).unwrap());
                }
            }
        }
        let mut found: Vec<String> = all().iter().map(|one| one.text.to_owned()).collect();
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted);
    }

    #[test]
    fn files_are_found_by_their_path() {
        assert!(file("README.md").is_some_and(|text| text.starts_with(b"# Experiments")));
        assert!(file("no/such.csv").is_none());
    }
}
