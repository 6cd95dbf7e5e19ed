//! Round trips of pings.

use super::TraceError;
use super::table::{excerpt, rows};

/// The round trips (ms) of a table with `t_ms` and `rtt_ms`; where it has a column `net`, those of
/// `network` alone; there may be none. `name` is the file's, for messages.
///
/// # Errors
///
/// When the text is no such table, with the line and the mend.
pub fn pings(name: &str, text: &str, network: &str) -> Result<Vec<f64>, TraceError> {
    let mut found = Vec::new();
    rows(name, text, &["t_ms", "rtt_ms"], |row| {
        let text = row.text("rtt_ms").unwrap_or_default();
        let ms: Option<f64> = text.parse().ok();
        let ms = ms
            .filter(|ms| (0.0..=60_000.0).contains(ms))
            .ok_or_else(|| {
                let text = excerpt(text);
                row.fail(format!(
                    "rtt_ms \"{text}\" is no time; give milliseconds from 0 to a minute"
                ))
            })?;
        if row.text("net").is_none_or(|net| net == network) {
            found.push(ms);
        }
        Ok(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_those_of_a_network() {
        let text = "# x\nt_ms,net,rtt_ms\n0,a,5\n1,b,7.5\n2,a,6\n";
        assert_eq!(pings("p", text, "a").expect("read"), [5.0, 6.0]);
        assert!(pings("p", text, "c").expect("read").is_empty());
        assert_eq!(
            pings("p", "t_ms,rtt_ms\n0,9\n", "any").expect("read"),
            [9.0]
        );
        let error = pings("p", "t_ms,rtt_ms\n0,late\n", "any").expect_err("no time");
        assert!(
            error.to_string().contains("line 2: rtt_ms \"late\""),
            "{error}"
        );
    }
}
