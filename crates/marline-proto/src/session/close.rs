//! How a session ends.

use alloc::string::String;

use super::{Ending, Session};
use crate::event::{CloseReason, Event};
use crate::wire::{Close, MAX_REASON, PathId, close_code};

impl Session {
    /// Ends the session: each path carries that once, and [`Event::Closed`] follows when those
    /// datagrams were polled. `reason` is cut to 256 bytes.
    pub fn close(&mut self, code: u64, reason: &str) {
        let mut end = reason.len().min(MAX_REASON);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        let reason = String::from(&reason[..end]);
        self.end(CloseReason::Local { code, reason });
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        if self.ending.is_some() {
            return;
        }
        self.timers.wake();
        let tell = matches!(
            reason,
            CloseReason::Local { .. } | CloseReason::Protocol { .. } | CloseReason::IdleTimeout
        );
        let farewells = match tell {
            true => self.paths.iter().map(|p| p.id).collect(),
            false => alloc::vec::Vec::new(),
        };
        self.ending = Some(Ending {
            reason,
            farewells,
            reported: false,
        });
        self.egress.control.clear();
        self.flow_timers.clear();
        self.finish_ending();
    }

    /// The peer goes on sending: it has not heard that the session is over.
    pub(super) fn say_farewell_again(&mut self, id: PathId) {
        let known = self.path_index(id).is_some();
        if let Some(ending) = &mut self.ending
            && !matches!(ending.reason, CloseReason::Peer { .. })
            && !ending.farewells.contains(&id)
            && known
        {
            ending.farewells.push(id);
        }
    }

    /// Reports the end once nothing more has to leave.
    pub(super) fn finish_ending(&mut self) {
        if let Some(ending) = &mut self.ending
            && ending.farewells.is_empty()
            && !ending.reported
        {
            ending.reported = true;
            self.events.push_back(Event::Closed(ending.reason.clone()));
        }
    }

    pub(super) fn close_frame(&self) -> Option<Close<'_>> {
        let (code, reason) = match &self.ending.as_ref()?.reason {
            CloseReason::Local { code, reason } | CloseReason::Protocol { code, reason } => {
                (*code, reason.as_str())
            }
            CloseReason::IdleTimeout => (close_code::NONE, "idle timeout"),
            CloseReason::Peer { .. } => return None,
        };
        let mut end = reason.len().min(MAX_REASON);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Some(Close {
            code,
            reason: &reason[..end],
        })
    }
}
