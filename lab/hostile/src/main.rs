//! Those who mean Marline ill, for `lab/hostile.sh` and `lab/siege.sh`: clients with a listed key
//! and without one, servers, programs behind an honest client; and the honest requests that must go
//! well meanwhile.
//!
//! | file | what |
//! | --- | --- |
//! | `attack.rs` | the table's rows, and what they are given |
//! | `client.rs` | clients that keep to the protocol and take what they can get |
//! | `by_hand.rs`, `wave.rs`, `frames.rs` | clients and servers that write frames as they like |
//! | `stranger.rs`, `initial.rs` | those whose key nobody lists, or who never show one |
//! | `server.rs`, `lease.rs` | servers that a client should not have trusted |
//! | `program.rs` | what a web page can do through an honest client's proxy |
//! | `targets.rs` | hosts behind the server |
//! | `honest.rs` | requests that are timed |
#![expect(clippy::print_stdout, reason = "scripts read what it found")]

mod attack;
mod by_hand;
mod client;
mod frames;
mod honest;
mod initial;
mod lease;
mod program;
mod server;
mod stranger;
mod targets;
mod wave;

use attack::{Attack, Failure, Knobs, attacks};
use clap::Parser;
use std::process::ExitCode;

/// Everything that this program can do.
const ATTACKS: &[Attack] = attacks! {
    "unread", "a client that downloads over many flows and reads none", client::unread;
    "upload", "a client that uploads to targets that do not read", client::upload;
    "finish", "a client that finishes such uploads and stays", client::finish;
    "idle", "a client with many connections on which nothing happens", client::idle;
    "busy", "a client that downloads over many flows, and reads", client::busy;
    "sockets", "a client that sends a datagram each to many UDP targets", client::sockets;
    "refused", "a client that asks for one target again and again", client::refused;
    "names", "a client that asks for names that nobody answers for", client::names;
    "leases", "a client that asks for addresses in the tunnel again and again", client::leases;
    "sessions", "a client that opens sessions and leaves them behind", client::sessions;
    "frames", "a client that writes frames by hand: --wave", wave::from_client;
    "handshakes", "a stranger that proves a key that is not listed, and stays", stranger::handshakes;
    "half", "a stranger that ends its TLS handshake and says no more", stranger::half;
    "silent", "a stranger that opens TCP connections and says nothing", stranger::silent;
    "slow", "a stranger that says its first message a byte a second", stranger::slow;
    "initial", "a stranger that sends one first packet and counts what comes back", initial::amplification;
    "server-deaf", "a server that takes flows and never reads them", server::deaf;
    "server-silent", "a server that takes flows and never answers", server::silent;
    "server-reset", "a server that answers and resets what it was sent", server::reset;
    "server-opens", "a server that opens flows towards its client and fills them", server::opens;
    "server-frames", "a server that writes frames by hand: --wave", wave::from_server;
    "server-lease", "a server that gives addresses of a large network, and packets from elsewhere", lease::foreign;
    "program-upload", "a program that uploads through a proxy to targets that do not read", program::upload;
    "program-download", "a program that downloads through a proxy and does not read", program::download;
    "targets", "hosts behind the server, at five ports from --listen on", targets::serve;
    "probe", "times small questions over one session", honest::probe;
    "crowd", "times requests of many clients, a key each", honest::crowd;
};

fn table() -> String {
    let row = |name: &str, help: &str| format!("  {name:<18}{help}\n");
    let attacks: String = ATTACKS.iter().map(|a| row(a.name, a.help)).collect();
    let waves: String = frames::WAVES.iter().map(|w| row(w.name, w.help)).collect();
    format!("Attacks:\n{attacks}\nWaves:\n{waves}")
}

/// Attack a Marline server, client or proxy in a laboratory.
#[derive(Debug, Parser)]
#[command(after_help = table())]
struct Args {
    /// One of those listed below
    attack: String,
    #[command(flatten)]
    knobs: Knobs,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = Args::parse();
    let Some(attack) = ATTACKS.iter().find(|a| a.name == args.attack) else {
        println!(
            "error: no attack `{}`; there are:\n{}",
            args.attack,
            table()
        );
        return ExitCode::from(2);
    };
    let interrupted = async {
        let stop = tokio::signal::unix::SignalKind::terminate();
        tokio::signal::unix::signal(stop)?.recv().await;
        Ok::<_, Failure>(())
    };
    let result = tokio::select! {
        result = (attack.run)(args.knobs) => result,
        result = interrupted => result,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
