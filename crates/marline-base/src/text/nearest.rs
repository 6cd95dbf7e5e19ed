//! Which word was meant.

use alloc::vec::Vec;

/// How alike two words are, from 0 to 1: the share of the longer one's letters that need no
/// insertion, deletion, substitution or exchange of neighbours to become the other (the distance
/// of Damerau and Levenshtein in its restricted form, "optimal string alignment").
fn likeness(one: &str, other: &str) -> f64 {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let longest = one.len().max(other.len());
    if longest == 0 {
        return 1.0;
    }
    let mut rows: [Vec<usize>; 3] = [Vec::new(), Vec::new(), (0..=other.len()).collect()];
    for i in 1..=one.len() {
        rows.rotate_left(1);
        rows[2] = Vec::with_capacity(other.len() + 1);
        rows[2].push(i);
        for j in 1..=other.len() {
            let changed = rows[1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
            let mut least = changed.min(rows[1][j] + 1).min(rows[2][j - 1] + 1);
            let exchanged =
                i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
            if exchanged {
                least = least.min(rows[0][j - 2] + 1);
            }
            rows[2].push(least);
        }
    }
    1.0 - rows[2][other.len()] as f64 / longest as f64
}

/// The known word that `word` is most likely meant for; `None` if it is like none of them.
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let alike = known.iter().map(|known| (likeness(word, known), *known));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.5).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_keys_is_seen_through() {
        let known = ["edpf", "auto", "min-rtt", "standby"];
        assert_eq!(nearest("edfp", &known), Some("edpf"));
        assert_eq!(nearest("stanby", &known), Some("standby"));
        assert_eq!(nearest("minrtt", &known), Some("min-rtt"));
        assert_eq!(nearest("zzzzzz", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }

    #[test]
    fn likeness_is_the_share_of_letters_that_stay() {
        for (one, other, alike) in [
            ("", "", 1.0),
            ("abcd", "abcd", 1.0),
            ("abcd", "abdc", 0.75),
            ("abcd", "abc", 0.75),
            ("abcd", "", 0.0),
            ("kitten", "sitting", 1.0 - 3.0 / 7.0),
        ] {
            assert_eq!(likeness(one, other), alike, "{one} {other}");
            assert_eq!(likeness(other, one), alike, "{other} {one}");
        }
    }
}
