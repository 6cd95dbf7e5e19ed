//! Cells whose values are drawn.

use marline_base::text::units;
use marline_sim::scenario::{Document, Mistakes, explain};

const TEXT: &str = r#"
duration = "2s"
schedulers = ["edpf"]
links.a = { rate = "6mbit", delay = "10ms" }
links.b = { rate = "6mbit", delay = "10ms" }
workloads = [{ kind = "constant", name = "live", rate = "2mbit" }]
[draw]
count = 200
seed = 4
[draw.keys]
"links.a.rate" = "2mbit..20mbit"
"links.b.delay" = ["5ms", "0ms..80ms"]
"links.b.jitter" = "25%..50% of links.b.delay"
"workloads.live.rate" = "40%..60% of links.a.rate + links.b.rate"
"#;

fn parse(text: &str) -> Result<Document, Mistakes> {
    Document::parse("drawn.toml", text)
}

/// The values of a key over the cells, in numbers of this unit.
fn values(document: &Document, key: &str, unit: &str) -> Vec<f64> {
    let cells = document.drawn().into_iter();
    cells
        .map(|(_, values)| {
            let (_, value) = values.iter().find(|(known, _)| known == key).unwrap();
            let number = value
                .strip_suffix(unit)
                .unwrap_or_else(|| panic!("{value}"));
            number.parse().unwrap()
        })
        .collect()
}

#[test]
fn values_lie_in_their_ranges_and_fill_them() {
    let document = parse(TEXT).unwrap();
    let rates = values(&document, "links.a.rate", "mbit");
    assert!(
        rates.iter().all(|rate| (2.0..=20.0).contains(rate)),
        "{rates:?}"
    );
    // On a logarithmic scale half of them are below the geometric mean of the ends.
    let below = rates.iter().filter(|rate| **rate < 40_f64.sqrt()).count();
    assert!((80..=120).contains(&below), "{below} of 200");
    let delays = values(&document, "links.b.delay", "ms");
    let fixed = delays.iter().filter(|delay| **delay == 5.0).count();
    assert!((80..=120).contains(&fixed), "{fixed} of 200");
    // From zero on, the scale is linear: of the other half, a half.
    let above = delays.iter().filter(|delay| **delay > 40.0).count();
    assert!((30..=70).contains(&above), "{above} of 200");
}

#[test]
fn shares_are_of_what_was_drawn_and_written() {
    let document = parse(TEXT).unwrap();
    let rates = values(&document, "links.a.rate", "mbit");
    let loads = values(&document, "workloads.live.rate", "kbit");
    for (rate, load) in rates.iter().zip(loads) {
        let share = load / 1e3 / (rate + 6.0);
        // Three digits are written.
        assert!(
            (0.398..=0.602).contains(&share),
            "{load} kb/s of {rate} + 6 Mb/s"
        );
    }
    let scenarios = document.scenarios(&|_| Err("no files".into())).unwrap();
    assert_eq!(scenarios.len(), 200);
    for ((_, scenario), rate) in scenarios.iter().zip(rates) {
        let shown = scenario.links[0].up.to_string();
        let rate = units::rate(&format!("{rate}mbit")).unwrap();
        let rate = units::show_rate(rate);
        assert!(shown.contains(&format!("rate={rate},")), "{shown}");
    }
}

#[test]
fn a_narrow_range_is_drawn_from_within_its_ends() {
    for (range, ends) in [
        ("1.001mbit..1.004mbit", 1.001..=1.004),
        ("19.996mbit..20mbit", 19.996..=20.0),
        ("3.00159mbit..3.00159mbit", 3.00159..=3.00159),
    ] {
        let document = parse(&TEXT.replacen("2mbit..20mbit", range, 1)).unwrap();
        let mut rates = values(&document, "links.a.rate", "mbit");
        assert!(rates.iter().all(|rate| ends.contains(rate)), "{rates:?}");
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let wanted = if ends.start() < ends.end() { 10 } else { 1 };
        assert!(rates.len() >= wanted, "{rates:?}");
    }
}

#[test]
fn what_is_listed_is_what_the_cells_have() {
    let varied = "[vary]\n\"links.b.rate\" = [\"1mbit\", \"100mbit\"]\n[draw]";
    let mut document = parse(&TEXT.replacen("[draw]", varied, 1)).unwrap();
    document.set("draw.count=3").unwrap();
    for (_, values) in document.drawn() {
        let shown = |key: &str| &values.iter().find(|(known, _)| known == key).unwrap().1;
        let load = shown("workloads.live.rate");
        let (percent, of) = load.split_once("% of ").unwrap_or_else(|| panic!("{load}"));
        assert_eq!(of, "links.a.rate + links.b.rate");
        let percent: f64 = percent.parse().unwrap();
        assert!((40.0..=60.0).contains(&percent), "{percent}");
        assert!(shown("links.b.jitter").ends_with("ms"));
    }
    let scenarios = document.scenarios(&|_| Err("no files".into())).unwrap();
    let words = explain(&document, &scenarios[0].1);
    assert!(words.contains("links.b.rate: 1mbit, 100mbit"), "{words}");
    assert!(!words.contains("draw: 1, 2"), "{words}");
}

