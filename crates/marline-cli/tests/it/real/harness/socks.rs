use super::DEADLINE;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// Asks the proxy for a connection to `target`; returns it with the code of the reply (RFC 1928
/// section 6).
pub(crate) fn socks_reply(proxy: SocketAddr, target: SocketAddr) -> io::Result<(TcpStream, u8)> {
    let SocketAddr::V4(target) = target else {
        return Err(io::Error::other("only IPv4 targets"));
    };
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.write_all(&[5, 1, 0])?;
    let mut method = [0; 2];
    stream.read_exact(&mut method)?;
    let mut request = vec![5, 1, 0, 1];
    request.extend(target.ip().octets());
    request.extend(target.port().to_be_bytes());
    stream.write_all(&request)?;
    let mut reply = [0; 10];
    stream.read_exact(&mut reply)?;
    Ok((stream, reply[1]))
}

/// A connection to `target` through the proxy.
///
/// # Panics
/// When the proxy refuses.
pub(crate) fn socks_connect(proxy: SocketAddr, target: SocketAddr) -> TcpStream {
    let (stream, code) = socks_reply(proxy, target).expect("the proxy answers");
    assert_eq!(code, 0, "the proxy refused");
    stream
}
