//! The registry's schedulers as the end of a help text.

use marline_proto::sched::Entry;
use std::fmt::Write;

/// `examples`, and then the schedulers with their options and defaults.
pub(super) fn after(examples: &str, schedulers: impl Iterator<Item = &'static Entry>) -> String {
    let mut text = format!("{examples}\n\nSchedulers, written NAME or NAME:KEY=VALUE:KEY=VALUE:\n");
    for entry in schedulers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<12} {}", entry.name, entry.help);
        for option in entry.options {
            let _ = writeln!(
                text,
                "  {:<12}   :{}={} {}",
                "", option.key, option.default, option.help
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_proto::sched::registry::SCHEDULERS;

    #[test]
    fn names_every_scheduler_and_option() {
        let text = after("Examples:", SCHEDULERS.iter());
        for entry in SCHEDULERS {
            assert!(text.contains(&format!("\n  {} ", entry.name)));
            for option in entry.options {
                assert!(text.contains(&format!(" :{}={} ", option.key, option.default)));
            }
        }
    }
}
