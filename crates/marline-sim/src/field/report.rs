//! From runs to verdicts.

use serde::Serialize;

use super::cells::{Contender, FieldCell, Prepared, RIVALS};
use super::measured::{Measure, Measured};
use super::verdict::{PairedRatio, SEEDS};

/// Version of the JSON form; grows when a field changes its meaning or goes.
pub const VERSION: u32 = 1;

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Version of the program.
    pub program: String,
    /// `--seed` that repeats it.
    pub seed: u64,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Enough seeds for verdicts, and all cells.
    pub full: bool,
    /// What was not there, in words.
    pub missing: Vec<String>,
    /// Runs that were made.
    pub runs: usize,
    /// One a cell and measure.
    pub rows: Vec<Row>,
}

/// A measure of a cell.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The set of the place.
    pub set: String,
    /// The place.
    pub place: String,
    /// What is asked of it.
    pub load: &'static str,
    /// What is compared.
    pub measure: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Does it decide whether the cell is broken?
    pub judged: bool,
    /// All links of the place but one are useless.
    pub one_link: bool,
    /// Mean of `auto` over the seeds.
    pub auto: f64,
    /// The best single link in hindsight, by this measure; empty if none was run.
    pub best_link: String,
    /// Its mean; absent if none was run.
    pub best: Option<f64>,
    /// `auto` over the best single link; absent where a value is.
    pub to_best: Option<PairedRatio>,
    /// `auto` over `edpf`.
    pub to_edpf: Option<PairedRatio>,
    /// `auto` over `min-rtt`.
    pub to_min_rtt: Option<PairedRatio>,
    /// `auto` over the sender that knows rates, if it was asked for.
    pub to_ideal: Option<PairedRatio>,
    /// The whole interval of `to_best` lies beyond the promise.
    pub broken: bool,
    /// Its mean does.
    pub missed: bool,
    /// The run's seed in which it is worst.
    pub worst_seed: u64,
    #[serde(skip)]
    pub(super) of: Measure,
    /// Index of the cell.
    #[serde(skip)]
    pub(super) cell: usize,
}

