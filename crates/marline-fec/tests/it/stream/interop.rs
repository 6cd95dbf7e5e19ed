//! The same code as another implementation of RFC 8681.

use cu_fec::{
    DensityThreshold, EncodingSymbolId, Field, RepairParameters, RepairPayloadId, RlcConfig,
    RlcDecoder, RlcEncoder,
};
use marline_fec::coefficients;
use marline_fec::stream::{Decoder, Limits};

use super::{encoder, repair, symbols};
use crate::random::Random;

const LONGEST: usize = 100;
/// RFC 8681 has symbols of one length: ours with their length before and zeros behind.
const SYMBOL: usize = LONGEST + 2;
const WINDOW: usize = 64;
const LIMITS: Limits = Limits {
    window: WINDOW as u16,
    symbol: LONGEST as u16,
};

fn padded(symbol: &[u8]) -> [u8; SYMBOL] {
    let mut framed = [0; SYMBOL];
    framed[..2].copy_from_slice(&(symbol.len() as u16).to_be_bytes());
    framed[2..2 + symbol.len()].copy_from_slice(symbol);
    framed
}

#[test]
fn coefficients_agree_for_every_key() {
    let (mut ours, mut theirs) = ([0; 96], [0; 96]);
    for key in 0..=u16::MAX {
        coefficients(key, &mut ours);
        cu_fec::generate_coding_coefficients(
            Field::Gf256,
            key,
            DensityThreshold::FULL,
            &mut theirs,
        );
        assert_eq!(ours, theirs, "key {key}");
    }
}

#[test]
fn each_decodes_what_the_other_encodes() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let count = 1 + random.below(WINDOW as u64) as usize;
        let sources = symbols(random, count, LONGEST);
        let config = RlcConfig::new(SYMBOL, WINDOW, Field::Gf256).expect("a configuration");
        let first = EncodingSymbolId::new(1000);
        let mut theirs = RlcEncoder::<SYMBOL, WINDOW>::new(config, first).expect("an encoder");
        for source in &sources {
            theirs.push_source(&padded(source)).expect("taken");
        }
        let mut ours = encoder(1000, &sources, LIMITS);
        let key = random.next() as u16;
        ours.set_key(key);

        // As many losses as repair symbols, and two more of these.
        let lost = 1 + random.below(count.min(12) as u64) as usize;
        let mut order: Vec<usize> = (0..count).collect();
        random.shuffle(&mut order);
        let mut our_decoder = Decoder::new(1000, LIMITS);
        let mut their_decoder =
            RlcDecoder::<SYMBOL, WINDOW, WINDOW>::new(config, WINDOW).expect("a decoder");
        for number in &order[lost..] {
            let esi = first.wrapping_add(*number as u32);
            our_decoder
                .source(1000 + *number as u64, &sources[*number])
                .expect("taken");
            let _ = their_decoder
                .receive_source(esi, &padded(&sources[*number]))
                .expect("taken");
        }
        for extra in 0..lost as u16 + 2 {
            let sent = repair(&mut ours);
            let mut bytes = [0; SYMBOL];
            let parameters = RepairParameters::new(key.wrapping_add(extra), DensityThreshold::FULL);
            let id: RepairPayloadId = theirs
                .encode_repair(parameters, &mut bytes)
                .expect("a repair");
            assert_eq!(sent.repair.key, id.repair_key());
            assert_eq!(sent.repair.start, u64::from(id.first_source_esi().get()));
            assert_eq!(sent.repair.count, id.source_symbols());
            // Ours ends with the longest symbol, theirs has zeros from there on.
            let (ours, zeros) = bytes.split_at(sent.payload.len());
            assert_eq!(sent.payload, ours, "seed {seed}");
            assert!(zeros.iter().all(|byte| *byte == 0));

            let news = our_decoder.repair(sent.repair, ours).expect("taken");
            let mut whole = [0; SYMBOL];
            whole[..sent.payload.len()].copy_from_slice(&sent.payload);
            let report = their_decoder.receive_repair(id, &whole).expect("taken");
            // Once nothing is missing we do not look any further.
            assert_eq!(news, report.is_innovative(), "seed {seed}");
        }
        for (number, source) in sources.iter().enumerate() {
            let theirs = their_decoder.symbol(first.wrapping_add(number as u32));
            let ours = our_decoder.symbol(1000 + number as u64);
            assert_eq!(
                ours.is_some(),
                theirs.is_some(),
                "symbol {number} of seed {seed}"
            );
            assert!(ours.is_none_or(|ours| ours == &source[..]));
            assert!(theirs.is_none_or(|theirs| theirs == padded(source)));
        }
        assert_eq!(
            our_decoder.status().missing,
            0,
            "two repair symbols to spare, seed {seed}"
        );
    }
}
