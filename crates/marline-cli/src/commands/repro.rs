//! `marline repro`: what the papers report beside what is measured here.

mod drawn;
mod field;
mod law;
mod processes;

use super::{CliError, output, runs, stop};
use clap::builder::RangedU64ValueParser;
use marline_sim::batch::Store;
use marline_sim::experiments::{self, Experiment};
use marline_sim::report::{Page, Section, page};
use marline_sim::repro::{
    self, MeasureError, Options, Record, RecordError, Report, ScenarioReport,
};
use marline_sim::results::Results;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const ABOUT: &str = "Measure what the papers report, and say PASS or MISS";

const LONG_ABOUT: &str = "\
Run the experiments of a paper in the simulator and print what it reports beside what was \
measured, with 95 % confidence intervals over seeds and PASS or MISS against the bounds that the \
experiment states. Without PAPER, list what there is.

With --processes the same experiments are run by real processes on loopback: a `marline server`, a \
`marline client` and a `marline link` for each link, one run at a time, and only runs that a bound \
speaks of. It needs experiments of one stream, such as link-pairs, and a machine with idle cores: \
the last column says how late the relays were themselves.

`field` is no paper but a bench: what `auto` is worth over links that nobody chose, recorded at once \
(`../shared/traces`, or any folder named by --traces: CSV files with t_ms and two columns NAME_kbps, each \
folder a set), drawn by processes, and misbehaving as a scenario file says. Everything that is drawn follows from a \
seed, which is another one each time and printed; --seed N repeats it, --fixed takes the one of CI. FIGURE is a \
set; --cell takes set, place and load. Exit code 1 when more than 10 % of the cells of a whole bench are broken: \
when the 90 % interval of `auto` over the best single link lies beyond 0.95. With --quick (3 minutes, not 20) there is no \
verdict.

`law` is no paper either: what the path's law (docs/LAW.md) and older estimators said of each packet, scored by \
what became of it, over the links of the bench and the experiments. FIGURE is a set; --write DIR keeps a line a run \
(law.txt) and the picture of a law before, during and after an outage (law.svg).

--write DIR keeps the outcome in a folder: DIR/PAPER.csv with a line a verdict, and from that the page DIR/PAPER.md, \
a picture of each experiment, DIR/PAPER-FIGURE.svg, and the index DIR/README.md. What the folder has of other \
experiments stays. Without PAPER nothing is run: pages and pictures are written from the CSV files again.

Exit code 1 when a bound is missed. With fewer seeds than the experiment asks for there is no \
PASS or MISS, only inside or outside; the exit code is the same.";

const EXAMPLES: &str = "\
Examples:
  marline repro
  marline repro ols
  marline repro ols table-1 --quick --plot ols.html
  marline repro link-pairs --cell pair=baseline
  marline repro link-pairs bulk --processes --cell pair=two-lte --cell pair=loss-2 --seeds 3
  marline repro link-pairs bulk --processes --curl --cell pair=two-lte
  marline repro field --quick
  marline repro field --seed 46 --ideal --write runs
  marline repro field --quick --seed 46 --auto-only --json
  marline repro field wifi-cell --cell load=live --traces ~/walks
  marline repro law --quick --seed 51
  marline repro all --out runs --write docs/reproduction
  marline repro --write docs/reproduction";

/// Every paper.
const ALL: &str = "all";
/// Seeds of a quick run.
const QUICK: usize = 3;

