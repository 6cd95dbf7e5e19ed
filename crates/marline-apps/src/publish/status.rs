//! What a running Marline reports about published ports. Fields may be added.

use serde::{Deserialize, Serialize};

/// A port of the server that leads to a service behind a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedStatus {
    /// The server's port, such as `tcp:8443`.
    pub port: String,
    /// Where it leads: at a client the service, such as `tcp:127.0.0.1:443`; at a server the
    /// client's public key.
    pub leads_to: String,
    /// How it stands.
    pub state: PublishedState,
    /// Where the server listens, such as `[::]:8443`, or why it does not.
    #[serde(default)]
    pub about: Option<String>,
}

/// How a published port stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedState {
    /// The client asks, or waits for a session.
    Asking,
    /// The server listens.
    Open,
    /// It leads to a newer session of the same key.
    SetAside,
    /// The server does not open it, or cannot.
    Refused,
}

impl PublishedState {
    /// The words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            PublishedState::Asking => "asked for",
            PublishedState::Open => "open",
            PublishedState::SetAside => "leads to a newer session of this key",
            PublishedState::Refused => "refused",
        }
    }
}
