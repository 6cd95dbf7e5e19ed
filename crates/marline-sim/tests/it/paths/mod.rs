//! The situations that any multipath session meets, one test each.

mod answering;
mod carrier;
mod change;
mod cost;
mod death;
mod feedback;
mod flows;
mod hearsay;
mod idle;
mod quiet;
mod schedulers;
mod standby;
mod suspicion;
mod testimony;
mod unequal;
mod validation;

use marline_proto::Config;
use marline_sim::{End, Rate};

use crate::kit::{Inbox, Lab};

/// Two alike links of 20 Mb/s, RTT 30 ms.
const LINK: &str = "rate=20mbit,delay=15ms,queue=100ms";

/// A lab with so many alike paths, all validated.
fn lab(paths: usize) -> Lab {
    lab_with(&Config::default(), &vec![LINK; paths])
}

fn lab_with(config: &Config, links: &[&str]) -> Lab {
    let mut lab = Lab::new(7, config);
    for link in links {
        lab.path(link);
    }
    lab.run_for(crate::kit::ms(500));
    lab
}

/// Mean rate at which a stream arrived.
fn goodput(inbox: &Inbox) -> f64 {
    let first = inbox.first_at.expect("something arrived");
    Rate::from_bytes_over(inbox.read, inbox.last_at.since(first)).as_mbps_f64()
}

/// Rate of a bulk stream of `bytes` over these links.
fn bulk(config: &Config, links: &[&str], bytes: u64) -> f64 {
    let mut lab = lab_with(config, links);
    let flow = lab.stream(End::Client, bytes);
    lab.finish_within(crate::kit::secs(120));
    goodput(lab.inbox(End::Server, flow))
}
