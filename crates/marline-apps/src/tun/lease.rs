//! How a client gets its addresses and keeps them: it asks, judges what is offered by its own
//! configuration ([`Terms`](super::terms::Terms)), and sets the device up.

use super::FLOW_QUEUE;
use super::carry::carry;
use super::fit::{LEAST, MOST, Mtu};
use super::hello::{OFFER_HEAD, Offer, OfferError, Place, Standing};
use super::queue::Queue;
use super::setup::{Applied, Setup};
use super::shared::{Lease, Shared};
use crate::destination::Role;
use crate::options::{datagrams_to, stream_to};
use crate::proxy::until_end;
use crate::proxy::{Tasks, Tunnel};
use marline::support::seldom::Seldom;
use marline_proto::FlowOptions;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long the server may take to offer a lease.
const OFFER: Duration = Duration::from_secs(10);
/// How often the networks that this host reaches without the tunnel are read.
const LOOK_AROUND: Duration = Duration::from_secs(10);
/// Wait after a lease has ended or could not be asked for.
const RETRY: Duration = Duration::from_millis(300);
/// Longest wait after several that ended at once: each may have this host run commands.
const RETRY_MOST: Duration = Duration::from_secs(3);
/// A lease that has lasted for this time did not end at once.
const LASTING: Duration = Duration::from_secs(10);
/// Wait after the server has said that there is no lease, or has offered one that is not accepted.
const REFUSED: Duration = Duration::from_secs(10);

/// What was done to the device, and for which addresses.
#[derive(Debug)]
struct Done {
    places: Vec<Place>,
    mtu: u16,
    applied: Option<Applied>,
}

/// What is logged about leases; most of it is caused by the server.
#[derive(Debug, Default)]
struct Lines {
    refused: Seldom,
    unwelcome: Seldom,
    shown: Seldom,
    failed: Seldom,
    granted: Seldom,
    resized: Seldom,
    standing: Seldom,
}

/// Asks for a lease whenever there is a session and no lease, and sets the device up.
pub(super) async fn keep_lease<T: Tunnel>(tunnel: T, shared: Arc<Shared>, tasks: Tasks) {
    let mut done = Done {
        places: Vec::new(),
        mtu: 0,
        applied: None,
    };
    let lines = Lines::default();
    let mut complained = false;
    let mut pause = RETRY;
    let mut joined = true;
    loop {
        tunnel.room_is_found().await;
        let Some(room) = tunnel.room() else {
            sleep(RETRY).await;
            continue;
        };
        let most = u16::try_from(room).unwrap_or(u16::MAX).clamp(LEAST, MOST);
        let target = Role::Lease { mtu: most, joined }.encode();
        let Ok(mut stream) = tunnel.open_stream(stream_to(target)).await else {
            sleep(RETRY).await;
            continue;
        };
        let offer = timeout(OFFER, read_offer(&mut stream)).await;
        let offer = offer.unwrap_or(Err(NoOffer::Late));
        // An older server ends the stream, for it does not know what it is asked.
        if offer == Err(NoOffer::Ended) && std::mem::take(&mut joined) {
            continue;
        }
        let takes_joined = std::mem::replace(&mut joined, true);
        let (mtu, mut places, joined) = match offer {
            Ok((mtu, places, joined)) => (mtu, places, joined && takes_joined),
            Err(why) => {
                if !std::mem::replace(&mut complained, true) {
                    lines.refused.say(|left_out| {
                        tracing::warn!("no addresses for the tunnel: {why}{left_out}");
                    });
                }
                sleep(REFUSED).await;
                continue;
            }
        };
        judge(&shared, &mut places, &done.places, &lines).await;
        if places.is_empty() {
            drop(stream);
            sleep(REFUSED).await;
            continue;
        }
        complained = false;
        let begun = Instant::now();
        // A server that offers less than it was asked for takes no more later.
        let mtu = match mtu < most {
            true => Mtu::new(mtu, mtu),
            false => Mtu::new(most, MOST),
        };
        let is_set_up = done.applied.is_some() && done.places == places;
        if is_set_up && done.mtu != mtu.get() {
            resize(&shared, mtu.get(), &lines).await;
            done.mtu = mtu.get();
        } else if !is_set_up {
            done = set_up(&shared, done, places.clone(), mtu.get(), &lines).await;
        }
        let common = Arc::new(Queue::new());
        let lease = Arc::new(Lease {
            mtu,
            joined,
            places,
            common: Arc::clone(&common),
        });
        shared.set_lease(Some(Arc::clone(&lease)));
        carry_the_rest(&tunnel, &shared, &common, &tasks);
        tokio::select! {
            // The lease ends with its stream.
            () = until_end(&mut stream) => {}
            never = hear_standing(&tunnel, &shared, &lines) => match never {},
            never = look_around(&shared) => match never {},
            never = watch(&done.applied) => match never {},
            never = lease.mtu.follow(|| tunnel.room(), |mtu| resize(&shared, mtu, &lines)) => {
                let never: Never = never;
                match never {}
            }
        }
        done.mtu = lease.mtu.get();
        common.close();
        shared.set_lease(None);
        shared.set_standing(Standing::Alone);
        pause = match begun.elapsed() >= LASTING {
            true => RETRY,
            false => (2 * pause).min(RETRY_MOST),
        };
        sleep(pause).await;
    }
}

