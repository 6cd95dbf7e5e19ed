//! The bench: places, loads and contenders; every run; and what came of it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use marline_base::{Duration, Rng};
use marline_proto::sched::AUTO;

use super::cells::{Contender, FieldCell, Prepared, RIVALS};
use super::load::FieldLoad;
use super::measured::Measured;
use super::place::Length;
use super::report::{Report, report};
use super::verdict::SEEDS;
use super::{ideal, places};
use crate::run::{jobs, run};

/// Runs of a whole bench: long enough for a handover every 15 s and an outage of five seconds,
/// short enough for 20 minutes on two cores.
const WHOLE: Length = Length {
    duration: Duration::from_secs(16),
    warmup: Duration::from_secs(3),
};
/// Runs of a quick one.
const QUICK: Length = Length {
    duration: Duration::from_secs(12),
    warmup: Duration::from_secs(2),
};
/// Seeds of a quick one.
const QUICK_SEEDS: usize = 2;
/// Seeds that the program draws are below this, so that they can be read and typed.
pub const MOST_SEED: u64 = 1_000_000;

/// How the bench is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// From which all that is drawn follows.
    pub seed: u64,
    /// Fewer and shorter runs, for a look.
    pub quick: bool,
    /// Runs of each contender of a cell; `None` for the usual number.
    pub seeds: Option<usize>,
    /// With the sender that knows rates.
    pub ideal: bool,
    /// Without anybody to compare `auto` with.
    pub auto_only: bool,
    /// The folder of recordings.
    pub traces: &'a Path,
    /// Axes (`set`, `place`, `load`) and values: only cells that have one of its values on every
    /// axis that is named here.
    pub only: &'a [(String, String)],
}

/// Reads recordings and draws links.
///
/// # Errors
/// A recording that cannot be read, or no cell of those that are asked for, with the mend.
pub fn prepare(options: Options<'_>) -> Result<Prepared, String> {
    let length = if options.quick { QUICK } else { WHOLE };
    let wanted = |axis: &str, value: &str| {
        let mut named = options
            .only
            .iter()
            .filter(|(key, _)| key == axis)
            .peekable();
        named.peek().is_none() || named.any(|(_, wanted)| wanted == value)
    };
    if let Some((axis, _)) = options
        .only
        .iter()
        .find(|(axis, _)| !AXES.contains(&&**axis))
    {
        let known = AXES.join(", ");
        return Err(format!(
            "the bench has no axis `{axis}`; there are: {known}"
        ));
    }
    let (mut places, missing) = places::all(options.traces, options.seed, length)?;
    let known: Vec<String> = {
        let mut sets: Vec<String> = places.iter().map(|place| place.set.clone()).collect();
        sets.dedup();
        sets
    };
    let by_name = options.only.iter().any(|(axis, _)| axis == "place");
    places.retain(|place| wanted("set", &place.set) && wanted("place", &place.name));
    if options.quick && !by_name {
        places = places::some(places);
    }
    let count = options
        .seeds
        .unwrap_or(if options.quick { QUICK_SEEDS } else { SEEDS });
    let rng = Rng::new(options.seed).stream("field seeds");
    let seed = |number| 1 + rng.stream(&format!("run {number}")).below(MOST_SEED);
    let mut cells = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let mut contenders = vec![Contender::Auto];
        if !options.auto_only {
            contenders.extend(RIVALS.map(Contender::Named));
            contenders.extend((0..place.links().len()).map(Contender::Alone));
        }
        contenders.extend(options.ideal.then_some(Contender::Ideal));
        let by_load = options.only.iter().any(|(axis, _)| axis == "load");
        let loads = place.loads().iter().filter(|load| {
            wanted("load", load.name()) && (!options.quick || by_load || load.is_quick())
        });
        cells.extend(loads.map(|&load| FieldCell {
            place: index,
            load,
            contenders: contenders.clone(),
        }));
    }
    if cells.is_empty() {
        let loads = FieldLoad::ANYWHERE.iter().chain(FieldLoad::WRITTEN);
        let loads: Vec<&str> = loads.map(|load| load.name()).collect();
        return Err(format!(
            "the bench has no such cell; there are set={} and load={}",
            known.join(", "),
            loads.join(", ")
        ));
    }
    Ok(Prepared {
        seed: options.seed,
        seeds: (1..=count).map(seed).collect(),
        quick: options.quick,
        missing,
        places,
        cells,
    })
}

/// What cells are chosen by.
const AXES: [&str; 3] = ["set", "place", "load"];

impl Prepared {
    /// Every run: cell, contender, seed.
    fn jobs(&self) -> Vec<(usize, Contender, u64)> {
        let mut jobs = Vec::new();
        for (index, cell) in self.cells.iter().enumerate() {
            for &contender in &cell.contenders {
                jobs.extend(self.seeds.iter().map(|&seed| (index, contender, seed)));
            }
        }
        jobs
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.jobs().len()
    }

