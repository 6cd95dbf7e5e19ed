//! What a server sends to an address that has sent one packet and may not be the sender's own (RFC
//! 9000 section 8.1).

use std::net::Ipv4Addr;
use std::time::Duration;

use marline::carrier::CarrierChoice;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::attack::{Knobs, Outcome};
use crate::by_hand::{dial, unlisted};

/// Lets a real client's first datagram through to the server and nothing else, and counts what
/// comes back.
pub(crate) async fn amplification(knobs: Knobs) -> Outcome {
    let mut dial = dial(&knobs).await?;
    let server = dial.remote;
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let far = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
    dial.remote = near.local_addr()?;
    dial.carrier = CarrierChoice::Quic;
    dial.timeout = Duration::from_secs(1);
    let identity = unlisted()?;
    let client = tokio::spawn(async move { dial.connect(&identity).await.is_ok() });
    let mut datagram = vec![0; 1 << 16];
    let (sent, _) = near.recv_from(&mut datagram).await?;
    far.send_to(&datagram[..sent], server).await?;
    let (end, mut received, mut datagrams) = (Instant::now() + knobs.duration(), 0, 0);
    while let Ok(got) = timeout_at(end, far.recv(&mut datagram)).await {
        received += got?;
        datagrams += 1;
    }
    client.abort();
    let factor = received as f64 / sent as f64;
    println!(
        "amplification {factor:.2}: {sent} bytes sent, {received} back in {datagrams} datagrams"
    );
    Ok(())
}
