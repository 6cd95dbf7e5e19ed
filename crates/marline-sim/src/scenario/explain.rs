//! A scenario in words.

use std::fmt::Write;

use marline_base::text::units::{show_rate, show_share, show_time};
use marline_base::{Duration, Instant, Rate};

use super::cells::Axis;
use super::document::Document;
use super::plan::{
    CellPlan, Change, CrossSource, Expectation, HandoverPlan, LinkPlan, Load, PathPlan, Scenario,
    SessionPlan, Setting, SizeLaw, WorkloadPlan,
};
use crate::engine::End;
use crate::model::{Demand, Feedback, Model};
use crate::results::DRAW;

/// Says in words what the document's runs do; `scenario` is that of its first cell.
pub fn explain(document: &Document, scenario: &Scenario) -> String {
    let mut text = Text(String::new());
    text.line(0, &scenario.title);
    if !scenario.about.is_empty() {
        text.line(0, &scenario.about);
    }
    text.line(0, "");
    text.line(0, &extent(document, scenario));
    text.line(0, "Links:");
    for link in &scenario.links {
        links(&mut text, link);
    }
    if let Some(blocks) = &scenario.blocks {
        text.line(0, "Without a protocol, upwards over these links:");
        text.line(
            1,
            &format!(
                "paths: {}; blocks of {} bytes every {}, within {}, in packets of {} bytes",
                link_names(scenario),
                blocks.block,
                show_time(blocks.every),
                show_time(blocks.deadline),
                blocks.packet
            ),
        );
    }
    if let Some(objects) = &scenario.objects {
        text.line(0, "Without a protocol, upwards over these links:");
        text.line(
            1,
            &format!(
                "paths: {}; {} objects of {} packets, one at a time",
                link_names(scenario),
                objects.objects,
                objects.packets
            ),
        );
    }
    if let Some(pages) = &scenario.pages {
        text.line(0, "Without a protocol, downwards over these links:");
        let count = pages.pages.len();
        let pages = format!("{count} pages, each loaded {} times", pages.loads);
        text.line(1, &format!("paths: {}; {pages}", link_names(scenario)));
    }
    if let Some(model) = &scenario.model {
        text.line(0, "Without a protocol, upwards over these links:");
        let names = model.paths.iter().map(|path| path.name.as_str());
        let names: Vec<&str> = names.collect();
        text.line(
            1,
            &format!("paths: {}; {}", names.join(", "), demand(model)),
        );
    }
    for session in &scenario.sessions {
        one_session(&mut text, scenario, session);
    }
    if !scenario.cross.is_empty() {
        text.line(0, "Traffic of others:");
    }
    for cross in &scenario.cross {
        let link = &scenario.links[cross.link].name;
        let when = span(cross.starts, cross.stops);
        let what = source(&cross.source);
        let from = end(cross.from);
        text.line(
            1,
            &format!(
                "{}: {what} on link {link} from the {from}s{when}",
                cross.name
            ),
        );
    }
    if !(scenario.changes.is_empty() && scenario.handovers.is_empty()) {
        text.line(0, "On the way:");
    }
    for one in &scenario.changes {
        change(&mut text, scenario, one);
    }
    for one in &scenario.handovers {
        handovers(&mut text, scenario, one);
    }
    // What is drawn is explained below; the numbers of the draws say nothing.
    let is_varied = |axis: &&Axis| axis.key() != DRAW;
    let varied: Vec<&Axis> = document.axes().iter().filter(is_varied).collect();
    if !varied.is_empty() {
        text.line(0, "Varied, in every combination (the above is the first):");
    }
    for axis in varied {
        let values: Vec<&str> = Axis::values(axis).collect();
        text.line(1, &format!("{}: {}", axis.key(), values.join(", ")));
    }
    let drawn = document.drawn();
    if !drawn.is_empty() {
        text.line(0, "Drawn (the above is the first):");
    }
    for (number, values) in drawn {
        let values: Vec<String> = values
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        text.line(1, &format!("{number}: {}", values.join(", ")));
    }
    if !scenario.expectations.is_empty() {
        text.line(0, "Expected:");
    }
    for one in &scenario.expectations {
        text.line(1, &expectation(one));
    }
    text.0
}

struct Text(String);

impl Text {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{:1$}{text}", "", 2 * depth);
    }
}

fn extent(document: &Document, scenario: &Scenario) -> String {
    let seeds = match &scenario.seeds[..] {
        [one] => format!("seed {one}"),
        [first, .., last] if last - first + 1 == scenario.seeds.len() as u64 => {
            format!("seeds {first} to {last}")
        }
        seeds => format!("{} seeds", seeds.len()),
    };
    let warmup = match scenario.warmup {
        Duration::ZERO => String::new(),
        warmup => format!(" (the first {} are not measured)", show_time(warmup)),
    };
    let turn = match scenario.turn {
        Duration::ZERO => String::new(),
        turn => format!(" Ends take {} a turn.", show_time(turn)),
    };
    let cells = document.cells().len();
    let runs = cells * scenario.schedulers.len() * scenario.seeds.len();
    format!(
        "{runs} runs of {}{warmup}: {cells} cell{}, {seeds}, schedulers {}.{turn}",
        show_time(scenario.duration),
        if cells == 1 { "" } else { "s" },
        scenario.schedulers.join(", "),
    )
}

