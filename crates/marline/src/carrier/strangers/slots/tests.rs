use super::*;
use std::net::IpAddr;
use tokio::time::advance;

const BOUNDS: Bounds = Bounds {
    all: 8,
    per_site: 4,
    reserved: 0,
    gives_way: Duration::ZERO,
    lingers: false,
};

fn guest(last: u8) -> Guest {
    Guest {
        site: IpAddr::from([192, 0, 2, last]).into(),
        proved: true,
        known: false,
    }
}

fn gone(slot: &Slot) -> bool {
    slot.gives_way.is_cancelled()
}

#[tokio::test(start_paused = true)]
async fn of_a_site_that_has_all_its_places_the_oldest_gives_way() {
    let slots = Slots::new(BOUNDS);
    let held: Vec<Slot> = (0..5).map(|_| slots.take(guest(1)).unwrap()).collect();
    let which: Vec<bool> = held.iter().map(gone).collect();
    assert_eq!(which, [true, false, false, false, false]);
    assert_eq!(slots.len(), 4);
    drop(held);
    assert_eq!(slots.len(), 0);
    assert!(lock(&slots.taken).by_owner.is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_all_are_taken_the_oldest_of_the_site_with_most_gives_way() {
    let slots = Slots::new(BOUNDS);
    let one = slots.take(guest(1)).unwrap();
    let many: Vec<Slot> = (0..4).map(|_| slots.take(guest(2)).unwrap()).collect();
    let few: Vec<Slot> = (0..3).map(|_| slots.take(guest(3)).unwrap()).collect();
    let _new = slots.take(guest(4)).unwrap();
    assert!(gone(&many[0]) && !gone(&one) && !few.iter().any(gone));
    // One more would have most of all.
    let _third = slots.take(guest(3)).unwrap();
    assert!(gone(&few[0]) && !gone(&many[1]));
    assert_eq!(slots.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn of_sites_that_have_one_each_the_oldest_gives_way() {
    let slots = Slots::new(BOUNDS);
    let held: Vec<Slot> = (0..200)
        .map(|last| slots.take(guest(last)).unwrap())
        .collect();
    assert_eq!(slots.len(), 8);
    assert!(held[..192].iter().all(gone) && !held[192..].iter().any(gone));
}

#[tokio::test(start_paused = true)]
async fn only_what_is_old_enough_gives_way() {
    let slots = Slots::new(Bounds {
        gives_way: Duration::from_secs(1),
        ..BOUNDS
    });
    let held: Vec<Slot> = (0..4).map(|_| slots.take(guest(1)).unwrap()).collect();
    assert!(slots.take(guest(1)).is_none() && !held.iter().any(gone));
    advance(Duration::from_secs(1)).await;
    assert!(slots.take(guest(1)).is_some() && gone(&held[0]));
}

#[tokio::test(start_paused = true)]
async fn what_lingers_counts_until_it_is_gone() {
    let bounds = Bounds {
        per_site: 8,
        lingers: true,
        ..BOUNDS
    };
    let slots = Slots::new(bounds);
    let mut held: Vec<Slot> = (0..8).map(|_| slots.take(guest(1)).unwrap()).collect();
    // The last place is given while the first one's connection is being left.
    assert!(gone(&held[0]) && !gone(&held[1]));
    assert_eq!(slots.len(), 8);
    assert!(slots.take(guest(2)).is_none());
    assert_eq!(slots.len(), 8);
    held.remove(0);
    assert!(slots.take(guest(2)).is_some());
}

#[tokio::test(start_paused = true)]
async fn places_are_reserved_for_known_sites_and_strangers_give_way_to_them() {
    let known = |last| Guest {
        known: true,
        ..guest(last)
    };
    let slots = Slots::new(Bounds {
        reserved: 2,
        gives_way: Duration::from_secs(1),
        ..BOUNDS
    });
    let strangers: Vec<Slot> = (0..6)
        .map(|last| slots.take(guest(last)).unwrap())
        .collect();
    assert!(slots.take(guest(9)).is_none());
    let mut held: Vec<Slot> = (0..2).map(|_| slots.take(known(10)).unwrap()).collect();
    assert!(slots.take(known(11)).is_none());
    advance(Duration::from_secs(1)).await;
    held.push(slots.take(known(11)).unwrap());
    assert!(gone(&strangers[0]));
    // A stranger ends no known one, however old.
    let _stranger = slots.take(guest(9)).unwrap();
    assert!(gone(&strangers[1]) && !held.iter().any(gone));
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_in_a_sites_name_does_not_count_against_it() {
    let unproved = Guest {
        proved: false,
        ..guest(1)
    };
    let slots = Slots::new(Bounds {
        per_site: 2,
        gives_way: Duration::from_secs(1),
        ..BOUNDS
    });
    let spoofed = [slots.take(unproved).unwrap(), slots.take(unproved).unwrap()];
    assert!(slots.take(unproved).is_none());
    let first = slots.take(guest(1)).unwrap();
    // What is proved counts against what is not.
    spoofed[0].proved();
    assert!(slots.take(guest(1)).is_none());
    advance(Duration::from_secs(1)).await;
    // And is not ended by it.
    drop(slots.take(unproved));
    assert!(!gone(&first) && !gone(&spoofed[0]) && gone(&spoofed[1]));
}

#[test]
fn at_least_one_place_is_given() {
    let slots = Slots::new(Bounds {
        all: 0,
        per_site: 0,
        reserved: 7,
        ..BOUNDS
    });
    assert!(slots.take(guest(1)).is_some());
}
