use super::*;
use crate::results::sample;

/// All texts of a plot.
fn texts(svg: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find("<text") {
        let open = start + rest[start..].find('>').unwrap() + 1;
        let close = open + rest[open..].find("</text>").unwrap();
        texts.push(rest[open..close].trim().to_owned());
        rest = &rest[close..];
    }
    texts
}

fn has(svg: &str, wanted: &[&str]) {
    let texts = texts(svg);
    for text in wanted {
        assert!(
            texts.iter().any(|known| known == text),
            "{text:?} is not in {texts:?}"
        );
    }
}

/// Every coordinate of a plot lies on it.
fn lies_on_the_sheet(svg: &str) {
    for list in svg.split("points=\"").skip(1) {
        let list = &list[..list.find('"').unwrap()];
        for point in list.split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (i32, i32) = (x.parse().unwrap(), y.parse().unwrap());
            assert!(
                (0..=1560).contains(&x) && (0..=4000).contains(&y),
                "{point}"
            );
        }
    }
}

#[test]
fn lines_have_axes_units_and_all_schedulers() {
    let results = sample::results();
    let groups = results.groups();
    let all: Vec<_> = groups.iter().collect();
    let measure = "video.in_order_delay.p99_ms";
    let svg = lines(&all, measure, "links.b.rtt", "Two paths").unwrap();
    has(
        &svg,
        &[
            "Two paths",
            "links.b.rtt (ms)",
            "video.in_order_delay.p99_ms (ms)",
        ],
    );
    has(&svg, &["edpf", "min-rtt", "20", "160"]);
    // Two schedulers at two values: a whisker with two caps each, and lines besides.
    assert!(svg.matches("<polyline").count() >= 4 * 3 + 2);
    lies_on_the_sheet(&svg);
}

#[test]
fn bars_stand_on_zero_with_a_name_each() {
    let results = sample::results();
    let groups = results.groups();
    let svg = bars(&[&groups[0], &groups[1]], "video.goodput_mbps", "Goodput").unwrap();
    has(
        &svg,
        &[
            "Goodput",
            "video.goodput_mbps (Mb/s)",
            "edpf",
            "min-rtt",
            "0",
        ],
    );
    lies_on_the_sheet(&svg);
}

#[test]
fn tails_are_logarithmic_and_name_all_schedulers() {
    let results = sample::results();
    let groups = results.groups();
    let svg = tail(&[&groups[2], &groups[3]], "video.in_order_delay", "Delays").unwrap();
    has(
        &svg,
        &[
            "Delays",
            "video.in_order_delay (ms)",
            "share of values above",
        ],
    );
    has(&svg, &["edpf", "min-rtt", "0.001", "0.01", "0.1", "1"]);
    lies_on_the_sheet(&svg);
}

#[test]
fn throughput_is_stacked_and_every_quantity_has_its_panel() {
    let results = sample::results();
    let panels = panels(&results.runs[0]);
    let names: Vec<_> = panels
        .iter()
        .map(|panel| (panel.quantity, panel.stacked))
        .collect();
    assert_eq!(names, [("throughput", true), ("cwnd", false)]);
    let svg = time(&panels[0], "Paths").unwrap();
    has(&svg, &["time (s)", "throughput (Mb/s)", "path.a", "path.b"]);
    lies_on_the_sheet(&svg);
    has(
        &time(&panels[1], "Windows").unwrap(),
        &["cwnd (kB)", "path.a"],
    );
}

#[test]
fn nothing_to_plot_is_an_empty_plot() {
    let mut results = sample::results();
    for run in &mut results.runs {
        run.values.clear();
        run.distributions.clear();
    }
    let groups = results.groups();
    let all: Vec<_> = groups.iter().collect();
    for svg in [
        lines(&all, "no", "links.b.rtt", "Empty").unwrap(),
        bars(&all, "no", "Empty").unwrap(),
        tail(&all, "no", "Empty").unwrap(),
    ] {
        assert!(svg.contains("Empty"));
    }
}

#[test]
fn titles_cannot_break_out_of_the_picture() {
    let results = sample::results();
    let groups = results.groups();
    let svg = bars(&[&groups[0]], "video.goodput_mbps", "a < \"b\" & <script>").unwrap();
    assert!(!svg.contains("<script>"), "{svg}");
    assert!(
        svg.contains("aria-label=\"a &lt; &quot;b&quot; &amp; &lt;script&gt;\""),
        "{svg}"
    );
}
