use marline_link::LinkConfig;

/// Which end of a pair of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The session that dialled.
    Client,
    /// The session that was dialled.
    Server,
}

impl End {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The two directions of what a path runs over.
#[derive(Clone, Debug)]
pub struct Cable {
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
}

impl Cable {
    /// The same link in both directions.
    pub fn symmetric(link: LinkConfig) -> Self {
        Self {
            up: link.clone(),
            down: link,
        }
    }
}
