use super::*;
use marline_base::Duration as Span;

const PATH: PathId = PathId(2);

const fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// A recorder whose session's clock is 500 ms behind its own, and the session's observer.
fn recorder() -> (Recorder, Box<dyn Observer>) {
    let recorder = Recorder::default();
    let mut tap = recorder.observer(Duration::from_millis(500), at(0));
    tap.on(
        at(0),
        &Record::PathNamed {
            path: PATH,
            name: "wlan0".into(),
        },
    );
    (recorder, tap)
}

/// A packet that is acknowledged 40 ms after it was sent, and arrived so much (ms) after that on a
/// clock that is 7 s ahead.
fn acked(tap: &mut dyn Observer, packet: u64, sent: u64, took: u64) {
    let record = Record::Sent {
        path: PATH,
        packet,
        size: 1_000,
        in_flight: 0,
    };
    tap.on(at(sent), &record);
    let record = Record::Acked {
        path: PATH,
        packet,
        size: 1_000,
        after: Span::from_millis(40),
        arrived_us: Some(1_000 * (sent + took + 7_000)),
        spurious: false,
    };
    tap.on(at(sent + 40), &record);
}

fn received(tap: &mut dyn Observer, packet: u64, ms: u64) {
    let record = Record::Received {
        path: PATH,
        packet,
        size: 500,
        duplicate: false,
    };
    tap.on(at(ms), &record);
}

fn lines(recorder: &Recorder) -> Vec<Line> {
    recorder.inner.lock().lines(0, u64::MAX)
}

#[test]
fn what_was_sent_is_recorded_where_it_was_sent_and_arrived() {
    let (recorder, mut tap) = recorder();
    // Before the beginning nothing is.
    acked(&mut *tap, 0, 100, 20);
    recorder.begin_at(Duration::from_millis(1_000), true);
    // The recording begins at 500 ms of the session's clock.
    acked(&mut *tap, 1, 515, 20);
    acked(&mut *tap, 2, 530, 28);
    tap.on(
        at(531),
        &Record::Sent {
            path: PATH,
            packet: 3,
            size: 1_000,
            in_flight: 0,
        },
    );
    let lost = Record::Lost {
        path: PATH,
        packet: 3,
        after: Span::from_millis(69),
    };
    tap.on(at(600), &lost);
    let lines = lines(&recorder);
    let window = |ms: u64| lines.iter().find(|line| line.ms == ms).map(|line| &line.up);
    assert!(lines.iter().all(|line| line.path == "wlan0"));
    // The first packet's way there is taken for half of its round trip.
    let (first, second) = (window(0).unwrap(), window(20).unwrap());
    assert_eq!(
        (first.sent, first.lost, &first.delays[..]),
        (1, 0, &[(15.0, 20.0)][..])
    );
    assert_eq!(
        (second.sent, second.lost, &second.delays[..]),
        (2, 1, &[(30.0, 28.0)][..])
    );
    assert_eq!(second.arrived, 1_000);
    assert_eq!(window(40).unwrap().arrived, 1_000);
    // It arrived after all.
    let late = Record::Acked {
        path: PATH,
        packet: 3,
        size: 1_000,
        after: Span::from_millis(100),
        arrived_us: None,
        spurious: true,
    };
    tap.on(at(631), &late);
    assert!(recorder.all().lines.iter().all(|line| line.up.lost == 0));
}

#[test]
fn gaps_in_what_arrives_are_losses_unless_they_are_filled() {
    let (recorder, mut tap) = recorder();
    recorder.begin_at(Duration::from_millis(500), true);
    received(&mut *tap, 10, 0);
    received(&mut *tap, 11, 5);
    // Two are missing in a silence of 90 ms, and one of them is only late.
    received(&mut *tap, 14, 95);
    let losses = |recorder: &Recorder| -> Vec<(u64, u64)> {
        let lost = lines(recorder)
            .into_iter()
            .map(|line| (line.ms, line.down.lost));
        lost.filter(|(_, lost)| *lost > 0).collect()
    };
    assert_eq!(losses(&recorder), [(20, 1), (60, 1)]);
    received(&mut *tap, 12, 96);
    assert_eq!(losses(&recorder), [(20, 1)]);
    let all = lines(&recorder);
    let sum = |of: fn(&Way) -> u64| all.iter().map(|line| of(&line.down)).sum::<u64>();
    assert_eq!((sum(|way| way.sent), sum(|way| way.arrived)), (5, 4 * 500));
}