    /// Makes all runs on `threads` threads; `None` if it was stopped. `progress` is given how many
    /// are over.
    pub fn run(
        &self,
        threads: usize,
        stop: &AtomicBool,
        progress: impl Fn(usize) + Sync,
    ) -> Option<Report> {
        let jobs = self.jobs();
        let made = jobs::each(jobs.len(), threads, stop, progress, |number| {
            let (cell, contender, seed) = jobs[number];
            self.one(&self.cells[cell], contender, seed)
        });
        let made: Option<Vec<Measured>> = made.into_iter().collect();
        Some(report(self, &made?))
    }

    fn one(&self, cell: &FieldCell, contender: Contender, seed: u64) -> Measured {
        let place = &self.places[cell.place];
        let alone = match contender {
            Contender::Alone(link) => Some(link),
            _ => None,
        };
        let scenario = place.scenario(cell.load, alone, seed);
        let scheduler = match contender {
            Contender::Named(name) => name,
            Contender::Auto | Contender::Alone(_) => AUTO,
            Contender::Ideal => return ideal::measured(&scenario, seed),
        };
        Measured::of(&run(&scenario, scheduler, seed), &scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::place::Way;
    use crate::field::places::SHORT;

    fn prepared(seed: u64, quick: bool, only: &[(&str, &str)]) -> Result<Prepared, String> {
        let only: Vec<(String, String)> = only
            .iter()
            .map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned()))
            .collect();
        prepare(Options {
            seed,
            quick,
            seeds: None,
            ideal: true,
            auto_only: false,
            traces: Path::new("/no/such/traces"),
            only: &only,
        })
    }

    #[test]
    fn without_recordings_the_rest_is_run_and_that_is_said() {
        let whole = prepared(1, false, &[]).expect("drawn and misbehaving links");
        assert!(
            whole.missing[0].contains("wifi-cell"),
            "{:?}",
            whole.missing
        );
        let mut sets: Vec<&str> = whole.places.iter().map(|place| &*place.set).collect();
        sets.dedup();
        assert_eq!(sets, ["drawn", "misbehaving"]);
        assert_eq!(whole.seeds.len(), SEEDS);
        let quick = prepared(1, true, &[]).expect("some of them");
        assert!(
            quick.runs() * 4 < whole.runs(),
            "{} of {}",
            quick.runs(),
            whole.runs()
        );
    }

    #[test]
    fn what_there_is_not_is_named() {
        let error = |only| prepared(1, false, only).expect_err("nothing");
        let wrong = error(&[("pair", "x")]);
        assert!(
            wrong.contains("no axis `pair`; there are: set, place, load"),
            "{wrong}"
        );
        let wrong = error(&[("load", "x")]);
        assert!(
            wrong.contains("drawn") && wrong.contains("live+download"),
            "{wrong}"
        );
    }

    /// One cell of the bench with runs of three seconds.
    fn small(seed: u64) -> Prepared {
        let mut small = prepared(seed, true, &[("set", "drawn"), ("load", "live+download")])
            .expect("drawn links");
        small.cells.truncate(1);
        small.seeds.truncate(1);
        for place in &mut small.places {
            if let Way::Drawn(_, length) = &mut place.way {
                *length = SHORT;
            }
        }
        small
    }

    #[test]
    fn a_cell_is_run_by_all_contenders_and_repeats() {
        let go = |seed| {
            let report = small(seed).run(2, &AtomicBool::new(false), |_| {});
            report.expect("not stopped")
        };
        let (first, again, other) = (go(5), go(5), go(6));
        let values = |report: &Report| -> Vec<(&str, f64)> {
            let rows = report.rows.iter();
            rows.map(|row| (row.measure, row.auto)).collect()
        };
        assert_eq!(values(&first), values(&again));
        assert_ne!(values(&first), values(&other));
        let measures: Vec<&str> = first.rows.iter().map(|row| row.measure).collect();
        let wanted = [
            "live p50",
            "live p99",
            "live worst",
            "given up",
            "goodput",
            "silence",
            "bytes on wire",
        ];
        assert_eq!(measures, wanted);
        assert!(
            first
                .rows
                .iter()
                .all(|row| row.to_edpf.is_some() && !row.broken)
        );
        assert!(!first.full, "one seed is no verdict");
        let text = crate::field::text(&first);
        for part in ["--seed 5", "LEFT OUT", "no verdict", "/ideal", "live p99"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn auto_alone_does_what_it_does_beside_others() {
        let compared = small(5);
        let mut alone = compared.clone();
        alone.cells[0].contenders.truncate(1);
        let rows = |bench: Prepared| {
            let report = bench.run(2, &AtomicBool::new(false), |_| {});
            report.expect("not stopped")
        };
        let (compared, alone) = (rows(compared), rows(alone));
        for (beside, row) in compared.rows.iter().zip(&alone.rows) {
            assert_eq!((beside.measure, beside.auto), (row.measure, row.auto));
            assert!(row.best.is_none() && row.to_best.is_none() && !row.broken);
        }
        assert_eq!(compared.rows.len(), alone.rows.len());
        let text = crate::field::text(&alone);
        assert!(
            text.contains("live p99") && !text.contains("worst cells"),
            "{text}"
        );
    }

    #[test]
    fn a_stopped_bench_reports_nothing() {
        assert!(small(5).run(1, &AtomicBool::new(true), |_| {}).is_none());
    }
}
