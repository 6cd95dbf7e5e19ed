//! What many sessions cost a server: memory of an idle one, and the server's CPU, losses and delay
//! while each sends a live stream: `cargo bench -p marline-cli --bench sessions [-- SESSIONS
//! SECONDS] [mbit=RATE] [record=BYTES] [workers=COUNT] [program=FILE]`, by default 1000 sessions of
//! 1 Mb/s for 20 s. `mbit=0` measures memory alone; `program` is another build of `marline`, to
//! compare. With `bulk`, two sessions send a stream of 600 Mb/s each, to a server of one worker
//! and to one of two, in turn.
//!
//! The server is the program, a process of its own. Its clients are sessions of the library in this
//! process, one thread for each core, with a key each and two paths over loopback, unshaped. Each
//! sends records, MPEG transport packets of 1316 bytes in all or what `record` says (5264 is a
//! frame of a camera), at a steady pace to a live entry of the server, which hands them to a socket
//! of this process. Delay is from there to there. Clients and that socket need CPU of the same
//! cores, about as much as the server, so delay and losses are worse than beside clients elsewhere;
//! CPU seconds are the server's alone.
//!
//! With `bulk` the streams go to TCP ports of this process. What the busiest of the server's
//! threads takes for a megabit bounds what the server carries where each thread has a core to
//! itself: on a machine whose cores the clients need, too, throughput cannot show it. Time in which
//! a thread waits for another one is not seen; they share no lock for a packet but that of the
//! table of connections that a packet came astray from.
//!
//! | file | what |
//! | --- | --- |
//! | `steady.rs` | idle sessions, and then records |
//! | `bulk.rs` | streams, by workers |
//! | `crowd.rs`, `load.rs` | the clients |
//! | `server.rs` | the server's process |
//! | `../common/session.rs` | a session with carriers of its own |

#![allow(clippy::print_stdout, reason = "a benchmark reports on stdout")]

mod bulk;
mod crowd;
mod load;
mod server;
#[path = "../common/session.rs"]
mod session;
mod steady;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Counts nowhere: rates are sought in it.
const WARM_UP: Duration = Duration::from_secs(4);

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    sessions: usize,
    span: Duration,
    mbit: f64,
    /// Bytes of a record.
    record: usize,
    bulk: bool,
    workers: Option<String>,
    program: String,
}

impl Plan {
    fn read() -> Result<Self, Failure> {
        let mut plan = Self {
            sessions: 1000,
            span: Duration::from_secs(20),
            mbit: 1.0,
            record: 1316,
            bulk: false,
            workers: None,
            program: env!("CARGO_BIN_EXE_marline").to_owned(),
        };
        let (mut numbers, mut rated) = (Vec::new(), false);
        // Cargo adds --bench.
        for word in std::env::args().skip(1).filter(|word| word != "--bench") {
            match word.split_once('=') {
                Some(("mbit", value)) => (plan.mbit, rated) = (value.parse()?, true),
                Some(("record", value)) => plan.record = value.parse()?,
                Some(("workers", value)) => plan.workers = Some(value.to_owned()),
                Some(("program", value)) => value.clone_into(&mut plan.program),
                None if word == "bulk" => plan.bulk = true,
                None => numbers.push(word.parse()?),
                _ => return Err(format!("what is {word}?").into()),
            }
        }
        if plan.bulk && !rated {
            plan.mbit = 600.0;
        }
        if let Some(sessions) = numbers.first().or(plan.bulk.then_some(&2)) {
            plan.sessions = *sessions;
        }
        if let Some(seconds) = numbers.get(1) {
            plan.span = Duration::from_secs(*seconds as u64);
        }
        Ok(plan)
    }

    /// From one piece of this length (bytes) that a session sends to the next.
    pub(crate) fn pace(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 * 8e-6 / self.mbit.max(0.001))
    }
}

fn main() -> Result<(), Failure> {
    let plan = Plan::read()?;
    // Two sockets a session here, and as many there.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            ..limit
        },
    )?;
    match plan.bulk {
        true => bulk::bulk(&plan),
        false => steady::steady(&plan),
    }
}