/// The flags of `marline repro`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    /// The paper, as the list calls it, or `all`
    paper: Option<String>,
    /// A figure or table of it, as the list calls it
    figure: Option<String>,
    /// Use at most 3 seeds: a look, not a verdict
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// Use the seeds 1 to N instead of the experiment's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: Option<u64>,
    /// Only cells with this value on that axis; several values of an axis add up. Experiments that
    /// have not the axis are left out
    #[arg(long = "cell", value_name = "AXIS=VALUE", value_parser = cell, conflicts_with = "write")]
    cells: Vec<(String, String)>,
    /// Only for `field` and `law`: the same draws in every run, for CI
    #[arg(long, conflicts_with = "seed")]
    fixed: bool,
    /// Only for `field` and `law`: repeat the draws of the run that printed this seed [default: a
    /// fresh one]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only for `field`: also a sender that knows each link's rate, one round trip late
    #[arg(long)]
    ideal: bool,
    /// Only for `field`: run what the program chooses and nothing to compare it with, in a fifth of
    /// the time; for two programs side by side
    #[arg(long, conflicts_with = "ideal")]
    auto_only: bool,
    /// By real processes over emulated links, not in the simulator; the seeds are the links'
    #[arg(long, conflicts_with_all = ["jobs", "out", "plot", "write"])]
    processes: bool,
    /// Let each run by processes last this many seconds, its warm-up included [default: as the
    /// experiment says]
    #[arg(long, value_name = "N", requires = "processes", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// Let streams that never run dry be downloads by curl through the SOCKS5 proxy, not writes
    /// into a forward
    #[arg(long, requires = "processes")]
    curl: bool,
    /// Runs at once [default: one a core]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_024))]
    jobs: Option<usize>,
    /// Print the verdicts as JSON (docs/RESULTS.md)
    #[arg(long)]
    json: bool,
    /// Write a page with plots, readable without a network
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the outcome into a folder (docs/reproduction): CSV, a page a paper, pictures; what it
    /// has of other experiments stays. Without PAPER, only write its pages and pictures from its
    /// CSV files again
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Keep finished runs in DIR/runs.jsonl: stopped and started again, the command redoes nothing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The folder of the measured traces, for the figures that need them and for `field`; they do
    /// not come with the program
    #[arg(long, value_name = "DIR", default_value = "../shared/traces")]
    traces: PathBuf,
}

/// Reads AXIS=VALUE.
fn cell(text: &str) -> Result<(String, String), String> {
    let pair = text
        .split_once('=')
        .ok_or("write AXIS=VALUE, such as pair=baseline");
    pair.map(|(axis, value)| (axis.to_owned(), value.to_owned()))
        .map_err(str::to_owned)
}

impl Args {
    /// The folder of the measured traces, if it is there.
    fn traces(&self) -> Option<&Path> {
        Some(&*self.traces).filter(|folder| folder.is_dir())
    }

    /// The folder to write into and what it has, so that nothing is run for a folder that cannot
    /// take it.
    fn record(&self, found: &[Experiment]) -> Result<Option<(&Path, Record)>, CliError> {
        let Some(folder) = self.write.as_deref() else {
            return Ok(None);
        };
        let record = record(folder)?;
        let files = found.iter().map(|one| (one.folder, one.name));
        if (self.quick || self.seeds.is_some()) && record.has_verdicts(files) {
            let message = format!("{} holds the verdicts of full runs", folder.display());
            let mend = "name another folder, or leave out --quick and --seeds";
            return Err(CliError::usage(message).hint(mend));
        }
        Ok(Some((folder, record)))
    }

    /// Where finished runs of the experiment are kept: of this program, and with the traces as they
    /// are if it needs them.
    fn store(&self, one: &Experiment) -> Option<Result<Store, CliError>> {
        let traces = self.traces().filter(|_| one.needs_traces());
        let files = || traces.map(runs::state).unwrap_or_default();
        (self.out.as_deref()).map(|folder| runs::store(folder, &files()))
    }

