use super::harness::{DEADLINE, Relay};
use std::net::UdpSocket;

#[test]
fn an_emulated_link_changes_while_it_runs() {
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(DEADLINE)).unwrap();
    let to = target.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let link = Relay::start(folder.path(), to, "mtu=100,at=10ms:mtu=1000");
    for direction in ["up", "down"] {
        link.logged("the change", |line| {
            (line.contains(&format!("{direction} ")) && line.contains("from now on mtu=1000"))
                .then_some(())
        });
    }
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(link.addr).unwrap();
    client.send(&[7; 500]).unwrap();
    let mut buffer = [0; 1000];
    let (length, upstream) = target.recv_from(&mut buffer).unwrap();
    assert_eq!(buffer[..length], [7; 500]);
    target.send_to(&[8; 500], upstream).unwrap();
    client.set_read_timeout(Some(DEADLINE)).unwrap();
    assert_eq!(client.recv(&mut buffer).unwrap(), 500);
}
