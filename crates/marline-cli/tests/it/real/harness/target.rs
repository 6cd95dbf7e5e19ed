use super::pattern::{Digest, pattern};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// Piece in which a body is made and sent.
const PIECE: usize = 1 << 18;

fn serve(each: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        while let Ok((connection, _)) = listener.accept() {
            let each = each.clone();
            thread::spawn(move || each(connection));
        }
    });
    address
}

/// A TCP server that sends back what it gets, and ends when its peer has ended.
pub(crate) fn tcp_echo() -> SocketAddr {
    serve(|connection| {
        let (mut reader, mut writer) = (&connection, &connection);
        // An error is the end of the connection, which the other side sees.
        let _ = std::io::copy(&mut reader, &mut writer);
        let _ = connection.shutdown(Shutdown::Write);
    })
}

/// An HTTP server with one resource of `length` bytes; returns its address and the resource's
/// SHA-256.
pub(crate) fn http_server(length: usize) -> (SocketAddr, String) {
    const SEED: u64 = 0x4d61_726c;
    let pieces = move || {
        (0..length.div_ceil(PIECE)).map(move |index| {
            let offset = index * PIECE;
            pattern(SEED, offset as u64, PIECE.min(length - offset))
        })
    };
    let mut digest = Digest::new();
    pieces().for_each(|piece| digest.update(&piece));
    let address = serve(move |mut connection| {
        let mut head = BufReader::new(connection.try_clone().unwrap()).lines();
        // A request for the resource, without a body: its head ends with an empty line.
        while head
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        let mut sent = connection.write_all(answer.as_bytes());
        for piece in pieces() {
            sent = sent.and_then(|()| connection.write_all(&piece));
        }
        // The client sees a body that is too short.
        if sent
            .and_then(|()| connection.shutdown(Shutdown::Write))
            .is_ok()
        {
            let _ = connection.read(&mut [0]);
        }
    });
    (address, digest.finish())
}

/// A UDP server that sends back what it gets.
pub(crate) fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..length], peer);
        }
    });
    address
}