#[test]
fn the_way_back_is_known_by_when_acknowledgements_were_written() {
    let (recorder, mut tap) = recorder();
    recorder.begin_at(Duration::from_millis(500), true);
    let heard = |written_us| Record::Heard {
        path: PATH,
        written_us,
    };
    // Nobody knows the peer's clock yet.
    tap.on(at(10), &heard(7_000_000));
    acked(&mut *tap, 1, 20, 20);
    tap.on(at(100), &heard(7_075_000));
    let down: Vec<(f64, f64)> = lines(&recorder)
        .into_iter()
        .flat_map(|line| line.down.delays)
        .collect();
    assert_eq!(down, [(75.0, 25.0)]);
}

#[test]
fn who_asks_gets_each_whole_window_once_and_nothing_is_kept_for_those_who_are_gone() {
    let (recorder, mut tap) = recorder();
    assert!(!tap.listens());
    let seconds = Duration::from_secs;
    let first = recorder.ask_at(seconds(1), None, false).unwrap();
    assert_eq!((first.lines.len(), first.next_ms), (0, 0));
    assert!(tap.listens());
    for n in 0..300 {
        if n % 100 == 0 {
            recorder.ask_at(Duration::from_millis(1_000 + 40 * n), Some(0), false);
        }
        acked(&mut *tap, n, 500 + 40 * n, 20);
    }
    // At 11.5 s, what is older than ten seconds is whole.
    let part = recorder.ask_at(Duration::from_millis(12_500), Some(0), false);
    let part = part.unwrap();
    assert_eq!(part.next_ms, 1_500);
    let times: Vec<u64> = part.lines.iter().map(|line| line.ms).collect();
    assert_eq!(times.first(), Some(&0));
    assert!(times.iter().all(|ms| *ms < 1_500));
    let rest = recorder.ask_at(Duration::from_millis(12_600), Some(part.next_ms), true);
    let rest = rest.unwrap();
    assert_eq!(rest.lines.first().map(|line| line.ms), Some(1_500));
    assert!(rest.lines.last().unwrap().ms > 11_000);
    // Nobody asks any more: a minute later nothing is recorded or kept.
    acked(&mut *tap, 300, 60_000, 20);
    assert!(!tap.listens());
    assert!(recorder.inner.lock().paths.is_empty());
    // Who asks for what is gone hears so, also when somebody else records by then.
    assert_eq!(recorder.ask_at(seconds(61), Some(11_000), false), None);
    assert!(recorder.ask_at(seconds(62), None, false).is_some());
    assert_eq!(recorder.ask_at(seconds(63), Some(11_000), false), None);
}

#[test]
fn a_modem_that_flaps_is_seen_until_the_end() {
    let (recorder, mut tap) = recorder();
    recorder.ask_at(Duration::from_secs(1), None, false);
    for path in 0..2 * MOST_PATHS as u64 {
        let ms = 1_000 + 100 * path;
        recorder.ask_at(Duration::from_millis(ms), Some(0), false);
        let sent = Record::Sent {
            path: PathId(path),
            packet: 0,
            size: 1_200,
            in_flight: 1_200,
        };
        tap.on(Instant::from_millis(ms), &sent);
    }
    let state = recorder.inner.lock();
    assert_eq!(state.paths.len(), MOST_PATHS);
    let last = state.paths.keys().map(|(_, path)| path.0).max();
    assert_eq!(last, Some(2 * MOST_PATHS as u64 - 1));
}

#[test]
fn memory_is_bounded_while_somebody_asks() {
    let (recorder, mut tap) = recorder();
    recorder.ask_at(Duration::from_secs(1), None, false);
    for second in 1..600_u64 {
        recorder.ask_at(Duration::from_secs(second), Some(0), false);
        (0..50).for_each(|n| acked(&mut *tap, second * 50 + n, second * 1_000 + 20 * n, 20));
    }
    let state = recorder.inner.lock();
    let kept = state.paths.values().map(|log| log.windows.len()).max();
    assert!(
        kept <= Some(((WHOLE_MS + KEPT_MS) / STEP_MS) as usize + 60),
        "{kept:?}"
    );
    let delays = state.paths.values().flat_map(|log| &log.windows);
    assert!(
        delays
            .clone()
            .all(|(up, _)| up.delays.len() <= DELAYS as usize)
    );
}