    /// One run at a time, and none kept.
    fn options<'a>(&'a self, stop: &'a AtomicBool) -> Options<'a> {
        Options {
            seeds: self.seeds,
            most_seeds: self.quick.then_some(QUICK),
            threads: 1,
            stop,
            store: None,
            traces: self.traces(),
            only: &self.cells,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    // What expects nothing reproduces nothing; a scenario that cannot be read says so when it is
    // run.
    if args.paper.as_deref() == Some(field::NAME) {
        return field::run(args);
    }
    if args.paper.as_deref() == Some(law::NAME) {
        return law::run(args);
    }
    field::only_here(args)?;
    let traces = args.traces();
    let mut all = experiments::all();
    all.retain(|one| !repro::figures(one, traces).is_ok_and(|figures| figures.is_empty()));
    if args.paper.is_none() {
        if args.plot.is_some() || args.quick || args.seeds.is_some() {
            return Err(CliError::usage("no PAPER to run").hint("write `marline repro all`"));
        }
        return match &args.write {
            Some(folder) => write_again(folder),
            None => list(&all, traces, args.json),
        };
    }
    let found = selected(args, &all)?;
    if args.processes {
        return processes::run(args, &found);
    }
    let record = args.record(&found)?;
    let (report, results) = measured(args, &found)?;
    if let Some(file) = &args.plot {
        write(file, &plots(&report, &results)?)?;
    }
    if let Some((folder, mut record)) = record {
        record.add(&report);
        record.write(folder).map_err(CliError::runtime)?;
    }
    if args.json {
        output::json(&report)?;
    } else {
        output::line(repro::text(&report).trim_end())?;
    }
    missed(&report)
}

/// What a folder has.
fn record(folder: &Path) -> Result<Record, CliError> {
    Record::read(folder).map_err(|error| match error {
        RecordError::File => CliError::usage(format!("{} {error}", folder.display()))
            .hint("--write takes a folder, such as docs/reproduction"),
        _ => CliError::usage(error),
    })
}

/// Pages and pictures from the CSV files, without a run.
fn write_again(folder: &Path) -> Result<(), CliError> {
    let record = record(folder)?;
    if record.is_empty() {
        let message = format!("no CSV file of a paper in {}", folder.display());
        return Err(
            CliError::usage(message).hint("write `marline repro all --write DIR` to run all")
        );
    }
    record.write(folder).map_err(CliError::runtime)
}

/// The experiments that the flags speak of.
fn selected(args: &Args, all: &[Experiment]) -> Result<Vec<Experiment>, CliError> {
    let traces = args.traces();
    let paper = args.paper.as_deref().filter(|paper| *paper != ALL);
    // What a wrong scenario calls its figures does not matter here: running it says what is wrong.
    let figures = |one: &Experiment| repro::figures(one, traces).unwrap_or_default();
    let mut found = repro::find(all, paper, args.figure.as_deref(), figures)
        .map_err(|error| CliError::usage(error).hint("`marline repro` lists them"))?;
    if traces.is_none() {
        without_traces(&mut found, args)?;
    }
    if !args.cells.is_empty() {
        found = with_cells(&found, args)?;
    }
    Ok(found)
}

/// Those that have the axes of --cell, if any has them. Before anything is run, it is known that
/// they have the cells.
fn with_cells(found: &[Experiment], args: &Args) -> Result<Vec<Experiment>, CliError> {
    let stop = AtomicBool::new(false);
    let (mut kept, mut lacking) = (Vec::new(), Vec::new());
    for one in found {
        match repro::prepare(one, args.options(&stop)) {
            Ok(_) => kept.push(*one),
            Err(MeasureError::Axis(why)) => lacking.push((one, why)),
            Err(error) => return Err(failed(error, one, false)),
        }
    }
    match lacking.into_iter().next() {
        Some((one, why)) if kept.is_empty() => Err(failed(MeasureError::Axis(why), one, false)),
        _ => Ok(kept),
    }
}

/// Leaves out what needs traces that are not there, unless it was asked for by name.
fn without_traces(found: &mut Vec<Experiment>, args: &Args) -> Result<(), CliError> {
    let lacking = found.iter().filter(|one| one.needs_traces());
    let lacking: Vec<&str> = lacking.map(|one| one.path).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let (lacking, folder) = (lacking.join(", "), args.traces.display());
    let message = format!("{lacking}: needs measured traces, and there is no folder {folder}");
    found.retain(|one| !one.needs_traces());
    if args.figure.is_some() || found.is_empty() {
        return Err(CliError::usage(message).hint("name their folder with --traces DIR"));
    }
    // Without standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr().lock(), "left out: {message}");
    Ok(())
}

/// What there is to reproduce.
fn list(all: &[Experiment], traces: Option<&Path>, json: bool) -> Result<(), CliError> {
    let mut rows = Vec::new();
    for one in all {
        let title = repro::title(one).map_err(CliError::runtime)?;
        let figures = match traces {
            None if one.needs_traces() => vec!["needs --traces DIR".to_owned()],
            _ => repro::figures(one, traces).map_err(CliError::runtime)?,
        };
        rows.push((one, title, figures));
    }
    if json {
        let rows = rows.iter().map(|(one, title, figures)| {
            serde_json::json!({
                "paper": one.folder, "figure": one.name, "title": title, "figures": figures,
            })
        });
        let bench = serde_json::json!({
            "paper": field::NAME, "figure": "", "title": field::TITLE, "figures": field::SETS,
        });
        let laws = serde_json::json!({
            "paper": law::NAME, "figure": "", "title": law::TITLE, "figures": field::SETS,
        });
        return output::json(&rows.chain([bench, laws]).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for (one, title, figures) in &rows {
        let figures = figures.join(", ");
        text += &format!("{:<12} {:<20} {title} ({figures})\n", one.folder, one.name);
    }
    let sets = field::SETS.join(", ");
    text += &format!("{:<33} {} ({sets})\n", field::NAME, field::TITLE);
    text += &format!("{:<33} {} ({sets}, papers)\n", law::NAME, law::TITLE);
    output::line(&(text + "\nmarline repro PAPER [FIGURE], or `marline repro all`"))
}

fn measured(args: &Args, found: &[Experiment]) -> Result<(Report, Vec<Results>), CliError> {
    let stop = stop::on_signals()?;
    let (mut reports, mut results) = (Vec::<ScenarioReport>::new(), Vec::new());
    for one in found {
        let store = args.store(one).transpose()?;
        let options = Options {
            threads: runs::threads(args.jobs),
            store: store.as_ref(),
            ..args.options(&stop)
        };
        let bar = runs::bar(one.path);
        let measured = repro::measure(one, options, |over, of| {
            bar.set_length(of as u64);
            bar.set_position(over as u64);
        });
        bar.finish_and_clear();
        let (report, result) = measured.map_err(|error| failed(error, one, store.is_some()))?;
        reports.push(report);
        results.push(result);
    }
    Ok((Report::new(reports), results))
}

fn failed(error: MeasureError, one: &Experiment, kept: bool) -> CliError {
    let hint = if kept {
        "run the same command again to go on"
    } else {
        "with --out DIR a stopped command goes on where it was"
    };
    if let MeasureError::Axis(why) | MeasureError::Cell(why) = error {
        return CliError::usage(format!("{}: {why}", one.path))
            .hint("leave out --cell, or name the figure with such cells");
    }
    let stopped = matches!(error, MeasureError::Stopped { .. });
    let message = CliError::runtime(format!("{}: {error}", one.path));
    if stopped { message.hint(hint) } else { message }
}

fn plots(report: &Report, results: &[Results]) -> Result<String, CliError> {
    let sections = report
        .scenarios
        .iter()
        .zip(results)
        .map(|(scenario, results)| {
            let mut measures: Vec<String> = Vec::new();
            for verdict in &scenario.verdicts {
                if !measures.contains(&verdict.measure) {
                    measures.push(verdict.measure.clone());
                }
            }
            Section {
                about: &scenario.about,
                results,
                measures,
                cell: BTreeMap::new(),
                verdicts: Some(repro::rows(scenario, report.full)),
            }
        });
    page(&Page {
        title: "Reproduction",
        command: &command(),
        sections: sections.collect(),
    })
    .map_err(CliError::runtime)
}

/// The command line as it was given.
fn command() -> String {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    std::iter::once("marline".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn write(file: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(file, text)
        .map_err(|error| CliError::runtime(format!("cannot write {}: {error}", file.display())))
}

fn missed(report: &Report) -> Result<(), CliError> {
    let missed: Vec<String> = report
        .missed()
        .map(|(scenario, verdict)| {
            let cell = marline_sim::report::cell_name(&verdict.cell);
            let cell = if cell.is_empty() {
                cell
            } else {
                format!(" at {cell}")
            };
            format!(
                "{}/{}: {} {}{cell}",
                scenario.paper, scenario.file, verdict.scheduler, verdict.measure
            )
        })
        .collect();
    if missed.is_empty() {
        return Ok(());
    }
    let (_, bounds) = report.score();
    let what = if report.full {
        "missed"
    } else {
        "outside (fewer seeds: no verdict)"
    };
    Err(CliError::runtime(format!(
        "{} of {bounds} bounds {what}: {}",
        missed.len(),
        missed.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_sim::repro::{Outcome, Verdict};
    use std::process::ExitCode;

    pub(super) fn args(words: &[&str]) -> Args {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let words = [&["repro"], words].concat();
        <Line as clap::Parser>::parse_from(words).args
    }

    #[test]
    fn cells_of_the_examples_are_found_and_who_lacks_the_axis_is_left_out() {
        let all = experiments::all();
        let paths = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().skip(2).collect();
            let found = selected(&args(&words), &all).map_err(|error| format!("{error:?}"));
            found.map(|found| found.iter().map(|one| one.path).collect::<Vec<_>>())
        };
        let mut lines = 0;
        // The field bench has cells of its own.
        let of_papers = |line: &&str| line.contains("--cell") && !line.contains("repro field");
        for line in EXAMPLES.lines().filter(of_papers) {
            assert!(!paths(line).unwrap().is_empty(), "{line}");
            lines += 1;
        }
        assert!(lines >= 3, "{EXAMPLES}");
        let found = paths("marline repro link-pairs --cell pair=baseline").unwrap();
        assert_eq!(found, ["link-pairs/bulk.toml", "link-pairs/live.toml"]);
        for (flags, reason) in [
            ("--cell pair=no", "no `pair=no`"),
            ("--cell couple=baseline", "no axis `couple`"),
            ("--cell pair=baseline --cell lossy=one", "no axis"),
        ] {
            let error = paths(&format!("marline repro link-pairs {flags}")).unwrap_err();
            assert!(error.contains(reason) && error.contains("Usage"), "{error}");
        }
    }

    fn report(outcomes: &[Outcome], seeds: usize) -> Report {
        let verdict = |outcome: &Outcome| Verdict {
            figure: "Figure 3".to_owned(),
            cell: BTreeMap::from([("rtt".to_owned(), "20ms".to_owned())]),
            scheduler: "edpf".to_owned(),
            relative_to: None,
            measure: "video.goodput_mbps".to_owned(),
            unit: "Mb/s",
            published: None,
            measured: Some(9.0),
            interval: None,
            n: seeds,
            least: Some(9.5),
            most: None,
            outcome: *outcome,
            close: false,
            note: None,
            reason: None,
        };
        Report::new(vec![ScenarioReport {
            paper: "ols".to_owned(),
            file: "fig-3.toml".to_owned(),
            title: "Two paths".to_owned(),
            about: String::new(),
            seeds,
            seeds_in_file: 3,
            verdicts: outcomes.iter().map(verdict).collect(),
        }])
    }

    /// The exit code is 1 and the message says which.
    fn fails(outcomes: &[Outcome], seeds: usize) -> Option<String> {
        let error = missed(&report(outcomes, seeds)).err()?;
        assert_eq!(error.report(), ExitCode::from(1));
        Some(format!("{error:?}"))
    }

    #[test]
    fn every_bound_held_is_success_and_one_missed_is_not() {
        use Outcome::{Holds, Missed, Unbounded};
        assert_eq!(fails(&[], 3), None);
        assert_eq!(fails(&[Holds, Unbounded, Holds], 3), None);
        let message = fails(&[Holds, Missed, Unbounded], 3).unwrap();
        assert!(
            message.contains(
                "1 of 2 bounds missed: ols/fig-3.toml: edpf video.goodput_mbps at rtt=20ms"
            ),
            "{message}"
        );
    }

    #[test]
    fn fewer_seeds_fail_too_but_are_called_what_they_are() {
        assert_eq!(fails(&[Outcome::Holds], 2), None);
        let message = fails(&[Outcome::Missed], 2).unwrap();
        assert!(
            message.contains("no verdict") && !message.contains("missed"),
            "{message}"
        );
    }
}
