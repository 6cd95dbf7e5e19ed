//! One flow of a client's tunnel: from its queue to the server, and from there to the kernel.

use super::queue::Queue;
use super::shared::{Lease, Shared};
use crate::proxy::associations::send;
use crate::proxy::idle::Idle;
use crate::proxy::{OpenError, PacketFlow, Tunnel};
use marline_proto::FlowOptions;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A conversation that is quiet for this time loses its flow, and gets another with its next
/// packet.
const IDLE: Duration = Duration::from_secs(60);
/// After a flow could not be had.
const RETRY: Duration = Duration::from_millis(300);

/// Carries one flow both ways until either side ends it. A conversation's also ends when it is
/// quiet for long; if it can have no flow of its own, it shares that of `lease`.
pub(super) async fn carry<T: Tunnel>(
    tunnel: T,
    options: FlowOptions,
    queue: Arc<Queue>,
    shared: Arc<Shared>,
    lease: Option<Arc<Lease>>,
) {
    let flow = match tunnel.open_packets(options).await {
        Ok(flow) => flow,
        Err(error) => {
            tracing::debug!(%error, "cannot open a flow for a conversation in the tunnel");
            if let (OpenError::TooManyFlows, Some(lease)) = (error, lease) {
                while let Ok(Some(packet)) = timeout(RETRY, queue.pop()).await {
                    lease.common.push(packet);
                }
            } else {
                sleep(RETRY).await;
            }
            queue.close();
            return;
        }
    };
    let idle = Idle::new(IDLE);
    let outgoing = async {
        while let Some(packet) = queue.pop().await {
            idle.touch();
            send(&flow, packet).await?;
        }
        io::Result::Ok(())
    };
    let incoming = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            shared.deliver(message).await;
        }
        io::Result::Ok(())
    };
    let quiet = async {
        match lease {
            Some(_) => idle.expired().await,
            None => std::future::pending().await,
        }
    };
    let _ = tokio::select! {
        result = outgoing => result,
        result = incoming => result,
        () = quiet => Ok(()),
    };
    queue.close();
}
