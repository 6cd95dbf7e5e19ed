//! The order of names with numbers in them.

/// Puts `fig-9` before `fig-10`: numbers by their values, what is between as text.
pub(super) fn natural(name: &str) -> Vec<(String, u64)> {
    /// Three decimals of a number count.
    const SCALE: f64 = 1000.0;
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (before, after) = rest.split_at(rest.find(is_number).unwrap_or(rest.len()));
        let end = after.find(|c| !is_number(c)).unwrap_or(after.len());
        let number = after[..end].trim_end_matches('.').parse::<f64>();
        let scaled = number.map_or(0, |number| (number * SCALE) as u64);
        parts.push((before.to_owned(), scaled));
        rest = &after[end..];
    }
    parts
}
