//! More conversations at once than have a flow of their own.

use super::*;

const DNS: u16 = 53;
const ECHO: u16 = 7;

/// A question from this port of a client to that one of the server.
fn question(from: u16, to: u16) -> Vec<u8> {
    let [[a, b], [c, d]] = [from, to].map(u16::to_be_bytes);
    let mut bytes = v4(UDP, &[a, b, c, d, 0, 9, 0, 0, 0]);
    bytes[12..16].copy_from_slice(&OWN);
    bytes[16..20].copy_from_slice(&SERVER);
    bytes
}

fn answer_to(question: &[u8]) -> Vec<u8> {
    let mut bytes = question.to_vec();
    bytes[12..20].rotate_left(4);
    bytes[20..24].rotate_left(2);
    bytes
}

/// What has come so far.
fn all<T>(waiting: &mut mpsc::Receiver<T>) -> Vec<T> {
    std::iter::from_fn(|| waiting.try_recv().ok()).collect()
}

/// Evicted conversations would open a flow again with their next packet, and a real session would
/// drop what is under way to them (`lab/conversations.sh`).
#[tokio::test(start_paused = true)]
async fn conversations_without_a_flow_share_one_and_none_is_evicted() {
    const ALL: u16 = 2_000;
    let (log, _guard) = log();
    let mut server = Server::new();
    let (mut machine, session) = server.machine();
    sleep(SOON).await;
    for round in 1..=2 {
        let mut asked = Vec::new();
        for port in 0..ALL {
            let packet = question(1_000 + port, ECHO);
            machine.from_kernel.send(packet.into()).await.unwrap();
            sleep(Duration::from_millis(1)).await;
            asked.extend(all(&mut server.to_kernel));
        }
        assert_eq!(asked.len(), usize::from(ALL), "round {round}");
        let mut answered = 0;
        for question in asked {
            server
                .from_kernel
                .send(answer_to(&question).into())
                .await
                .unwrap();
            sleep(Duration::from_millis(1)).await;
            answered += all(&mut machine.to_kernel).len();
        }
        assert_eq!(answered, usize::from(ALL), "round {round}");
    }
    assert_eq!(session.conversations.load(Relaxed), 512);
    assert_eq!(lines(&log, "conversations have a flow of their own"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_quiet_for_long_makes_room() {
    let server = Server::new();
    let (machine, session) = server.machine();
    sleep(SOON).await;
    let ask = async |ports: std::ops::Range<u16>| {
        for port in ports {
            let packet = question(port, ECHO);
            machine.from_kernel.send(packet.into()).await.unwrap();
            sleep(Duration::from_millis(1)).await;
        }
    };
    ask(0..600).await;
    assert_eq!(session.conversations.load(Relaxed), 512);
    sleep(Duration::from_secs(11)).await;
    ask(600..700).await;
    assert_eq!(session.conversations.load(Relaxed), 612);
}

#[tokio::test(start_paused = true)]
async fn a_dns_conversation_ends_with_its_last_answer() {
    let (log, _guard) = log();
    let mut server = Server::new();
    let (mut machine, session) = server.machine();
    sleep(SOON).await;
    // As resolvers do, for IPv4 and IPv6 from one port.
    for port in 0..600 {
        for _ in 0..2 {
            let packet = question(1_000 + port, DNS);
            machine.from_kernel.send(packet.into()).await.unwrap();
        }
        sleep(Duration::from_millis(1)).await;
        for question in all(&mut server.to_kernel) {
            server
                .from_kernel
                .send(answer_to(&question).into())
                .await
                .unwrap();
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(all(&mut machine.to_kernel).len(), 2);
    }
    assert_eq!(session.conversations.load(Relaxed), 600);
    assert_eq!(lines(&log, "conversations have a flow of their own"), 0);
}
