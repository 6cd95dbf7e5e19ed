//! A path after an outage.

use super::{run_of, value};

/// Packets are late by a second and a half for two seconds. What that taught of the path's delays
/// says nothing of what follows: it carries its part again.
#[test]
fn an_outage_that_only_delayed_is_forgotten() {
    let text = r#"
        title = "An outage that delays"
        duration = "26s"
        warmup = "18s"
        schedulers = ["auto"]
        [links.a]
        rate = "20mbit"
        delay = "25ms"
        [links.b]
        rate = "6mbit"
        delay = "40ms"
        [[workloads]]
        name = "live"
        from = "client"
        kind = "constant"
        flow = "packets"
        ordered = "yes"
        lifetime = "300ms"
        rate = "10mbit"
        size = 1316
        [[changes]]
        at = "8s"
        link = "a"
        set = { delay = "1500ms" }
        [[changes]]
        at = "10s"
        link = "a"
        set = { delay = "25ms" }
    "#;
    let carried = |seed| value(&run_of(text, &[], seed), "live.goodput_mbps");
    let carried = (1..=4).map(carried).sum::<f64>() / 4.0;
    // 8.2 if that is remembered.
    assert!(carried > 9.9, "{carried} Mb/s");
}
