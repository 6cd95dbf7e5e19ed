//! One picture of a run over time, as a file.

use super::plot::{About, Panel, PlotError, as_file, panels, time};
use crate::results::Results;

/// Draws what the first run had over time of the first quantity whose name, such as
/// `live.in_order_delay`, contains one of `words`; of all workloads, paths or links that have it
/// and fit. An SVG file, or nothing if none fits.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn over_time(results: &Results, words: &[String]) -> Result<Option<String>, PlotError> {
    let Some(run) = results.runs.first() else {
        return Ok(None);
    };
    let fits = |of: &str, quantity: &str| {
        let name = format!("{of}.{quantity}");
        words.is_empty() || words.iter().any(|word| name.contains(&**word))
    };
    let fitting = panels(run).into_iter().map(|panel| Panel {
        series: panel
            .series
            .iter()
            .copied()
            .filter(|(of, _)| fits(of, panel.quantity))
            .collect(),
        ..panel
    });
    let mut fitting = fitting.filter(|panel| panel.shows_something());
    let Some(panel) = fitting.next() else {
        return Ok(None);
    };
    let subtitle = format!("{}, {}, seed {}", results.title, run.scheduler, run.seed);
    let about = About {
        title: &panel.title(),
        subtitle: &subtitle,
        schedulers: &[],
    };
    time(&panel, &about).map(|svg| Some(as_file(&svg)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::sheet::tests::assert_well_formed;
    use crate::results::sample;

    #[test]
    fn a_picture_is_of_what_was_asked_for() {
        let words = ["cwnd".to_owned()];
        let svg = over_time(&sample::results(), &words).unwrap().unwrap();
        assert_well_formed(&svg);
        assert!(
            svg.contains("\npath.a\n") && !svg.contains("\npath.b\n"),
            "{svg}"
        );
        assert!(svg.contains("\nTwo paths, edpf, seed 1\n"));
        let nothing = ["goodput".to_owned()];
        assert_eq!(over_time(&sample::results(), &nothing).unwrap(), None);
    }
}
