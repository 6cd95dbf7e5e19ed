//! The page: plots, the numbers below them, and the command that made it. One file that needs no
//! network. A small script switches schedulers and exports pictures; without it the page is whole.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::number::with_interval;
use super::plot::{self, About, PlotError};
use super::{cell_name, choose, titled, words};
use crate::results::{Group, Results, Run};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// A longer table than this is folded away: plots are what is looked for first.
const FEW_ROWS: usize = 20;
/// The page may load nothing, whatever a scenario's words say.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    img-src data: blob:";
/// Plots over time are drawn for this number of schedulers of the chosen cell; more would drown the
/// page.
const OVER_TIME: usize = 4;

/// A page.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// Its title.
    pub title: &'a str,
    /// The command that made it.
    pub command: &'a str,
    /// Its parts.
    pub sections: Vec<Section<'a>>,
}

/// What a page says of one scenario.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// What the scenario shows, in sentences.
    pub about: &'a str,
    /// The results.
    pub results: &'a Results,
    /// The measures to plot; empty for the usual ones.
    pub measures: Vec<String>,
    /// The cell whose distributions and series are plotted, as far as it is said: the last cell
    /// that has these values.
    pub cell: BTreeMap<String, String>,
    /// A table shown first: its header and rows.
    pub verdicts: Option<(Vec<String>, Vec<Vec<String>>)>,
}

/// Writes the page as HTML.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn page(page: &Page<'_>) -> Result<String, PlotError> {
    let mut sections = Vec::new();
    for part in &page.sections {
        sections.push(section(part)?);
    }
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (page.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (page.title) }
                    p { "Made by" }
                    pre { (page.command) }
                    @for section in &sections { (section) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(markup.into_string())
}

fn section(section: &Section<'_>) -> Result<Markup, PlotError> {
    let results = section.results;
    let groups = results.groups();
    let measures = match &section.measures[..] {
        [] => choose(results, &[]).unwrap_or_default(),
        chosen => chosen.to_vec(),
    };
    let mut schedulers: Vec<&str> = Vec::new();
    for group in &groups {
        if !schedulers.contains(&group.scheduler) {
            schedulers.push(group.scheduler);
        }
    }
    let chosen = chosen_cell(&groups, &section.cell);
    let mut empty = Vec::new();
    let of = Of {
        results,
        schedulers: &schedulers,
    };
    let mut figures = against_axes(&of, &groups, &measures, &mut empty)?;
    figures.extend(distributions(&of, &chosen, &mut empty)?);
    let over_time = over_time(&of, &chosen)?;
    let seeds = groups
        .iter()
        .map(|group| group.runs.len())
        .max()
        .unwrap_or(0);
    Ok(html! {
        section {
            h2 { (results.title) }
            p { (section.about) }
            p {
                (results.file) ", marline " (results.version) ", " (seeds)
                @if seeds == 1 { " seed: no intervals except of fractions." }
                @else { " seeds. Error bars and ± are 95 % confidence intervals over seeds." }
            }
            @if let Some((header, rows)) = &section.verdicts {
                details open[rows.len() <= FEW_ROWS] {
                    summary { "Published and measured: " (rows.len()) " rows" }
                    (grid(header, rows, 0))
                }
            }
            @if schedulers.len() > 1 { (switches(&schedulers)) }
            (drawn(&figures))
            @if !empty.is_empty() {
                p { "Not drawn, because it is zero everywhere: " (empty.join("; ")) "." }
            }
            @for (i, (scheduler, figures)) in over_time.iter().enumerate() {
                details open[i == 0] {
                    summary { (scheduler) " over time" }
                    (drawn(figures))
                }
            }
            h3 { "Numbers" }
            (numbers(results, &groups, &measures))
        }
    })
}

/// What all plots of a section are of.
struct Of<'a> {
    results: &'a Results,
    schedulers: &'a [&'a str],
}

impl Of<'_> {
    /// What a plot's title says, and the scenario with what else is to be said of it.
    fn about<'b>(&'b self, title: &'b str, subtitle: &'b str) -> About<'b> {
        About {
            title,
            subtitle,
            schedulers: self.schedulers,
        }
    }

    fn subtitle(&self, more: &str) -> String {
        match more {
            "" => self.results.title.clone(),
            _ => format!("{}, {more}", self.results.title),
        }
    }
}