/// Leaves in `places` those that this client accepts, each as a single address, and logs why it
/// does not accept the others. `before` are in use.
async fn judge(shared: &Shared, places: &mut Vec<Place>, before: &[Place], lines: &Lines) {
    let elsewhere = shared.look().await;
    places.retain_mut(|place| {
        place.own = place.own.addr().into();
        let verdict = shared.terms.place(place, before, &elsewhere);
        if let Err(why) = &verdict {
            lines.unwelcome.say(|left_out| {
                tracing::warn!(
                    "an address that the server offers is not accepted: {why}{left_out}"
                );
            });
        }
        verdict.is_ok()
    });
}

/// Sets the device up for `places`, and undoes what was done for others.
async fn set_up(
    shared: &Shared,
    before: Done,
    places: Vec<Place>,
    mtu: u16,
    lines: &Lines,
) -> Done {
    // Runs commands.
    drop(spawn_blocking(move || drop(before.applied)).await);
    let setup = Setup::client(
        &shared.device,
        &places,
        mtu,
        &shared.terms,
        shared.setup,
        &shared.resolvers,
    );
    let applied = match shared.setup.on {
        true => setup.apply(CancellationToken::new()).await,
        false => {
            lines.shown.say(|_| setup.show());
            Ok(Applied::nothing())
        }
    };
    // The tunnel may be half set up by somebody else.
    if let Err(error) = &applied {
        lines.failed.say(|left_out| {
            let hint = error.hint();
            tracing::error!("the tunnel was not set up: {error}; {hint}{left_out}");
        });
    }
    shared.say_resolvers();
    lines.granted.say(|left_out| {
        let own = places.iter().map(|place| place.own.to_string());
        let addresses: Vec<String> = own.collect();
        tracing::info!(
            "tunnel {}: {}, packets of up to {mtu} bytes{left_out}",
            shared.device,
            addresses.join(", ")
        );
    });
    Done {
        places,
        mtu,
        applied: applied.ok(),
    }
}

/// Has the device send packets of up to `mtu` bytes from now on.
async fn resize(shared: &Shared, mtu: u16, lines: &Lines) {
    let device = &shared.device;
    if !shared.setup.on {
        return lines.resized.say(|left_out| {
            tracing::info!(
                "tunnel {device}: the paths take packets of up to {mtu} bytes now: `ip link set dev {device} mtu \
                 {mtu}`{left_out}"
            );
        });
    }
    let step = Setup::largest_packet(device, mtu);
    match step.apply(CancellationToken::new()).await {
        Ok(_) => {
            lines.resized.say(|left_out| {
                tracing::info!("tunnel {device}: packets of up to {mtu} bytes now{left_out}");
            });
        }
        Err(error) => lines.failed.say(|left_out| {
            let hint = error.hint();
            tracing::error!(
                "the tunnel's largest packet stays as it is: {error}; {hint}{left_out}"
            );
        }),
    }
}

