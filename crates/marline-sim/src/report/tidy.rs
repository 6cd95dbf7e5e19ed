//! Results as CSV in tidy long form: one value a line.

use std::io::Write;

use crate::results::{Results, unit};

/// Writes one line for each run and value: `title`, the axes, `scheduler`, `seed`, `measure`,
/// `value`, `unit`.
///
/// A fraction has its name, the value hits / trials (left empty without trials) and the unit
/// `fraction`, then `NAME.hits` and `NAME.trials`, so that intervals can be computed. Distributions
/// and series are in JSON only.
///
/// # Errors
/// If `to` cannot be written.
pub fn csv(results: &Results, to: impl Write) -> csv::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    let axes = results.axes();
    let mut header = vec!["title"];
    header.extend(axes.iter().copied());
    header.extend(["scheduler", "seed", "measure", "value", "unit"]);
    writer.write_record(&header)?;
    for run in &results.runs {
        let seed = run.seed.to_string();
        let mut line = |measure: &str, value: &str, unit: &str| {
            let axes = axes
                .iter()
                .map(|axis| run.cell.get(*axis).map_or("", String::as_str));
            let start = std::iter::once(results.title.as_str()).chain(axes);
            writer.write_record(start.chain([run.scheduler.as_str(), &seed, measure, value, unit]))
        };
        for (measure, value) in &run.values {
            line(measure, &value.to_string(), unit(measure))?;
        }
        for (measure, fraction) in &run.fractions {
            let value = match fraction.trials {
                0 => String::new(),
                trials => (fraction.hits as f64 / trials as f64).to_string(),
            };
            line(measure, &value, "fraction")?;
            line(&format!("{measure}.hits"), &fraction.hits.to_string(), "")?;
            line(
                &format!("{measure}.trials"),
                &fraction.trials.to_string(),
                "",
            )?;
        }
    }
    writer.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn text(results: &Results) -> String {
        let mut bytes = Vec::new();
        csv(results, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn one_value_a_line_with_its_unit() {
        let mut results = sample::results();
        results.runs.truncate(1);
        assert_eq!(
            text(&results),
            "\
title,links.b.rtt,scheduler,seed,measure,value,unit
Two paths,20ms,edpf,1,video.goodput_mbps,9.91,Mb/s
Two paths,20ms,edpf,1,video.in_order_delay.p99_ms,20,ms
Two paths,20ms,edpf,1,video.late,0.01,fraction
Two paths,20ms,edpf,1,video.late.hits,1,
Two paths,20ms,edpf,1,video.late.trials,100,
"
        );
    }

    #[test]
    fn commas_are_quoted_and_every_run_is_there() {
        let mut results = sample::results();
        results.title = "One, two".to_owned();
        let text = text(&results);
        assert_eq!(text.lines().count(), 1 + 12 * 5);
        let lines = csv::Reader::from_reader(text.as_bytes()).into_records();
        for line in lines {
            let line = line.unwrap();
            assert_eq!((&line[0], line.len()), ("One, two", 7));
        }
    }
}
