//! A whole session fed by a hostile peer: any bytes are a tape of datagrams, waits and what the
//! application does meanwhile. It must not panic, keeps its bounds, and lets time pass.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|tape: &[u8]| {
    marline_sim::hostile::feed(tape);
});
