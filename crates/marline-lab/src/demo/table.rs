//! The report for people.

use super::Report;
use super::report::RunReport;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

const HEADER: [&str; 10] = [
    "",
    "goodput\nMb/s",
    "p50\nms",
    "p95\nms",
    "p99\nms",
    "worst\nms",
    "lost",
    "redundancy\n%",
    "longest\nstall ms",
    "SHA-256",
];

/// What was done, the table, and the sentence.
pub fn text(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    for run in &report.runs {
        table.add_row(row(run));
    }
    for column in 1..HEADER.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for link in &report.links {
        text += &format!("Link {}: {}\n", link.name, link.config);
    }
    text += &format!(
        "Each run: {} s of a download and of a live stream of {} Mb/s; link {} is dark from {} s to {} s.\n\
         Delays are the live stream's, in order.\n\n",
        report.seconds,
        report.live.bits_per_second as f64 / 1e6,
        report.dark.link,
        report.dark.at_s,
        report.dark.at_s + report.dark.for_s,
    );
    for line in table.lines() {
        text += line.trim_end();
        text.push('\n');
    }
    for run in &report.runs {
        if let Some(failure) = run.failure() {
            text += &format!("\n{} failed: {failure}\n", run.name);
        }
    }
    text + "\n" + &report.sentence
}

fn row(run: &RunReport) -> Vec<String> {
    let mut row = vec![run.name.clone()];
    let Some(figures) = &run.figures else {
        row.resize(HEADER.len(), "-".to_owned());
        return row;
    };
    row.push(format!("{:.2}", figures.download.goodput_mbps));
    match &figures.live.delay_ms {
        Some(delays) => row.extend(
            [delays.p50, delays.p95, delays.p99, delays.worst].map(|delay| format!("{delay:.1}")),
        ),
        None => row.resize(5, "-".to_owned()),
    }
    row.push(figures.live.lost.to_string());
    row.push(format!("{:.1}", 100.0 * figures.redundancy));
    row.push(format!("{:.1}", figures.live.longest_stall_ms));
    let intact = figures.download.sha256_ok;
    row.push(if intact { "ok" } else { "DIFFERS" }.to_owned());
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::report::tests::run;
    use crate::demo::report::{Dark, LinkReport, LiveSetup};

    #[test]
    fn the_table_is_readable() {
        let mut failed = run(&["B"], [0.0; 5]);
        failed.figures = None;
        failed.error = Some("no session".to_owned());
        let report = Report {
            version: 1,
            seed: 1,
            seconds: 9.0,
            links: vec![LinkReport {
                name: "A",
                config: "rate=20mbit".to_owned(),
            }],
            dark: Dark {
                link: "A",
                at_s: 3.5,
                for_s: 2.0,
            },
            live: LiveSetup {
                bits_per_second: 4_000_000,
                message_bytes: 1000,
            },
            runs: vec![run(&["A"], [17.25, 16.0, 2000.0, 2010.0, 0.011]), failed],
            sentence: "So be it.".to_owned(),
        };
        let expected = "\
Link A: rate=20mbit
Each run: 9 s of a download and of a live stream of 4 Mb/s; link A is dark from 3.5 s to 5.5 s.
Delays are the live stream's, in order.

    goodput   p50     p95     p99   worst  lost  redundancy   longest  SHA-256
       Mb/s    ms      ms      ms      ms                 %  stall ms
 A    17.25  16.0  2000.0  2000.0  2000.0     0         1.1    2010.0       ok
 B        -     -       -       -       -     -           -         -        -

B failed: no session

So be it.";
        assert_eq!(text(&report), expected);
    }
}