/// Which schedulers the plots show; the script makes it work, and shows it.
fn switches(schedulers: &[&str]) -> Markup {
    html! {
        form class="switches" hidden {
            button type="button" data-switch="all" { "All" }
            button type="button" data-switch="none" { "None" }
            @for name in schedulers {
                label { input type="checkbox" checked name=(name); (name) }
            }
        }
    }
}

fn drawn(figures: &Figures) -> Markup {
    html! {
        div class="figures" {
            @for (svg, caption) in figures {
                figure {
                    (PreEscaped(svg))
                    figcaption { (caption) }
                }
            }
        }
    }
}

/// The groups of the last cell that has the values of `wanted`.
fn chosen_cell<'g, 'r>(
    groups: &'g [Group<'r>],
    wanted: &BTreeMap<String, String>,
) -> Vec<&'g Group<'r>> {
    let fits = |group: &&Group<'_>| {
        wanted
            .iter()
            .all(|(key, value)| group.cell.get(key) == Some(value))
    };
    let Some(last) = groups.iter().rfind(fits) else {
        return Vec::new();
    };
    groups
        .iter()
        .filter(|group| group.cell == last.cell)
        .collect()
}

type Figures = Vec<(String, String)>;

/// Each measure against the axis with the most values, apart for the values of the other axes; or
/// as bars if there is no axis to speak of.
fn against_axes(
    of: &Of<'_>,
    groups: &[Group<'_>],
    measures: &[String],
    empty: &mut Vec<String>,
) -> Result<Figures, PlotError> {
    let results = of.results;
    let values = |axis: &str| {
        let mut values: Vec<&String> = groups.iter().filter_map(|g| g.cell.get(axis)).collect();
        values.sort();
        values.dedup();
        values.len()
    };
    let axes = results.axes();
    let axis = axes
        .iter()
        .copied()
        .filter(|axis| values(axis) > 1)
        .max_by_key(|axis| values(axis));
    let mut parts: Vec<(BTreeMap<String, String>, Vec<&Group<'_>>)> = Vec::new();
    for group in groups {
        let mut others = group.cell.clone();
        others.retain(|key, _| axis != Some(key.as_str()));
        match parts.iter_mut().find(|part| part.0 == others) {
            Some(part) => part.1.push(group),
            None => parts.push((others, vec![group])),
        }
    }
    let plane = axis.and_then(|axis| {
        let mut values: Vec<&str> = groups
            .iter()
            .filter_map(|g| Some(&**g.cell.get(axis)?))
            .collect();
        values.sort_unstable();
        values.dedup();
        plot::Plane::of(axis, &values)
    });
    let mut figures = Figures::new();
    for measure in measures {
        let title = titled(measure);
        if let Some(false) = shows_something(groups, measure) {
            empty.push(words(measure));
            continue;
        }
        for (others, part) in &parts {
            if part.iter().all(|group| group.estimate(measure).is_none()) {
                continue;
            }
            let subtitle = match parts.len() {
                1 => of.subtitle(""),
                _ => of.subtitle(&cell_name(others)),
            };
            if let (Some(axis), Some(plane)) = (axis, &plane) {
                figures.extend(contours(of, part, measure, axis, plane, &subtitle)?);
                continue;
            }
            let about = of.about(&title, &subtitle);
            let svg = match axis {
                Some(axis) => plot::lines(part, measure, axis, &about)?,
                None => plot::bars(part, measure, &about)?,
            };
            figures.push((
                svg,
                format!("{measure}: mean over seeds, 95 % confidence interval."),
            ));
        }
    }
    Ok(figures)
}

/// Is a mean of it other than zero? Nothing if there are none.
fn shows_something(groups: &[Group<'_>], measure: &str) -> Option<bool> {
    let means = groups.iter().filter_map(|group| group.estimate(measure));
    let means: Vec<f64> = means.map(|estimate| estimate.value()).collect();
    (!means.is_empty()).then(|| means.iter().any(|mean| *mean != 0.0))
}

/// A plane for each scheduler.
fn contours(
    of: &Of<'_>,
    part: &[&Group<'_>],
    measure: &str,
    axis: &str,
    plane: &plot::Plane,
    subtitle: &str,
) -> Result<Figures, PlotError> {
    let mut schedulers: Vec<&str> = Vec::new();
    for group in part {
        if !schedulers.contains(&group.scheduler) {
            schedulers.push(group.scheduler);
        }
    }
    let mut figures = Figures::new();
    for scheduler in schedulers {
        let own = part
            .iter()
            .copied()
            .filter(|group| group.scheduler == scheduler);
        let own: Vec<&Group<'_>> = own.collect();
        let title = format!("{scheduler}: {}", titled(measure));
        let about = of.about(&title, subtitle);
        figures.push((
            plot::contour(&own, part, measure, axis, plane, &about)?,
            format!("{measure} with {scheduler}."),
        ));
    }
    Ok(figures)
}

fn distributions(
    of: &Of<'_>,
    chosen: &[&Group<'_>],
    empty: &mut Vec<String>,
) -> Result<Figures, PlotError> {
    let mut names: Vec<&String> = Vec::new();
    for run in chosen.iter().flat_map(|group| &group.runs) {
        let more = run
            .distributions
            .iter()
            .filter(|(_, d)| d.count > 0)
            .map(|(name, _)| name);
        names.extend(more);
    }
    names.sort();
    names.dedup();
    let mut figures = Figures::new();
    for name in names {
        let runs = chosen.iter().flat_map(|group| &group.runs);
        let mut quantiles = runs
            .filter_map(|run| run.distributions.get(name))
            .flat_map(|distribution| &distribution.quantiles);
        if quantiles.all(|(_, value)| *value == 0.0) {
            empty.push(words(name));
            continue;
        }
        let title = format!("{}: how often it is exceeded", titled(name));
        let subtitle = of.subtitle(&at(chosen));
        let svg = plot::tail(chosen, name, &of.about(&title, &subtitle))?;
        let caption = format!(
            "{name}: median over seeds; the band reaches from the lowest to the highest seed."
        );
        figures.push((svg, caption));
    }
    Ok(figures)
}

/// The plots over time of the first seed of each scheduler, which the page folds away.
fn over_time<'r>(of: &Of<'_>, chosen: &[&Group<'r>]) -> Result<Vec<(&'r str, Figures)>, PlotError> {
    let mut parts = Vec::new();
    for group in chosen.iter().take(OVER_TIME) {
        let Some(run): Option<&Run> = group.runs.first().copied() else {
            continue;
        };
        let mut figures = Figures::new();
        for panel in plot::panels(run) {
            if !panel.shows_something() {
                continue;
            }
            let title = format!("{}: {}", group.scheduler, panel.title());
            let subtitle = of.subtitle(&at(chosen));
            let stacked = if panel.stacked {
                " Paths are stacked."
            } else {
                ""
            };
            let caption = format!("{}: one run, seed {}.{stacked}", panel.quantity, run.seed);
            figures.push((plot::time(&panel, &of.about(&title, &subtitle))?, caption));
        }
        if !figures.is_empty() {
            parts.push((group.scheduler, figures));
        }
    }
    Ok(parts)
}

/// The chosen cell in words, if there are cells.
fn at(chosen: &[&Group<'_>]) -> String {
    match chosen.first() {
        Some(group) if !group.cell.is_empty() => cell_name(group.cell),
        _ => String::new(),
    }
}

fn numbers(results: &Results, groups: &[Group<'_>], measures: &[String]) -> Markup {
    let axes: Vec<&str> = results.axes().into_iter().collect();
    let mut header: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
    header.push("scheduler".to_owned());
    header.extend(measures.iter().cloned());
    let rows: Vec<Vec<String>> = groups
        .iter()
        .map(|group| {
            let mut row: Vec<String> = axes
                .iter()
                .map(|axis| group.cell.get(*axis).cloned().unwrap_or_default())
                .collect();
            row.push(group.scheduler.to_owned());
            row.extend(measures.iter().map(|measure| {
                group
                    .estimate(measure)
                    .map_or_else(|| "-".to_owned(), |e| with_interval(&e))
            }));
            row
        })
        .collect();
    grid(&header, &rows, axes.len() + 1)
}

/// A table whose columns from `numbers` on hold numbers, if any do.
fn grid(header: &[String], rows: &[Vec<String>], numbers: usize) -> Markup {
    html! {
        div class="scroll" {
            table {
                thead { tr { @for name in header { th { (name) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (i, cell) in row.iter().enumerate() {
                                td class=[(numbers > 0 && i >= numbers).then_some("number")] { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn written(results: &Results) -> String {
        page(&Page {
            title: "Two paths",
            command: "marline sim run two-paths.toml --plot <out>.html",
            sections: vec![Section {
                about: "Delays & what they cost.",
                results,
                measures: Vec::new(),
                cell: BTreeMap::new(),
                verdicts: None,
            }],
        })
        .unwrap()
    }

    #[test]
    fn the_page_needs_no_network() {
        let page = written(&sample::results());
        for outside in [
            "http:", "https:", "src=", "href=", "url(", "@import", "fetch(", "import(",
        ] {
            assert!(!page.contains(outside), "{outside} is in the page");
        }
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn it_shows_every_kind_of_plot_the_numbers_and_the_command() {
        let page = written(&sample::results());
        // Two measures, one distribution, two panels for each of two schedulers.
        assert_eq!(page.matches("<svg ").count(), 2 + 1 + 4);
        assert!(page.contains("--plot &lt;out&gt;.html"));
        assert!(page.contains("Delays &amp; what they cost."));
        assert!(
            page.contains("<td class=\"number\">161.0 ± 2.5</td>"),
            "{page}"
        );
        assert!(page.contains("Two paths, links.b.rtt=160ms"));
    }

    #[test]
    fn titles_are_words_with_units_and_every_scheduler_has_a_switch() {
        let page = written(&sample::results());
        assert!(page.contains("\nvideo: delay in order, 99th percentile (ms)\n"));
        assert!(page.contains("aria-label=\"video: goodput (Mb/s)\""));
        for name in ["edpf", "min-rtt"] {
            assert!(page.contains(&format!(
                "<input type=\"checkbox\" checked name=\"{name}\">"
            )));
            // In each of the two sweeps and the distribution it can be pressed, and is drawn.
            assert_eq!(
                page.matches(&format!("<g class=\"key\" data-name=\"{name}\""))
                    .count(),
                3
            );
            let drawn = format!("<g class=\"series\" data-name=\"{name}\"");
            assert!(page.matches(&drawn).count() >= 6, "{page}");
        }
    }

    #[test]
    fn what_is_zero_everywhere_is_named_and_not_drawn() {
        let mut results = sample::results();
        for run in &mut results.runs {
            run.values.insert("video.goodput_mbps".to_owned(), 0.0);
            run.series.clear();
        }
        let page = written(&results);
        assert_eq!(page.matches("<svg ").count(), 2);
        assert!(page.contains("zero everywhere: video: goodput."), "{page}");
    }

    #[test]
    fn without_an_axis_there_are_bars() {
        let mut results = sample::results();
        for run in &mut results.runs {
            run.cell.clear();
        }
        let page = written(&results);
        assert!(page.contains("<rect"));
        results.runs.clear();
        assert!(!written(&results).contains("<svg "));
    }

    #[test]
    fn points_of_a_plane_are_contours_for_each_scheduler() {
        let mut results = sample::results();
        let run = results.runs[0].clone();
        results.runs.clear();
        for (n, scheduler) in (0..40).flat_map(|n| [(n, "cpf"), (n, "acpf")]) {
            let mut run = run.clone();
            run.scheduler = scheduler.to_owned();
            let name = format!("{}ms, {}%", n % 8, 10 * (n / 8));
            run.cell = BTreeMap::from([("rtt, tunnel".to_owned(), name)]);
            results.runs.push(run);
        }
        let page = written(&results);
        assert!(page.contains("rtt (ms)") && page.contains("tunnel (%)"));
        // One for each of two schedulers and two measures, and no line for each value.
        assert_eq!(page.matches("Each dot was measured").count(), 4);
    }

    #[test]
    fn the_cell_can_be_chosen() {
        let results = sample::results();
        let groups = results.groups();
        let wanted = BTreeMap::from([("links.b.rtt".to_owned(), "20ms".to_owned())]);
        let chosen = chosen_cell(&groups, &wanted);
        assert!(chosen.len() == 2 && chosen.iter().all(|g| g.cell["links.b.rtt"] == "20ms"));
        let wanted = BTreeMap::from([("links.b.rtt".to_owned(), "1ms".to_owned())]);
        assert!(chosen_cell(&groups, &wanted).is_empty());
    }
}
