//! What figures were: the last ten minutes at one second, the last 24 hours at one minute. Memory
//! is bounded: [`MAX_PATHS`] paths and [`MAX_ENTRIES`] live entries take some 15 MB when they have
//! been watched for a day.

use std::collections::VecDeque;

/// Looks that are kept at full resolution: ten minutes at one a second.
pub(super) const FINE: usize = 600;
/// Looks that make one of the coarse ones: a minute.
pub(super) const FOLD: usize = 60;
/// Coarse looks that are kept: 24 hours.
pub(super) const COARSE: usize = 24 * 60;
/// Most paths whose figures are kept.
pub(super) const MAX_PATHS: usize = 128;
/// Most live entries whose figures are kept.
pub(super) const MAX_ENTRIES: usize = 64;

/// What is kept of a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// The mean of what was known.
    Mean,
    /// The largest: what was worst.
    Worst,
}

/// A figure of each look: its name in the JSON, and what is kept of a minute.
pub(super) type Column = (&'static str, Fold);

/// Figures of one look, one for each column; what is not known is not a number.
pub(super) type Row<const N: usize> = [f32; N];

/// Which looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// The last ten minutes.
    Fine,
    /// The last 24 hours.
    Coarse,
}

/// When the looks were. All series end with the same one.
#[derive(Debug, Default)]
pub(super) struct Times {
    fine: VecDeque<f64>,
    coarse: VecDeque<f64>,
    /// Looks since the last coarse one.
    open: usize,
}

impl Times {
    /// A look at this Unix time, seconds; returns whether a coarse one is complete with it.
    pub(super) fn push(&mut self, at: f64) -> bool {
        bounded(&mut self.fine, at, FINE);
        self.open += 1;
        let complete = self.open == FOLD;
        if complete {
            self.open = 0;
            bounded(&mut self.coarse, at, COARSE);
        }
        complete
    }

    pub(super) fn of(&self, span: Span) -> &VecDeque<f64> {
        match span {
            Span::Fine => &self.fine,
            Span::Coarse => &self.coarse,
        }
    }
}

/// The figures of one path or live entry.
#[derive(Debug)]
pub(super) struct Series<const N: usize> {
    pub(super) key: String,
    pub(super) name: String,
    fine: VecDeque<Row<N>>,
    coarse: VecDeque<Row<N>>,
    /// Of the minute that is not over: sums or largest, and how many were known.
    open: [(f32, u16); N],
    /// Looks since it was last there.
    pub(super) absent: usize,
}

impl<const N: usize> Series<N> {
    fn new(key: String, name: String) -> Self {
        Series {
            key,
            name,
            fine: VecDeque::new(),
            coarse: VecDeque::new(),
            open: [(f32::NAN, 0); N],
            absent: 0,
        }
    }

    fn push(&mut self, row: Row<N>, columns: &[Column; N], complete: bool) {
        bounded(&mut self.fine, row, FINE);
        for ((value, (sum, count)), (_, fold)) in row.iter().zip(&mut self.open).zip(columns) {
            if value.is_finite() {
                *sum = match (*count, fold) {
                    (0, _) => *value,
                    (_, Fold::Mean) => *sum + value,
                    (_, Fold::Worst) => sum.max(*value),
                };
                *count += 1;
            }
        }
        if complete {
            let mut minute = [f32::NAN; N];
            for ((value, (sum, count)), (_, fold)) in
                minute.iter_mut().zip(&mut self.open).zip(columns)
            {
                *value = match (*count, fold) {
                    (0, _) => f32::NAN,
                    (count, Fold::Mean) => *sum / f32::from(count),
                    (_, Fold::Worst) => *sum,
                };
                (*sum, *count) = (f32::NAN, 0);
            }
            bounded(&mut self.coarse, minute, COARSE);
        }
    }

    /// The figures of the looks that it has seen, which are the last ones.
    pub(super) fn of(&self, span: Span) -> &VecDeque<Row<N>> {
        match span {
            Span::Fine => &self.fine,
            Span::Coarse => &self.coarse,
        }
    }
}

