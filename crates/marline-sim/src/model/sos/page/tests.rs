use super::*;
use crate::traces::PageObject;
use marline_link::{Capacity, ServiceTime};

/// Packets of 10 ms on one path and of 20 ms on the other, always.
fn links() -> Vec<LinkConfig> {
    let link = |mean| LinkConfig {
        capacity: Capacity::Service(ServiceTime::Normal {
            mean: Duration::from_millis(mean),
            sd: Duration::ZERO,
        }),
        ..LinkConfig::default()
    };
    vec![link(10), link(20)]
}

/// Size in packets, connection, and whether the page cannot be shown without it; all after the
/// document.
fn page(objects: &[(u64, u32, bool)]) -> Page {
    let object = |(id, (packets, connection, blocking)): (usize, &(u64, u32, bool))| PageObject {
        id,
        initiator: (id > 0).then_some(0),
        priority: 2,
        size: packets * 1000,
        connection: *connection,
        host: 0,
        start: Duration::ZERO,
        think: Duration::ZERO,
        render_blocking: *blocking,
    };
    Page {
        name: "page".into(),
        objects: objects.iter().enumerate().map(object).collect(),
    }
}

fn loaded(page: &Page, variant: &str) -> Loaded {
    let experiment = Experiment {
        links: links(),
        pages: vec![page.clone()],
        loads: 1,
        packet: 1000,
        request: Duration::from_millis(5),
    };
    let variant = variant.parse().unwrap();
    experiment.run(variant, 1).unwrap()[0]
}

#[test]
fn one_object_is_divided_so_that_both_paths_end_at_once() {
    // Of 30 packets, 20 take 200 ms on one path, and 10 on the other.
    let mut page = page(&[(1, 0, true), (30, 1, true)]);
    page.objects[0].size = 1;
    for variant in Variant::NAMES {
        let loaded = loaded(&page, variant);
        // Request, document, request, object.
        assert!(
            (loaded.whole - (5.0 + 10.0 + 5.0 + 200.0)).abs() < 1e-9,
            "{variant}: {loaded:?}"
        );
        assert_eq!(loaded.dom, loaded.whole);
    }
}

#[test]
fn what_the_page_needs_to_be_shown_goes_first_and_the_whole_takes_as_long() {
    let page = page(&[(1, 0, true), (300, 1, false), (6, 2, true)]);
    let (plain, first) = (loaded(&page, "edpf"), loaded(&page, "edpf-priority"));
    assert!(first.dom * 10.0 < plain.dom, "{first:?} {plain:?}");
    assert!(
        (first.whole / plain.whole - 1.0).abs() < 0.02,
        "{first:?} {plain:?}"
    );
}

#[test]
fn what_the_document_names_is_asked_for_while_it_comes_also_after_a_redirect() {
    let mut page = page(&[(1, 0, false), (20, 1, true), (1, 2, false)]);
    page.objects[2].initiator = Some(1);
    // Request, redirect, request, and 21 packets at 3 in 20 ms, of which the paths end together.
    let loaded = loaded(&page, "edpf");
    assert!(
        (loaded.whole - (5.0 + 10.0 + 5.0 + 140.0)).abs() < 1e-9,
        "{loaded:?}"
    );
}

#[test]
fn the_last_packet_of_what_is_urgent_is_raced_where_packets_are_coded() {
    // Three packets at 10 ms beside a path of 200 ms: an object that has to wait for that one waits
    // long.
    let page = page(&[(1, 0, true), (3, 1, true), (300, 2, false)]);
    let mut slow = links();
    slow[1].capacity = Capacity::Service(ServiceTime::Normal {
        mean: Duration::from_millis(200),
        sd: Duration::ZERO,
    });
    let load = |variant: &str| {
        let experiment = Experiment {
            links: slow.clone(),
            pages: vec![page.clone()],
            loads: 1,
            packet: 1000,
            request: Duration::from_millis(5),
        };
        experiment.run(variant.parse().unwrap(), 1).unwrap()[0]
    };
    let (plain, coded) = (load("edpf-priority"), load("sos-rateless-priority"));
    // Request, document, request, then three packets of the urgent one on the quick path alone.
    assert!(
        (coded.dom - (5.0 + 10.0 + 5.0 + 30.0)).abs() < 1e-9,
        "{coded:?}"
    );
    assert!(
        (coded.whole / plain.whole - 1.0).abs() < 0.02,
        "{plain:?} {coded:?}"
    );
}

#[test]
fn an_object_that_has_begun_is_not_interrupted_on_its_connection() {
    // The small one names the urgent one when the large one is under way.
    let page = |connection| {
        let large = (300, 1, false);
        let mut page = page(&[(1, 0, true), (1, 3, true), large, (2, connection, true)]);
        page.objects[3].initiator = Some(1);
        page
    };
    let (other, same) = (page(2), page(1));
    let (other, same) = (
        loaded(&other, "sos-priority"),
        loaded(&same, "sos-priority"),
    );
    assert!(other.dom * 5.0 < same.dom, "{other:?} {same:?}");
    assert!((other.whole / same.whole - 1.0).abs() < 0.02);
}

#[test]
fn names_stand_for_variants() {
    for name in Variant::NAMES {
        assert_eq!(name.parse::<Variant>().unwrap().to_string(), name);
    }
    assert!(
        "sos-first"
            .parse::<Variant>()
            .unwrap_err()
            .contains("sos-priority")
    );
}
