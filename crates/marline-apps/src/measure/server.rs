//! The server's end: a sink, or a source of zeros.

use super::CHUNK;
use crate::destination::{Measure, Way};
use crate::proxy::ByteFlow;
use crate::proxy::places::Place;
use crate::proxy::reply::{self, Refusal};
use crate::proxy::server::refuse;
use marline::identity::PublicKey;
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Most bytes of one measurement: what 30 s of 285 Mb/s are. Quicker paths need less time.
pub const MOST_BYTES: u64 = 1 << 30;
/// Measurements at a time, of all clients: with more, each would measure the others.
const AT_ONCE: usize = 4;

/// Who measures at the moment. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Measures(Arc<Mutex<BTreeSet<Option<PublicKey>>>>);

/// A measurement that goes on until this is dropped.
#[derive(Debug)]
struct Begun {
    measures: Measures,
    client: Option<PublicKey>,
}

impl Measures {
    fn begin(&self, client: Option<PublicKey>) -> Option<Begun> {
        let mut clients = self.clients();
        if clients.len() >= AT_ONCE || !clients.insert(client) {
            return None;
        }
        Some(Begun {
            measures: self.clone(),
            client,
        })
    }

    fn clients(&self) -> MutexGuard<'_, BTreeSet<Option<PublicKey>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.measures.clients().remove(&self.client);
    }
}

/// Serves one measurement of a client, which holds its `place` meanwhile.
pub(crate) async fn serve<S: ByteFlow>(
    mut flow: S,
    asked: Measure,
    client: Option<PublicKey>,
    place: Option<Place>,
    measures: &Measures,
) {
    let begun = place.and_then(|place| Some((place, measures.begin(client)?)));
    let Some(_begun) = begun else {
        return refuse(flow, Refusal::TooManyFlows).await;
    };
    let bytes = asked.bytes.min(MOST_BYTES);
    let measuring = async {
        let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        flow.write_all(&reply::encode(Ok(nowhere))).await?;
        match asked.way {
            Way::Up => swallow(&mut flow, bytes).await,
            Way::Down => pour(&mut flow, bytes).await,
        }
    };
    // What is left when the time is over is reset with the flow.
    if let Ok(Err(error)) = timeout(asked.time(), measuring).await {
        tracing::debug!(%error, "a measurement ended early");
    }
}

async fn swallow<S: ByteFlow>(flow: &mut S, most: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut left = most;
    while left > 0 {
        match flow.read(&mut chunk).await? {
            0 => break,
            read => left = left.saturating_sub(read as u64),
        }
    }
    Ok(())
}

async fn pour<S: ByteFlow>(flow: &mut S, most: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    let mut left = most;
    while left > 0 {
        let next = left.min(CHUNK as u64);
        flow.write_all(&zeros[..next as usize]).await?;
        left -= next;
    }
    flow.shutdown().await?;
    // The client has it once it closes its end.
    swallow(flow, u64::MAX).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Places;
    use marline::identity::Identity;
    use std::time::Duration;
    use tokio::time::Instant;

    fn key() -> Option<PublicKey> {
        Some(Identity::generate().unwrap().public_key())
    }

    #[test]
    fn a_client_measures_once_at_a_time_and_few_do() {
        let measures = Measures::default();
        let first = key();
        let mut held = vec![measures.begin(first).unwrap()];
        assert!(measures.begin(first).is_none(), "one each");
        held.extend((1..AT_ONCE).map(|_| measures.begin(key()).unwrap()));
        assert!(measures.begin(key()).is_none(), "few at a time");
        held.remove(0);
        assert!(measures.begin(first).is_some());
    }

    async fn status(far: &mut tokio::io::DuplexStream) -> u8 {
        let mut answer = [0; 8];
        far.read_exact(&mut answer[..2]).await.unwrap();
        if answer[0] == 0 {
            far.read_exact(&mut answer[2..]).await.unwrap();
        }
        answer[0]
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_ends_by_bytes_and_by_time() {
        let (measures, places) = (Measures::default(), Places::new(8, 4));
        for (bytes, reads) in [(100_000, true), (u64::MAX, false)] {
            let (near, mut far) = tokio::io::duplex(4096);
            let asked = Measure::new(Way::Down, Duration::from_secs(3), bytes);
            let began = Instant::now();
            let client = async {
                assert_eq!(status(&mut far).await, 0);
                let mut whole = Vec::new();
                if reads {
                    far.take(bytes).read_to_end(&mut whole).await.unwrap();
                    assert_eq!(whole.len() as u64, bytes);
                } else {
                    // One that reads nothing holds the server for no longer.
                    tokio::time::sleep(Duration::from_secs(10)).await;
                }
            };
            let place = places.take(None);
            let served = async {
                serve(near, asked, None, place, &measures).await;
                began.elapsed()
            };
            let (took, ()) = tokio::join!(served, client);
            assert_eq!(took >= Duration::from_secs(3), !reads, "{took:?}");
            assert!(took <= Duration::from_secs(4), "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_sink_takes_what_was_asked_for_and_a_second_one_is_refused() {
        let (measures, places) = (Measures::default(), Places::new(8, 4));
        let asked = Measure::new(Way::Up, Duration::from_secs(5), 50_000);
        let (near, mut far) = tokio::io::duplex(4096);
        let (again_near, mut again) = tokio::io::duplex(4096);
        let client = async {
            assert_eq!(status(&mut far).await, 0);
            far.write_all(&[0; 10_000]).await.unwrap();
            let second = serve(again_near, asked, None, places.take(None), &measures);
            let refused = async {
                let status = status(&mut again).await;
                drop(again);
                status
            };
            let ((), refused) = tokio::join!(second, refused);
            assert_eq!(refused, Refusal::TooManyFlows as u8);
            // The server closes in the midst of what is beyond what it was asked for.
            let mut sent = 10_000;
            while far.write_all(&[0; 1_000]).await.is_ok() {
                sent += 1_000;
            }
            assert!((50_000..60_000).contains(&sent), "{sent}");
        };
        let place = places.take(None);
        tokio::join!(serve(near, asked, None, place, &measures), client);
    }
}