#[test]
fn a_cell_depends_on_its_seed_and_number_alone() {
    let document = parse(TEXT).unwrap();
    assert_eq!(document.drawn(), parse(TEXT).unwrap().drawn());
    let mut few = document.clone();
    few.set("draw.count=3").unwrap();
    assert_eq!(few.cells().len(), 3);
    assert_eq!(few.drawn(), document.drawn()[..3]);
    let mut other = document.clone();
    other.set("draw.seed=5").unwrap();
    assert_ne!(other.drawn()[0], document.drawn()[0]);
    // A key less leaves the others.
    let mut fixed = document.clone();
    fixed.set("links.b.delay=30ms").unwrap();
    let rates = |document: &Document| values(document, "links.a.rate", "mbit");
    assert_eq!(rates(&fixed), rates(&document));
}

#[test]
fn seeds_share_no_cells() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 1..=10 {
        let document = parse(&TEXT.replace("seed = 4", &format!("seed = {seed}"))).unwrap();
        seen.extend(document.drawn().into_iter().map(|(_, values)| values));
    }
    assert_eq!(seen.len(), 10 * 200);
}

#[test]
fn a_key_that_a_flag_sets_or_varies_is_drawn_no_more() {
    let mut document = parse(TEXT).unwrap();
    document.set("links.b.delay=30ms").unwrap();
    document.set("draw.count=4").unwrap();
    document.vary("links.a.rate=3mbit,4mbit").unwrap();
    assert_eq!(document.cells().len(), 8);
    let scenarios = document.scenarios(&|_| Err("no files".into())).unwrap();
    for (cell, scenario) in scenarios {
        let [a, b] = [0, 1].map(|link: usize| scenario.links[link].up.to_string());
        let (_, rate) = cell.iter().find(|(key, _)| key == "links.a.rate").unwrap();
        assert!(a.contains(&format!("rate={rate}")), "{a}");
        assert!(b.contains("delay=30ms"), "{b}");
    }
}

#[test]
fn keys_without_quotes_are_drawn_no_more_either() {
    let bare = TEXT
        .replacen("\"links.a.rate\"", "links.a.rate", 1)
        .replacen("\"links.b.delay\"", "links.b.\"delay\"", 1);
    let mut document = parse(&bare).unwrap();
    document.set("links.b.delay=30ms").unwrap();
    document.set("draw.count=4").unwrap();
    document.vary("links.a.rate=3mbit,4mbit").unwrap();
    let scenarios = document.scenarios(&|_| Err("no files".into())).unwrap();
    assert_eq!(scenarios.len(), 8);
    let [a, b] = [0, 1].map(|link: usize| scenarios[0].1.links[link].up.to_string());
    assert!(a.contains("rate=3mbit,"), "{a}");
    assert!(b.contains("delay=30ms"), "{b}");
}

#[test]
fn mistakes_name_the_key_and_the_mend() {
    let cases = [
        ("count = 200", "", "draw.count", "is missing"),
        ("count = 200", "count = 0", "draw.count", "out of range"),
        ("seed = 4", "sead = 4", "draw.sead", "no such key"),
        (
            "2mbit..20mbit",
            "2mbit..20ms",
            "draw.keys.links.a.rate",
            "two units",
        ),
        (
            "2mbit..20mbit",
            "20mbit..2mbit",
            "draw.keys.links.a.rate",
            "ends before",
        ),
        (
            "2mbit..20mbit",
            "a..b",
            "draw.keys.links.a.rate",
            "not a range",
        ),
        (
            "2mbit..20mbit",
            "1mbit..2mbit of links.b.rate",
            "draw.keys.links.a.rate",
            "not a share",
        ),
        (
            "\"links.b.delay\" = [\"5ms\", \"0ms..80ms\"]",
            "\"links.b.delay\" = []",
            "draw.keys.links.b.delay",
            "no value",
        ),
        (
            "50% of links.b.delay",
            "50% of links.c.delay",
            "draw.keys.links.b.jitter",
            "`links.c.delay` has no value",
        ),
        (
            "+ links.b.rate",
            "+ links.b.delay",
            "draw.keys.workloads.live.rate",
            "cannot be added",
        ),
        (
            "\"links.a.rate\" = \"2m",
            "\"links.c.rate\" = \"2m",
            "draw.keys.links.c.rate",
            "no `c`",
        ),
        (
            "[draw]",
            "[vary]\n\"links.a.rate\" = [\"2mbit\"]\n[draw]",
            "vary.links.a.rate",
            "is drawn",
        ),
        (
            "[draw]",
            "[vary]\ndraw = [\"2mbit\"]\n[draw]",
            "vary.draw",
            "is drawn",
        ),
    ];
    for (old, new, key, message) in cases {
        assert!(TEXT.contains(old), "{old}");
        let text = TEXT.replacen(old, new, 1);
        let found =
            parse(&text).and_then(|document| document.scenarios(&|_| Err("no files".into())));
        let mistakes = found.expect_err(new);
        let first = &mistakes.list()[0];
        assert_eq!(first.key, key, "{mistakes}");
        assert!(first.message.contains(message), "{mistakes}");
        assert!(!first.mend.is_empty(), "{mistakes}");
    }
}
