//! Quantiles of values that are all at hand.

/// The smallest of the ascending `values` that `percent` % of them do not exceed (nearest rank);
/// `None` if there are none.
///
/// ```
/// use marline_base::nearest_rank;
///
/// let delays: Vec<u32> = (1..=200).collect();
/// assert_eq!(nearest_rank(&delays, 99), Some(198));
/// assert_eq!(nearest_rank::<u32>(&[], 50), None);
/// ```
pub fn nearest_rank<T: Copy>(values: &[T], percent: usize) -> Option<T> {
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_that_of_a_value_that_there_is() {
        for (values, percent, expected) in [
            (&[7][..], 0, Some(7)),
            (&[7], 99, Some(7)),
            (&[1, 2], 50, Some(1)),
            (&[1, 2], 51, Some(2)),
            (&[1, 2, 3], 100, Some(3)),
            (&[], 99, None),
        ] {
            assert_eq!(
                nearest_rank(values, percent),
                expected,
                "{values:?} {percent}"
            );
        }
    }
}
