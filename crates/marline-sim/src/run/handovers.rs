//! Random handovers become changes at times that a run's seed decides.

use marline_base::{Duration, Instant, Rng};

use crate::scenario::{CellPlan, Change, HandoverPlan, Scenario, Setting};

/// The changes of a run ascending by time: those of the scenario, and those that random handovers
/// make of `rng`.
pub(super) fn changes(scenario: &Scenario, rng: &Rng) -> Vec<Change> {
    let mut changes = scenario.changes.clone();
    let end = Instant::ZERO + scenario.duration;
    for handovers in &scenario.handovers {
        let link = &scenario.links[handovers.link];
        let home = CellPlan {
            up: link.up.clone(),
            down: link.down.clone(),
        };
        let rng = rng.stream(&format!("handovers of {}", link.name));
        draw(handovers, &home, rng, end, &mut changes);
    }
    // Stable: what happens at one time keeps its order.
    changes.sort_by_key(|change| change.at);
    changes
}

/// Exponential times between handovers; each leads to another of the cells, all equally likely.
fn draw(
    handovers: &HandoverPlan,
    home: &CellPlan,
    mut rng: Rng,
    end: Instant,
    changes: &mut Vec<Change>,
) {
    let cells: Vec<&CellPlan> = [home].into_iter().chain(&handovers.cells).collect();
    let mut here = 0;
    let mut at = Instant::ZERO;
    loop {
        let gap = rng.exponential() * handovers.every.as_nanos() as f64;
        // Counted from the end of the darkness: who searches a cell does not leave it yet.
        at += Duration::from_nanos(gap as u64);
        if at >= end {
            return;
        }
        let mut push = |at, setting| {
            changes.push(Change {
                at,
                link: handovers.link,
                setting,
            });
        };
        let others = cells.len() - 1;
        let step = 1 + ((rng.uniform() * others as f64) as usize).min(others.saturating_sub(1));
        here = (here + step) % cells.len();
        if handovers.dark > Duration::ZERO {
            push(
                at,
                Setting::Dark {
                    up: true,
                    down: true,
                },
            );
            at += handovers.dark;
            push(
                at,
                Setting::Dark {
                    up: false,
                    down: false,
                },
            );
        }
        let CellPlan { up, down } = cells[here].clone();
        push(
            at,
            Setting::Link {
                up: Box::new(up),
                down: Box::new(down),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_link::LinkConfig;

    fn cell(text: &str) -> CellPlan {
        let config: LinkConfig = text.parse().expect("a link");
        CellPlan {
            up: config.clone(),
            down: config,
        }
    }

    fn drawn(seed: u64, dark: Duration) -> Vec<Change> {
        let handovers = HandoverPlan {
            link: 0,
            every: Duration::from_secs(2),
            dark,
            cells: vec![cell("rate=2mbit"), cell("rate=3mbit")],
        };
        let mut changes = Vec::new();
        let end = Instant::ZERO + Duration::from_secs(20_000);
        draw(
            &handovers,
            &cell("rate=1mbit"),
            Rng::new(seed),
            end,
            &mut changes,
        );
        changes
    }

    /// What a change makes of the link, by its words.
    fn rates(changes: &[Change]) -> Vec<String> {
        let of = |change: &Change| match &change.setting {
            Setting::Link { up, .. } => Some(up.to_string()),
            Setting::Dark { .. } => None,
        };
        changes.iter().filter_map(of).collect()
    }

    #[test]
    fn gaps_are_exponential_and_each_handover_leads_to_another_cell() {
        let changes = drawn(1, Duration::ZERO);
        // 10 000 are expected, with a standard deviation of 100.
        assert!(
            (9_600..=10_400).contains(&changes.len()),
            "{}",
            changes.len()
        );
        let mut last = Instant::ZERO;
        let gaps: Vec<f64> = changes
            .iter()
            .map(|change| {
                let before = core::mem::replace(&mut last, change.at);
                change.at.since(before).as_secs_f64()
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        // Of an exponential time the second moment is twice the square of the mean.
        assert!(
            (square / (mean * mean) - 2.0).abs() < 0.15,
            "{square} of {mean}"
        );
        let rates = rates(&changes);
        assert!(rates.windows(2).all(|pair| pair[0] != pair[1]));
        for name in ["1mbit", "2mbit", "3mbit"] {
            let share = rates.iter().filter(|rate| rate.contains(name)).count();
            let share = share as f64 / rates.len() as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.02, "{name}: {share}");
        }
    }

    #[test]
    fn the_seed_decides_and_darkness_ends_in_the_new_cell() {
        let dark = Duration::from_millis(300);
        let at = |changes: Vec<Change>| changes.iter().map(|c| c.at).collect::<Vec<_>>();
        assert_eq!(at(drawn(3, dark)), at(drawn(3, dark)));
        assert_ne!(at(drawn(3, dark)), at(drawn(4, dark)));
        for three in drawn(3, dark).chunks(3) {
            let [begins, ends, cell] = three else {
                panic!("{three:?}");
            };
            assert!(matches!(
                begins.setting,
                Setting::Dark {
                    up: true,
                    down: true
                }
            ));
            assert_eq!(ends.at, begins.at + dark);
            assert!(matches!(
                ends.setting,
                Setting::Dark {
                    up: false,
                    down: false
                }
            ));
            assert_eq!(cell.at, ends.at);
            assert!(matches!(cell.setting, Setting::Link { .. }));
        }
    }
}
