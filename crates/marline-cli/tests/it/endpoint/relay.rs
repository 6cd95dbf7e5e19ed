//! A relay that can shut out those whom it knows: a network whose old addresses are gone for good.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::LOOPBACK;

pub(super) struct Relay {
    pub(super) addr: SocketAddr,
    clients: Arc<Mutex<HashMap<SocketAddr, Option<Arc<UdpSocket>>>>>,
    task: JoinHandle<()>,
}

impl Relay {
    pub(super) async fn start(server: SocketAddr) -> Self {
        let inside = Arc::new(UdpSocket::bind(LOOPBACK).await.unwrap());
        let addr = inside.local_addr().unwrap();
        let clients: Arc<Mutex<HashMap<SocketAddr, Option<Arc<UdpSocket>>>>> = Arc::default();
        let known = Arc::clone(&clients);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok((len, from)) = inside.recv_from(&mut buffer).await {
                let there = known.lock().unwrap().get(&from).cloned();
                let there = match there {
                    Some(None) => continue,
                    Some(Some(socket)) => socket,
                    None => {
                        let socket = Arc::new(UdpSocket::bind(LOOPBACK).await.unwrap());
                        socket.connect(server).await.unwrap();
                        known
                            .lock()
                            .unwrap()
                            .insert(from, Some(Arc::clone(&socket)));
                        tokio::spawn(back(Arc::clone(&socket), Arc::clone(&inside), from));
                        socket
                    }
                };
                let _ = there.send(&buffer[..len]).await;
            }
        });
        Self {
            addr,
            clients,
            task,
        }
    }

    /// Nothing from those who have sent anything so far is relayed any more.
    pub(super) fn shut_out_the_known(&self) {
        let mut clients = self.clients.lock().unwrap();
        clients.values_mut().for_each(|socket| *socket = None);
    }
}

async fn back(outside: Arc<UdpSocket>, inside: Arc<UdpSocket>, client: SocketAddr) {
    let mut buffer = vec![0; 65_536];
    // A refused datagram shows as an error here, and the next one may pass.
    loop {
        if let Ok(len) = outside.recv(&mut buffer).await {
            let _ = inside.send_to(&buffer[..len], client).await;
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}
