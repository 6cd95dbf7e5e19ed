//! A picture of a law before, during and after an outage.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};

use marline_base::Instant;
use marline_proto::observe::{Observer, Record};
use marline_proto::path::Foreseen;
use marline_proto::sched::AUTO;
use marline_proto::wire::PathId;

use crate::engine::End;
use crate::experiments;
use crate::run::run;
use crate::scenario::{Document, Watch};

/// The experiment: a live stream over two links; one of them goes dark.
const EXPERIMENT: (&str, &str) = ("field", "dark");
const SEED: u64 = 1;
/// What is shown (ms): one outage of the experiment with something of before and after.
const SHOWN: (f64, f64) = (9_400.0, 14_400.0);
/// Bands of the law by their probabilities, and how dark they are.
const BANDS: [(f64, f64, f64); 3] = [(0.01, 0.99, 0.18), (0.1, 0.9, 0.3), (0.3, 0.7, 0.5)];
/// Delays that are shown (ms), on a scale of logarithms.
const DELAYS: (f64, f64) = (8.0, 4_000.0);
/// The plots: left, right, and top and bottom of each.
const X: (f64, f64) = (70.0, 860.0);
const UPPER: (f64, f64) = (40.0, 300.0);
const LOWER: (f64, f64) = (330.0, 430.0);

/// A law as it was when a packet left.
#[derive(Clone, Debug)]
struct Moment {
    packet: u64,
    ms: f64,
    /// Quantiles of what arrives: the lower ends of the bands, the median, the upper ends (ms after
    /// departure).
    bands: [(f64, f64); BANDS.len()],
    median: f64,
    never: f64,
    dark: f64,
    arrived: Option<f64>,
}

/// The drawn picture, as SVG.
pub type Picture = String;

#[derive(Debug)]
struct Ear {
    seen: Arc<Mutex<Vec<Moment>>>,
    sends: bool,
}

impl Observer for Ear {
    fn on(&mut self, now: Instant, record: &Record) {
        if let Record::Received {
            path: PathId(0),
            packet,
            ..
        } = record
            && !self.sends
        {
            let ms = millis(now);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let mut sent = seen.iter_mut().rev();
            if let Some(moment) = sent.find(|moment| moment.packet == *packet) {
                moment.arrived.get_or_insert(ms - moment.ms);
            }
        }
    }

    fn foresees(&self) -> bool {
        self.sends
    }

