use super::super::cache::MAX_NAMES;
use super::super::shares::{MAX_WAITING, PLACES};
use super::*;
use marline::identity::PublicKey;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long name servers take that answer, and the system's resolver with those that do not.
const ANSWER: Duration = Duration::from_millis(20);
pub(in crate::proxy) const SILENCE: Duration = Duration::from_secs(10);

/// Answers every name after a while: those that end in `.silent` and `.wrong` with a failure.
#[derive(Debug, Clone, Default)]
pub(in crate::proxy) struct Fake(Arc<Mutex<FakeState>>);

#[derive(Debug, Default)]
struct FakeState {
    asked: Vec<Arc<str>>,
    at_once: usize,
    most_at_once: usize,
    settings: u64,
    /// There are no threads to be had.
    without_threads: bool,
}

impl Ask for Fake {
    fn ask(&self, name: Arc<str>, answer: Answer) {
        {
            let mut state = lock(&self.0);
            state.asked.push(Arc::clone(&name));
            if state.without_threads {
                drop(state);
                return drop(answer);
            }
            state.at_once += 1;
            state.most_at_once = state.most_at_once.max(state.at_once);
        }
        let this = self.clone();
        tokio::spawn(async move {
            let silent = name.ends_with(".silent");
            sleep(if silent { SILENCE } else { ANSWER }).await;
            lock(&this.0).at_once -= 1;
            answer.give(match silent || name.ends_with(".wrong") {
                true => Err(io::Error::other("no such name")),
                false => Ok(vec![(Ipv4Addr::new(192, 0, 2, 1), 0).into()]),
            });
        });
    }

    fn settings(&self) -> u64 {
        lock(&self.0).settings
    }
}

impl Fake {
    /// How often a name was asked for.
    pub(in crate::proxy) fn asked(&self, name: &str) -> usize {
        let state = lock(&self.0);
        state.asked.iter().filter(|other| ***other == *name).count()
    }

    fn asked_in_all(&self) -> usize {
        lock(&self.0).asked.len()
    }
}

fn resolver() -> (Resolver, Fake) {
    let fake = Fake::default();
    (Resolver::new(fake.clone()), fake)
}

fn client(number: u8) -> Share {
    Some(PublicKey::from_bytes([number; 32]))
}

/// Begins to look up `count` names of a client, `PREFIX0.silent` and so on.
fn look_up_silent(names: &Names, prefix: &str, count: usize) -> JoinSet<Found> {
    let mut set = JoinSet::new();
    for number in 0..count {
        let (names, name) = (names.clone(), format!("{prefix}{number}.silent"));
        set.spawn(async move { names.look_up(&name).await });
    }
    set
}

/// Lets everything run that does not wait for time to pass.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn what_many_want_is_asked_for_once_and_kept_for_a_while() {
    let (resolver, fake) = resolver();
    for (name, holds) in [("a.example", 10), ("a.wrong", 3)] {
        let mut set = JoinSet::new();
        for number in 0..100 {
            let names = resolver.of(client(number % 7));
            set.spawn(async move { names.look_up(name).await });
        }
        let found = set.join_all().await;
        assert!(found.iter().all(|other| *other == found[0]), "{found:?}");
        assert_eq!(found.len(), 100);
        assert_eq!(fake.asked(name), 1, "{name}");
        sleep(Duration::from_secs(holds) - 2 * ANSWER).await;
        let names = resolver.of(client(200));
        assert_eq!(names.look_up(name).await.is_ok(), name == "a.example");
        assert_eq!(fake.asked(name), 1, "{name}");
        sleep(2 * ANSWER).await;
        let _ = names.look_up(name).await;
        assert_eq!(fake.asked(name), 2, "{name}");
    }
    assert!(lock(&resolver.0.state).shares.is_idle());
}

