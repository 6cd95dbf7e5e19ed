use super::files::Folder;
use super::*;
use marline_proto::path::PathState;
use marline_proto::wire::{FlowId, FlowKind, PathId};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn trace(name: &str) -> Trace {
    Trace {
        name: name.to_owned(),
        side: Side::Client,
        clock: Clock::Monotonic(at(0), SystemTime::UNIX_EPOCH),
        scenario: None,
    }
}

/// The folder's files in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

/// The texts of a file: the header, then the events.
fn texts(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    let rest = text.strip_prefix('\u{1e}').expect("a record separator");
    let read = |text: &str| {
        let text = text.strip_suffix('\n').expect("a line end");
        serde_json::from_str(text).unwrap()
    };
    rest.split('\u{1e}').map(read).collect()
}

fn sent(packet: u64) -> Record {
    Record::Sent {
        path: PathId(3),
        packet,
        size: 1_200,
        in_flight: 2_400,
    }
}

/// This time after the session began.
const fn at(ms: u64) -> Instant {
    Instant::from_millis(64_000 + ms)
}

#[test]
fn a_file_has_a_header_and_events_and_is_its_owner_s() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    let qlog = Qlog::start(&inner, DEFAULT_SIZE, WhenFull::Drop).unwrap();
    let mut observer = qlog.observer(trace("test"));
    let (path, flow) = (PathId(3), FlowId(4));
    observer.on(
        at(1),
        &Record::PathNamed {
            path,
            name: "wlan0".into(),
        },
    );
    observer.on(
        at(2),
        &Record::PathState {
            path,
            state: PathState::Suspect,
            reason: "no answer".into(),
        },
    );
    observer.on(
        Instant::from_micros(64_002_500),
        &Record::FlowOpened {
            flow,
            kind: FlowKind::Packets,
            by_peer: true,
        },
    );
    observer.on(at(3), &sent(9));
    drop(observer);
    qlog.finish();

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    let [file] = &files(&inner)[..] else {
        panic!("one file: {:?}", files(&inner));
    };
    assert_eq!(file.file_name().unwrap(), "marline-test.000.sqlog");
    assert_eq!(mode(file), 0o600);
    let texts = texts(file);
    let header = &texts[0];
    assert_eq!(
        header["file_schema"],
        "urn:ietf:params:qlog:file:sequential"
    );
    assert_eq!(header["trace"]["vantage_point"]["type"], "client");
    let reference = &header["trace"]["common_fields"]["reference_time"];
    assert_eq!(reference["epoch"], "unknown");
    assert_eq!(reference["wall_clock_time"], "1970-01-01T00:00:00.000Z");
    let events: Vec<String> = texts[1..].iter().map(Value::to_string).collect();
    assert_eq!(
        events,
        [
            r#"{"data":{"path_name":"wlan0"},"name":"marline:path_assigned","time":1.0,"tuple":"3"}"#,
            r#"{"data":{"new":"suspect","trigger":"no answer"},"name":"marline:path_state_updated","time":2.0,"tuple":"3"}"#,
            r#"{"data":{"flow_id":4,"initiator":"remote","kind":"packets"},"name":"marline:flow_opened","time":2.5}"#,
            r#"{"data":{"bytes_in_flight":2400,"packet_number":9,"raw":{"length":1200}},"name":"marline:packet_sent","time":3.0,"tuple":"3"}"#,
        ]
    );
}

#[test]
fn files_turn_over_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("notes.sqlog");
    fs::write(&mine, "not ours").unwrap();
    let qlog = Qlog::start(folder.path(), LEAST_SIZE, WhenFull::Wait).unwrap();
    let mut observer = qlog.observer(trace("long"));
    let path = PathId(3);
    observer.on(
        at(0),
        &Record::PathNamed {
            path,
            name: "wlan0".into(),
        },
    );
    // Some 130 bytes each: four times what the folder may hold.
    let count = 4 * LEAST_SIZE / 130;
    for packet in 0..count {
        observer.on(at(packet), &sent(packet));
    }
    drop(observer);
    qlog.finish();
    assert!(mine.exists(), "what others wrote stays");
    let files: Vec<PathBuf> = files(folder.path());
    let ours: Vec<&PathBuf> = files.iter().filter(|file| **file != mine).collect();
    let size = |file: &&PathBuf| fs::metadata(file).unwrap().len();
    let all: u64 = ours.iter().map(size).sum();
    assert!(all <= LEAST_SIZE, "{all}");
    assert!(all > LEAST_SIZE / 2, "{all}");
    assert!(ours.iter().all(|file| size(file) < LEAST_SIZE / 16 + 200));
    // Each can be read alone, and together they are the end of what happened.
    let mut packets = Vec::new();
    for file in ours {
        let texts = texts(file);
        assert_eq!(texts[0]["trace"]["common_fields"]["group_id"], "long");
        assert_eq!(texts[1]["data"]["path_name"], "wlan0");
        let numbers = texts[2..]
            .iter()
            .map(|event| &event["data"]["packet_number"]);
        packets.extend(numbers.filter_map(Value::as_u64));
    }
    assert_eq!(packets.last(), Some(&(count - 1)));
    let following = packets.windows(2).all(|pair| pair[1] == pair[0] + 1);
    assert!(following, "no gap");
}

