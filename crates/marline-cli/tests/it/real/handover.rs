use super::harness::{Figures, HandoverPlan, handover};
use std::time::Duration;

#[test]
fn nothing_is_lost_when_the_better_link_goes_dark() {
    let figures = handover(&HandoverPlan {
        scheduler: "auto".to_owned(),
        before: Duration::from_secs(2),
        dark: Duration::from_secs(3),
        after: Duration::from_secs(2),
    });
    println!("{}\n{figures}", Figures::HEAD);
    println!(
        "aims: silence 100 ms, p99 60 ms (benchmark: cargo bench -p marline-cli --bench handover)"
    );
    assert_eq!(figures.lost, 0, "{figures:?}");
    // No measure of speed but of sense: what waits for the link to come back is silent for 3 s.
    assert!(figures.silence < Duration::from_secs(1), "{figures:?}");
}