/// Values of a contender, one a seed; `None` if one is missing.
fn values(runs: &[Measured], measure: Measure) -> Option<Vec<f64>> {
    runs.iter().map(|run| run.get(measure)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// One over the other, seed by seed.
fn ratio(measure: Measure, first: &[f64], second: &[f64]) -> Option<PairedRatio> {
    let floor = measure.floor();
    let pairs = first.iter().zip(second);
    let pairs: Vec<(f64, f64)> = pairs.map(|(a, b)| (a + floor, b + floor)).collect();
    PairedRatio::of(&pairs)
}

/// Judges the runs, which are in the order of the jobs: cell, contender, seed.
pub(super) fn report(bench: &Prepared, made: &[Measured]) -> Report {
    let seeds = bench.seeds.len();
    let mut rows = Vec::new();
    let mut begin = 0;
    for (index, cell) in bench.cells.iter().enumerate() {
        let end = begin + cell.contenders.len() * seeds;
        let mut made = made[begin..end].to_vec();
        for seed in 0..seeds {
            let mut same: Vec<&mut Measured> = made.iter_mut().skip(seed).step_by(seeds).collect();
            Measured::settled(&mut same);
        }
        let runs: Vec<&[Measured]> = made.chunks(seeds).collect();
        begin = end;
        let all = Measure::ALL.into_iter();
        rows.extend(all.filter_map(|measure| row(bench, (index, cell), &runs, measure)));
    }
    Report {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        seed: bench.seed,
        seeds: bench.seeds.clone(),
        full: seeds >= SEEDS && !bench.quick,
        missing: bench.missing.clone(),
        runs: made.len(),
        rows,
    }
}

fn row(
    bench: &Prepared,
    (index, cell): (usize, &FieldCell),
    runs: &[&[Measured]],
    measure: Measure,
) -> Option<Row> {
    let place = &bench.places[cell.place];
    let of = |wanted: Contender| {
        let at = cell.contenders.iter().position(|one| *one == wanted)?;
        values(runs[at], measure)
    };
    let auto = of(Contender::Auto)?;
    let links = place.links();
    // A link that delivered nothing has no bytes on the wire for each, and cannot be the best.
    let alone = links.iter().enumerate().filter_map(|(link, name)| {
        let values = of(Contender::Alone(link))?;
        Some((*name, values))
    });
    let better = |(_, a): &(&str, Vec<f64>), (_, b): &(&str, Vec<f64>)| {
        let order = mean(a).total_cmp(&mean(b));
        if measure.more_is_better() {
            order.reverse()
        } else {
            order
        }
    };
    let compared = cell.contenders.contains(&Contender::Alone(0));
    let (best_link, best) = match alone.min_by(better) {
        Some(best) => best,
        // No link alone has this measure.
        None if compared => return None,
        None => ("", Vec::new()),
    };
    let to_best = ratio(measure, &auto, &best);
    let to = |other: Contender| of(other).and_then(|other| ratio(measure, &auto, &other));
    let judged = measure.is_judged();
    let worst = bench.seeds.iter().zip(auto.iter().zip(&best));
    let worst = worst.max_by(|(_, a), (_, b)| {
        let badness = |(auto, best): &(&f64, &f64)| {
            let one = ratio(measure, &[**auto], &[**best]);
            one.map_or(0.0, |one| one.badness(measure))
        };
        badness(a).total_cmp(&badness(b))
    });
    Some(Row {
        set: place.set.clone(),
        place: place.name.clone(),
        load: cell.load.name(),
        measure: measure.name(),
        unit: measure.unit(),
        judged,
        one_link: place.is_one_link(),
        auto: mean(&auto),
        best_link: best_link.to_owned(),
        best: compared.then(|| mean(&best)),
        to_best,
        to_edpf: to(Contender::Named(RIVALS[0])),
        to_min_rtt: to(Contender::Named(RIVALS[1])),
        to_ideal: to(Contender::Ideal),
        broken: judged && to_best.is_some_and(|ratio| ratio.breaks(measure)),
        missed: judged && to_best.is_some_and(|ratio| ratio.misses(measure)),
        worst_seed: worst.map_or(0, |(seed, _)| *seed),
        of: measure,
        cell: index,
    })
}

impl Report {
    /// Cells, those of them that are broken, and those whose mean misses the promise.
    pub fn score(&self) -> (usize, usize, usize) {
        let count = |wanted: fn(&Row) -> bool| {
            let mut cells: Vec<usize> = self
                .rows
                .iter()
                .filter(|row| wanted(row))
                .map(|row| row.cell)
                .collect();
            cells.dedup();
            cells.len()
        };
        (
            count(|row| row.judged),
            count(|row| row.broken),
            count(|row| row.missed),
        )
    }

    /// All rows, one a line, with all digits.
    ///
    /// # Errors
    /// Never in practice: the text is written to memory.
    pub fn csv(&self) -> Result<String, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS)?;
        for row in &self.rows {
            let mut line: Vec<String> = [&row.set, &row.place].map(String::clone).to_vec();
            line.extend([row.load, row.measure, row.unit].map(str::to_owned));
            line.extend([row.judged, row.one_link, row.broken].map(|is| is.to_string()));
            line.push(row.auto.to_string());
            line.push(row.best.map_or_else(String::new, |best| best.to_string()));
            line.push(row.best_link.clone());
            for ratio in [row.to_best, row.to_edpf, row.to_min_rtt, row.to_ideal] {
                let of = |value: fn(PairedRatio) -> f64| {
                    ratio.map_or_else(String::new, |ratio| value(ratio).to_string())
                };
                line.extend([of(|r| r.value), of(|r| r.low), of(|r| r.high)]);
            }
            line.push(row.worst_seed.to_string());
            writer.write_record(&line)?;
        }
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The columns of [`Report::csv`].
const COLUMNS: [&str; 24] = [
    "set",
    "place",
    "load",
    "measure",
    "unit",
    "judged",
    "one_link",
    "broken",
    "auto",
    "best",
    "best_link",
    "to_best",
    "to_best_low",
    "to_best_high",
    "to_edpf",
    "to_edpf_low",
    "to_edpf_high",
    "to_min_rtt",
    "to_min_rtt_low",
    "to_min_rtt_high",
    "to_ideal",
    "to_ideal_low",
    "to_ideal_high",
    "worst_seed",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::load::FieldLoad;
    use crate::field::place::{Place, Way};
    use crate::field::{drawn, places::SHORT};
    use marline_base::Rng;

    /// A place of two links, a download, and goodput by contender and seed.
    fn bench(goodput: [[f64; 5]; 5]) -> Report {
        let (name, links) = drawn::place(0, 3_000, &Rng::new(1));
        let contenders = vec![
            Contender::Auto,
            Contender::Named("edpf"),
            Contender::Named("min-rtt"),
            Contender::Alone(0),
            Contender::Alone(1),
        ];
        let bench = Prepared {
            seed: 1,
            seeds: vec![11, 12, 13, 14, 15],
            quick: false,
            missing: Vec::new(),
            places: vec![Place {
                set: "drawn".to_owned(),
                name,
                way: Way::Drawn(links, SHORT),
            }],
            cells: vec![FieldCell {
                place: 0,
                load: FieldLoad::Download,
                contenders,
            }],
        };
        let made = goodput.concat().into_iter();
        let made = made.map(|mbps| Measured::default().with(Measure::Goodput, Some(mbps)));
        report(&bench, &made.collect::<Vec<_>>())
    }

    #[test]
    fn the_best_link_is_taken_in_hindsight() {
        let edpf = [20.0; 5];
        let report = bench([
            [9.0; 5],
            edpf,
            [5.0; 5],
            [4.0; 5],
            [10.0, 10.2, 10.0, 9.8, 10.0],
        ]);
        let [row] = &report.rows[..] else {
            panic!("one measure")
        };
        assert_eq!((row.auto, row.best), (9.0, Some(10.0)));
        assert!(row.best_link.starts_with("b-"), "{}", row.best_link);
        assert!(row.broken && row.missed, "{row:?}");
        assert_eq!(row.worst_seed, 12);
        let to_edpf = row.to_edpf.expect("a ratio").value;
        assert!((to_edpf - 0.45).abs() < 1e-3, "{to_edpf}");
        assert!(row.to_ideal.is_none());
        assert_eq!(report.score(), (1, 1, 1));
        let csv = report.csv().expect("a table");
        assert_eq!(csv.lines().count(), 2);
        assert!(csv.contains("goodput,Mb/s,true"), "{csv}");
    }

    #[test]
    fn what_keeps_the_promise_is_whole() {
        let report = bench([[12.0; 5], [12.0; 5], [12.0; 5], [4.0; 5], [10.0; 5]]);
        assert_eq!(report.score(), (1, 0, 0));
        assert!(report.full);
    }
}
