//! Is the clock right? Budgets are counted by its months.

use super::super::finding::Finding;
use super::super::programs::{NoAnswer, ask};
use crate::budget::Month;
use std::time::{SystemTime, UNIX_EPOCH};

const NAME: &str = "clock";
/// The start of 2026 in Unix time, seconds: before that there was no such program.
const FIRST: u64 = 1_767_225_600;

pub(in super::super) async fn check() -> Finding {
    let words = ["show", "--property=NTPSynchronized", "--value"];
    let synchronized = ask("timedatectl", &words).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    judge(now.map_or(0, |now| now.as_secs()), &synchronized)
}

fn judge(now: u64, synchronized: &Result<Vec<u8>, NoAnswer>) -> Finding {
    if now < FIRST {
        return Finding::warning(NAME, "in the past: budgets count wrong months")
            .fix("set it: timedatectl set-ntp true, or date -s");
    }
    let month = format!("in {}", Month::now());
    match synchronized.as_ref().map(|said| said.trim_ascii()) {
        Ok(b"yes") => Finding::fine(NAME, format!("{month}, synchronized")),
        Ok(b"no") => Finding::warning(NAME, format!("{month}, but not synchronized by NTP"))
            .fix("timedatectl set-ntp true, or run another NTP client"),
        Ok(_) => Finding::unknown(
            NAME,
            format!("{month}; `timedatectl` does not say whether it is synchronized"),
        ),
        Err(why) => Finding::unknown(
            NAME,
            format!("{month}; whether it is synchronized is not known: {why}"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_clock_in_the_past_or_alone_is_a_warning() {
        let verdict = |now, said: &[u8]| judge(now, &Ok(said.to_vec())).verdict;
        assert_eq!(verdict(0, b"yes\n"), Verdict::Warning);
        assert_eq!(verdict(FIRST, b"yes\n"), Verdict::Fine);
        assert_eq!(verdict(FIRST, b"no\n"), Verdict::Warning);
        assert_eq!(verdict(FIRST, b"\xff"), Verdict::Unknown);
        let absent = judge(FIRST, &Err(NoAnswer::Absent("timedatectl")));
        assert_eq!(absent.verdict, Verdict::Unknown);
        assert!(absent.text.ends_with("`timedatectl` is not installed"));
    }
}
