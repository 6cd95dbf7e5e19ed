use super::*;
use proptest::prelude::*;

const HEADER: &str = r#"{"marline_recording":1,"step_ms":20,"began":"","by":""}"#;

fn parse(lines: &[&str]) -> Result<Recording, String> {
    let text = [&[HEADER][..], lines].concat().join("\n");
    Recording::parse("r.jsonl", &text).map_err(|error| error.to_string())
}

#[test]
fn windows_of_a_path_come_together() {
    let recording = parse(&[
        r#"{"ms":0,"path":"a","session":0,"up":{"sent":4,"lost":1,"arrived":300,"bulk":0,"delays":[[1.0,10.0],[6.0,12.0]]}}"#,
        r#"{"ms":0,"path":"b","up":{"sent":1,"delays":[[2.0,5.0]]}}"#,
        r#"{"ms":40,"path":"a","down":{"sent":2,"arrived":900,"delays":[[41.0,10.0]]}}"#,
        "",
    ])
    .unwrap();
    assert_eq!((recording.windows, recording.length_ms()), (3, 60));
    let [a, b] = &recording.paths[..] else {
        panic!("two paths");
    };
    assert_eq!((&*a.name, &*b.name), ("a", "b"));
    assert_eq!((a.up.windows[0].sent, a.up.windows[0].lost), (4, 1));
    assert_eq!(a.up.delays, [(1.0, 10.0), (6.0, 12.0)]);
    // What arrived in the third window was sent half a window before, at its middle: 10 ms.
    assert_eq!(a.down.windows.iter().map(|w| w.arrived).sum::<u64>(), 900);
}

#[test]
fn mistakes_are_named_with_file_line_and_mend() {
    let of = |text: &str| Recording::parse("r.jsonl", text).unwrap_err().to_string();
    assert!(
        of("").starts_with("r.jsonl, line 1: no recording"),
        "{}",
        of("")
    );
    assert!(of("t_ms,a_kbps\n0,1\n").contains("`marline record FILE`"));
    let newer = HEADER.replace("recording\":1", "recording\":2");
    assert!(of(&newer).contains("version 2"), "{}", of(&newer));
    let step = HEADER.replace("step_ms\":20", "step_ms\":0");
    assert!(of(&step).contains("step_ms is 0"), "{}", of(&step));
    let cases = [
        (r#"{"ms":10,"path":"a"}"#, "line 2: ms is 10"),
        (
            r#"{"ms":20,"way":"a"}"#,
            "line 2: no window of a path (column",
        ),
        (
            r#"{"ms":20,"path":"a","up":{"sent":-1}}"#,
            "line 2: no window",
        ),
        (
            r#"{"ms":20,"path":"a","up":{"delays":[[1e99,1]]}}"#,
            "line 2: a delay of 1 ms at",
        ),
        (
            r#"{"ms":20,"path":"a","up":{"sent":99999999}}"#,
            "line 2: 99999999 packets",
        ),
        (r#"{"ms":19999999980,"path":"a"}"#, "line 2: longer than"),
        (
            r#"{"ms":20,"path":"a","up":{"sent":1}}"#,
            "r.jsonl: no packet was acknowledged",
        ),
    ];
    for (line, expected) in cases {
        let error = parse(&[line]).unwrap_err();
        assert!(error.contains(expected), "{line}: {error}");
    }
    let backwards = [r#"{"ms":20,"path":"a"}"#, r#"{"ms":0,"path":"a"}"#];
    assert!(parse(&backwards).unwrap_err().contains("line 3: ms is 0"));
}

proptest! {
    #[test]
    fn any_text_is_a_recording_or_an_error(lines in prop::collection::vec(".{0,60}", 0..5)) {
        let _ = Recording::parse("r", &lines.join("\n"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let _ = parse(&lines);
    }

    /// Lines of the right form with any numbers are read or refused, and what is read can be made
    /// links of.
    #[test]
    fn any_numbers_are_links_or_an_error(
        windows in prop::collection::vec(
            (0_u64..9, 0_u64..1_000, 0_u64..2_000, 0_u64..10_000_000, -1e13..1e13_f64, -1e13..1e13_f64),
            1..9,
        ),
    ) {
        let mut ms = 0;
        let lines: Vec<String> = windows.into_iter().map(|(step, sent, lost, arrived, at, delay)| {
            ms += 20 * step;
            format!(r#"{{"ms":{ms},"path":"a","up":{{"sent":{sent},"lost":{lost},"arrived":{arrived},"bulk":{arrived},"delays":[[{at},{delay}]]}}}}"#)
        }).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        if let Ok(recording) = parse(&lines) {
            for link in crate::recording::links(&recording, 58) {
                for config in [link.up, link.down] {
                    let mut link = marline_link::Link::new(config, 1).unwrap();
                    let _ = link.offer(marline_base::Instant::from_millis(1_000), 1_000);
                }
            }
        }
    }
}
