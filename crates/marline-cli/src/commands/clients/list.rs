//! The list as it is shown.

use crate::commands::page::{Layout, Page, Row};
use crate::control::words::{brief, mbps};
use marline::Rate;
use marline::endpoint::ClientLimits;
use serde::Serialize;
use std::collections::BTreeMap;

/// Longest name in the table; the whole one is in the JSON.
const NAME: usize = 30;

/// What `list --json` prints of a client.
#[derive(Debug, Serialize)]
pub(super) struct Listed {
    pub(super) key: String,
    pub(super) name: String,
    /// Whether it has a session now; `null` where no server answers.
    pub(super) connected: Option<bool>,
    /// Its sessions now; `null` where no server answers.
    pub(super) sessions: Option<usize>,
    /// When it was there last, seconds since 1970; `null` if never, as far as is known.
    pub(super) last_seen: Option<u64>,
    /// What it may receive, bits per second; `null` for no limit.
    pub(super) down_bps: Option<u64>,
    /// What it may send, bits per second; `null` for no limit.
    pub(super) up_bps: Option<u64>,
    /// All options before its key, by name.
    pub(super) options: BTreeMap<String, Vec<String>>,
}

impl Listed {
    pub(super) fn limited(mut self, limits: ClientLimits) -> Self {
        self.down_bps = limits.down.map(Rate::as_bps);
        self.up_bps = limits.up.map(Rate::as_bps);
        self
    }

    fn row(&self, now: u64) -> Row {
        let state = match self.connected {
            None => "unknown",
            Some(false) => "away",
            Some(true) => "connected",
        };
        let seen = match (self.connected, self.last_seen) {
            (Some(true), _) => "now".to_owned(),
            (_, Some(at)) => format!("{} ago", brief(now.saturating_sub(at) as f64)),
            (_, None) => "never".to_owned(),
        };
        let rate = |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), mbps);
        let shown = ["down", "up"];
        let options = self.options.iter();
        let options = options.filter(|(name, _)| !shown.contains(&name.as_str()));
        let options = options
            .flat_map(|(name, values)| values.iter().map(move |value| format!(" {name}={value}")));
        Row {
            cells: vec![
                state.to_owned(),
                shortened(&self.name),
                seen,
                rate(self.down_bps),
                rate(self.up_bps),
            ],
            note: format!("{}{}", self.key, options.collect::<String>()),
        }
    }
}

fn shortened(name: &str) -> String {
    match name.chars().count() > NAME {
        true => name.chars().take(NAME - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// The table; `now` in seconds since 1970.
pub(super) fn table(clients: &[Listed], now: u64, layout: Layout) -> String {
    let mut page = Page::new(layout);
    if clients.is_empty() {
        page.line("nobody is let in; `marline clients add KEY NAME` lets a client in");
        return page.into_text();
    }
    let head = ["state", "name", "last seen", "down Mb/s", "up Mb/s"];
    let rows = clients.iter().map(|client| client.row(now)).collect();
    page.table(&head, 3, rows);
    page.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::identity::PublicKey;

    #[test]
    fn a_line_of_figures_and_one_of_words_in_80_columns() {
        let client = |name: &str, connected, last_seen| Listed {
            key: PublicKey::from_bytes([7; 32]).to_string(),
            name: name.to_owned(),
            connected,
            sessions: None,
            last_seen,
            down_bps: Some(20_000_000),
            up_bps: None,
            options: [
                ("down", "20mbit"),
                ("publish", "tcp:8443+udp:9000-9010"),
                ("prefix", "192.168.7.0/24"),
            ]
            .map(|(name, value)| (name.to_owned(), vec![value.to_owned()]))
            .into(),
        };
        let clients = [
            client("van in Turin", Some(true), Some(7)),
            client(&"long ".repeat(20), Some(false), Some(100)),
            client("", None, None),
        ];
        let layout = Layout {
            width: 80,
            details: false,
        };
        let text = table(&clients, 100 + 3 * 86_400, layout);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(lines[1].contains("connected  van in Turin"), "{text}");
        assert!(
            lines[1].contains("now") && lines[1].contains("20.0"),
            "{text}"
        );
        assert!(text.contains("3d ago") && text.contains("never") && text.contains("unknown"));
        assert!(text.contains("prefix=192.168.7.0/24") && !text.contains("down=20mbit"));
    }
}
