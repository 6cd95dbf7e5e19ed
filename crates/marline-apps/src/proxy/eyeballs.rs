//! Happy eyeballs (RFC 8305): a target with several addresses, some of which do not answer, is
//! reached as soon as one does.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::time::sleep;

/// From one attempt to the next while none has ended (RFC 8305 section 5, the recommended value).
const DELAY: Duration = Duration::from_millis(250);
/// Addresses that are tried: with a delay each, the last is begun after four seconds of the ten
/// that a target has (`server.rs`).
const MOST: usize = 16;

/// The first success of `attempt` over `addresses`, in the order of RFC 8305 section 4; the others
/// are dropped. Each failure is passed to `failed`; without a success, `None`.
pub(super) async fn first<T, E, A>(
    addresses: &[SocketAddr],
    attempt: impl Fn(SocketAddr) -> A,
    mut failed: impl FnMut(E),
) -> Option<T>
where
    A: Future<Output = Result<T, E>>,
{
    let mut left = alternating(addresses).into_iter();
    let mut running = FuturesUnordered::new();
    loop {
        match left.next() {
            Some(address) => running.push(attempt(address)),
            None if running.is_empty() => return None,
            None => {}
        }
        tokio::select! {
            biased;
            Some(ended) = running.next() => match ended {
                Ok(connected) => return Some(connected),
                Err(error) => failed(error),
            },
            () = sleep(DELAY), if left.len() > 0 => {}
        }
    }
}

/// Families by turns, the first address's first: a family that does not work costs one delay.
fn alternating(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_first = |address: &&SocketAddr| address.is_ipv4() == addresses[0].is_ipv4();
    let mut of_first = addresses.iter().filter(is_first);
    let mut of_other = addresses.iter().filter(|address| !is_first(address));
    let mut all = Vec::new();
    while all.len() < addresses.len().min(MOST) {
        all.extend(of_first.next());
        all.extend(of_other.next());
    }
    all.truncate(MOST);
    all
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::time::Instant;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let all = ["[::1]:1", "[::2]:1", "[::3]:1", "1.0.0.1:1", "1.0.0.2:1"].map(address);
        let order = ["[::1]:1", "1.0.0.1:1", "[::2]:1", "1.0.0.2:1", "[::3]:1"].map(address);
        assert_eq!(alternating(&all), order);
        assert_eq!(alternating(&[]), []);
        let many = [[address("1.0.0.1:1"); 999], [address("[::1]:1"); 999]].concat();
        assert_eq!(alternating(&many).len(), MOST);
    }

    /// What an attempt takes (ms), and whether it succeeds.
    async fn run(plan: &[(&str, u64, bool)]) -> (Option<SocketAddr>, usize, u128) {
        let addresses: Vec<SocketAddr> = plan.iter().map(|(text, ..)| address(text)).collect();
        let begun = Instant::now();
        let attempt = |to: SocketAddr| {
            let of = addresses.iter().position(|one| *one == to).unwrap();
            let (_, ms, succeeds) = plan[of];
            async move {
                sleep(Duration::from_millis(ms)).await;
                match succeeds {
                    true => Ok(to),
                    false => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
                }
            }
        };
        let mut failures = 0;
        let connected = first(&addresses, attempt, |_| failures += 1).await;
        (connected, failures, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_address_costs_a_delay_and_a_refusal_nothing() {
        let never = 1_000_000;
        let silent = [("[::1]:1", never, false), ("1.0.0.1:1", 30, true)];
        assert_eq!(run(&silent).await, (Some(address("1.0.0.1:1")), 0, 280));
        let refused = [("[::1]:1", 20, false), ("1.0.0.1:1", 30, true)];
        assert_eq!(run(&refused).await, (Some(address("1.0.0.1:1")), 1, 50));
        let slow = [("[::1]:1", 260, true), ("1.0.0.1:1", 30, true)];
        assert_eq!(run(&slow).await, (Some(address("[::1]:1")), 0, 260));
        let none = [("[::1]:1", 20, false), ("1.0.0.1:1", 40, false)];
        assert_eq!(run(&none).await, (None, 2, 60));
        assert_eq!(run(&[]).await, (None, 0, 0));
    }
}
