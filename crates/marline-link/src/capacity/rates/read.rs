use super::{RateTrace, Step};
use crate::capacity::trace_error::{TraceError, excerpt};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use marline_base::Rate;

/// What every column of rates ends with.
const UNIT: &str = "_kbps";

impl RateTrace {
    /// Reads one column of rates from a table; `name` is used in messages and in a
    /// configuration's text form, where it is the file's path.
    ///
    /// The table begins with comment lines (`#`) and a header, `t_ms` and then one `NAME_kbps` for
    /// each column. A row's rates hold from its `t_ms` (whole milliseconds; the first is 0) to that
    /// of the next row, and those of the last row for as long as a comment `# step_ms: 100` says,
    /// or else for as long as those of the row before it. Then the table repeats.
    ///
    /// `column` may leave `_kbps` away, and may be absent when there is only one; `scale`
    /// multiplies every rate.
    ///
    /// # Errors
    ///
    /// When the text is no such table or has no such column, or when the mean rate is below
    /// 1 kbit/s; the error has the line's number.
    pub fn parse(
        name: &str,
        column: Option<&str>,
        scale: f64,
        text: &str,
    ) -> Result<Self, TraceError> {
        let fail = |line: usize, problem: String| TraceError::new(name, line, problem);
        let mut table = Table::default();
        let mut header: Option<Header<'_>> = None;
        let mut last_line = 1;
        for (line, content) in (1..).zip(text.lines()) {
            let content = content.trim();
            if content.is_empty() {
                continue;
            }
            last_line = line;
            let read = if let Some(comment) = content.strip_prefix('#') {
                table.comment(comment)
            } else if let Some(header) = &header {
                table.row(header, scale, content)
            } else {
                Header::read(content, column).map(|found| header = Some(found))
            };
            read.map_err(|problem| fail(line, problem))?;
        }
        let Some(header) = header else {
            return Err(fail(
                last_line,
                "the file holds no table; begin it with a header such as t_ms,down_kbps".into(),
            ));
        };
        let period_ms = table.period().map_err(|problem| fail(last_line, problem))?;
        let trace = Self {
            name: name.into(),
            column: header.name.into(),
            scale,
            steps: table.steps.into(),
            period_ms,
        };
        if trace.mean_rate() < Rate::from_kbps(1) {
            let problem = format!(
                "the mean rate of {} is {}; it must be at least 1 kb/s, take another column or scale",
                header.name,
                trace.mean_rate()
            );
            return Err(fail(last_line, problem));
        }
        Ok(trace)
    }
}

/// The chosen column.
struct Header<'a> {
    name: &'a str,
    place: usize,
    columns: usize,
}

impl<'a> Header<'a> {
    fn read(line: &'a str, wanted: Option<&str>) -> Result<Self, String> {
        let names: Vec<&str> = line.split(',').map(str::trim).collect();
        if names.first() != Some(&"t_ms") {
            return Err(format!(
                "\"{}\" is not the header of a table of rates; it begins with t_ms, as in \
                 t_ms,down_kbps",
                excerpt(line)
            ));
        }
        let rates: Vec<(usize, &str)> = (names.iter().copied().enumerate())
            .filter(|(_, name)| name.ends_with(UNIT))
            .collect();
        let known = || {
            let names: Vec<&str> = rates.iter().map(|(_, name)| *name).collect();
            names.join(", ")
        };
        let found = match (wanted, rates.as_slice()) {
            (_, []) => return Err(format!("no column of rates; name one such as down{UNIT}")),
            (None, [only]) => Some(only),
            (None, _) => {
                return Err(format!(
                    "several columns of rates; choose one by FILE#COLUMN: {}",
                    known()
                ));
            }
            (Some(wanted), _) => {
                let short =
                    |name: &&str| *name == wanted || name.strip_suffix(UNIT) == Some(wanted);
                rates.iter().find(|(_, name)| short(name))
            }
        };
        match found {
            Some(&(place, name)) => Ok(Self {
                name,
                place,
                columns: names.len(),
            }),
            None => Err(format!(
                "no column \"{}\"; there is {}",
                wanted.map(excerpt).unwrap_or_default(),
                known()
            )),
        }
    }
}

