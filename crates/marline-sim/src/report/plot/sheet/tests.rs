use super::*;

/// Every tag is closed in its order, attributes are quoted, and no letter that means something
/// stands for itself.
pub(crate) fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        let entities = text.split('&').skip(1);
        for entity in entities.chain(tag.split('&').skip(1)) {
            let name = entity.split(';').next().unwrap_or_default();
            assert!(
                ["amp", "lt", "gt", "quot", "apos"].contains(&name),
                "&{entity}"
            );
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        let name = tag.split([' ', '\n', '/']).next().unwrap_or_default();
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed.trim()), "</{closed}>"),
            None if tag.ends_with('/') || tag.starts_with(['?', '!']) => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?} are open");
}

/// Published values are the only circles; the legend has one more.
pub(crate) fn rings(svg: &str) -> usize {
    svg.matches("<circle").count().saturating_sub(1)
}

const NOTHING: Point = Point {
    series: 0,
    at: 0.0,
    value: None,
    interval: None,
    published: None,
    least: None,
    most: None,
    missed: false,
};

fn two(places: Places) -> Sheet {
    let point = |series, at, value| Point {
        series,
        at,
        value: Some(value),
        interval: Some((value - 1.0, value + 1.0)),
        published: (series == 0).then_some(value + 2.0),
        least: Some(3.0 + at),
        missed: value < 3.0,
        ..NOTHING
    };
    Sheet {
        title: "Loss < 1 % & \"more\"".to_owned(),
        series: vec!["edpf".to_owned(), "min-rtt".to_owned()],
        panels: vec![Panel {
            heading: "Figure 3, rtt=20ms".to_owned(),
            quantity: "video goodput (Mb/s)".to_owned(),
            group: 0,
            places,
            points: vec![
                point(0, 0.0, 5.0),
                point(0, 1.0, 6.0),
                point(1, 0.0, 2.0),
                point(1, 1.0, 4.0),
            ],
        }],
    }
}

#[test]
fn a_sheet_is_a_file_of_its_own_with_a_ring_for_each_published_value() {
    let names = vec!["steady".to_owned(), "shaky".to_owned()];
    for places in [Places::Names(names), Places::Numbers("loss (%)".to_owned())] {
        let svg = sheet(&two(places)).unwrap();
        assert_well_formed(&svg);
        assert!(svg.contains("xmlns=\"http://www.w3.org/2000/svg\""));
        assert_eq!(rings(&svg), 2);
        for text in [
            "video goodput (Mb/s)",
            "edpf",
            "min-rtt",
            "published",
            "missed",
        ] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}");
        }
    }
}

#[test]
fn what_is_not_there_is_not_in_the_legend() {
    let mut bare = two(Places::Numbers("loss (%)".to_owned()));
    for point in &mut bare.panels[0].points {
        *point = Point {
            series: 0,
            at: point.at,
            value: point.value,
            ..NOTHING
        };
    }
    let svg = sheet(&bare).unwrap();
    assert_eq!(svg.matches("<circle").count(), 0);
    for text in ["published", "missed", "bounds", "interval"] {
        assert!(!svg.contains(text), "{text}");
    }
}

#[test]
fn what_was_not_measured_is_a_cross_at_its_bound() {
    let mut sheet_of = two(Places::Numbers("loss (%)".to_owned()));
    sheet_of.panels[0].points = vec![Point {
        least: Some(1.0),
        missed: true,
        ..NOTHING
    }];
    assert_well_formed(&sheet(&sheet_of).unwrap());
    sheet_of.panels.clear();
    assert_well_formed(&sheet(&sheet_of).unwrap());
}
