//! What callgrind counts in one end of a case, by function.

use super::Failure;
use std::collections::BTreeMap;
use std::process::Command;

/// Instructions by function, and what was delivered for them.
#[derive(Debug)]
pub(super) struct Profile {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) functions: BTreeMap<String, u64>,
}

impl Profile {
    /// Runs the case and counts below the functions that match.
    pub(super) fn of(name: &str, functions: &str) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("callgrind.out");
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--collect-atstart=no"])
            .arg(format!("--toggle-collect={functions}"))
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(std::env::current_exe()?)
            .args(["run", name])
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let numbers = said.split_whitespace().map(str::parse::<u64>);
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        let [packets, bytes] = numbers[..] else {
            let log = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{name}: valgrind says:\n{log}").into());
        };
        let functions = by_function(&std::fs::read_to_string(&file)?);
        if functions.is_empty() || packets == 0 {
            return Err(format!("{name}: nothing was counted, or delivered").into());
        }
        Ok(Profile {
            packets,
            bytes,
            functions,
        })
    }

    /// Instructions a packet.
    pub(super) fn each(&self) -> f64 {
        self.functions.values().sum::<u64>() as f64 / self.packets as f64
    }

    /// Instructions a megabit that the application has read.
    pub(super) fn for_each_megabit(&self) -> f64 {
        self.functions.values().sum::<u64>() as f64 / (self.bytes as f64 * 8e-6)
    }
}

/// The instructions of each function itself, in callgrind's format: `fn=(ID) NAME` begins one,
/// whose name is said once; lines with a position and a count are its own but for the one after
/// `calls=`, which is of the function that it calls.
fn by_function(text: &str) -> BTreeMap<String, u64> {
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut counts = BTreeMap::<String, u64>::new();
    let (mut current, mut is_call) = ("", false);
    for line in text.lines() {
        if let Some((kind, rest)) = line.split_once('=') {
            if kind == "calls" {
                is_call = true;
            } else if let "fn" | "cfn" = kind {
                let (id, name) = rest.split_once(' ').unwrap_or((rest, ""));
                if !name.is_empty() {
                    names.insert(id, name);
                }
                if kind == "fn" {
                    current = id;
                }
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let count = line.split_whitespace().nth(1);
            let count = count.and_then(|n| n.parse::<u64>().ok());
            if let (false, Some(count)) = (is_call, count) {
                let name = names.get(current).copied().unwrap_or("?");
                *counts.entry(plain(name)).or_default() += count;
            }
            is_call = false;
        }
    }
    counts
}

/// A name without what differs from build to build.
fn plain(name: &str) -> String {
    let end = name.rfind("::h").filter(|at| name.len() - at == 19);
    name[..end.unwrap_or(name.len())].replace(',', ";")
}