#[derive(Default)]
struct Table {
    steps: Vec<Step>,
    /// How long the last row holds, as far as a comment says.
    last_ms: Option<u64>,
}

impl Table {
    fn comment(&mut self, comment: &str) -> Result<(), String> {
        let Some((key, value)) = comment.split_once(':') else {
            return Ok(());
        };
        if key.trim() != "step_ms" {
            return Ok(());
        }
        let value = value.trim();
        match value.parse() {
            Ok(ms) if (1..=u64::from(u32::MAX)).contains(&ms) => self.last_ms = Some(ms),
            _ => {
                return Err(format!(
                    "step_ms \"{}\" is not a whole number of milliseconds above 0",
                    excerpt(value)
                ));
            }
        }
        Ok(())
    }

    fn row(&mut self, header: &Header<'_>, scale: f64, line: &str) -> Result<(), String> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != header.columns {
            return Err(format!(
                "{} values; the header names {}",
                cells.len(),
                header.columns
            ));
        }
        let ms: u32 = cells[0].parse().map_err(|_| {
            format!(
                "t_ms \"{}\" is not a whole number of milliseconds from 0 to {}",
                excerpt(cells[0]),
                u32::MAX
            )
        })?;
        let ms = u64::from(ms);
        match self.steps.last() {
            None if ms != 0 => {
                return Err(format!(
                    "the first t_ms is {ms}; shift all times so that it is 0"
                ));
            }
            Some(previous) if ms <= previous.ms => {
                return Err(format!(
                    "t_ms {ms} comes after {}; times must increase, sort the file",
                    previous.ms
                ));
            }
            _ => {}
        }
        if self.steps.len() == RateTrace::MAX_ROWS {
            return Err(format!(
                "more than {} rows; shorten the file",
                RateTrace::MAX_ROWS
            ));
        }
        let cell = cells[header.place];
        let rate = cell
            .parse::<f64>()
            .ok()
            .filter(|kbps| kbps.is_finite() && *kbps >= 0.0)
            .map(|kbps| libm::round(kbps * 1e3 * scale))
            // A Tb/s: beyond it, bits times nanoseconds would not stay exact.
            .filter(|bps| *bps <= 1e12)
            .ok_or_else(|| {
                format!(
                    "{} \"{}\" is not a rate; give kilobits a second, 0 or more and at most 1 Tb/s \
                     after scaling",
                    header.name,
                    excerpt(cell)
                )
            })?;
        self.steps.push(Step {
            ms,
            rate: Rate::from_bps(rate as u64),
        });
        Ok(())
    }

    fn period(&self) -> Result<u64, String> {
        let last = match (self.last_ms, self.steps.as_slice()) {
            (_, []) => {
                return Err("the table has no rows; give at least one after the header".into());
            }
            (Some(ms), _) => ms,
            (None, [.., before, last]) => last.ms - before.ms,
            (None, [_]) => {
                return Err(
                    "one row does not say how long it holds; add a comment such as # step_ms: 100"
                        .into(),
                );
            }
        };
        Ok(self.steps.last().map_or(0, |step| step.ms) + last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use core::time::Duration;

    const TABLE: &str = "# source: made by hand\n# step_ms: 50\n\
                         t_ms,wifi_kbps,note,lte_kbps\n0,1000,x,30\n100,2500.5,y,0\n250,0,z,90\n";

    fn error(column: Option<&str>, text: &str) -> String {
        RateTrace::parse("a.csv", column, 1.0, text)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_column_is_read() {
        let trace = RateTrace::parse("a.csv", Some("wifi"), 1.0, TABLE).unwrap();
        assert_eq!((trace.name(), trace.column()), ("a.csv", "wifi_kbps"));
        assert_eq!(trace.period(), Duration::from_millis(300));
        // (1000·100 + 2500.5·150)/300 kb/s.
        assert_eq!(trace.mean_rate(), Rate::from_bps(1_583_583));
        let lte = RateTrace::parse("a.csv", Some("lte_kbps"), 0.5, TABLE).unwrap();
        // (15·100 + 45·50)/300 kb/s.
        assert_eq!(lte.mean_rate(), Rate::from_bps(12_500));
        assert_eq!(lte.scale(), 0.5);
    }

    #[test]
    fn the_last_row_holds_as_long_as_the_one_before_it_unless_told() {
        let trace = RateTrace::parse("a", None, 1.0, "t_ms,a_kbps\r\n0,5\r\n20,7\r\n\r\n").unwrap();
        assert_eq!(trace.period(), Duration::from_millis(40));
    }

    #[test]
    fn bad_tables_are_refused_with_line_and_mend() {
        for (column, text, line, parts) in [
            (None, "", 1, ["no table", "t_ms,down_kbps"]),
            (None, "# only\n# words\n", 2, ["no table", "header"]),
            (None, "5\n10\n", 1, ["\"5\" is not the header", "t_ms"]),
            (
                None,
                "t_ms,rtt_ms\n0,5\n",
                1,
                ["no column of rates", "_kbps"],
            ),
            (None, TABLE, 3, ["FILE#COLUMN", "wifi_kbps, lte_kbps"]),
            (
                Some("up"),
                TABLE,
                3,
                ["no column \"up\"", "wifi_kbps, lte_kbps"],
            ),
            (Some("note"), TABLE, 3, ["no column \"note\"", "wifi_kbps"]),
            (None, "t_ms,a_kbps\n", 1, ["no rows", "at least one"]),
            (
                None,
                "t_ms,a_kbps\n0,1\n",
                2,
                ["how long", "# step_ms: 100"],
            ),
            (None, "# step_ms: 0\n", 1, ["step_ms \"0\"", "above 0"]),
            (None, "t_ms,a_kbps\n0,1\n5\n", 3, ["1 values", "names 2"]),
            (None, "t_ms,a_kbps\n7,1\n", 2, ["first t_ms is 7", "shift"]),
            (
                None,
                "t_ms,a_kbps\n0,1\n1.5,2",
                3,
                ["t_ms \"1.5\"", "whole"],
            ),
            (
                None,
                "t_ms,a_kbps\n0,1\n0,2",
                3,
                ["t_ms 0 comes after 0", "sort"],
            ),
            (
                None,
                "t_ms,a_kbps\n0,-1\n",
                2,
                ["a_kbps \"-1\"", "0 or more"],
            ),
            (None, "t_ms,a_kbps\n0,NaN\n", 2, ["\"NaN\"", "kilobits"]),
            (None, "t_ms,a_kbps\n0,1e10\n", 2, ["\"1e10\"", "1 Tb/s"]),
            (
                None,
                "t_ms,a_kbps\n0,0\n9,0",
                3,
                ["mean rate of a_kbps", "another"],
            ),
        ] {
            let error = error(column, text);
            let place = format!("trace a.csv, line {line}: ");
            assert!(error.starts_with(&place), "{text:?}: {error}");
            for part in parts {
                assert!(error.contains(part), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn rates_need_no_table() {
        let ms = Duration::from_millis;
        let rates = [
            (ms(10), Rate::from_mbps(12)),
            (ms(20), Rate::ZERO),
            (ms(5), Rate::from_mbps(24)),
        ];
        let of = RateTrace::of("t", rates).unwrap();
        let table = "# step_ms: 5\nt_ms,a_kbps\n0,12000\n10,0\n30,24000\n";
        let read = RateTrace::parse("t", None, 1.0, table).unwrap();
        assert!(of.steps == read.steps && of.period() == read.period());
        let error = |rates: &[(Duration, Rate)]| {
            let error = RateTrace::of("t", rates.iter().copied()).unwrap_err();
            error.to_string()
        };
        assert!(error(&[]).contains("at least one rate"));
        let mbps = Rate::from_mbps(1);
        let broken = error(&[(Duration::from_micros(1_500), mbps)]);
        assert!(broken.contains("whole milliseconds"), "{broken}");
        assert!(error(&[(ms(1), Rate::ZERO)]).contains("mean rate"));
    }
}
