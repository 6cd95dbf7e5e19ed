use super::TraceError;
use super::table::rows;
use std::time::Duration;

/// Requests of a program that leaves work to a server and waits for each reply, such as an
/// assistant that sends what its camera sees.
///
/// The recording is a closed loop: the next request leaves a pause after the reply, so that
/// replaying it over a slower network stretches it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OffloadTrace {
    requests: Vec<Request>,
}

/// One request and its reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Pause from the reply before (for the first: from the start) until this leaves. Zero where
    /// the recording's rounded times overlap.
    pub pause: Duration,
    /// Bytes of the request, at least 1.
    pub size: u32,
    /// Bytes of the reply, at least 1.
    pub reply: u32,
    /// From request to reply in the recording: the server's work and the recorded network's
    /// round trip.
    pub turnaround: Duration,
}

impl OffloadTrace {
    /// Reads a table with the columns `t_ms`, `request_bytes`, `reply_bytes` and `rtt_ms`; others
    /// are ignored, and so are lines that begin with `#`. `name` is the file's, for messages.
    ///
    /// # Errors
    ///
    /// When the text is no such table, or a request leaves before the one before it.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        let mut requests = Vec::new();
        let (mut left, mut answered) = (Duration::ZERO, Duration::ZERO);
        let columns = ["t_ms", "request_bytes", "reply_bytes", "rtt_ms"];
        rows(name, text, &columns, |row| {
            let at = row.millis("t_ms")?;
            if at < left {
                return Err(row.fail(format!(
                    "t_ms {at:?} comes after {left:?}; times must not decrease, sort the file"
                )));
            }
            let turnaround = row.millis("rtt_ms")?;
            requests.push(Request {
                pause: at.saturating_sub(answered),
                size: row.bytes("request_bytes")?,
                reply: row.bytes("reply_bytes")?,
                turnaround,
            });
            (left, answered) = (at, at + turnaround);
            Ok(())
        })?;
        Ok(Self { requests })
    }

    /// The requests in order; at least one.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_run_from_the_reply() {
        let text = "# what: made by hand\nseq,t_ms,request_bytes,reply_bytes,rtt_ms,frame\n\
                    1,2.00,50000,400,43.57,initial\n2,47.64,60000,300,40.94,repeat\n\
                    3,88.57,70000,200,1.5,blank\n";
        let trace = OffloadTrace::parse("ar.csv", text).unwrap();
        let got: Vec<(u64, u32, u32, u64)> = trace
            .requests()
            .iter()
            .map(|r| {
                let micros = |time: Duration| time.as_micros() as u64;
                (micros(r.pause), r.size, r.reply, micros(r.turnaround))
            })
            .collect();
        assert_eq!(
            got,
            [
                (2_000, 50_000, 400, 43_570),
                (2_070, 60_000, 300, 40_940),
                // 88.57 is a rounding error before 47.64 + 40.94.
                (0, 70_000, 200, 1_500)
            ]
        );
    }

    #[test]
    fn bad_tables_are_refused_with_line_and_mend() {
        let header = "t_ms,request_bytes,reply_bytes,rtt_ms\n";
        for (rows, start) in [
            (
                "0,0,1,1\n",
                "a.csv, line 2: request_bytes \"0\" is not a size; give",
            ),
            (
                "0,1,x,1\n",
                "a.csv, line 2: reply_bytes \"x\" is not a size; give",
            ),
            (
                "0,1,1,inf\n",
                "a.csv, line 2: rtt_ms \"inf\" is not a time; give",
            ),
            (
                "5,1,1,1\n4,1,1,1\n",
                "a.csv, line 3: t_ms 4ms comes after 5ms; times",
            ),
            (
                "",
                "a.csv, line 1: the table has no rows; give at least one",
            ),
        ] {
            let text = format!("{header}{rows}");
            let error = OffloadTrace::parse("a.csv", &text).unwrap_err().to_string();
            assert!(error.starts_with(start), "{rows:?}: {error}");
        }
        let error = OffloadTrace::parse("a.csv", "t_ms\n").unwrap_err();
        assert_eq!(error.line(), Some(1));
        assert!(error.to_string().contains("no column request_bytes"));
    }
}
