//! Which scenarios real processes can run as they stand.

use marline_apps::options::DATAGRAM_LIFETIME;
use marline_base::{Instant, Rate};
use marline_lab::process::link_flags;
use marline_link::{LinkConfig, Outages};
use marline_proto::Config;
use marline_proto::wire::FlowKind;
use marline_sim::End;
use marline_sim::scenario::{DATAGRAM, Load, OVERHEAD, PathPlan, Scenario, WorkloadPlan};
use std::time::Duration;

/// Bytes of a message that say when it was written.
pub(in crate::commands) const HEAD: u32 = 16;
/// From the start of the relays to that of the stream: the processes start and dial. The simulated
/// stream begins as much later than its paths, because how idle they were shows afterwards.
pub(in crate::commands) const LEAD: Duration = Duration::from_secs(4);

/// A scenario that the simulator and real processes run alike, with one scheduler.
#[derive(Debug)]
pub(in crate::commands) struct Trial {
    /// As the scenario is called.
    pub(in crate::commands) name: String,
    pub(in crate::commands) scheduler: String,
    pub(in crate::commands) scenario: Scenario,
    /// Of the payload; `None` for as much as goes.
    pub(in crate::commands) rate: Option<Rate>,
    /// Of a message (bytes).
    pub(in crate::commands) size: u32,
}

/// The trials of a scenario, one a scheduler.
///
/// # Errors
/// What only the simulator can do, and what to write instead.
pub(in crate::commands) fn trials(
    name: &str,
    mut scenario: Scenario,
) -> Result<Vec<Trial>, String> {
    let (rate, size) = check(&scenario)?;
    // What a forward does without options.
    let flow = &mut scenario.sessions[0].workloads[0].flow;
    if flow.kind == FlowKind::Packets {
        flow.lifetime.get_or_insert(DATAGRAM_LIFETIME);
    }
    let schedulers = scenario.schedulers.clone();
    let trial = |scheduler| Trial {
        name: name.to_owned(),
        scheduler,
        scenario: scenario.clone(),
        rate,
        size,
    };
    Ok(schedulers.into_iter().map(trial).collect())
}

impl Trial {
    pub(in crate::commands) fn config(&self) -> &Config {
        &self.scenario.sessions[0].config
    }

    pub(in crate::commands) fn paths(&self) -> &[PathPlan] {
        &self.scenario.sessions[0].paths
    }

    pub(in crate::commands) fn workload(&self) -> &WorkloadPlan {
        &self.scenario.sessions[0].workloads[0]
    }

    /// What the simulator runs: everything later by [`LEAD`], except that the paths join.
    pub(in crate::commands) fn simulated(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.duration += LEAD;
        scenario.warmup += LEAD;
        scenario.sessions[0].workloads[0].starts += LEAD;
        for link in &mut scenario.links {
            (link.up, link.down) = (delayed(&link.up), delayed(&link.down));
        }
        scenario
    }

    /// The scheduler of the flow.
    pub(in crate::commands) fn flow_scheduler(&self) -> &str {
        let own = self.workload().flow.scheduler.as_deref();
        let session = self.scenario.sessions[0].scheduler.as_deref();
        own.or(session).unwrap_or(&self.scheduler)
    }

    /// Messages of a run; `None` of one that is a matter of speed.
    pub(in crate::commands) fn messages(&self) -> Option<u64> {
        let bytes = self.rate?.bytes_in(self.scenario.duration);
        Some(bytes / u64::from(self.size))
    }

    /// Does something happen at a time of its own?
    pub(in crate::commands) fn is_timed(&self) -> bool {
        let timed = |link: &LinkConfig| {
            matches!(
                link.outages,
                Outages::Scheduled(_) | Outages::Periodic { .. }
            )
        };
        let mut links = self.scenario.links.iter();
        links.any(|link| timed(&link.up) || timed(&link.down))
    }

    /// The flags of `marline link` for a link whose stream begins [`LEAD`] after it.
    pub(in crate::commands) fn flags(&self, link: usize) -> Vec<String> {
        let link = &self.scenario.links[link];
        link_flags(&delayed(&link.up), &delayed(&link.down))
    }
}

/// The link with its planned outages later by [`LEAD`].
fn delayed(config: &LinkConfig) -> LinkConfig {
    let mut config = config.clone();
    match &mut config.outages {
        Outages::Scheduled(list) => list.iter_mut().for_each(|one| one.start += LEAD),
        Outages::Periodic { first, .. } => first.start += LEAD,
        Outages::Never | Outages::Random { .. } => {}
    }
    config
}

