//! What a check found.

use serde::Serialize;

/// How a check came out; the worst of all makes the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// As it should be.
    Fine,
    /// It is not known here; that is nobody's fault.
    Unknown,
    /// It works, but worse than it could, or not always.
    Warning,
    /// It does not work.
    Failure,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Failure => "FAILURE",
        }
    }

    /// 0, 1 with warnings, 2 with failures.
    pub(super) const fn exit_code(self) -> u8 {
        match self {
            Self::Fine | Self::Unknown => 0,
            Self::Warning => 1,
            Self::Failure => 2,
        }
    }
}

/// What a path carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Speed {
    pub(super) down: SpeedOf,
    pub(super) up: SpeedOf,
    /// What the measurement took, both ways, headers included.
    pub(super) bytes: u64,
}

/// What a path carries in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct SpeedOf {
    /// What arrives in a second (bits).
    pub(super) bps: u64,
    /// The round trip meanwhile, its median (µs).
    pub(super) rtt_us: u64,
    /// The round trip before (µs).
    pub(super) idle_rtt_us: u64,
    /// Datagrams that were sent.
    pub(super) packets: u64,
    /// Of these, lost.
    pub(super) lost_packets: u64,
    /// It was ended by the bound on bytes.
    pub(super) bounded: bool,
}

/// What one check found, of the host or of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The name of the check.
    pub(super) check: &'static str,
    /// The path that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
    pub(super) verdict: Verdict,
    /// What is so.
    pub(super) text: String,
    /// The figures of a measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) speed: Option<Box<Speed>>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fix: Option<String>,
}

impl Finding {
    fn new(check: &'static str, verdict: Verdict, text: impl Into<String>) -> Self {
        let text = text.into();
        Finding {
            check,
            path: None,
            verdict,
            text,
            speed: None,
            fix: None,
        }
    }

    pub(super) fn fine(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Fine, text)
    }

    pub(super) fn unknown(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Unknown, text)
    }

    pub(super) fn warning(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Warning, text)
    }

    pub(super) fn failure(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, Verdict::Failure, text)
    }

    pub(super) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// The worst of what was found.
pub(super) fn worst(findings: &[Finding]) -> Verdict {
    let verdicts = findings.iter().map(|finding| finding.verdict);
    verdicts.max().unwrap_or(Verdict::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_is_the_exit_code() {
        let mut findings = vec![Finding::fine("mtu", ""), Finding::unknown("nat", "")];
        let code = |findings: &[Finding]| worst(findings).exit_code();
        assert_eq!((code(&[]), code(&findings)), (0, 0));
        findings.push(Finding::warning("clock", ""));
        assert_eq!(code(&findings), 1);
        findings.insert(0, Finding::failure("reach", ""));
        assert_eq!(code(&findings), 2);
    }
}
