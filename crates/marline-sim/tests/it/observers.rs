//! What observers hear of a session.

use std::sync::{Arc, Mutex};

use marline_proto::observe::{Observer, Observers, Record};
use marline_proto::{Config, Side};
use marline_sim::{End, Instant};

use crate::kit::{Lab, secs};

/// Writes down what it hears.
#[derive(Clone, Default)]
struct Notes {
    heard: Arc<Mutex<Vec<String>>>,
}

impl Observer for Notes {
    fn on(&mut self, now: Instant, record: &Record) {
        let text = format!("{} {record:?}", now.as_micros());
        self.heard.lock().unwrap().push(text);
    }
}

impl Notes {
    fn count(&self, word: &str) -> usize {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|text| text.contains(word)).count()
    }

    fn first(&self, word: &str) -> Option<usize> {
        let heard = self.heard.lock().unwrap();
        heard.iter().position(|text| text.contains(word))
    }
}

/// A client that is observed by these notes sends 200 kB over two links.
fn observed(notes: &Notes) -> Lab {
    let of_client = notes.clone();
    let client = Config {
        observers: Observers::new(move |_, side| {
            (side == Side::Client).then(|| Box::new(of_client.clone()) as Box<dyn Observer>)
        }),
        ..Config::default()
    };
    let mut lab = Lab::with(3, client, Config::default());
    lab.path("rate=10mbit,delay=10ms,queue=100ms");
    lab.path("rate=5mbit,delay=30ms,queue=100ms,loss=10%");
    lab.stream(End::Client, 200_000);
    lab.finish_within(secs(10));
    lab.run_for(secs(1));
    lab
}

#[test]
fn an_observer_of_the_configuration_hears_what_its_side_does() {
    let notes = Notes::default();
    drop(observed(&notes));
    for word in [
        "Sent {",
        "Acked {",
        "Lost {",
        "Heard {",
        "Received {",
        "PathMetrics(",
        "PathState {",
    ] {
        assert!(notes.count(word) > 0, "{word}");
    }
    // A flow is opened before anything of it leaves.
    assert_eq!(notes.count("FlowOpened {"), 1);
    assert!(notes.first("FlowOpened {") < notes.first("Emitted {"));
    // Every 100 ms at most, on two paths.
    let heard = notes.heard.lock().unwrap();
    let micros = |text: &String| text.split(' ').next().unwrap().parse::<u64>().unwrap();
    let length = micros(heard.last().unwrap()) / 100_000;
    drop(heard);
    assert!(notes.count("PathMetrics(") as u64 <= 2 * (length + 2));
}
