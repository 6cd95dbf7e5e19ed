//! Links that a process draws: what networks do that no recording at hand shows, in shapes that
//! schedulers find hard.

use marline_base::{Duration, Rng};

use super::network::{Network, RoundTrip, loss};
use super::place::{FieldLink, Move, QUEUE, UP_SHARE};
use super::profile::{Profile, Step};

/// Processes give a rate for each of these stretches (ms): shorter than any fade of theirs.
const STEP: u64 = 100;
/// Means of the better link (kb/s): a slow phone to a good WiFi, as the recordings are scaled.
const BETTER: [f64; 2] = [6_000.0, 24_000.0];

/// What becomes of a link's rate and delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// Good, fair, faded and out of reach by turns.
    Lte,
    /// The same with a queue of 1.5 s: phone networks buffer for seconds rather than lose
    /// (`delay/wifi-tethered-lte-*`: 0.4 to 1 s under load).
    DeepLte,
    /// Another satellite every 15 s: a tenth of a second of nothing, then other rates and delays
    /// (Starlink's global schedule; Mohan et al., WWW 2024).
    Leo,
    /// WiFi whose user walks down a stairwell and comes back.
    Stairwell,
    /// A steady wire whose uplink has a tenth of the rate and a second of buffer.
    Dsl,
}

const PROCESSES: [Process; 5] = [
    Process::Lte,
    Process::DeepLte,
    Process::Leo,
    Process::Stairwell,
    Process::Dsl,
];

/// How the links of a place compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Balance {
    Equal,
    /// The last has a twentieth.
    Twentieth,
    /// The last carries nothing, or next to nothing.
    Useless,
    /// Each has between an eighth and all of the better one's.
    Any,
}

/// Shapes of places, one after the other.
const SHAPES: [(usize, Balance); 6] = [
    (2, Balance::Equal),
    (2, Balance::Twentieth),
    (2, Balance::Any),
    (3, Balance::Equal),
    (2, Balance::Useless),
    (3, Balance::Twentieth),
];

/// The links of the place with this number, over `length` ms, and what to call it.
pub(super) fn place(number: usize, length: u64, rng: &Rng) -> (String, Vec<FieldLink>) {
    let (count, balance) = SHAPES[number % SHAPES.len()];
    let mut rng = rng.stream("links");
    let better = between(BETTER, &mut rng);
    let mut links: Vec<FieldLink> = Vec::new();
    for place in 0..count {
        let process = PROCESSES[rng.below(PROCESSES.len() as u64) as usize];
        let last = place + 1 == count;
        let mean = match balance {
            Balance::Twentieth if last => better / 20.0,
            Balance::Useless if last && rng.chance(0.5) => 0.0,
            Balance::Useless if last => better / 500.0,
            Balance::Any if place > 0 => better * between([0.125, 1.0], &mut rng),
            _ => better,
        };
        let letter = char::from(b'a' + place as u8);
        links.push(link(process, letter, mean, length, &mut rng));
    }
    let names: Vec<&str> = links.iter().map(|link| &link.name[2..]).collect();
    let shape = match balance {
        Balance::Equal => "equal",
        Balance::Twentieth => "20:1",
        Balance::Useless => "one useless",
        Balance::Any => "unequal",
    };
    (format!("{number} {} {shape}", names.join("+")), links)
}

/// Even on a logarithmic scale.
fn between([low, high]: [f64; 2], rng: &mut Rng) -> f64 {
    low * (high / low).powf(rng.uniform())
}

fn link(process: Process, letter: char, mean: f64, length: u64, rng: &mut Rng) -> FieldLink {
    let network = match process {
        Process::Lte | Process::DeepLte => Network::Cellular,
        Process::Leo => Network::Leo,
        Process::Stairwell => Network::Wifi,
        Process::Dsl => Network::Fixed,
    };
    let (levels, moves) = match process {
        Process::Lte | Process::DeepLte => (fading(length, rng), Vec::new()),
        Process::Leo => satellites(length, rng),
        Process::Stairwell => (stairwell(length, rng), Vec::new()),
        Process::Dsl => (Profile::constant(length, 1.0), Vec::new()),
    };
    let down = levels.scaled(mean);
    let (up_share, queues) = match process {
        Process::DeepLte => (UP_SHARE, [Duration::from_millis(1_500); 2]),
        Process::Dsl => (0.1, [Duration::from_secs(1), QUEUE]),
        _ => (UP_SHARE, [QUEUE; 2]),
    };
    let deep = if process == Process::DeepLte {
        "-deep"
    } else {
        ""
    };
    FieldLink {
        name: format!("{letter}-{}{deep}", network.name()),
        network,
        up: down.clone().scaled(up_share),
        down,
        trip: network.round_trip(),
        loss: loss(rng),
        queues,
        moves,
    }
}

/// Rates over time with a mean of one.
fn levels(length: u64, mut level: impl FnMut(u64) -> f64) -> Profile {
    let mut steps = Vec::new();
    let mut at = 0;
    while at < length {
        let ms = STEP.min(length - at);
        steps.push(Step {
            ms,
            kbps: level(at),
        });
        at += ms;
    }
    let profile = Profile { steps };
    let mean = profile.mean();
    match mean > 0.0 {
        true => profile.scaled(1.0 / mean),
        false => profile,
    }
}

