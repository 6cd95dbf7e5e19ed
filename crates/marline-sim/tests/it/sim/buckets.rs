//! Links behind token buckets, with hardly any delay: the first laboratory that people build.

use super::{run_of, value};

/// With rates measured over one round trip, 140 Mb/s are believed of each link, and all that one
/// takes is given to it: 9 % of the stream are given up, and nine of a hundred packets wait for
/// more than 400 ms.
#[test]
fn what_a_bucket_passes_at_once_is_no_rate() {
    let text = r#"
        title = "Token buckets"
        duration = "15s"
        warmup = "3s"
        schedulers = ["auto"]
        [links.a]
        rate = "5mbit"
        bucket = "32kB"
        delay = "50us"
        queue = "125kB"
        [links.b]
        rate = "5mbit"
        bucket = "32kB"
        delay = "50us"
        queue = "125kB"
        [[workloads]]
        name = "live"
        from = "client"
        kind = "constant"
        flow = "packets"
        ordered = "yes"
        lifetime = "300ms"
        rate = "8mbit"
        size = 1316
    "#;
    for seed in 1..=3 {
        let run = run_of(text, &[], seed);
        let p99 = value(&run, "live.in_order_delay.p99_ms");
        assert!(p99 < 50.0, "{p99} ms");
        assert_eq!(value(&run, "live.undelivered"), 0.0);
    }
}