#[cfg(unix)]
#[test]
fn a_file_that_another_program_writes_stays() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, other] = [(); 2].map(|()| Folder::open(folder.path(), LEAST_SIZE).unwrap());
    let (file, path) = other.create("other", 0).unwrap();
    file.set_len(LEAST_SIZE).unwrap();
    assert!(!ours.make_room(1, &[]));
    assert!(path.exists());
    drop(file);
    assert!(ours.make_room(1, &[]), "nobody writes it any more");
    assert!(!path.exists());
}

/// A queue of this length that nobody writes yet.
fn unwritten(length: usize) -> (Qlog, Receiver<Message>) {
    let (queue, events) = sync_channel(length);
    let shared = Shared {
        sessions: AtomicU64::new(0),
        over: Arc::default(),
        done: Mutex::new(None),
    };
    let qlog = Qlog {
        queue,
        shared: Arc::new(shared),
        when_full: WhenFull::Drop,
    };
    (qlog, events)
}

#[test]
fn what_finds_the_queue_full_is_counted_in_the_file() {
    let (qlog, events) = unwritten(4);
    // Nobody writes yet: the beginning and three events fit.
    let mut observer = qlog.observer(trace("slow"));
    (0..10).for_each(|packet| observer.on(at(packet), &sent(packet)));
    let folder = tempfile::tempdir().unwrap();
    let over = Arc::clone(&qlog.shared.over);
    let opened = files::Folder::open(folder.path(), DEFAULT_SIZE).unwrap();
    let writer = Writer::new(opened, over);
    let thread = std::thread::spawn(move || writer.run(&events));
    while qlog
        .queue
        .try_send(Message::Event(99, at(0), Event::Dropped(0)))
        .is_err()
    {
        std::thread::yield_now();
    }
    observer.on(at(10), &sent(10));
    drop(observer);
    drop(qlog);
    thread.join().unwrap();
    let texts = texts(&files(folder.path())[0]);
    let (mut written, mut missing) = (0, 0);
    for event in &texts[1..] {
        match event["name"].as_str() {
            Some("marline:packet_sent") => written += 1,
            Some("marline:events_dropped") => missing += event["data"]["count"].as_u64().unwrap(),
            other => panic!("{other:?}"),
        }
    }
    assert!(missing >= 6, "{missing}");
    assert_eq!(written + missing, 11);
}

#[test]
fn a_session_that_begins_when_the_queue_is_full_is_written_all_the_same() {
    let (qlog, events) = unwritten(1);
    let mut first = qlog.observer(trace("first"));
    let mut late = qlog.observer(trace("late"));
    (0..5).for_each(|packet| late.on(at(packet), &sent(packet)));
    let folder = tempfile::tempdir().unwrap();
    let opened = files::Folder::open(folder.path(), DEFAULT_SIZE).unwrap();
    let writer = Writer::new(opened, Arc::clone(&qlog.shared.over));
    let thread = std::thread::spawn(move || writer.run(&events));
    for packet in 5..20 {
        std::thread::sleep(Duration::from_millis(5));
        late.on(at(packet), &sent(packet));
    }
    first.on(at(20), &sent(20));
    drop((first, late, qlog));
    thread.join().unwrap();
    let file = folder.path().join("marline-late.000.sqlog");
    let count = |event: &Value| match event["name"].as_str() {
        Some("marline:events_dropped") => event["data"]["count"].as_u64().unwrap(),
        _ => 1,
    };
    assert_eq!(texts(&file)[1..].iter().map(count).sum::<u64>(), 20);
}

#[cfg(target_os = "linux")]
#[test]
fn sessions_that_are_over_hold_no_files_while_another_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let qlog = Qlog::start(folder.path(), DEFAULT_SIZE, WhenFull::Wait).unwrap();
    let mut busy = qlog.observer(trace("busy"));
    let open = || {
        let all = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let files = all.filter_map(|entry| fs::read_link(entry.path()).ok());
        files.filter(|file| file.starts_with(folder.path())).count()
    };
    for number in 0..50 {
        let mut brief = qlog.observer(trace(&format!("brief-{number}")));
        brief.on(at(number), &sent(number));
    }
    // Half a minute, for a busy machine; never is it quiet for a second.
    for packet in 0..30_000 {
        busy.on(at(100 + packet), &sent(packet));
        std::thread::sleep(Duration::from_millis(1));
        if files(folder.path()).len() == 51 && open() <= 1 {
            return;
        }
    }
    panic!("{} are open", open());
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Qlog::start(&file, DEFAULT_SIZE, WhenFull::Drop).is_err());
    assert!(Qlog::start(&file.join("below"), DEFAULT_SIZE, WhenFull::Drop).is_err());
}
