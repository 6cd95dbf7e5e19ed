//! Does the server let this client's key in? A session begins and ends.

use super::super::finding::Finding;
use super::super::limits::PATIENCE;
use super::super::running::Running;
use marline::carrier::CarrierKind;
use marline::endpoint::client::FailureKind;
use marline::endpoint::{Client, ClientOptions};
use marline::identity::PublicKey;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const NAME: &str = "key";
/// How long is waited for further paths after the first: they are dialled with it, and this is
/// three round trips of a slow mobile network (150 ms).
const JOINED: Duration = Duration::from_millis(500);
/// How long the end of the session may take: the server has to hear of it, which is one round trip;
/// where it does not, the session ends by itself.
const END: Duration = Duration::from_secs(1);

/// What a client that runs here already says of it; `None` if it says nothing, and a session of our
/// own disturbs nobody.
pub(in super::super) fn known(running: &Running, server: PublicKey) -> Option<Finding> {
    let status = match running {
        Running::None => return None,
        Running::Answers(status) => status,
        Running::Unclear(why) => {
            let text = format!("not asked, as a client may run here whom that disturbs: {why}");
            let fix = "run this as the user of that client, or stop it";
            return Some(Finding::unknown(NAME, text).fix(fix));
        }
    };
    let server = server.to_string();
    // One of another server is not disturbed.
    let mut same = status.sessions.iter().filter(|it| it.peer == server);
    let first = same.next()?;
    let is_up = first.state == "established" || same.any(|it| it.state == "established");
    Some(match is_up {
        true => Finding::fine(
            NAME,
            "the client that runs here has a session with this server",
        ),
        // A further session of one client may end one that is in trouble.
        false => Finding::unknown(
            NAME,
            "not asked: the client that runs here has no session with this server now, and a trial \
             would disturb it",
        ),
    })
}

/// What came of it, and for each path that came up the largest datagram that it carries.
pub(in super::super) async fn check(options: ClientOptions) -> (Finding, Vec<(String, Finding)>) {
    let key = options.identity.public_key();
    let client = match Client::start(options) {
        Ok(client) => client,
        Err(error) => return (Finding::unknown(NAME, error.to_string()), Vec::new()),
    };
    let found = match client.connect(PATIENCE).await {
        Ok(_) => Finding::fine(NAME, "the server lets it in"),
        Err(error) => match error.worst() {
            Some(worst) if worst.kind == FailureKind::Refused => {
                let fix = worst.hint.clone();
                let fix = fix.unwrap_or_else(|| format!("let {key} in at the server"));
                Finding::failure(NAME, worst.message.clone()).fix(fix)
            }
            _ => Finding::unknown(NAME, "no session came up, so that the server was not asked"),
        },
    };
    sleep(JOINED).await;
    let paths = client.info().paths.into_iter();
    let sizes = paths.filter_map(|path| {
        let largest = path.stats?.max_datagram;
        Some((path.name, size(path.carrier?, largest)))
    });
    let sizes = sizes.collect();
    let _ = timeout(END, client.stop("the check is over")).await;
    (found, sizes)
}

/// `largest`: the largest datagram that a path carries, bytes.
fn size(carrier: CarrierKind, largest: usize) -> Finding {
    let text = match carrier {
        CarrierKind::Tcp => format!("datagrams of {largest} bytes, over TCP"),
        // QUIC begins with the smallest and goes on looking.
        _ => format!("datagrams of at least {largest} bytes, as far as sizes were tried"),
    };
    Finding::fine("size", text)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;
    use crate::control::status::tests::example;

    #[test]
    fn a_session_with_another_server_says_nothing() {
        let server = PublicKey::from_bytes([7; 32]);
        let verdict = |peer: String, state: &str| {
            let mut status = example();
            (status.sessions[0].peer, status.sessions[0].state) = (peer, state.to_owned());
            let found = known(&Running::Answers(Box::new(status)), server);
            found.map(|finding| finding.verdict)
        };
        assert_eq!(
            verdict(server.to_string(), "established"),
            Some(Verdict::Fine)
        );
        assert_eq!(
            verdict(server.to_string(), "connecting"),
            Some(Verdict::Unknown)
        );
        assert_eq!(verdict("another".to_owned(), "established"), None);
        assert_eq!(known(&Running::None, server), None);
        let unclear = known(&Running::Unclear("it does not answer".into()), server).unwrap();
        assert_eq!(unclear.verdict, Verdict::Unknown);
    }

    #[test]
    fn a_search_that_goes_on_has_found_the_least() {
        assert!(
            size(CarrierKind::Quic, 1162)
                .text
                .contains("at least 1162 bytes")
        );
        assert_eq!(
            size(CarrierKind::Tcp, 1362).text,
            "datagrams of 1362 bytes, over TCP"
        );
    }
}
