//! More than the links carry.

use super::lossy::live_over;
use super::*;

/// Most of a stream of small packets, of 12 Mb/s over 6, is given up. The receiver is told so, of
/// many at once: a word for each, and one for each word that was lost, would take what the links
/// carry.
#[test]
fn what_is_given_up_makes_no_flood() {
    let links = r#"
        rate = "5mbit"
        delay = "40ms"
        loss = "10%"
        [links.b]
        rate = "1mbit"
        delay = "40ms"
    "#;
    for scheduler in ["hedge", "edpf"] {
        let sets = ["warmup=5s", "workloads.live.size=200"];
        let text = live_over(12, links).replace("hedge", scheduler);
        let run = run_of(&text, &sets, 1);
        let names = ["path.a.lost", "path.b.lost"];
        let sent: u64 = names.iter().map(|name| run.fractions[*name].trials).sum();
        let lost = run.fractions["live.undelivered"];
        let came = 1.0 - lost.hits as f64 / lost.trials as f64;
        // 12000 datagrams and 0.31; 127000 and 0.1 with a word for each.
        assert!(sent < 16_000 && came > 0.28, "{scheduler}: {sent} {came}");
    }
}
