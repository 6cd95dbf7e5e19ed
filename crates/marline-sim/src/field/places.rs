//! All places of the bench.

use std::path::Path;

use marline_base::Rng;

use super::drawn;
use super::network::{Network, loss};
use super::place::{FieldLink, Length, Place, QUEUE, UP_SHARE, Way};
use super::recorded::{RecordedSet, Recording, name_of, recording, sets};
use crate::experiments;
use crate::scenario::Document;

/// Mean of a recording's better link, to which both are scaled (kb/s): recorded ones have 3 to 300
/// Mb/s, and what the bench asks is how links compare, not how fast the simulator is.
const BETTER: f64 = 16_000.0;
/// Places that processes draw: each shape twice.
const DRAWN: usize = 12;
/// Places of a set in a quick bench.
const SOME: usize = 4;
/// The folder of scenario files.
/// The experiments of links that misbehave.
pub const FOLDER: &str = "field";

/// The places, set by set, and what is missing, in words.
///
/// # Errors
/// A recording or a scenario file that cannot be read, with the mend.
pub(super) fn all(
    traces: &Path,
    seed: u64,
    length: Length,
) -> Result<(Vec<Place>, Vec<String>), String> {
    let rng = Rng::new(seed).stream("field places");
    let (found, missing) = sets(traces);
    let mut places = Vec::new();
    for set in &found {
        for file in &set.files {
            let name = name_of(file);
            let rng = rng.stream(&format!("{}/{name}", set.name));
            places.push(recorded(set, &name, &recording(file)?, length, &rng)?);
        }
    }
    let ms = length.duration.as_millis() as u64;
    for number in 0..DRAWN {
        let rng = rng.stream(&format!("drawn {number}"));
        let (name, links) = drawn::place(number, ms, &rng);
        places.push(Place {
            set: "drawn".to_owned(),
            name,
            way: Way::Drawn(links, length),
        });
    }
    places.extend(written()?);
    Ok((places, missing))
}

/// Some places of each set, evenly spread.
pub(super) fn some(places: Vec<Place>) -> Vec<Place> {
    let mut kept: Vec<Place> = Vec::new();
    for set in places.chunk_by(|a, b| a.set == b.set) {
        let most = match set[0].way {
            Way::Drawn(..) => SOME.min(set.len()),
            Way::Written(_) => set.len(),
        };
        kept.extend((0..most).map(|n| set[n * set.len() / most].clone()));
    }
    kept
}

/// A stretch of a recording, which the seed chooses, with its better link scaled.
fn recorded(
    set: &RecordedSet,
    name: &str,
    recording: &Recording,
    length: Length,
    rng: &Rng,
) -> Result<Place, String> {
    let ms = length.duration.as_millis() as u64;
    let mut draws = rng.stream("links");
    let begin = draws.below(recording.links[0].1.length());
    let cut: Vec<(&str, _)> = recording
        .links
        .iter()
        .map(|(link, rates)| (&**link, rates.window(begin, ms)))
        .collect();
    let better = cut
        .iter()
        .map(|(_, rates)| rates.mean())
        .fold(0.0, f64::max);
    // A stretch in which both carry nothing stays one.
    let scale = BETTER / better.max(1.0);
    let mut links = Vec::new();
    for (link, rates) in cut {
        let down = rates.scaled(scale);
        links.push(FieldLink {
            name: link.to_owned(),
            network: Network::of_column(link),
            up: down.clone().scaled(UP_SHARE),
            down,
            trip: set.round_trip(name, link, &mut draws)?,
            loss: loss(&mut draws),
            queues: [QUEUE; 2],
            moves: Vec::new(),
        });
    }
    Ok(Place {
        set: set.name.clone(),
        name: name.to_owned(),
        way: Way::Drawn(links, length),
    })
}

/// The links that misbehave, one scenario file each.
fn written() -> Result<Vec<Place>, String> {
    let mut places = Vec::new();
    for one in experiments::all()
        .into_iter()
        .filter(|one| one.folder == FOLDER)
    {
        let files = |file: &str| one.read(file, None);
        let name = format!("experiments/{}", one.path);
        let cells = Document::parse(&name, one.text).and_then(|file| file.scenarios(&files));
        for (_, scenario) in cells.map_err(|mistakes| mistakes.to_string())? {
            places.push(Place {
                set: "misbehaving".to_owned(),
                name: one.name.to_owned(),
                way: Way::Written(Box::new(scenario)),
            });
        }
    }
    Ok(places)
}

/// Length of a test's runs.
#[cfg(test)]
pub(super) const SHORT: Length = Length {
    duration: marline_base::Duration::from_secs(3),
    warmup: marline_base::Duration::from_secs(1),
};
