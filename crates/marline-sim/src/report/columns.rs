//! Which measures a table or a page shows.

use crate::results::{Results, Run};

/// What is shown unless something is asked for: the delays that users feel, what they get, and
/// what it costs. Each selects the measures that end so.
const USUAL: [&str; 17] = [
    ".block_lateness",
    ".frames_discarded",
    ".in_order_delay.p50_ms",
    ".in_order_delay.p99_ms",
    ".packet_delay.p50_ms",
    ".packet_delay.p99_ms",
    "objects.delay.mean_ms",
    "objects.delay.p95_ms",
    ".object_delay.p50_ms",
    ".object_delay.p99_ms",
    ".reply_delay.p50_ms",
    ".reply_delay.p99_ms",
    ".page_render_time.p50_ms",
    ".page_render_time.p99_ms",
    ".out_of_order.mean_kb",
    ".goodput_mbps",
    ".redundancy",
];

/// Shown, too, where it happened in any run: delays of what came say nothing of what did not.
const IF_ANY: [&str; 2] = [".undelivered", ".refused"];

/// The measures to show: for each of `words`, in order, those that are it or contain it; without
/// words the usual ones.
///
/// # Errors
/// The first word that selects nothing, with the measures that there are.
pub fn choose(results: &Results, words: &[String]) -> Result<Vec<String>, String> {
    let measures = results.measures();
    let mut chosen: Vec<String> = Vec::new();
    let mut take = |selected: Vec<&str>| {
        for name in selected {
            if !chosen.iter().any(|known| known == name) {
                chosen.push(name.to_owned());
            }
        }
    };
    if words.is_empty() {
        for ending in USUAL {
            take(
                measures
                    .iter()
                    .copied()
                    .filter(|name| name.ends_with(ending))
                    .collect(),
            );
        }
        let happened = |name: &str| {
            let hits = |run: &Run| run.fractions.get(name).is_some_and(|f| f.hits > 0);
            IF_ANY.iter().any(|ending| name.ends_with(ending)) && results.runs.iter().any(hits)
        };
        take(
            measures
                .iter()
                .copied()
                .filter(|name| happened(name))
                .collect(),
        );
        return Ok(chosen);
    }
    for word in words {
        let exact = measures.get(word.as_str()).map(|name| vec![*name]);
        let selected = exact.unwrap_or_else(|| {
            measures
                .iter()
                .copied()
                .filter(|name| name.contains(word.as_str()))
                .collect()
        });
        if selected.is_empty() {
            let known: Vec<&str> = measures.into_iter().collect();
            return Err(format!(
                "no measure contains `{word}`; there are {}",
                known.join(", ")
            ));
        }
        take(selected);
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Fraction, sample};

    fn chosen(words: &[&str]) -> Result<Vec<String>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        choose(&sample::results(), &words)
    }

    #[test]
    fn the_usual_ones_stand_in_their_order() {
        assert_eq!(
            chosen(&[]).unwrap(),
            ["video.in_order_delay.p99_ms", "video.goodput_mbps"]
        );
    }

    #[test]
    fn what_did_not_come_is_shown_where_it_happened() {
        let mut results = sample::results();
        let usual = choose(&results, &[]).unwrap();
        let fraction = |hits| Fraction { hits, trials: 100 };
        for (name, hits) in [("video.undelivered", 0), ("video.refused", 3)] {
            let fractions = &mut results.runs[5].fractions;
            fractions.insert(name.to_owned(), fraction(hits));
        }
        let shown = choose(&results, &[]).unwrap();
        assert_eq!(shown[..2], usual);
        assert_eq!(shown[2..], ["video.refused"]);
    }

    #[test]
    fn words_select_what_contains_them_once() {
        let words = ["video.late", "video", "goodput"];
        assert_eq!(
            chosen(&words).unwrap(),
            [
                "video.late",
                "video.goodput_mbps",
                "video.in_order_delay.p99_ms"
            ]
        );
    }

    #[test]
    fn an_unknown_word_is_named_with_what_there_is() {
        let error = chosen(&["gooodput"]).unwrap_err();
        assert!(
            error.contains("`gooodput`") && error.contains("video.goodput_mbps"),
            "{error}"
        );
    }
}
