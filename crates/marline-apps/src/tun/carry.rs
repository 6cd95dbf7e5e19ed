//! One flow of a client's tunnel: from its queue to the server, and from there to the kernel.

use super::queue::Queue;
use super::shared::{Lease, Shared};
use crate::proxy::associations::send;
use crate::proxy::idle::Idle;
use crate::proxy::{OpenError, PacketFlow, Tunnel};
use marline_proto::FlowOptions;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A conversation that is quiet for this time loses its flow, and gets another with its next
/// packet.
const IDLE: Duration = Duration::from_secs(60);
/// The same of TCP, whose last packet waits in the flow while all paths are dark: for longer than a
/// session lasts then (180 s by default), and than TCP waits before it tries again (120 s, Linux's
/// `TCP_RTO_MAX`).
pub(super) const TCP_IDLE: Duration = Duration::from_secs(300);
/// After a flow could not be had.
const RETRY: Duration = Duration::from_millis(300);

/// What a flow has to know that carries a conversation, and not what belongs to none.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Its common flow is shared where the conversation can have none of its own.
    pub(super) lease: Arc<Lease>,
    /// It is TCP's.
    pub(super) is_tcp: bool,
    /// Each packet is a question and has one answer; with the last answer the conversation is over.
    pub(super) asks: bool,
}

/// Carries one flow both ways until either side ends it. A conversation's also ends when it is
/// quiet for long.
pub(super) async fn carry<T: Tunnel>(
    tunnel: T,
    options: FlowOptions,
    queue: Arc<Queue>,
    shared: Arc<Shared>,
    conversation: Option<Conversation>,
) {
    let flow = match tunnel.open_packets(options).await {
        Ok(flow) => flow,
        Err(error) => {
            tracing::debug!(%error, "cannot open a flow for a conversation in the tunnel");
            if let (OpenError::TooManyFlows, Some(its)) = (error, conversation) {
                while let Ok(Some(packet)) = timeout(RETRY, queue.pop()).await {
                    its.lease.common.push(packet);
                }
            } else {
                sleep(RETRY).await;
            }
            queue.close();
            return;
        }
    };
    let is_tcp = conversation.as_ref().is_some_and(|its| its.is_tcp);
    let idle = Idle::new(if is_tcp { TCP_IDLE } else { IDLE });
    let asks = conversation.as_ref().is_some_and(|its| its.asks);
    let (asked, answered) = (AtomicU32::new(0), AtomicU32::new(0));
    let outgoing = async {
        while let Some(packet) = queue.pop().await {
            idle.touch();
            asked.fetch_add(1, Relaxed);
            send(&flow, packet).await?;
        }
        io::Result::Ok(())
    };
    let incoming = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            shared.deliver(message).await;
            answered.fetch_add(1, Relaxed);
            if asks && answered.load(Relaxed) >= asked.load(Relaxed) && queue.is_empty() {
                break;
            }
        }
        io::Result::Ok(())
    };
    let quiet = async {
        match conversation {
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
    // What came meanwhile asks something else.
    if let Some(its) = conversation.filter(|its| its.asks) {
        while let Some(packet) = queue.pop().await {
            its.lease.common.push(packet);
        }
    }
}
