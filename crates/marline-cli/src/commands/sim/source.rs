//! A scenario by its file, or by the name of one that comes with the program.

use crate::commands::CliError;
use marline_sim::experiments::{self, Experiment};
use marline_sim::traces;
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A scenario's text and the folder of the files that it names.
#[derive(Debug)]
pub(super) struct Source {
    /// As it was given.
    pub(super) name: String,
    pub(super) text: String,
    folder: Folder,
    /// A digest of every file that was read, so that results can be distinguished from those of
    /// others.
    read: RefCell<BTreeMap<String, Vec<u8>>>,
}

#[derive(Debug)]
enum Folder {
    OnDisk(PathBuf),
    Shipped(&'static str),
}

impl Source {
    /// The file `name`, or else the scenario that ships as FOLDER/NAME or NAME.
    pub(super) fn find(name: &str) -> Result<Self, CliError> {
        let path = Path::new(name);
        // A pipe is as good as a file.
        if path.exists() && !path.is_dir() {
            let text = traces::read(path).map_err(CliError::usage)?;
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            return Ok(Self::new(name, text, Folder::OnDisk(folder)));
        }
        let all = experiments::all();
        let called = |one: &&Experiment| {
            one.path == name || one.path.strip_suffix(".toml") == Some(name) || one.name == name
        };
        match all.iter().filter(called).collect::<Vec<_>>()[..] {
            [one] => Ok(Self::new(
                name,
                one.text.to_owned(),
                Folder::Shipped(one.folder),
            )),
            [] if path.is_dir() => {
                Err(CliError::usage(format!("{name} is a folder"))
                    .hint("name a scenario file in it"))
            }
            [] => Err(CliError::usage(format!(
                "{name}: no such file, and no scenario of that name"
            ))
            .hint("`marline sim list` names the scenarios that come with the program")),
            [first, ..] => {
                let message = format!("{name}: several scenarios are called so");
                Err(CliError::usage(message).hint(format!("write it as {}", first.path)))
            }
        }
    }

    fn new(name: &str, text: String, folder: Folder) -> Self {
        Self {
            name: name.to_owned(),
            text,
            folder,
            read: RefCell::default(),
        }
    }

    /// The text of a file that the scenario names.
    pub(super) fn read(&self, file: &str) -> Result<String, String> {
        let text = match &self.folder {
            Folder::OnDisk(folder) => {
                traces::read(&folder.join(file)).map_err(|error| error.to_string())?
            }
            Folder::Shipped(folder) => {
                let bytes = experiments::file(&format!("{folder}/{file}"));
                let bytes = bytes.ok_or("no such file comes with the program")?;
                String::from_utf8(bytes.to_vec()).map_err(|_| "not UTF-8")?
            }
        };
        let digest = Sha256::digest(&text).to_vec();
        self.read.borrow_mut().insert(file.to_owned(), digest);
        Ok(text)
    }

    /// Stands for all files that were read.
    pub(super) fn files(&self) -> String {
        format!("{:?}", self.read.borrow())
    }
}
