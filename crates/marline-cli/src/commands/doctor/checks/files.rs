//! May the program open enough sockets?

use super::super::finding::Finding;
use crate::platform;

const NAME: &str = "files";
/// Descriptors that are enough: each connection through the proxy takes one, a browser opens
/// hundreds, and this is what Linux gave a process at most before systemd gave more
/// (`INR_OPEN_MAX`).
const ENOUGH: u64 = 4096;

pub(in super::super) fn check() -> Finding {
    judge(platform::descriptors().most)
}

/// `most`: the limit up to which the program raises its own; `None` if there is none.
fn judge(most: Option<u64>) -> Finding {
    match most {
        None => Finding::fine(NAME, "any number of descriptors"),
        Some(most) if most >= ENOUGH => Finding::fine(NAME, format!("{most} descriptors")),
        Some(most) => Finding::warning(
            NAME,
            format!("{most} descriptors at most, and each connection takes one"),
        )
        .fix("raise it: LimitNOFILE=65536 in the systemd unit, or `ulimit -Hn 65536` as root"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn few_descriptors_are_a_warning() {
        let verdicts = [None, Some(4096), Some(1024)].map(|most| judge(most).verdict);
        assert_eq!(verdicts, [Verdict::Fine, Verdict::Fine, Verdict::Warning]);
    }
}
