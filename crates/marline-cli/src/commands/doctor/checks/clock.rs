//! Is the clock right? Budgets are counted by its months.

use super::super::finding::Finding;
use super::super::programs::ask;
use crate::budget::Month;
use std::time::{SystemTime, UNIX_EPOCH};

const NAME: &str = "clock";
/// The start of 2026 in Unix time, seconds: before that there was no such program.
const FIRST: u64 = 1_767_225_600;

pub(in super::super) async fn check() -> Finding {
    let words = ["show", "--property=NTPSynchronized", "--value"];
    let synchronized = ask("timedatectl", &words).await.ok();
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    judge(now.map_or(0, |now| now.as_secs()), synchronized.as_deref())
}

fn judge(now: u64, synchronized: Option<&[u8]>) -> Finding {
    if now < FIRST {
        return Finding::warning(NAME, "in the past: budgets count wrong months")
            .mend("set it: timedatectl set-ntp true");
    }
    let month = format!("in {}", Month::now());
    match synchronized.map(<[u8]>::trim_ascii) {
        Some(b"yes") => Finding::fine(NAME, format!("{month}, synchronized")),
        Some(b"no") => Finding::warning(NAME, format!("{month}, but not synchronized"))
            .mend("timedatectl set-ntp true, or run another NTP client"),
        _ => Finding::fine(
            NAME,
            format!("{month}; whether it is synchronized is not told"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_clock_in_the_past_or_alone_is_a_warning() {
        assert_eq!(judge(0, Some(b"yes\n")).verdict, Verdict::Warning);
        assert_eq!(judge(FIRST, Some(b"yes\n")).verdict, Verdict::Fine);
        assert_eq!(judge(FIRST, Some(b"no\n")).verdict, Verdict::Warning);
        assert_eq!(judge(FIRST, Some(b"\xff")).verdict, Verdict::Fine);
        assert_eq!(judge(FIRST, None).verdict, Verdict::Fine);
    }
}