fn link_names(scenario: &Scenario) -> String {
    let names = scenario.links.iter().map(|link| link.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

fn demand(model: &Model) -> String {
    let size = model.packet;
    let what = match model.demand {
        Demand::Saturated { .. } => format!("as many packets of {size} bytes as the links take"),
        Demand::Bursts { packets, every, .. } => format!(
            "bursts of {packets} packets of {size} bytes in the mean, every {} in the mean",
            show_time(every)
        ),
        Demand::Units {
            packets,
            every,
            random,
            ..
        } => {
            let mean = if random { " in the mean" } else { "" };
            let every = show_time(every);
            format!("{packets} packets of {size} bytes every {every}{mean}")
        }
    };
    let knows = match model.feedback {
        Feedback::Perfect => "arrivals are known at once".to_owned(),
        Feedback::Paced(back) | Feedback::Delayed(back) => {
            format!("arrivals are known {} later", show_time(back))
        }
    };
    format!("{what}; {knows}")
}

fn links(text: &mut Text, link: &LinkPlan) {
    let overhead = format!(
        "{} bytes around each datagram of up to {}",
        link.overhead, link.datagram
    );
    if link.up == link.down {
        text.line(
            1,
            &format!("{}: {} each way; {overhead}", link.name, link.up),
        );
        return;
    }
    text.line(1, &format!("{}: {overhead}", link.name));
    text.line(2, &format!("up (to the server)   {}", link.up));
    text.line(2, &format!("down (to the client) {}", link.down));
}

fn one_session(text: &mut Text, scenario: &Scenario, session: &SessionPlan) {
    let rate = session
        .config
        .congestion
        .rate()
        .map_or(String::new(), |rate| format!("={}", show_rate(rate)));
    let own = session.scheduler.as_ref();
    let own = own.map_or(String::new(), |own| format!(", always scheduler {own}"));
    let congestion = session.config.congestion.name();
    let budget = session.config.repair_budget;
    let budget = budget.map_or(String::new(), |budget| {
        format!(", repair symbols up to {} of its bytes", show_share(budget))
    });
    text.line(
        0,
        &format!(
            "Session {}: congestion {congestion}{rate}{own}{budget}",
            session.name
        ),
    );
    let paths: Vec<String> = session
        .paths
        .iter()
        .map(|one| path(scenario, one))
        .collect();
    text.line(1, &format!("paths: {}", paths.join("; ")));
    for workload in &session.workloads {
        text.line(1, &one_workload(workload));
    }
}

fn path(scenario: &Scenario, path: &PathPlan) -> String {
    let mut words = scenario.links[path.link].name.clone();
    words += &span(path.joins, path.leaves);
    if path.cost > 0 {
        words += &format!(", cost {}", path.cost);
    }
    if path.standby {
        words += ", standby";
    }
    words
}

/// When something is there, if not always.
fn span(from: Instant, to: Option<Instant>) -> String {
    let mut words = String::new();
    if from > Instant::ZERO {
        words += &format!(" from {}", moment(from));
    }
    if let Some(to) = to {
        words += &format!(" until {}", moment(to));
    }
    words
}

fn moment(at: Instant) -> String {
    show_time(at.since(Instant::ZERO))
}

const fn end(end: End) -> &'static str {
    match end {
        End::Client => "client",
        End::Server => "server",
    }
}

fn one_workload(workload: &WorkloadPlan) -> String {
    let flow = &workload.flow;
    let mut words = format!(
        "{}: the {} {}",
        workload.name,
        end(workload.from),
        load(&workload.load)
    );
    words += &format!("; {} flow", flow.kind.name());
    if !flow.ordered && !flow.kind.has_units() {
        words += " in any order";
    }
    words += &format!(", priority {}", flow.priority);
    if let Some(lifetime) = flow.lifetime {
        words += &format!(", given up after {}", show_time(lifetime));
    }
    if let Some(queue) = flow.queue {
        words += &format!(", refused when {queue} bytes wait");
    }
    if let Some(own) = &flow.scheduler {
        words += &format!(", always scheduler {own}");
    }
    words + &span(workload.starts, workload.stops)
}

fn load(load: &Load) -> String {
    match load {
        Load::Outside(outside) => format!("sends what {} does", outside.name()),
        Load::Constant { rate, size } => {
            format!("sends {size} bytes at a time, {} in all", show_rate(*rate))
        }
        Load::Backlogged { bytes, .. } => format!("sends {} as fast as it can", amount(*bytes)),
        Load::Batches {
            size,
            rate,
            before,
            pause,
            reopen,
        } => format!(
            "carries {} for {}, then sends batches of {size} bytes, {} apart, {}",
            rate.map_or("as much as it can".into(), show_rate),
            show_time(*before),
            show_time(*pause),
            match reopen {
                true => "each on a flow of its own",
                false => "on the same flow",
            }
        ),
        Load::Bursts {
            request,
            reply,
            burst,
            every,
            pause,
        } => format!(
            "asks in bursts of {burst} (mean), {} apart, {} of silence (mean) between; requests \
             {}, replies {}",
            show_time(*every),
            show_time(*pause),
            law(*request),
            law(*reply)
        ),
        Load::Blocks {
            size,
            every,
            deadline,
            ..
        } => format!(
            "sends a block of {size} bytes every {}, late after {}",
            show_time(*every),
            show_time(*deadline)
        ),
        Load::Objects {
            size,
            every,
            random,
        } => {
            let how = if *random { " on average" } else { "" };
            format!(
                "sends an object of {} every {}{how}",
                law(*size),
                show_time(*every)
            )
        }
        Load::Video {
            frames,
            period,
            playout,
        } => format!(
            "sends {} video frames in {}, again and again, each late after {}",
            frames.len(),
            show_time(*period),
            show_time(*playout)
        ),
        Load::Offload { steps } => format!(
            "asks and waits for the reply, {} request{} in turn",
            steps.len(),
            if steps.len() == 1 { "" } else { "s" }
        ),
        Load::Web {
            page,
            pause,
            reopen,
        } => {
            let bytes: u64 = page.iter().map(|object| object.size).sum();
            format!(
                "loads a page of {} objects, {bytes} bytes, again {} after it is complete{}",
                page.len(),
                show_time(*pause),
                if *reopen {
                    ", over new connections"
                } else {
                    ""
                }
            )
        }
        Load::Tcp {
            congestion,
            bytes,
            beyond,
        } => {
            let amount = amount(*bytes);
            let from = match beyond.is_zero() {
                true => String::new(),
                false => format!(", from {} beyond the tunnel", show_time(*beyond)),
            };
            format!("sends {amount} by TCP ({congestion}) from end to end{from}")
        }
    }
}

fn amount(bytes: Option<u64>) -> String {
    bytes.map_or("without end".into(), |bytes| format!("{bytes} bytes"))
}

fn law(law: SizeLaw) -> String {
    match law {
        SizeLaw::Constant(size) => format!("{size} bytes"),
        SizeLaw::Uniform(least, most) => format!("{least} to {most} bytes"),
        SizeLaw::LogNormal(mean, sd) => format!("{mean} ± {sd} bytes (log-normal)"),
        SizeLaw::Exponential(mean) => format!("{mean} bytes on average (exponential)"),
    }
}

fn source(source: &CrossSource) -> String {
    let packets =
        |rate: &Rate, size: &u32| format!("{} in packets of {size} bytes", show_rate(*rate));
    match source {
        CrossSource::Constant { rate, size } => packets(rate, size),
        CrossSource::Poisson { rate, size } => {
            format!("{} on average, at random", packets(rate, size))
        }
        CrossSource::OnOff {
            rate,
            size,
            on,
            off,
        } => format!(
            "{} for {} on average, then {} of silence",
            packets(rate, size),
            show_time(*on),
            show_time(*off)
        ),
        CrossSource::Tcp { congestion, bytes } => {
            format!("{} by TCP ({congestion})", amount(*bytes))
        }
    }
}

fn change(text: &mut Text, scenario: &Scenario, change: &Change) {
    let link = &scenario.links[change.link].name;
    let at = moment(change.at);
    match &change.setting {
        Setting::Dark { up, down } => {
            let what = match (up, down) {
                (true, true) => "goes dark",
                (true, false) => "goes dark upwards only",
                (false, true) => "goes dark downwards only",
                (false, false) => "comes back",
            };
            text.line(1, &format!("at {at} link {link} {what}"));
        }
        Setting::Link { up, down } if up == down => {
            text.line(1, &format!("at {at} link {link} becomes {up}"));
        }
        Setting::Link { up, down } => {
            text.line(
                1,
                &format!("at {at} link {link} becomes up {up}, down {down}"),
            );
        }
    }
}

fn handovers(text: &mut Text, scenario: &Scenario, plan: &HandoverPlan) {
    let link = &scenario.links[plan.link].name;
    let every = show_time(plan.every);
    let dark = match plan.dark {
        Duration::ZERO => String::new(),
        dark => format!(" after {} of darkness", show_time(dark)),
    };
    let line = format!(
        "at random times, {every} apart in the mean, link {link} moves{dark} to another of:"
    );
    text.line(1, &line);
    text.line(2, "what it is at the beginning");
    for cell in &plan.cells {
        let CellPlan { up, down } = cell;
        let words = match up == down {
            true => up.to_string(),
            false => format!("up {up}, down {down}"),
        };
        text.line(2, &words);
    }
}

fn expectation(one: &Expectation) -> String {
    let mut words = format!("{}: {} of {}", one.figure, one.measure, one.scheduler);
    if let Some(other) = &one.relative_to {
        words += &format!(" relative to {other}");
    }
    for (key, value) in &one.cell {
        words += &format!(", {key} = {value}");
    }
    for (what, bound) in [
        ("published", one.published),
        ("at least", one.least),
        ("at most", one.most),
    ] {
        if let Some(bound) = bound {
            words += &format!(", {what} {bound}");
        }
    }
    words
}
