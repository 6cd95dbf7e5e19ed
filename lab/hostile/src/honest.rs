//! What honest clients find meanwhile.

use std::time::Duration;

use marline::endpoint::{Client, Stream};
use marline_apps::proxy::Protocol;
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::attack::{Failure, Knobs, Outcome};

/// Between two questions of a probe.
const ASK: Duration = Duration::from_millis(10);
/// Bytes of a question and of its answer.
const QUESTION: usize = 100;
/// Between two requests of one client of a crowd.
const REST: Duration = Duration::from_secs(1);
/// A request that takes longer has failed.
const LIMIT: Duration = Duration::from_secs(20);
/// The server's first bytes: that the target was reached, and from where by IPv4.
const REPLY: usize = 8;

/// How long things took, in order.
struct Times(Vec<Duration>);

impl Times {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Milliseconds that `share` of them did not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (last as f64 * share).ceil() as usize;
        self.0
            .get(at)
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    fn report(&self) {
        let [middle, late, worst] = [0.5, 0.99, 1.0].map(|share| self.quantile(share));
        println!(
            "{} times, p50 {middle:.2} ms, p99 {late:.2} ms, longest {worst:.2} ms",
            self.0.len()
        );
    }
}

async fn connect(client: &Client, target: &bytes::Bytes) -> Result<Stream, Failure> {
    let session = client.session().ok_or("there is no session")?;
    let options = FlowOptions {
        target: target.clone(),
        ..FlowOptions::new(FlowKind::Stream)
    };
    let mut stream = session.open_stream(options)?;
    // A refusal is shorter than an answer.
    match stream.read_u8().await? {
        0 => {
            stream.read_exact(&mut [0; REPLY - 1]).await?;
            Ok(stream)
        }
        refusal => Err(format!("the server refuses: {refusal}").into()),
    }
}

/// A question every 10 ms over one stream to a target that gives it back.
pub(crate) async fn probe(knobs: Knobs) -> Outcome {
    let client = knobs.client(knobs.identity()?).await?;
    let mut stream = connect(&client, &knobs.target(Protocol::Tcp)?).await?;
    println!("ready: questions begin");
    let (end, mut turn, mut times) = (knobs.end(), interval(ASK), Vec::new());
    turn.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while Instant::now() < end {
        turn.tick().await;
        let asked = Instant::now();
        stream.write_all(&[7; QUESTION]).await?;
        stream.read_exact(&mut [0; QUESTION]).await?;
        times.push(asked.elapsed());
    }
    Times::new(times).report();
    client.stop("the probe is over").await;
    Ok(())
}

/// A request, and its whole answer: its bytes.
async fn fetch(client: &Client, target: &bytes::Bytes) -> Result<usize, Failure> {
    let mut stream = connect(client, target).await?;
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: target\r\n\r\n")
        .await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    match answer.starts_with(b"HTTP/1.1 200") {
        true => Ok(answer.len()),
        false => Err("that is no answer".into()),
    }
}

/// Requests of as many clients as there are keys, each with its session.
pub(crate) async fn crowd(knobs: Knobs) -> Outcome {
    let target = knobs.target(Protocol::Tcp)?;
    let mut clients = JoinSet::new();
    let mut ready = 0;
    for identity in knobs.identities()? {
        let client = knobs.client(identity).await?;
        let (target, end) = (target.clone(), knobs.end());
        ready += 1;
        clients.spawn(async move {
            let (mut times, mut failures) = (Vec::new(), Vec::new());
            while Instant::now() < end {
                let asked = Instant::now();
                match timeout(LIMIT, fetch(&client, &target)).await {
                    Ok(Ok(_)) => times.push(asked.elapsed()),
                    Ok(Err(error)) => failures.push(error.to_string()),
                    Err(_) => failures.push(format!("nothing within {LIMIT:?}")),
                }
                sleep(REST).await;
            }
            (times, failures)
        });
    }
    println!("ready: {ready} clients ask");
    let (mut times, mut failures) = (Vec::new(), Vec::new());
    while let Some(ended) = clients.join_next().await {
        let (more, failed) = ended?;
        times.extend(more);
        failures.extend(failed);
    }
    println!("failed: {}", failures.len());
    if let Some(first) = failures.first() {
        println!("the first failure: {first}");
    }
    Times::new(times).report();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_times_that_there_were() {
        let times = Times::new((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(
            [0.0, 0.5, 0.99, 1.0].map(|share| times.quantile(share)),
            [1.0, 51.0, 100.0, 100.0]
        );
        assert!(Times::new(Vec::new()).quantile(0.5).is_nan());
    }
}