/// Series of one kind.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    pub(super) columns: &'static [Column; N],
    most: usize,
    series: Vec<Series<N>>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: &'static [Column; N], most: usize) -> Self {
        Table {
            columns,
            most,
            series: Vec::new(),
        }
    }

    /// What one look found, by key and name. Where there is no room for a new one, the one that
    /// has been away the longest gives way; while all are there, the new one is left out.
    pub(super) fn push(&mut self, found: &[(String, String, Row<N>)], complete: bool) {
        let mut rows: Vec<Option<Row<N>>> = vec![None; self.series.len()];
        let mut new = Vec::new();
        for look in found {
            let known = self.series.iter_mut().zip(&mut rows);
            match known.into_iter().find(|(one, _)| one.key == look.0) {
                Some((series, place)) => {
                    series.name.clone_from(&look.1);
                    *place = Some(look.2);
                }
                None => new.push(look),
            }
        }
        for (key, name, row) in new {
            if self.series.len() >= self.most {
                let away = self.series.iter().zip(&rows).enumerate();
                let away = away.filter(|(_, (_, row))| row.is_none());
                let Some((at, _)) = away.max_by_key(|(_, (one, _))| one.absent) else {
                    break;
                };
                self.series.remove(at);
                rows.remove(at);
            }
            self.series.push(Series::new(key.clone(), name.clone()));
            rows.push(Some(*row));
        }
        for (series, row) in self.series.iter_mut().zip(rows) {
            series.absent = match row {
                Some(_) => 0,
                None => series.absent + 1,
            };
            series.push(row.unwrap_or([f32::NAN; N]), self.columns, complete);
        }
        // Nothing of it is left.
        self.series.retain(|one| one.absent < FOLD * COARSE);
    }

    pub(super) fn series(&self) -> &[Series<N>] {
        &self.series
    }

    pub(super) fn get(&self, key: &str) -> Option<&Series<N>> {
        self.series.iter().find(|one| one.key == key)
    }
}

fn bounded<T>(queue: &mut VecDeque<T>, value: T, most: usize) {
    if queue.len() >= most {
        queue.pop_front();
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 2] = [("mean", Fold::Mean), ("worst", Fold::Worst)];

    fn look(key: &str, row: Row<2>) -> (String, String, Row<2>) {
        (key.to_owned(), format!("name of {key}"), row)
    }

    #[test]
    fn a_minute_keeps_means_and_what_was_worst_of_what_was_known() {
        let (mut times, mut table) = (Times::default(), Table::new(&COLUMNS, 4));
        for second in 0..FOLD {
            let complete = times.push(second as f64);
            let value = if second == 0 { f32::NAN } else { second as f32 };
            table.push(&[look("a", [value, value])], complete);
        }
        assert_eq!(times.of(Span::Coarse), &[59.0]);
        let series = table.get("a").unwrap();
        assert_eq!(series.of(Span::Coarse), &[[30.0, 59.0]]);
        assert_eq!(series.of(Span::Fine).len(), FOLD);
    }

    #[test]
    fn memory_is_bounded_in_time_and_number() {
        let (mut times, mut table) = (Times::default(), Table::new(&COLUMNS, 2));
        for second in 0..FOLD * COARSE + FINE {
            let complete = times.push(second as f64);
            table.push(&[look("a", [1.0, 1.0])], complete);
        }
        let series = table.get("a").unwrap();
        assert_eq!(series.of(Span::Fine).len(), FINE);
        assert_eq!(series.of(Span::Coarse).len(), COARSE);
        assert_eq!(times.of(Span::Coarse).len(), COARSE);

        table.push(&[look("b", [1.0, 1.0])], false);
        // While both are there, a third has no room; then `a`, which is away, gives way.
        table.push(&["c", "b", "a"].map(|key| look(key, [1.0, 1.0])), false);
        assert!(table.get("c").is_none());
        table.push(&["b", "c"].map(|key| look(key, [1.0, 1.0])), false);
        assert!(table.get("a").is_none() && table.get("c").is_some());
        assert_eq!(table.series().len(), 2);
    }

    #[test]
    fn what_is_away_for_a_day_is_forgotten() {
        let mut table = Table::new(&COLUMNS, 2);
        table.push(&[look("a", [1.0, 1.0])], false);
        for _ in 1..FOLD * COARSE {
            table.push(&[], false);
        }
        assert!(table.get("a").is_some());
        table.push(&[], false);
        assert!(table.get("a").is_none());
    }

    #[test]
    fn a_full_day_of_everything_is_below_32_mb() {
        let looks = FINE + COARSE;
        let paths = MAX_PATHS * looks * size_of::<Row<{ crate::web::store::PATH_COLUMNS.len() }>>();
        let entries =
            MAX_ENTRIES * looks * size_of::<Row<{ crate::web::store::LIVE_COLUMNS.len() }>>();
        // A deque doubles its room: at worst nearly half of it is empty.
        assert!(2 * (paths + entries) < 32 << 20, "{paths} + {entries}");
    }
}
