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

/// A title, and the sample's schedulers.
fn about(title: &str) -> About<'_> {
    About {
        title,
        subtitle: "",
        schedulers: &["edpf", "min-rtt"],
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
    let svg = lines(&all, measure, "links.b.rtt", &about("Two paths")).unwrap();
    has(&svg, &["Two paths", "links.b.rtt (ms)", "ms"]);
    has(&svg, &["edpf", "min-rtt", "20", "160"]);
    // Two schedulers at two values: a whisker with two caps each, and lines besides.
    assert!(svg.matches("<polyline").count() >= 4 * 3 + 2);
    lies_on_the_sheet(&svg);
}

/// The drawn elements of a scheduler, of all its groups.
fn of_series(svg: &str, name: &str) -> String {
    let start = format!("<g class=\"series\" data-name=\"{name}\"");
    let groups = svg.split(&start).skip(1);
    groups
        .map(|group| group.split("</g>").next().unwrap_or_default())
        .collect()
}

/// The middles of the markers of a scheduler.
fn markers(svg: &str, name: &str) -> Vec<i32> {
    let drawn = of_series(svg, name);
    let polygons = drawn.split("<polygon ").skip(1);
    let middle = |polygon: &str| {
        let points = polygon.split("points=\"").nth(1).unwrap();
        let points = points.split('"').next().unwrap().split_whitespace();
        let all: Vec<i32> = points
            .map(|point| point.split_once(',').unwrap().0.parse().unwrap())
            .collect();
        (all.iter().min().unwrap() + all.iter().max().unwrap()) / 2
    };
    polygons.map(middle).collect()
}

#[test]
fn all_schedulers_of_a_sweep_stand_at_the_value_itself() {
    let results = sample::results();
    let groups = results.groups();
    let all: Vec<_> = groups.iter().collect();
    let measure = "video.in_order_delay.p99_ms";
    let svg = lines(&all, measure, "links.b.rtt", &about("Two paths")).unwrap();
    let (one, other) = (markers(&svg, "edpf"), markers(&svg, "min-rtt"));
    assert_eq!(one.len(), 2);
    for (a, b) in one.iter().zip(&other) {
        assert!((a - b).abs() <= 1, "{one:?} {other:?}");
    }
}

#[test]
fn seventeen_schedulers_differ_in_colour_or_dashes_and_can_be_switched() {
    let mut results = sample::results();
    let one = results.runs[0].clone();
    let names: Vec<String> = (0..17).map(|i| format!("scheduler-{i:02}")).collect();
    results.runs.clear();
    for (name, rtt) in names
        .iter()
        .flat_map(|name| [(name, "20ms"), (name, "160ms")])
    {
        let mut run = one.clone();
        run.scheduler.clone_from(name);
        run.cell.insert("links.b.rtt".to_owned(), rtt.to_owned());
        results.runs.push(run);
    }
    let groups = results.groups();
    let all: Vec<_> = groups.iter().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let about = About {
        schedulers: &names,
        ..about("Many")
    };
    let svg = lines(&all, "video.goodput_mbps", "links.b.rtt", &about).unwrap();
    let mut looks = std::collections::BTreeSet::new();
    for name in &names {
        assert!(svg.contains(&format!("<g class=\"key\" data-name=\"{name}\">")));
        let start = format!("<g class=\"series\" data-name=\"{name}\"");
        // Lines come before markers.
        let line = svg.split(&start).nth(1).unwrap();
        let (dashes, drawn) = line.split_once('>').unwrap();
        let colour = drawn.split("stroke=\"").nth(1).unwrap();
        looks.insert((dashes.to_owned(), colour[..7].to_owned()));
    }
    assert_eq!(looks.len(), 17, "{looks:?}");
    sheet::tests::assert_well_formed(&svg);
}

#[test]
fn an_interval_does_not_squeeze_the_bars_and_that_is_said() {
    let mut results = sample::results();
    results.runs.retain(|run| run.cell["links.b.rtt"] == "20ms");
    for run in &mut results.runs {
        let wide = run.scheduler == "min-rtt" && run.seed == 3;
        let value = if wide {
            70.0
        } else {
            20.0 + run.seed as f64 / 10.0
        };
        run.values
            .insert("video.in_order_delay.p99_ms".to_owned(), value);
    }
    let groups = results.groups();
    let all: Vec<_> = groups.iter().collect();
    let svg = bars(&all, "video.in_order_delay.p99_ms", &about("Delays")).unwrap();
    let said = texts(&svg).join(" ");
    assert!(
        said.contains("An arrow is an interval that goes on beyond the axis: min-rtt ("),
        "{said}"
    );
    // The mean of 36.7 has an interval of 72 to either side; its bar has most of the width.
    let drawn = of_series(&svg, "min-rtt");
    let width = drawn
        .split("<rect ")
        .nth(1)
        .unwrap()
        .split("width=\"")
        .nth(1)
        .unwrap();
    let width: u32 = width.split('"').next().unwrap().parse().unwrap();
    assert!(width > 900, "{width} of 1560 pixels");
    // A file of its own says what it is.
    let file = as_file(&svg);
    assert!(file.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
    sheet::tests::assert_well_formed(&file);
}

#[test]
fn bars_stand_on_zero_with_a_name_each() {
    let results = sample::results();
    let groups = results.groups();
    let svg = bars(
        &[&groups[0], &groups[1]],
        "video.goodput_mbps",
        &about("Goodput"),
    )
    .unwrap();
    has(&svg, &["Goodput", "Mb/s", "edpf", "min-rtt", "0"]);
    lies_on_the_sheet(&svg);
}

#[test]
fn tails_are_logarithmic_and_name_all_schedulers() {
    let results = sample::results();
    let groups = results.groups();
    let svg = tail(
        &[&groups[2], &groups[3]],
        "video.in_order_delay",
        &about("Delays"),
    )
    .unwrap();
    has(&svg, &["Delays", "ms", "share of values above"]);
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
    let svg = time(&panels[0], &about("Paths")).unwrap();
    has(&svg, &["time (s)", "Mb/s", "path.a", "path.b"]);
    lies_on_the_sheet(&svg);
    has(
        &time(&panels[1], &about("Windows")).unwrap(),
        &["kB", "path.a"],
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
        lines(&all, "no", "links.b.rtt", &about("Empty")).unwrap(),
        bars(&all, "no", &about("Empty")).unwrap(),
        tail(&all, "no", &about("Empty")).unwrap(),
    ] {
        assert!(svg.contains("Empty"));
    }
}

#[test]
fn titles_cannot_break_out_of_the_picture() {
    let results = sample::results();
    let groups = results.groups();
    let svg = bars(
        &[&groups[0]],
        "video.goodput_mbps",
        &about("a < \"b\" & <script>"),
    )
    .unwrap();
    assert!(!svg.contains("<script>"), "{svg}");
    assert!(
        svg.contains("aria-label=\"a &lt; &quot;b&quot; &amp; &lt;script&gt;\""),
        "{svg}"
    );
}
