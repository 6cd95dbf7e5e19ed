//! Rates of several links that were measured at once.

use super::TraceError;
use super::table::{Row, excerpt, rows};

/// What the names of rate columns end with.
const UNIT: &str = "_kbps";
/// What says how long the last row holds.
const STEP: &str = "step_ms";

/// A table of rates: `t_ms` and one `NAME_kbps` for each link.
#[derive(Clone, PartialEq, Debug)]
pub struct RateTable {
    /// How long each row holds (ms, above zero).
    pub lengths: Vec<u64>,
    /// The columns by their names without `_kbps`, in the file's order: kb/s of each row.
    pub columns: Vec<(String, Vec<f64>)>,
}

impl RateTable {
    /// Reads the form that `trace` of a link has (docs/SCENARIOS.md), all of its columns. `name` is
    /// the file's, for messages.
    ///
    /// # Errors
    ///
    /// When the text is no such table, with the line and the mend.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let mut begins: Vec<u64> = Vec::new();
        let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
        rows(name, text, &["t_ms"], |row| {
            if begins.is_empty() {
                columns = named(row);
            }
            let at = whole(row)?;
            if begins.last().map_or(at != 0, |last| at <= *last) {
                return Err(row.fail(format!("t_ms is {at}; begin with 0 and let times grow")));
            }
            begins.push(at);
            for (column, rates) in &mut columns {
                rates.push(rate(row, &format!("{column}{UNIT}"))?);
            }
            Ok(())
        })?;
        if columns.is_empty() {
            let problem = format!("no column of rates; name one NAME{UNIT} in the header");
            return Err(TraceError::of_file(name, problem));
        }
        let mut lengths: Vec<u64> = begins.windows(2).map(|two| two[1] - two[0]).collect();
        let last = said(text)
            .or_else(|| lengths.last().copied())
            .ok_or_else(|| {
                let problem = format!("nothing says how long its row holds; write # {STEP}: 1000");
                TraceError::of_file(name, problem)
            })?;
        lengths.push(last);
        Ok(Self { lengths, columns })
    }
}

/// The columns of rates, empty.
fn named(row: &Row<'_>) -> Vec<(String, Vec<f64>)> {
    let names = row.columns().filter_map(|column| column.strip_suffix(UNIT));
    names.map(|name| (name.to_owned(), Vec::new())).collect()
}

/// How long the last row holds (ms), if a comment says it.
fn said(text: &str) -> Option<u64> {
    let comments = text.lines().filter_map(|line| line.strip_prefix('#'));
    let mut values = comments.filter_map(|comment| {
        let (key, value) = comment.split_once(':')?;
        (key.trim() == STEP).then(|| value.trim().parse().ok())?
    });
    values.find(|ms| *ms > 0)
}

fn whole(row: &Row<'_>) -> Result<u64, TraceError> {
    let text = row.text("t_ms").unwrap_or_default();
    let problem = || {
        format!(
            "t_ms \"{}\" is no whole number of milliseconds",
            excerpt(text)
        )
    };
    text.parse().map_err(|_| row.fail(problem()))
}

fn rate(row: &Row<'_>, column: &str) -> Result<f64, TraceError> {
    let text = row.text(column).unwrap_or_default();
    let kbps: Option<f64> = text.parse().ok();
    kbps.filter(|kbps| (0.0..=1e9).contains(kbps))
        .ok_or_else(|| {
            let text = excerpt(text);
            row.fail(format!(
                "{column} \"{text}\" is no rate; give kilobits a second, 0 to 10^9"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# step_ms: 500\nt_ms,wifi_kbps,note,cell_kbps\n0,100,x,0\n1000,50.5,y,7\n";

    #[test]
    fn all_columns_are_read() {
        let table = RateTable::parse("a.csv", TABLE).expect("a table");
        assert_eq!(table.lengths, [1_000, 500]);
        let [(wifi, first), (cell, second)] = &table.columns[..] else {
            panic!("{table:?}");
        };
        assert_eq!((wifi.as_str(), cell.as_str()), ("wifi", "cell"));
        assert_eq!(
            (&first[..], &second[..]),
            (&[100.0, 50.5][..], &[0.0, 7.0][..])
        );
        let plain = RateTable::parse("a.csv", "t_ms,a_kbps\n0,1\n200,2\n").expect("a table");
        assert_eq!(plain.lengths, [200, 200]);
    }

    #[test]
    fn bad_tables_are_refused_with_line_and_mend() {
        for (text, parts) in [
            ("time,a_kbps\n0,1\n", ["no column t_ms", "header"]),
            ("t_ms,a\n0,1\n10,1\n", ["no column of rates", "_kbps"]),
            ("t_ms,a_kbps\n0,1\n", ["how long", "# step_ms: 1000"]),
            ("t_ms,a_kbps\n5,1\n", ["line 2: t_ms is 5", "begin with 0"]),
            ("t_ms,a_kbps\n0,1\n0,1\n", ["line 3: t_ms is 0", "grow"]),
            ("t_ms,a_kbps\n0,-1\n", ["line 2: a_kbps \"-1\"", "kilobits"]),
            ("t_ms,a_kbps\n1.5,1\n", ["line 2: t_ms \"1.5\"", "whole"]),
        ] {
            let error = RateTable::parse("a.csv", text).expect_err(text).to_string();
            assert!(error.starts_with("a.csv"), "{error}");
            for part in parts {
                assert!(error.contains(part), "{text:?}: {error}");
            }
        }
    }
}
