//! The decoder against dense Gaussian elimination: after every arrival it must know exactly the
//! symbols that everything received so far determines.

use marline_fec::coefficients;
use marline_fec::gf256::Naive;
use marline_fec::stream::{Decoder, Encoder, Limits};

use super::{Sent, repair, symbols};
use crate::random::Random;

/// All equations over all symbols, reduced afresh whenever it is asked.
#[derive(Default)]
struct Dense {
    rows: Vec<Vec<u8>>,
}

fn inverse(a: u8) -> u8 {
    (1..=255)
        .find(|b| Naive::product(a, *b) == 1)
        .expect("not zero")
}

impl Dense {
    /// Reduces the rows; which columns are determined, and the rank.
    fn solve(&self, columns: usize) -> (Vec<bool>, usize) {
        let mut rows = self.rows.clone();
        let mut rank = 0;
        for column in 0..columns {
            let Some(pivot) = (rank..rows.len()).find(|r| rows[*r][column] != 0) else {
                continue;
            };
            rows.swap(rank, pivot);
            let scale = inverse(rows[rank][column]);
            let row: Vec<u8> = rows[rank]
                .iter()
                .map(|c| Naive::product(*c, scale))
                .collect();
            for (r, other) in rows.iter_mut().enumerate() {
                let factor = other[column];
                if r == rank {
                    other.copy_from_slice(&row);
                } else if factor != 0 {
                    for (o, c) in other.iter_mut().zip(&row) {
                        *o ^= Naive::product(*c, factor);
                    }
                }
            }
            rank += 1;
        }
        let mut determined = vec![false; columns];
        for row in &rows[..rank] {
            let unknowns: Vec<usize> = (0..columns).filter(|c| row[*c] != 0).collect();
            if let [only] = unknowns[..] {
                determined[only] = true;
            }
        }
        (determined, rank)
    }
}

enum Arrival {
    Source(usize),
    Repair(Sent),
}

/// One random stream: symbols, repair symbols over sliding windows, losses and reordering.
fn stream(seed: u64) {
    let random = &mut Random::new(seed);
    let count = 1 + random.below(24) as usize;
    let limits = Limits {
        window: 32,
        symbol: 40,
    };
    let sources = symbols(random, count, 40);
    let loss = [0, 10, 30, 60, 100][random.below(5) as usize];
    let every = 1 + random.below(5);
    let first = random.below(1 << 40);

    let mut encoder = Encoder::new(first, limits);
    encoder.set_key(random.next() as u16);
    let mut arrivals = Vec::new();
    for (number, symbol) in sources.iter().enumerate() {
        encoder.push(symbol).expect("short enough");
        if !random.chance(loss) {
            arrivals.push(Arrival::Source(number));
        }
        if (number as u64 + 1).is_multiple_of(every) {
            for _ in 0..1 + random.below(2) {
                let sent = repair(&mut encoder);
                if !random.chance(loss / 2) {
                    arrivals.push(Arrival::Repair(sent));
                }
            }
        }
        if random.chance(20) {
            let window = encoder.window();
            encoder.release_before(window.start + random.below(window.end - window.start));
        }
    }
    if random.chance(50) {
        random.shuffle(&mut arrivals);
    }

    let mut decoder = Decoder::new(first, limits);
    let mut dense = Dense::default();
    for arrival in &arrivals {
        let mut row = vec![0; count];
        match arrival {
            Arrival::Source(number) => {
                row[*number] = 1;
                decoder
                    .source(first + *number as u64, &sources[*number])
                    .expect("taken");
            }
            Arrival::Repair(sent) => {
                let start = (sent.repair.start - first) as usize;
                coefficients(
                    sent.repair.key,
                    &mut row[start..start + usize::from(sent.repair.count)],
                );
                let before = dense.solve(count).1;
                let news = decoder.repair(sent.repair, &sent.payload).expect("taken");
                dense.rows.push(row.clone());
                assert_eq!(news, dense.solve(count).1 > before, "seed {seed}");
                dense.rows.pop();
            }
        }
        dense.rows.push(row);
        let (determined, rank) = dense.solve(count);
        for (number, expected) in determined.iter().enumerate() {
            let known = decoder.symbol(first + number as u64);
            let symbol = expected.then_some(&sources[number][..]);
            assert_eq!(known, symbol, "symbol {number} of seed {seed}");
        }
        let known = determined.iter().filter(|known| **known).count();
        assert_eq!(decoder.status().rank, rank - known, "seed {seed}");
    }
    let mut recovered: Vec<u64> = std::iter::from_fn(|| decoder.poll_recovered()).collect();
    recovered.sort_unstable();
    recovered.dedup();
    for number in recovered {
        assert!(decoder.symbol(number).is_some());
    }
}

#[test]
fn everything_determined_is_known_at_once() {
    for seed in 0..4000 {
        stream(seed);
    }
}
