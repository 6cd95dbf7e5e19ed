//! Recordings of links that were measured at once, looked for when the bench runs: they do not come
//! with the program.

use std::fs;
use std::path::{Path, PathBuf};

use marline_base::Rng;

use super::network::{Network, RoundTrip};
use super::profile::{Profile, Step};
use crate::traces::{self, RateTable, TraceError};

/// The folder of recorded pairs in a folder laid out as `../shared/traces`, and which of its sets
/// were measured at once (its README says of the third that nobody knows).
const PAIRS: (&str, [&str; 2]) = ("pairs", ["wifi-cell", "leo-cell"]);
/// The folder of recorded round trips beside it.
const DELAYS: &str = "delay";

/// Recordings of one kind, and where they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSet {
    /// The folder's name.
    pub name: String,
    /// Its CSV files, sorted.
    pub files: Vec<PathBuf>,
    /// The folder of recorded round trips, if there is one.
    delays: Option<PathBuf>,
}

/// A recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The first two columns: what they are called, and their rates.
    pub links: Vec<(String, Profile)>,
}

/// The sets in a folder, and what is missing, in words: either it is laid out as
/// `../shared/traces`, or it and its folders hold CSV files, each folder a set.
pub fn sets(folder: &Path) -> (Vec<RecordedSet>, Vec<String>) {
    let mend =
        "name a folder of recordings (CSV: t_ms and two columns NAME_kbps) with --traces DIR";
    let (pairs, known) = PAIRS;
    let shown = folder.display();
    if !folder.is_dir() {
        let known = known.join(" and ");
        return (
            Vec::new(),
            vec![format!("sets {known}: no folder {shown}; {mend}")],
        );
    }
    let pairs = folder.join(pairs);
    let laid_out = pairs.is_dir();
    let mut folders: Vec<PathBuf> = match laid_out {
        true => known.iter().map(|name| pairs.join(name)).collect(),
        false => folders_in(folder),
    };
    if !laid_out {
        folders.insert(0, folder.to_owned());
    }
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for one in folders {
        let files = csv_in(&one);
        if !files.is_empty() {
            found.push(RecordedSet {
                name: name_of(&one),
                delays: delays_beside(&one),
                files,
            });
        } else if laid_out {
            let name = name_of(&one);
            missing.push(format!(
                "set {name}: no CSV files in {}; {mend}",
                one.display()
            ));
        }
    }
    if found.is_empty() && !laid_out {
        missing.push(format!(
            "recordings: no CSV files in {shown} or its folders; {mend}"
        ));
    }
    (found, missing)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = entries(folder);
    all.retain(|path| path.is_dir() && name_of(path) != DELAYS);
    all
}

fn csv_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = entries(folder);
    all.retain(|path| path.is_file() && path.extension().is_some_and(|end| end == "csv"));
    all
}

/// The last part of a path without `.csv`.
pub(super) fn name_of(path: &Path) -> String {
    // A folder given as `.` has no name of its own.
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".csv").unwrap_or(&name).to_owned()
}

fn delays_beside(set: &Path) -> Option<PathBuf> {
    let near = [Some(set), set.parent(), set.parent().and_then(Path::parent)];
    let folders = near.into_iter().flatten().map(|folder| folder.join(DELAYS));
    folders.into_iter().find(|folder| folder.is_dir())
}

/// Reads a recording.
///
/// # Errors
/// A file that cannot be read or is no table of at least two rates; it is named with the mend.
pub fn recording(file: &Path) -> Result<Recording, String> {
    let name = file.display().to_string();
    let text = traces::read(file).map_err(|error| error.to_string())?;
    let table = RateTable::parse(&name, &text).map_err(|error| error.to_string())?;
    if table.columns.len() < 2 {
        let key = &table.columns[0].0;
        return Err(format!(
            "{name}: only one column of rates, {key}_kbps; give a second link's beside it"
        ));
    }
    let mut links: Vec<(String, Profile)> = Vec::new();
    for (key, rates) in table.columns.into_iter().take(2) {
        let steps = table.lengths.iter().zip(rates);
        let steps = steps.map(|(&ms, kbps)| Step { ms, kbps }).collect();
        links.push((key, Profile { steps }));
    }
    if links.iter().all(|(_, rates)| rates.mean() < 1.0) {
        return Err(format!(
            "{name}: both links carry nothing; take it out of the folder"
        ));
    }
    Ok(Recording { links })
}

