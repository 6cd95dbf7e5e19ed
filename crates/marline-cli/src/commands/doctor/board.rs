//! What was found so far, and which checks have not ended.

use super::finding::Finding;
use super::limits::LIMIT;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the checks found, in the order in which they began: first of the host, then path by path.
#[derive(Debug, Clone, Default)]
pub(super) struct Board(Arc<Mutex<Vec<Place>>>);

#[derive(Debug)]
struct Place {
    path: Option<String>,
    check: &'static str,
    /// `None` as long as the check has not ended.
    found: Option<Vec<Finding>>,
}

/// A check that has begun.
#[derive(Debug)]
pub(super) struct Begun {
    board: Board,
    index: usize,
}

impl Board {
    /// A check begins, of the host or of a path; what it finds is shown here.
    pub(super) fn begin(&self, path: Option<&str>, check: &'static str) -> Begun {
        let mut places = self.places();
        places.push(Place {
            path: path.map(str::to_owned),
            check,
            found: None,
        });
        Begun {
            board: self.clone(),
            index: places.len() - 1,
        }
    }

    /// What a check found that takes no time.
    pub(super) fn add(&self, path: Option<&str>, found: Finding) {
        self.begin(path, found.check).end([found]);
    }

    /// All that is known now; a check that has not ended is a warning.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let places = self.places();
        let mut paths: Vec<&Option<String>> = vec![&None];
        for place in places.iter() {
            if !paths.contains(&&place.path) {
                paths.push(&place.path);
            }
        }
        let mut found = Vec::new();
        for path in paths {
            let of_path = places.iter().filter(|place| place.path == *path);
            found.extend(of_path.flat_map(Place::findings));
        }
        found
    }

    fn places(&self) -> MutexGuard<'_, Vec<Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    /// The check has ended.
    pub(super) fn end(self, found: impl IntoIterator<Item = Finding>) {
        let found = found.into_iter().collect();
        if let Some(place) = self.board.places().get_mut(self.index) {
            place.found = Some(found);
        }
    }
}

impl Place {
    fn findings(&self) -> Vec<Finding> {
        let unended = || {
            let text = format!("not known: it took more than {} s", LIMIT.as_secs());
            let fix = match self.path {
                Some(_) => "try again, with this --path alone",
                None => "try again",
            };
            vec![Finding::warning(self.check, text).fix(fix)]
        };
        let found = self.found.clone().unwrap_or_else(unended).into_iter();
        let of_path = |finding: Finding| Finding {
            path: self.path.clone(),
            ..finding
        };
        found.map(of_path).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn what_is_known_stays_and_what_has_not_ended_is_named() {
        let board = Board::default();
        let names = board.begin(None, "names");
        let first = board.begin(Some("wlan0"), "udp");
        board.add(Some("wwan0"), Finding::fine("mtu", "1500"));
        let clock = board.begin(None, "clock");
        clock.end([Finding::fine("clock", "right")]);
        first.end([Finding::fine("udp", "up"), Finding::fine("tcp", "up")]);
        let shown = |finding: &Finding| {
            let path = finding.path.clone().unwrap_or_default();
            (finding.check, path, finding.verdict)
        };
        let shown: Vec<_> = board.findings().iter().map(shown).collect();
        let expected = [
            ("names", "", Verdict::Warning),
            ("clock", "", Verdict::Fine),
            ("udp", "wlan0", Verdict::Fine),
            ("tcp", "wlan0", Verdict::Fine),
            ("mtu", "wwan0", Verdict::Fine),
        ];
        assert_eq!(
            shown,
            expected.map(|(check, path, v)| (check, path.to_owned(), v))
        );
        names.end([]);
        assert_eq!(board.findings().len(), 4);
    }
}
