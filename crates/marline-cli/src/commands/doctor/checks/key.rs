//! Does the server let this client's key in? A session begins and ends.

use super::super::finding::Finding;
use marline::endpoint::client::FailureKind;
use marline::endpoint::{Client, ClientOptions};
use std::time::Duration;
use tokio::time::timeout;

const NAME: &str = "key";
/// How long a session may take to come up.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long its end may take.
const END: Duration = Duration::from_secs(1);

/// What came of it, and for each path that came up the largest datagram that it carries, bytes.
pub(in super::super) async fn check(options: ClientOptions) -> (Finding, Vec<(String, usize)>) {
    let key = options.identity.public_key();
    let client = match Client::start(options) {
        Ok(client) => client,
        Err(error) => return (Finding::unknown(NAME, error.to_string()), Vec::new()),
    };
    let found = match client.connect(PATIENCE).await {
        Ok(_) => Finding::fine(NAME, "the server lets it in"),
        Err(error) => match error.worst() {
            Some(worst) if worst.kind == FailureKind::Refused => {
                let mend = worst.hint.clone();
                let mend = mend.unwrap_or_else(|| format!("let {key} in at the server"));
                Finding::failure(NAME, worst.message.clone()).mend(mend)
            }
            _ => Finding::unknown(NAME, "no session came up, so that the server was not asked"),
        },
    };
    // The others join the first.
    tokio::time::sleep(JOINED).await;
    let paths = client.info().paths.into_iter();
    let sizes = paths.filter_map(|path| Some((path.name, path.stats?.max_datagram)));
    let sizes = sizes.collect();
    let _ = timeout(END, client.stop("the check is over")).await;
    (found, sizes)
}

/// How long is waited for further paths.
const JOINED: Duration = Duration::from_millis(500);
