use super::TraceError;
use super::table::{excerpt, rows};
use std::time::Duration;

/// Video frames as they left an encoder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameTrace {
    frames: Vec<Frame>,
}

/// One frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// When it left the encoder, from the start of the recording.
    pub at: Duration,
    /// What it is, where the recording says so.
    pub kind: Option<FrameKind>,
    /// Bytes, at least 1.
    pub size: u32,
}

/// How a frame is coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// On its own (I).
    Intra,
    /// From earlier frames (P).
    Predicted,
    /// From earlier and later frames (B).
    Bidirectional,
}

impl FrameTrace {
    /// Reads a table with the columns `t_ms` (which may have decimals and must not decrease) and
    /// `size_bytes`, and perhaps `type` (I, P or B); others are ignored, and so are lines that
    /// begin with `#`. `name` is the file's, for messages.
    ///
    /// # Errors
    ///
    /// When the text is no such table, has fewer than two frames, or all of one time.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let mut frames: Vec<Frame> = Vec::new();
        rows(name, text, &["t_ms", "size_bytes"], |row| {
            let at = row.millis("t_ms")?;
            if let Some(last) = frames.last()
                && at < last.at
            {
                return Err(row.fail(format!(
                    "t_ms {:?} comes after {:?}; times must not decrease, sort the file",
                    at, last.at
                )));
            }
            let kind = match row.text("type") {
                None | Some("") => None,
                Some("I") => Some(FrameKind::Intra),
                Some("P") => Some(FrameKind::Predicted),
                Some("B") => Some(FrameKind::Bidirectional),
                Some(other) => {
                    return Err(row.fail(format!("type \"{}\" is not I, P or B", excerpt(other))));
                }
            };
            let size = row.bytes("size_bytes")?;
            frames.push(Frame { at, kind, size });
            Ok(())
        })?;
        let trace = Self { frames };
        if trace.length().is_zero() {
            let problem = "all frames have one time, so there is no frame rate; give at least two \
                           frames at different times";
            return Err(TraceError::of_file(name, problem));
        }
        Ok(trace)
    }

    /// The frames in the order of their times; at least two.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// From the first frame to where the next one would come after the last, at the mean interval:
    /// the time after which to begin again. More than zero.
    pub fn period(&self) -> Duration {
        let gaps = self.frames.len() as u128 - 1;
        let length = self.length();
        length + Duration::from_nanos(u64::try_from(length.as_nanos() / gaps).unwrap_or(u64::MAX))
    }

    /// Bytes of all frames.
    pub fn bytes(&self) -> u64 {
        self.frames.iter().map(|frame| u64::from(frame.size)).sum()
    }

    fn length(&self) -> Duration {
        match self.frames.as_slice() {
            [first, .., last] => last.at - first.at,
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_times_kinds_and_sizes() {
        let text = "# what: made by hand\nt_ms,type,size_bytes\n0,I,9000\n41.667,P,1200\n# half\n\
                    83.333,B,300\n";
        let trace = FrameTrace::parse("film.csv", text).unwrap();
        let expected = [
            (0, FrameKind::Intra, 9_000),
            (41_667, FrameKind::Predicted, 1_200),
            (83_333, FrameKind::Bidirectional, 300),
        ]
        .map(|(us, kind, size)| Frame {
            at: Duration::from_micros(us),
            kind: Some(kind),
            size,
        });
        assert_eq!(trace.frames(), expected);
        assert_eq!(trace.bytes(), 10_500);
        assert_eq!(trace.period(), Duration::from_nanos(124_999_500));
    }

    #[test]
    fn kinds_may_be_unknown_and_times_may_begin_late() {
        let text = "t_ms,size_bytes\r\n100,5\r\n100,6\r\n110,7\r\n";
        let trace = FrameTrace::parse("chat.csv", text).unwrap();
        assert!(trace.frames().iter().all(|frame| frame.kind.is_none()));
        assert_eq!(trace.period(), Duration::from_millis(15));
    }

    #[test]
    fn bad_tables_are_refused_with_line_and_mend() {
        for (text, start, part) in [
            (
                "",
                "a.csv, line 1: no column t_ms",
                "header that names t_ms, size_bytes",
            ),
            (
                "# x\nt_ms,bytes\n",
                "a.csv, line 2: no column size_bytes",
                "begin the table",
            ),
            (
                "t_ms,size_bytes\n",
                "a.csv, line 1: the table has no rows",
                "at least one",
            ),
            (
                "t_ms,size_bytes\n0,1\n",
                "a.csv: all frames have one time",
                "at least two",
            ),
            (
                "t_ms,size_bytes\n0,1\n# x\n5\n",
                "a.csv, line 4: 1 values",
                "names 2",
            ),
            (
                "t_ms,size_bytes\n0,1\n-5,1\n",
                "a.csv, line 3: t_ms \"-5\"",
                "from 0 to a week",
            ),
            (
                "t_ms,size_bytes\n0,1\nNaN,1\n",
                "a.csv, line 3: t_ms \"NaN\"",
                "milliseconds",
            ),
            (
                "t_ms,size_bytes\n9,1\n5,1\n",
                "a.csv, line 3: t_ms 5ms comes after 9ms",
                "sort",
            ),
            (
                "t_ms,size_bytes\n0,0\n",
                "a.csv, line 2: size_bytes \"0\"",
                "from 1 to",
            ),
            (
                "t_ms,size_bytes\n0,1.5\n",
                "a.csv, line 2: size_bytes \"1.5\"",
                "whole bytes",
            ),
            (
                "t_ms,type,size_bytes\n0,key,5\n",
                "a.csv, line 2: type \"key\"",
                "I, P or B",
            ),
        ] {
            let error = FrameTrace::parse("a.csv", text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{text:?}: {error}");
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