fn check(scenario: &Scenario) -> Result<(Option<Rate>, u32), String> {
    let [session] = &scenario.sessions[..] else {
        return Err("it has several sessions; keep one".into());
    };
    let [workload] = &session.workloads[..] else {
        return Err("its session has several workloads; keep one".into());
    };
    let is_stream = workload.flow.kind == FlowKind::Stream;
    let (rate, size) = match workload.load {
        Load::Constant { rate, size } => (Some(rate), size),
        Load::Backlogged { size, bytes: None } if is_stream => (None, size),
        _ => {
            return Err(format!(
                "workload `{}` is neither `kind = \"constant\"` nor an endless stream of `kind = \"backlogged\"`",
                workload.name
            ));
        }
    };
    let wrong = |condition, message: &str| match condition {
        true => Err(message.to_owned()),
        false => Ok(()),
    };
    wrong(
        workload.from != End::Client,
        "its workload is sent by the server; write `from = \"client\"`",
    )?;
    wrong(
        !workload.flow.ordered,
        "its workload has no delay in order; leave `ordered` out",
    )?;
    wrong(
        workload.starts != Instant::ZERO || workload.stops.is_some(),
        "its workload does not run from beginning to end; leave `starts` and `stops` out",
    )?;
    wrong(
        workload.flow.kind.has_units(),
        "its flow is of blocks or objects; write `flow = \"stream\"` or `\"packets\"`",
    )?;
    let least = match workload.flow.kind {
        FlowKind::Packets => HEAD..=60_000,
        _ => HEAD..=1 << 20,
    };
    if !least.contains(&size) {
        let (from, to) = (least.start(), least.end());
        return Err(format!("its messages are not of {from} to {to} bytes"));
    }
    wrong(
        !scenario.cross.is_empty(),
        "it has cross traffic; leave [[cross]] out",
    )?;
    wrong(
        !scenario.changes.is_empty(),
        "it has [[changes]]; write darkness as the link's `outage = \"10s+2s\"`",
    )?;
    let moves = |path: &PathPlan| path.joins != Instant::ZERO || path.leaves.is_some();
    wrong(
        session.paths.iter().any(moves),
        "a path joins or leaves on the way; leave `joins` and `leaves` out",
    )?;
    let dear = |path: &PathPlan| path.cost > u32::from(u8::MAX);
    wrong(
        session.paths.iter().any(dear),
        "a path costs more than 255, the most of `--path`",
    )?;
    let told = Config {
        congestion: session.config.congestion,
        ..Config::default()
    };
    wrong(
        session.config != told,
        "it has [settings] that no flag of the programs sets; leave them out",
    )?;
    for link in &scenario.links {
        if (link.overhead, link.datagram) != (OVERHEAD, DATAGRAM) {
            return Err(format!(
                "link {} has an `overhead` or a `datagram` of its own; the programs' are fixed",
                link.name
            ));
        }
        for config in [&link.up, &link.down] {
            // A trace does not read back from its name.
            if config.to_string().parse().as_ref() != Ok(config) {
                return Err(format!("link {} cannot be written as flags", link.name));
            }
        }
    }
    Ok((rate, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_sim::experiments;
    use marline_sim::scenario::Document;

    const PLAIN: &str = r#"
        duration = "10s"
        schedulers = ["edpf", "min-rtt"]
        links.a = { rate = "8mbit", delay = "10ms", outage = "3s+1s" }
        links.b = { rate = "6mbit", up = { delay = "20ms" }, down = { delay = "30ms" } }
        workloads = [{ kind = "constant", rate = "4mbit", size = 1000, from = "client" }]
    "#;

    fn read(text: &str, sets: &[&str]) -> Result<Vec<Trial>, String> {
        let mut document = Document::parse("test.toml", text).unwrap();
        for set in sets {
            document.set(set).unwrap();
        }
        let cells = document.scenarios(&|_| Err("no files".into()));
        let (_, scenario) = cells.unwrap_or_else(|e| panic!("{e}")).swap_remove(0);
        trials("test", scenario)
    }

    #[test]
    fn a_trial_a_scheduler_with_the_links_as_flags() {
        let trials = read(PLAIN, &[]).unwrap();
        assert_eq!(trials.len(), 2);
        let trial = &trials[0];
        assert_eq!(trial.messages(), Some(5_000));
        assert!(trial.is_timed());
        assert_eq!(trial.flow_scheduler(), "edpf");
        // Three seconds of the stream are seven of the relay.
        let a = trial.flags(0);
        assert!(a.contains(&"--up-outage=7s+1s".to_owned()), "{a:?}");
        assert!(a.contains(&"--down-rate=8mbit".to_owned()), "{a:?}");
        let b = trial.flags(1);
        assert!(b.contains(&"--up-delay=20ms".to_owned()), "{b:?}");
        assert!(b.contains(&"--down-delay=30ms".to_owned()), "{b:?}");
        let simulated = trial.simulated();
        assert_eq!(simulated.duration, Duration::from_secs(14));
        assert_eq!(
            simulated.sessions[0].workloads[0].starts,
            Instant::ZERO + LEAD
        );
        assert!(simulated.links[0].up.to_string().contains("outage=7s+1s"));
        assert_eq!(trial.workload().flow.lifetime, Some(DATAGRAM_LIFETIME));
    }

    #[test]
    fn what_processes_cannot_do_is_refused_with_the_mend() {
        for (set, reason) in [
            ("links.a.overhead=20", "overhead"),
            ("links.b.datagram=1200", "datagram"),
            ("settings.ack-delay=9ms", "[settings]"),
            ("workloads.constant.from=server", "from = \"client\""),
            ("workloads.constant.ordered=false", "delay in order"),
            ("workloads.constant.size=12", "16 to"),
            ("workloads.constant.starts=1s", "`starts`"),
        ] {
            let refused = read(PLAIN, &[set]).unwrap_err();
            assert!(refused.contains(reason), "{set}: {refused}");
        }
    }

    #[test]
    fn what_ships_can_be_run_at_up_to_twenty_megabits() {
        let all = experiments::all();
        let shipped: Vec<_> = all.iter().filter(|e| e.folder == "validate").collect();
        assert!(shipped.len() >= 6, "{}", shipped.len());
        for one in shipped {
            let trials = read(one.text, &[]).unwrap_or_else(|e| panic!("{}: {e}", one.path));
            for trial in trials {
                assert!(trial.rate <= Some(Rate::from_mbps(20)), "{}", one.path);
            }
        }
    }
}
