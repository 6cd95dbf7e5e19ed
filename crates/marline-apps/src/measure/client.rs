//! The client's end: asks for zeros, or sends them, and looks at what the path's counters say.

use super::{CHUNK, MOST_BYTES};
use crate::destination::{Measure, Way};
use crate::options::stream_to;
use crate::proxy::reply::{self, Refusal};
use crate::proxy::{OpenError, Tunnel};
use marline_base::Rate;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// How often the counters are read: often enough that what passes meanwhile is little beside a
/// second's.
const LOOK: Duration = Duration::from_millis(50);
/// The server ends by its own clock, and later than this end.
const GRACE: Duration = Duration::from_secs(1);
/// The part of the time in which the window still grows, and which the rate leaves out.
const GROWS: u32 = 4;
/// How long the server may take to answer.
const ANSWER: Duration = Duration::from_secs(4);

/// What a path's counters say at one time, in the direction that is measured.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// Bytes of datagrams that arrived.
    pub arrived: u64,
    /// Datagrams sent, as far as is known.
    pub sent: u64,
    /// Of these, those that are lost.
    pub lost: u64,
    /// Bytes that the path has carried both ways, for the bound.
    pub carried: u64,
    /// The round trip, smoothed.
    pub trip: Duration,
    /// The smallest lately.
    pub least_trip: Duration,
}

/// What was measured of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// What arrived in a second, headers of IP, UDP and QUIC left out.
    pub rate: Rate,
    /// The smallest round trip before.
    pub idle_trip: Duration,
    /// The median of the round trips meanwhile.
    pub trip: Duration,
    /// Datagrams.
    pub sent: u64,
    /// Of these, lost.
    pub lost: u64,
    /// It was ended by the bound on bytes.
    pub bounded: bool,
}

/// Why nothing was measured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotMeasured {
    /// An older server.
    #[error("the server cannot measure; it is older than this program")]
    Older,
    /// A measurement goes on.
    #[error("the server measures another path now, of this client's key or of some others")]
    Busy,
    /// The server does not answer, or the session is over.
    #[error("{0}")]
    Failed(String),
}

/// Measures one direction of the one path of `tunnel` for this time, or until the path has carried
/// `bytes` more; `see` reads its counters, and says `None` when it is gone.
///
/// # Errors
/// The server refuses or is gone.
pub async fn run<T: Tunnel>(
    tunnel: &T,
    way: Way,
    time: Duration,
    bytes: u64,
    see: impl Fn() -> Option<Seen>,
) -> Result<Measured, NotMeasured> {
    let gone = || NotMeasured::Failed("the path was lost meanwhile".to_owned());
    let before = see().ok_or_else(gone)?;
    // The server ends there, too.
    let bytes = bytes.min(MOST_BYTES);
    let asked = Measure::new(way, time + GRACE, bytes);
    let opened = tunnel.open_stream(stream_to(asked.encode())).await;
    let mut flow = opened.map_err(|error: OpenError| NotMeasured::Failed(error.to_string()))?;
    match timeout(ANSWER, reply::read(&mut flow)).await {
        Ok(Ok(Ok(_))) => {}
        Ok(Ok(Err(Refusal::BadTarget))) => return Err(NotMeasured::Older),
        Ok(Ok(Err(Refusal::TooManyFlows))) => return Err(NotMeasured::Busy),
        Ok(Ok(Err(refusal))) => return Err(NotMeasured::Failed(refusal.to_string())),
        Ok(Err(error)) => return Err(NotMeasured::Failed(error.to_string())),
        Err(_) => return Err(NotMeasured::Failed("the server does not answer".to_owned())),
    }
    let began = Instant::now();
    let mut looks = vec![(Duration::ZERO, see().ok_or_else(gone)?)];
    let (mut reading, mut writing) = tokio::io::split(flow);
    let load = async {
        match way {
            Way::Down => drain(&mut reading).await,
            Way::Up => fill(&mut writing, bytes).await,
        }
    };
    let mut bounded = false;
    let watching = async {
        let mut ticks = interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while began.elapsed() < time {
            ticks.tick().await;
            let Some(seen) = see() else {
                return Err(gone());
            };
            looks.push((began.elapsed(), seen));
            bounded = seen.carried.saturating_sub(before.carried) >= bytes;
            if bounded {
                break;
            }
        }
        Ok(())
    };
    // A load that is over before the time was bounded by the server: by bytes, in which case it
    // ends well, or by the most time that it allows.
    let over = tokio::select! {
        watched = watching => watched.map(|()| false),
        loaded = load => match loaded {
            Err(why) if began.elapsed() < time / 2 => Err(NotMeasured::Failed(why.to_string())),
            _ => Ok(true),
        },
    }?;
    looks.push((began.elapsed(), see().ok_or_else(gone)?));
    result(before.least_trip, &looks, bounded || over).ok_or_else(gone)
}

async fn drain(flow: &mut (impl AsyncReadExt + Unpin)) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    while flow.read(&mut chunk).await? > 0 {}
    Ok(())
}

/// Never beyond `most` bytes; that they have arrived is for the counters to show.
async fn fill(flow: &mut (impl AsyncWriteExt + Unpin), most: u64) -> io::Result<()> {
    let zeros = vec![0; CHUNK];
    for _ in 0..most / CHUNK as u64 {
        flow.write_all(&zeros).await?;
    }
    std::future::pending().await
}

/// What the counters say at these times, since the measurement began.
fn result(idle_trip: Duration, looks: &[(Duration, Seen)], bounded: bool) -> Option<Measured> {
    let (first, last) = (looks.first()?, looks.last()?);
    let steady = looks.iter().rfind(|(at, _)| *at <= last.0 / GROWS)?;
    let arrived = last.1.arrived.saturating_sub(steady.1.arrived);
    let mut trips: Vec<Duration> = looks
        .iter()
        .filter(|(at, _)| *at >= steady.0)
        .map(|(_, seen)| seen.trip)
        .collect();
    trips.sort_unstable();
    Some(Measured {
        rate: Rate::from_bytes_over(arrived, last.0.checked_sub(steady.0)?),
        idle_trip,
        trip: *trips.get(trips.len() / 2)?,
        sent: last.1.sent.saturating_sub(first.1.sent),
        lost: last.1.lost.saturating_sub(first.1.lost),
        bounded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_left_out_of_the_rate_but_not_of_the_losses() {
        // Nothing for a second, then 1 MB a second with a tenth of its packets lost.
        let looks: Vec<(Duration, Seen)> = (0..=80)
            .map(|n: u64| {
                let at = Duration::from_millis(50 * n);
                let seen = Seen {
                    arrived: 50_000 * n.saturating_sub(20),
                    sent: 100 + 50 * n,
                    lost: 5 * n,
                    carried: 0,
                    trip: Duration::from_millis(20 + n),
                    least_trip: Duration::from_millis(20),
                };
                (at, seen)
            })
            .collect();
        let measured = result(Duration::from_millis(20), &looks, false).unwrap();
        assert_eq!(measured.rate, Rate::from_mbps(8));
        assert_eq!(measured.trip, Duration::from_millis(70));
        assert_eq!((measured.sent, measured.lost), (4_000, 400));
        assert_eq!(result(Duration::ZERO, &[], false), None);
        // One that was over at once leaves nothing out.
        let brief = [looks[20], (Duration::from_millis(1_050), looks[24].1)];
        let brief = brief.map(|(at, seen)| (at - Duration::from_secs(1), seen));
        let measured = result(Duration::ZERO, &brief, true).unwrap();
        assert_eq!(measured.rate, Rate::from_mbps(32));
    }
}