/// A Markov chain of four states, each left for any other: levels and mean times (s). A walk's
/// fades are near a second and its outages half of one (`link/lte`: longest gaps 0.3 to 2 s).
fn fading(length: u64, rng: &mut Rng) -> Profile {
    const STATES: [(f64, f64); 4] = [(1.6, 2.0), (0.9, 2.0), (0.25, 0.8), (0.0, 0.4)];
    let mut state = 0;
    levels(length, |_| {
        let (level, mean) = STATES[state];
        if rng.chance(STEP as f64 / 1e3 / mean) {
            state = (state + 1 + rng.below(STATES.len() as u64 - 1) as usize) % STATES.len();
        }
        level
    })
}

/// Times between handovers (ms).
const EVERY: u64 = 15_000;

fn satellites(length: u64, rng: &mut Rng) -> (Profile, Vec<Move>) {
    let phase = rng.below(EVERY);
    let mut level = 1.0;
    let mut moves = Vec::new();
    let trip = Network::Leo.round_trip();
    let profile = levels(length, |at| {
        let since = (at + phase) % EVERY;
        if since >= STEP {
            return level;
        }
        level = 0.5 + rng.uniform();
        // Recorded round trips of one drive have medians 41 to 49 ms and least ones 27 to 35.
        let mean = trip.mean * (0.75 + 0.5 * rng.uniform());
        let least = mean * 0.6;
        moves.push(Move {
            at: Duration::from_millis(at),
            trip: RoundTrip {
                least,
                mean,
                ..trip
            },
        });
        0.0
    });
    (profile, moves)
}

/// Full, then three seconds down to nothing, two to five of nothing, and full at once: the way back
/// is another access point's.
fn stairwell(length: u64, rng: &mut Rng) -> Profile {
    const FALL: u64 = 3_000;
    let leaves = (length as f64 * (0.35 + 0.25 * rng.uniform())) as u64;
    let back = leaves + FALL + 2_000 + rng.below(3_000);
    levels(length, |at| match at {
        at if at < leaves || at >= back => 1.0,
        at => 1.0 - (at - leaves).min(FALL) as f64 / FALL as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 24_000;

    fn places(seed: u64) -> Vec<(String, Vec<FieldLink>)> {
        let rng = Rng::new(seed);
        let each = |n: usize| place(n, LENGTH, &rng.stream(&format!("place {n}")));
        (0..24).map(each).collect()
    }

    #[test]
    fn places_follow_from_the_seed() {
        assert_eq!(places(1), places(1));
        assert_ne!(places(1), places(2));
    }

    #[test]
    fn shapes_are_as_they_are_called() {
        for (name, links) in places(3) {
            let means: Vec<f64> = links.iter().map(|link| link.down.mean()).collect();
            let last = means[means.len() - 1] / means[0];
            match name.as_str() {
                _ if name.ends_with("equal") && !name.ends_with("unequal") => {
                    assert!((last - 1.0).abs() < 1e-9, "{name}: {means:?}");
                }
                _ if name.ends_with("20:1") => assert!((last * 20.0 - 1.0).abs() < 1e-9),
                _ if name.ends_with("useless") => assert!(last < 0.01, "{name}: {means:?}"),
                _ => assert!((0.1..=1.0).contains(&last), "{name}: {means:?}"),
            }
            assert!(
                (BETTER[0]..=BETTER[1] * 1.001).contains(&means[0]),
                "{means:?}"
            );
            assert!(
                links
                    .iter()
                    .all(|link| (0.001..=0.005).contains(&link.loss))
            );
        }
    }

    #[test]
    fn processes_do_what_they_are_there_for() {
        let mut rng = Rng::new(9);
        let long = fading(200_000, &mut rng);
        let dark = long.steps.iter().filter(|step| step.kbps == 0.0).count();
        assert!(
            (20..400).contains(&dark),
            "{dark} of 2000 steps are outages"
        );
        let (rates, moves) = satellites(60_000, &mut rng);
        assert_eq!(moves.len(), 4, "a handover every 15 s");
        let dark = rates.steps.iter().filter(|step| step.kbps == 0.0).count();
        assert_eq!(dark, 4);
        let dying = stairwell(LENGTH, &mut rng);
        let dark = dying.steps.iter().filter(|step| step.kbps == 0.0).count();
        assert!((19..=51).contains(&dark), "{dark} steps of 0.1 s");
        assert!(dying.steps[0].kbps > 1.0 && dying.steps[LENGTH as usize / 100 - 1].kbps > 1.0);
        for profile in [long, rates, dying] {
            assert!((profile.mean() - 1.0).abs() < 1e-9);
        }
        let dsl = link(Process::Dsl, 'a', 8_000.0, LENGTH, &mut rng);
        assert_eq!((dsl.up.mean(), dsl.queues[0].as_secs()), (800.0, 1));
    }
}
