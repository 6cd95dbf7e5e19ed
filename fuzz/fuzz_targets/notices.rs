//! Any bytes as what the kernel passes on of router advertisements (RFC 8781): prefixes have a
//! length that RFC 6052 knows, and zeros behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline::interfaces::pref64::read;

fuzz_target!(|bytes: &[u8]| {
    for found in read(bytes) {
        assert!([4, 5, 6, 7, 8, 12].contains(&found.length));
        let behind = &found.prefix.octets()[usize::from(found.length)..];
        assert!(behind.iter().all(|byte| *byte == 0));
        assert!(found.lifetime.as_secs() <= 65_528);
    }
});