#[tokio::test(start_paused = true)]
async fn new_settings_hold_at_once() {
    let (resolver, fake) = resolver();
    let names = resolver.of(None);
    names.look_up("a.example").await.unwrap();
    lock(&fake.0).settings += 1;
    names.look_up("a.example").await.unwrap();
    assert_eq!(fake.asked("a.example"), 2);
    // Nor does anybody wait for what was asked under the old ones, or get its answer.
    let old = look_up_silent(&names, "x", 1);
    settle().await;
    lock(&fake.0).settings += 1;
    let new = look_up_silent(&names, "x", 1);
    settle().await;
    assert_eq!(fake.asked("x0.silent"), 2);
    drop((old, new));
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_bounded() {
    let (resolver, _) = resolver();
    let mut set = JoinSet::new();
    for number in 0..MAX_NAMES + 500 {
        let names = resolver.of(client((number % 200) as u8));
        set.spawn(async move { names.look_up(&format!("{number}.example")).await });
    }
    assert!(set.join_all().await.iter().all(Result::is_ok));
    assert_eq!(lock(&resolver.0.state).cache.len(), MAX_NAMES);
}

#[tokio::test(start_paused = true)]
async fn silent_names_of_some_do_not_hold_up_others() {
    let (resolver, fake) = resolver();
    // Five clients with 16 sessions each.
    let mut hostile = Vec::new();
    for key in 0..5 {
        for session in 0..16 {
            let names = resolver.of(client(key));
            let prefix = format!("{key}-{session}-");
            hostile.push(look_up_silent(&names, &prefix, 40));
        }
    }
    settle().await;
    let start = Instant::now();
    // One after the other, for as long as they are at it, and longer than their names are waited
    // for.
    let names = resolver.of(client(99));
    for number in 0..300 {
        let before = Instant::now();
        names.look_up(&format!("{number}.example")).await.unwrap();
        assert!(
            before.elapsed() < 2 * ANSWER,
            "{number}: {:?}",
            before.elapsed()
        );
    }
    assert!(start.elapsed() >= PATIENCE);
    // And as many at once as a page has.
    let before = Instant::now();
    let mut set = JoinSet::new();
    for number in 0..20 {
        let names = names.clone();
        set.spawn(async move { names.look_up(&format!("page{number}.example")).await });
    }
    assert!(set.join_all().await.iter().all(Result::is_ok));
    assert!(before.elapsed() < 10 * ANSWER, "{:?}", before.elapsed());
    assert!(lock(&fake.0).most_at_once <= PLACES);
    for set in hostile {
        assert!(set.join_all().await.iter().all(Result::is_err));
    }
    sleep(2 * SILENCE).await;
    assert!(lock(&resolver.0.state).shares.is_idle());
    assert!(lock(&resolver.0.state).wanted.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_client_alone_takes_a_part_of_the_places() {
    let (resolver, fake) = resolver();
    let set = look_up_silent(&resolver.of(client(1)), "x", 600);
    settle().await;
    assert_eq!(lock(&resolver.0.state).shares.free(), PLACES - 13);
    assert_eq!(fake.asked_in_all(), 13);
    drop(set);
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_gives_its_place_in_the_queue_back_and_what_was_asked_keeps_its_own() {
    let (resolver, fake) = resolver();
    let names = resolver.of(client(1));
    let set = look_up_silent(&names, "x", 600);
    settle().await;
    let asked = fake.asked_in_all();
    drop(set);
    settle().await;
    assert_eq!(lock(&resolver.0.state).shares.free(), PLACES - asked);
    // The client's next one waits for its own, and for nobody else's.
    let next = names.look_up("a.example");
    assert_eq!(next.await, Err(Failure::Silent));
    sleep(SILENCE).await;
    assert_eq!(fake.asked_in_all(), asked);
    assert!(lock(&resolver.0.state).shares.is_idle());
    assert!(lock(&resolver.0.state).wanted.is_empty());
    names.look_up("a.example").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_name_does_not_wait_in_the_queue_of_another_client() {
    let (resolver, fake) = resolver();
    let hostile = resolver.of(client(1));
    let set = look_up_silent(&hostile, "x", 100);
    let wanted = tokio::spawn(async move { hostile.look_up("popular.example").await });
    settle().await;
    assert_eq!(fake.asked("popular.example"), 0);
    let before = Instant::now();
    let honest = resolver.of(client(2));
    honest.look_up("popular.example").await.unwrap();
    assert!(before.elapsed() < 2 * ANSWER);
    // The other gets the answer, too.
    wanted.await.unwrap().unwrap();
    assert_eq!(fake.asked("popular.example"), 1);
    drop(set);
}

#[tokio::test(start_paused = true)]
async fn what_waits_in_several_queues_is_asked_for_once() {
    let (resolver, fake) = resolver();
    let mut set = JoinSet::new();
    for key in [1, 2] {
        // More than a client may have asked at a time, and one that both want.
        for number in 0..20 {
            let (names, name) = (resolver.of(client(key)), format!("{key}-{number}.example"));
            set.spawn(async move { names.look_up(&name).await });
        }
        let names = resolver.of(client(key));
        set.spawn(async move { names.look_up("popular.example").await });
    }
    settle().await;
    assert_eq!(fake.asked("popular.example"), 0);
    assert!(set.join_all().await.iter().all(Result::is_ok));
    assert_eq!(fake.asked("popular.example"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_bounded() {
    let (resolver, _) = resolver();
    let names = resolver.of(client(1));
    let set = look_up_silent(&names, "x", 13 + MAX_WAITING);
    settle().await;
    assert_eq!(names.look_up("a.example").await, Err(Failure::TooMany));
    resolver.of(client(2)).look_up("a.example").await.unwrap();
    drop(set);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_waited_for_is_not_waited_for_again() {
    let (resolver, fake) = resolver();
    let names = resolver.of(client(1));
    assert_eq!(names.look_up("a.silent").await, Err(Failure::Silent));
    let before = Instant::now();
    assert_eq!(names.look_up("a.silent").await, Err(Failure::Silent));
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(fake.asked("a.silent"), 1);
}

#[tokio::test(start_paused = true)]
async fn without_threads_every_name_fails_and_none_for_long() {
    let (resolver, fake) = resolver();
    let names = resolver.of(client(1));
    let set = look_up_silent(&names, "x", 13);
    settle().await;
    // All that wait are begun in one go, however many they are.
    let more = look_up_silent(&names, "y", MAX_WAITING);
    settle().await;
    lock(&fake.0).without_threads = true;
    drop(set);
    sleep(SILENCE).await;
    assert!(more.join_all().await.iter().all(Result::is_err));
    let other = resolver.of(client(2));
    assert_eq!(other.look_up("a.example").await, Err(Failure::NotAsked));
    lock(&fake.0).without_threads = false;
    other.look_up("a.example").await.unwrap();
}

#[tokio::test]
async fn the_system_knows_localhost() {
    let resolver = Resolver::new(super::super::threads::Threads);
    let found = resolver.of(None).look_up("localhost").await.unwrap();
    assert!(
        found.iter().all(|address| address.ip().is_loopback()),
        "{found:?}"
    );
    assert!(!found.is_empty());
}