/// Carries what belongs to no conversation that this host began.
fn carry_the_rest<T: Tunnel>(tunnel: &T, shared: &Arc<Shared>, common: &Arc<Queue>, tasks: &Tasks) {
    let options = FlowOptions {
        queue: Some(FLOW_QUEUE),
        ..datagrams_to(Role::Common.encode())
    };
    let (common, shared) = (Arc::clone(common), Arc::clone(shared));
    tasks.spawn_until_drained(carry(tunnel.clone(), options, common, shared, None));
}

/// What has no end of its own.
enum Never {}

/// Learns from the server who has this client's addresses, if it says so.
async fn hear_standing<T: Tunnel>(tunnel: &T, shared: &Shared, lines: &Lines) -> Never {
    let options = stream_to(Role::Standing.encode());
    if let Ok(mut stream) = tunnel.open_stream(options).await {
        let _ = stream.flush().await;
        while let Ok(byte) = stream.read_u8().await {
            let Some(standing) = Standing::decode(byte) else {
                continue;
            };
            let before = shared.set_standing(standing);
            if before != standing {
                lines
                    .standing
                    .say(|left_out| log(&shared.device, standing, &left_out));
            }
            let answered = stream.write_u8(byte).await;
            if answered.and(stream.flush().await).is_err() {
                break;
            }
        }
    }
    std::future::pending().await
}

fn log(device: &str, standing: Standing, left_out: &dyn std::fmt::Display) {
    const MEND: &str = "give every machine a key of its own: `marline identity new`, and --allow-client at the server";
    match standing {
        Standing::Alone => {
            tracing::info!("tunnel {device}: the addresses are this machine's alone{left_out}");
        }
        Standing::Shared => tracing::warn!(
            "tunnel {device}: another machine uses this one's key; the addresses are this one's, and that one gets \
             nothing. {MEND}{left_out}"
        ),
        Standing::SetAside => tracing::warn!(
            "tunnel {device}: another machine uses this one's key and has the addresses now; nothing comes here until \
             its session ends. {MEND}{left_out}"
        ),
    }
}

/// Keeps the system as it was set up.
async fn watch(applied: &Option<Applied>) -> std::convert::Infallible {
    match applied {
        Some(applied) => applied.watch().await,
        None => std::future::pending().await,
    }
}

async fn look_around(shared: &Shared) -> Never {
    loop {
        sleep(LOOK_AROUND).await;
        shared.look().await;
    }
}

/// Why there is no offer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum NoOffer {
    #[error("the server did not answer")]
    Late,
    #[error("the server knows of no tunnels; is it as new as this client, and started with --tun?")]
    Ended,
    #[error(transparent)]
    Wrong(#[from] OfferError),
    #[error("the server says: {0}")]
    Refused(String),
}

/// The largest packet, the addresses, and whether the server takes joined packets; or why there are
/// none.
async fn read_offer<S>(stream: &mut S) -> Result<(u16, Vec<Place>, bool), NoOffer>
where
    S: AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    // The destination that opened the stream says everything; there is nothing to send.
    let _ = stream.flush().await;
    let mut bytes = vec![0; OFFER_HEAD];
    let ended = |_| NoOffer::Ended;
    stream.read_exact(&mut bytes).await.map_err(ended)?;
    let rest = Offer::rest([bytes[0], bytes[1], bytes[2]])?;
    bytes.resize(OFFER_HEAD + rest, 0);
    stream
        .read_exact(&mut bytes[OFFER_HEAD..])
        .await
        .map_err(ended)?;
    match Offer::decode(&bytes)? {
        Offer::Granted {
            mtu,
            places,
            joined,
        } => Ok((mtu, places, joined)),
        Offer::Refused(why) => Err(NoOffer::Refused(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    proptest! {
        #[test]
        fn whatever_a_server_answers_is_an_offer_or_a_reason(
            kind in 0..3u8,
            length in 0..600u16,
            body in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let bytes = [&[kind][..], &length.to_be_bytes(), &body].concat();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            if let Ok((mtu, places, _)) = runtime.block_on(read_offer(&mut Cursor::new(bytes))) {
                prop_assert!(mtu >= LEAST && (1..=2).contains(&places.len()));
            }
        }
    }
}
