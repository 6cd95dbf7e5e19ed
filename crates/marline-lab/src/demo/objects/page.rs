//! The page: what its objects are.

use bytes::{Bytes, BytesMut};
use marline_base::Rng;
use marline_proto::flow::ObjectOptions;

/// Objects of a page.
pub const OBJECTS: u64 = 100;
/// The number of them that a page needs to be seen; these go first.
pub const URGENT: u64 = 10;
/// Sizes, whose logarithms are equally likely (bytes).
const SIZES: [f64; 2] = [600.0, 120_000.0];

/// One object of a page.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) options: ObjectOptions,
    pub(super) data: Bytes,
}

/// The objects of page number `page`; all runs of a seed have the same.
pub(super) fn page(seed: u64, page: u64) -> Vec<Item> {
    let mut rng = Rng::new(seed).stream(&format!("page {page}"));
    let mut places: Vec<u64> = (0..OBJECTS).collect();
    for i in (1..places.len()).rev() {
        places.swap(i, rng.below(i as u64 + 1) as usize);
    }
    let item = |place: u64| {
        let [least, most] = SIZES.map(f64::ln);
        let len = (least + (most - least) * rng.uniform()).exp() as usize;
        let mut data = BytesMut::with_capacity(len + 8);
        while data.len() < len {
            data.extend_from_slice(&rng.next_u64().to_le_bytes());
        }
        data.truncate(len);
        Item {
            options: ObjectOptions {
                urgency: if place < URGENT { 1 } else { 4 },
                ..ObjectOptions::default()
            },
            data: data.freeze(),
        }
    };
    places.into_iter().map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_follows_from_its_seed_and_number() {
        let sizes = |seed, number| -> Vec<usize> {
            page(seed, number)
                .iter()
                .map(|item| item.data.len())
                .collect()
        };
        assert_eq!(sizes(1, 0), sizes(1, 0));
        assert_ne!(sizes(1, 0), sizes(1, 1));
        assert_ne!(sizes(1, 0), sizes(2, 0));
        assert!(sizes(1, 0).iter().all(|size| (600..120_000).contains(size)));
        let urgent = page(1, 0)
            .iter()
            .filter(|item| item.options.urgency == 1)
            .count();
        assert_eq!(urgent as u64, URGENT);
    }
}
