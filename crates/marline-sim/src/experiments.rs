//! The scenario files under `experiments/`, which are part of the program.

use std::path::Path;

use include_dir::{Dir, DirEntry, File, include_dir};

static FOLDER: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/experiments");

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
    let folders = FOLDER.entries().iter().filter_map(DirEntry::as_dir);
    let mut found: Vec<Experiment> = folders
        .flat_map(Dir::files)
        .filter_map(experiment)
        .collect();
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
    FOLDER.get_file(path).map(File::contents)
}

fn experiment(file: &'static File<'static>) -> Option<Experiment> {
    let path = file.path().to_str()?;
    let (folder, name) = path.split_once('/')?;
    Some(Experiment {
        folder,
        name: name.strip_suffix(".toml")?,
        path,
        text: file.contents_utf8()?,
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
