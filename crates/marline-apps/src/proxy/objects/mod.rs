//! Where the objects of a connection's bytes end: TLS records, HTTP/1.1 responses and their chunks.
//!
//! A connection that is carried as objects stays a stream of bytes: nothing is held back for an
//! object to be complete, and at the other end the objects follow each other in the order in which
//! they were cut, so that a wrong cut costs nothing but a plan. What the session gains is that it
//! knows how much belongs together: a scheduler that plans whole objects plans what the receiver
//! needs whole, and a response that says how urgent it is goes before others.
//!
//! Bytes that are none of this are cut wherever their writer pauses.

mod choice;
mod http;
mod order;
mod tls;

pub use choice::AsObjects;
pub use order::{Disorder, Order};

use http::Responses;
use tls::Records;

/// What a cutter says of the bytes that it was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// The number of them, at least one, that belong to the present object.
    pub take: usize,
    /// It ends with them.
    pub ends: bool,
}

/// The bytes are not of that format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Foreign;

/// Finds the ends of objects in the bytes of one direction of a connection.
#[derive(Debug)]
pub struct Cutter {
    format: Format,
    /// Of what is cut now (RFC 9218), once that is known.
    urgency: Option<u8>,
}

#[derive(Debug)]
enum Format {
    /// An object begins, and its format is not known.
    Unknown,
    Tls(Records),
    Http(Box<Responses>),
    /// None of them until the writer pauses.
    Raw,
}

impl Default for Cutter {
    fn default() -> Self {
        Self::new()
    }
}

impl Cutter {
    /// For a direction about which nothing was seen.
    pub fn new() -> Self {
        Cutter {
            format: Format::Unknown,
            urgency: None,
        }
    }

    /// Shows it the next bytes, at least one.
    pub fn cut(&mut self, data: &[u8]) -> Cut {
        if let Format::Unknown = self.format {
            self.format = match data.first() {
                Some(first) if tls::TYPES.contains(first) => Format::Tls(Records::default()),
                Some(b'H') => Format::Http(Box::default()),
                _ => Format::Raw,
            };
        }
        let cut = match &mut self.format {
            Format::Tls(records) => records.cut(data),
            Format::Http(responses) => responses.cut(data),
            Format::Unknown | Format::Raw => Err(Foreign),
        };
        match cut {
            Ok(cut) => {
                if let Format::Http(responses) = &self.format {
                    self.urgency = responses.urgency();
                }
                cut
            }
            Err(Foreign) => {
                (self.format, self.urgency) = (Format::Raw, None);
                Cut {
                    take: data.len(),
                    ends: false,
                }
            }
        }
    }

    /// Nothing follows at once. Does the present object, of which bytes were taken, end here?
    pub fn pause(&mut self) -> bool {
        let ends = matches!(self.format, Format::Raw | Format::Unknown);
        if ends {
            self.format = Format::Unknown;
        }
        ends
    }

    /// How urgent the present object says it is, 0 (first) to 7 (RFC 9218); `None` if it does not
    /// say so.
    pub fn urgency(&self) -> Option<u8> {
        self.urgency
    }
}

#[cfg(test)]
mod tests;
