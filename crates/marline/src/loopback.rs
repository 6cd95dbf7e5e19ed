//! A client and a server in one process, for examples and tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::{
    AllowList, Client, ClientOptions, ConnectionString, Identity, Incomings, Path, Server,
    ServerOptions, Session,
};

/// Both ends of a session over the loopback interface.
#[derive(Debug)]
pub struct Loopback {
    /// The client's end.
    pub session: Session,
    /// The server's end.
    pub incomings: Incomings,
    /// Keeps its end up.
    pub client: Client,
    /// Keeps its end up.
    pub server: Server,
}

/// Connects a client and a server. Needs a tokio runtime.
///
/// # Errors
/// The system gives no randomness or no socket.
pub async fn loopback() -> Result<Loopback, Box<dyn std::error::Error>> {
    let (ours, theirs) = (Identity::generate()?, Identity::generate()?);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let allow = AllowList::from_keys([ours.public_key()]);
    let server = Server::bind(ServerOptions::new(vec![address], theirs, allow))?;
    let address = server.local_addrs()[0].to_string().parse()?;
    let string = ConnectionString::new(server.public_key(), vec![address])?;
    let client = Client::start(ClientOptions::new(&string, ours, vec![Path::any()]))?;
    let session = client.connect(Duration::from_secs(10)).await?;
    let incomings = server.accept().await.ok_or("the server has stopped")?;
    Ok(Loopback {
        session,
        incomings,
        client,
        server,
    })
}