impl RecordedSet {
    /// Round trips of a link of a recording: of pings at the same time, or else of another
    /// recording of the same family (`maine-…`), which `rng` chooses, or else what is usual on such
    /// a network.
    ///
    /// # Errors
    /// A file of round trips that cannot be read.
    pub fn round_trip(
        &self,
        recording: &str,
        link: &str,
        rng: &mut Rng,
    ) -> Result<RoundTrip, String> {
        let network = Network::of_column(link);
        let Some(folder) = &self.delays else {
            return Ok(network.round_trip());
        };
        let part = |name: &str, parts: usize| -> String {
            name.split('-').take(parts).collect::<Vec<_>>().join("-")
        };
        let family = part(recording, 1);
        let mut files = csv_in(folder);
        files.retain(|file| part(&name_of(file), 1) == family);
        let mut found: Vec<(String, RoundTrip)> = Vec::new();
        for file in &files {
            let trip = of_link(file, link).map_err(|error| error.to_string())?;
            found.extend(trip.map(|trip| (name_of(file), trip)));
        }
        // Family, day and time: `maine-0527-1112`.
        let same = |name: &str| part(name, 3) == part(recording, 3);
        let other = rng.below(found.len().max(1) as u64) as usize;
        let at_once = found.iter().find(|(name, _)| same(name));
        let chosen = at_once.or_else(|| found.get(other));
        Ok(chosen.map_or(network.round_trip(), |(_, trip)| *trip))
    }
}

fn of_link(file: &Path, link: &str) -> Result<Option<RoundTrip>, TraceError> {
    let text = traces::read(file)?;
    let mut pings = traces::pings(&file.display().to_string(), &text, link)?;
    Ok(RoundTrip::of(&mut pings))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# step_ms: 500\nt_ms,leo_kbps,att_kbps\n0,9000,4000\n500,7000,0\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            fs::write(file, text).expect("written");
        }
        folder
    }

    fn names(sets: &[RecordedSet]) -> Vec<(String, usize)> {
        sets.iter()
            .map(|set| (set.name.clone(), set.files.len()))
            .collect()
    }

    #[test]
    fn what_is_not_there_is_said_with_how_to_name_it() {
        let (found, missing) = sets(Path::new("/no/such/traces"));
        assert!(found.is_empty());
        let [line] = &missing[..] else {
            panic!("{missing:?}")
        };
        for part in [
            "wifi-cell and leo-cell",
            "/no/such/traces",
            "--traces DIR",
            "_kbps",
        ] {
            assert!(line.contains(part), "{line}");
        }
        let half = folder(&[("pairs/leo-cell/a.csv", TABLE)]);
        let (found, missing) = sets(half.path());
        assert_eq!(names(&found), [("leo-cell".to_owned(), 1)]);
        assert!(
            missing.len() == 1 && missing[0].contains("set wifi-cell"),
            "{missing:?}"
        );
        let empty = folder(&[("note.txt", "")]);
        let (found, missing) = sets(empty.path());
        assert!(
            found.is_empty() && missing[0].contains("no CSV files"),
            "{missing:?}"
        );
    }

    #[test]
    fn any_folder_and_its_folders_are_sets() {
        let folder = folder(&[
            ("one/a.csv", TABLE),
            ("one/b.csv", TABLE),
            ("two/c.csv", TABLE),
        ]);
        let (found, missing) = sets(folder.path());
        assert_eq!(
            names(&found),
            [("one".to_owned(), 2), ("two".to_owned(), 1)]
        );
        assert!(missing.is_empty(), "{missing:?}");
        let (found, _) = sets(&folder.path().join("one"));
        assert_eq!(names(&found), [("one".to_owned(), 2)]);
    }

    #[test]
    fn the_first_two_columns_are_the_links() {
        let folder = folder(&[("a.csv", TABLE), ("one.csv", "t_ms,a_kbps\n0,1\n9,1\n")]);
        let read = |name: &str| recording(&folder.path().join(name));
        let links = read("a.csv").expect("a recording").links;
        assert_eq!((links[0].0.as_str(), links[1].0.as_str()), ("leo", "att"));
        assert_eq!((links[0].1.mean(), links[1].1.mean()), (8_000.0, 2_000.0));
        let error = read("one.csv").expect_err("one link");
        assert!(error.contains("one.csv: only one column"), "{error}");
    }

    #[test]
    fn round_trips_are_those_of_the_time_or_of_the_family() {
        let pings = |ms: u32| format!("t_ms,net,rtt_ms\n0,leo,{ms}\n1,att,5\n2,leo,{}\n", ms + 2);
        let folder = folder(&[
            ("pairs/leo-cell/maine-1-2-udp.csv", TABLE),
            ("delay/maine-1-2-rtt.csv", &pings(40)),
            ("delay/maine-1-3-rtt.csv", &pings(80)),
            ("delay/other-rtt.csv", &pings(200)),
        ]);
        let (found, _) = sets(folder.path());
        let trip = |recording: &str, link: &str| {
            let trip = found[0].round_trip(recording, link, &mut Rng::new(4));
            trip.expect("read").mean
        };
        assert_eq!(trip("maine-1-2-udp", "att"), 5.0);
        assert!([40.0, 42.0].contains(&trip("maine-1-2-udp", "leo")));
        assert!(trip("maine-9-9-udp", "leo") < 100.0, "of the family");
        assert_eq!(trip("paris-1", "leo"), Network::Leo.round_trip().mean);
        assert_eq!(
            trip("maine-1-2-udp", "wifi"),
            Network::Wifi.round_trip().mean
        );
    }
}