    fn on_foreseen(&mut self, now: Instant, foreseen: &Foreseen) {
        let Some(law) = foreseen
            .law
            .as_deref()
            .filter(|_| foreseen.path == PathId(0))
        else {
            return;
        };
        let (ms, arrives) = (millis(now), 1.0 - law.loss());
        let place = |p: f64| {
            law.quantile(p * arrives)
                .map_or(f64::MAX, |at| at / 1e3 - ms)
        };
        let moment = Moment {
            packet: foreseen.packet,
            ms,
            bands: BANDS.map(|(low, high, _)| (place(low), place(high))),
            median: law.median() / 1e3 - ms,
            never: law.loss(),
            dark: foreseen.silence.dark,
            arrived: None,
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(moment);
    }
}

fn millis(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e6
}

/// Draws the picture from a run.
///
/// # Errors
/// That the experiment is not there or cannot be read.
pub fn picture() -> Result<Picture, String> {
    let all = experiments::all();
    let mut all = all.iter();
    let one = all.find(|one| (one.folder, one.name) == EXPERIMENT);
    let one = one.ok_or("the experiment is not there")?;
    let files = |file: &str| one.read(file, None);
    let cells = Document::parse(one.path, one.text).and_then(|file| file.scenarios(&files));
    let cells = cells.map_err(|mistakes| mistakes.to_string())?;
    let (_, mut scenario) = cells.into_iter().next().ok_or("it has no cell")?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let workloads = &scenario.sessions[0].workloads;
    let from = workloads.first().map_or(End::Client, |load| load.from);
    let shared = Arc::clone(&seen);
    scenario.watch = Watch::new(move |session| {
        Some(Box::new(Ear {
            seen: Arc::clone(&shared),
            sends: session.end == from,
        }))
    });
    run(&scenario, AUTO, SEED);
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let shown = |moment: &&Moment| (SHOWN.0..SHOWN.1).contains(&moment.ms);
    Ok(drawn(&seen.iter().filter(shown).collect::<Vec<_>>()))
}

fn x(ms: f64) -> f64 {
    X.0 + (ms - SHOWN.0) / (SHOWN.1 - SHOWN.0) * (X.1 - X.0)
}

fn delay(ms: f64) -> f64 {
    let part = (ms.clamp(DELAYS.0, DELAYS.1) / DELAYS.0).ln() / (DELAYS.1 / DELAYS.0).ln();
    UPPER.1 - part * (UPPER.1 - UPPER.0)
}

fn probability(p: f64) -> f64 {
    LOWER.1 - p * (LOWER.1 - LOWER.0)
}

fn line(points: impl Iterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

/// Writing into a string does not fail.
fn drawn(moments: &[&Moment]) -> Picture {
    let mut svg = String::new();
    let mut put = |text: String| {
        let _ = writeln!(svg, "{text}");
    };
    put(r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 490" font-family="sans-serif" font-size="13">"#.to_owned());
    put(r#"<rect width="900" height="490" fill="white"/>"#.to_owned());
    let label = |x: f64, y: f64, anchor: &str, text: &str| {
        format!(r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#)
    };
    put(label(
        X.0,
        24.0,
        "start",
        "A path's law of a packet that leaves at this time: bands hold 98, 80 and 40 % of arrivals",
    ));
    for ms in [10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0] {
        let y = delay(ms);
        put(format!(
            r##"<path d="M{} {y:.1}H{}" stroke="#ddd"/>"##,
            X.0, X.1
        ));
        put(label(X.0 - 8.0, y + 4.0, "end", &format!("{ms} ms")));
    }
    for p in [0.0, 0.5, 1.0] {
        let y = probability(p);
        put(format!(
            r##"<path d="M{} {y:.1}H{}" stroke="#ddd"/>"##,
            X.0, X.1
        ));
        put(label(
            X.0 - 8.0,
            y + 4.0,
            "end",
            &format!("{} %", 100.0 * p),
        ));
    }
    let mut second = (SHOWN.0 / 500.0).ceil() * 500.0;
    while second <= SHOWN.1 {
        put(label(
            x(second),
            LOWER.1 + 20.0,
            "middle",
            &format!("{} s", second / 1e3),
        ));
        second += 500.0;
    }
    for (n, (_, _, opacity)) in BANDS.iter().enumerate() {
        let upper = moments.iter().map(|m| (x(m.ms), delay(m.bands[n].1)));
        let lower = moments.iter().rev().map(|m| (x(m.ms), delay(m.bands[n].0)));
        let points = line(upper.chain(lower));
        put(format!(
            r##"<polygon points="{points}" fill="#0072b2" fill-opacity="{opacity}"/>"##
        ));
    }
    let median = line(moments.iter().map(|m| (x(m.ms), delay(m.median))));
    put(format!(
        r##"<polyline points="{median}" fill="none" stroke="#0072b2" stroke-width="1.5"/>"##
    ));
    for moment in moments {
        let at = x(moment.ms);
        put(match moment.arrived {
            Some(took) => format!(r#"<circle cx="{at:.1}" cy="{:.1}" r="1.6"/>"#, delay(took)),
            None => {
                let y = UPPER.0 + 4.0;
                let cross = format!("M{:.1} {}l6 6m0 -6l-6 6", at - 3.0, y - 3.0);
                format!(r##"<path d="{cross}" stroke="#d55e00" stroke-width="1.5"/>"##)
            }
        });
    }
    type Of = fn(&Moment) -> f64;
    let curves: [(&str, &str, Of); 2] = [("#d55e00", "", |m| m.never), ("#000", "5 4", |m| m.dark)];
    for (colour, dashes, of) in curves {
        let points = line(moments.iter().map(|m| (x(m.ms), probability(of(m)))));
        put(format!(
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dashes}"/>"#
        ));
    }
    put(label(
        X.0,
        LOWER.1 + 44.0,
        "start",
        "dots: arrivals; orange: packets that never came, and how likely that was; dashed: how likely the path is dark",
    ));
    put("</svg>".to_owned());
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_is_sure_before_doubts_during_and_is_sure_again() {
        let svg = picture().expect("the experiment is part of the program");
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("<circle") && svg.contains("#d55e00"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert_eq!(svg, picture().expect("it is drawn again"), "it repeats");
    }
}
