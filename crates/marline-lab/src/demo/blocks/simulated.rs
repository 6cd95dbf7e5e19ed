//! The same blocks over the same links in the simulator.

use super::report::Lateness;
use super::tally::lateness;
use super::{Options, SIMULATED, session};
use marline_proto::sched::Choice;
use marline_sim::results::Fraction;
use marline_sim::run::run;
use marline_sim::scenario::{Document, Mistakes, Scenario};

/// What becomes of the blocks in virtual time, over this number of runs; `None` if the simulator
/// cannot run it, and a warning says why.
pub(super) async fn lateness_of(options: &Options, scheduler: Choice) -> Option<Lateness> {
    let scenario = match scenario(options, scheduler) {
        Ok(scenario) => scenario,
        Err(error) => {
            tracing::warn!(%error, "the simulator cannot run this");
            return None;
        }
    };
    let runs = tokio::task::spawn_blocking(move || {
        let fraction = |seed: &u64| {
            let run = run(&scenario, &scheduler.to_string(), *seed);
            run.fractions.get("blocks.block_lateness").copied()
        };
        scenario
            .seeds
            .iter()
            .filter_map(fraction)
            .collect::<Vec<Fraction>>()
    });
    lateness(&runs.await.ok()?)
}

/// The scenario of one scheduler.
fn scenario(options: &Options, scheduler: Choice) -> Result<Scenario, Mistakes> {
    let load = options.load;
    // Links have no text that says all of them: they are put in afterwards.
    let text = format!(
        r#"
        duration = "{}ms"
        warmup = "{}ms"
        seeds = {SIMULATED}
        schedulers = ["{scheduler}"]
        links.a = {{ rate = "1mbit" }}
        links.b = {{ rate = "1mbit" }}
        [[workloads]]
        name = "blocks"
        kind = "blocks"
        flow = "blocks"
        from = "client"
        size = "{}B"
        every = "{}us"
        deadline = "{}us"
        "#,
        options.time.as_millis(),
        options.warmup().as_millis(),
        load.size,
        load.every.as_micros(),
        load.deadline.as_micros(),
    );
    let document = Document::parse("demo", &text)?;
    let mut scenarios = document.scenarios(&|_| Err("no files".to_owned()))?;
    let (_, mut scenario) = scenarios.swap_remove(0);
    for (plan, link) in scenario.links.iter_mut().zip(&options.links) {
        (plan.up, plan.down) = (link.clone(), link.clone());
    }
    for session in &mut scenario.sessions {
        session.config = session::config(scheduler);
    }
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::super::{DEFAULT_LINKS, DEFAULT_SCHEDULERS, Load};
    use super::*;
    use crate::demo::parse_link;
    use std::time::Duration;

    fn options(size: usize) -> Options {
        Options {
            links: DEFAULT_LINKS.map(|link| parse_link(link).unwrap()),
            schedulers: Vec::new(),
            load: Load {
                size,
                every: Duration::from_millis(25),
                deadline: Duration::from_millis(35),
                reliability: 0.98,
            },
            time: Duration::from_secs(3),
            seed: 1,
            processes: false,
        }
    }

    #[tokio::test]
    async fn every_default_scheduler_can_be_simulated() {
        for name in DEFAULT_SCHEDULERS.split(',') {
            let scheduler = name.parse().unwrap();
            let lateness = lateness_of(&options(60_000), scheduler).await.unwrap();
            // 2 s of blocks for each seed, from a drawn phase on.
            let blocks = 79 * SIMULATED..=80 * SIMULATED;
            assert!(blocks.contains(&lateness.blocks), "{name}: {lateness:?}");
        }
    }

    #[tokio::test]
    async fn larger_blocks_are_late_more_often() {
        let hop = "hop-jump:refuse=off".parse().unwrap();
        let small = lateness_of(&options(60_000), hop).await.unwrap();
        let large = lateness_of(&options(240_000), hop).await.unwrap();
        assert!(small.fraction < 0.02, "{small:?}");
        // Three times what the links carry.
        assert!(large.fraction > 0.9, "{large:?}");
    }
}
