//! HTTP/1.1 responses (RFC 9112): with `Content-Length`, head and body are an object; of chunked
//! ones the head, each chunk and the trailer are. A response that ends with its connection has no
//! end that could be known.

use super::{Cut, Foreign};

/// Longest head, chunk line or trailer (bytes) that is looked at.
const LONGEST: usize = 64 << 10;
/// Most headers of one.
const HEADERS: usize = 128;
const START: &[u8] = b"HTTP/1.";

/// Follows the responses on a connection.
#[derive(Debug, Default)]
pub(super) struct Responses {
    state: State,
    /// What is collected of a head, a chunk's line or the trailer; at most [`LONGEST`] bytes.
    text: Vec<u8>,
    urgency: Option<u8>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    /// This number of bytes of a body of known length is to come.
    Body(u64),
    /// The line before a chunk.
    Chunk,
    /// This number of bytes of a chunk, its line end included, is to come.
    Data(u64),
    Trailer,
    /// The body ends with the connection.
    Endless,
}

impl Responses {
    /// What the response says of its urgency (RFC 9218 section 5).
    pub(super) fn urgency(&self) -> Option<u8> {
        self.urgency
    }

    pub(super) fn cut(&mut self, data: &[u8]) -> Result<Cut, Foreign> {
        let mut take = 0;
        while take < data.len() {
            let ends = match self.state {
                State::Endless => return Err(Foreign),
                State::Body(left) | State::Data(left) => {
                    let part = left.min((data.len() - take) as u64);
                    take += part as usize;
                    let left = left - part;
                    self.state = match (self.state, left) {
                        (State::Body(_), 0) => State::Head,
                        (State::Data(_), 0) => State::Chunk,
                        (State::Body(_), _) => State::Body(left),
                        _ => State::Data(left),
                    };
                    left == 0
                }
                State::Head | State::Chunk | State::Trailer => {
                    // An urgency holds until the next response begins.
                    if self.state == State::Head && self.text.is_empty() {
                        self.urgency = None;
                    }
                    let Some(used) = self.collect(&data[take..])? else {
                        return Ok(Cut {
                            take: data.len(),
                            ends: false,
                        });
                    };
                    take += used;
                    let text = std::mem::take(&mut self.text);
                    self.after(&text)?
                }
            };
            if ends {
                return Ok(Cut { take, ends });
            }
        }
        Ok(Cut { take, ends: false })
    }

    /// Collects text to its end: bytes used, or `None` if it goes on.
    fn collect(&mut self, data: &[u8]) -> Result<Option<usize>, Foreign> {
        let before = self.text.len();
        let room = LONGEST - before;
        self.text.extend_from_slice(&data[..data.len().min(room)]);
        if self.state == State::Head {
            let known = self.text.len().min(START.len());
            if self.text[..known] != START[..known] {
                return Err(Foreign);
            }
        }
        // A trailer may be empty, and then the line end of the last chunk stands before it.
        let end: &[u8] = match self.state {
            State::Chunk => b"\r\n",
            _ => b"\r\n\r\n",
        };
        let from = before.saturating_sub(end.len() - 1);
        let found = self.text[from..].windows(end.len()).position(|w| w == end);
        match found {
            Some(at) => {
                let length = from + at + end.len();
                self.text.truncate(length);
                Ok(Some(length - before))
            }
            None if self.text.len() == LONGEST => Err(Foreign),
            None => Ok(None),
        }
    }

    /// What follows this text; does an object end with it?
    fn after(&mut self, text: &[u8]) -> Result<bool, Foreign> {
        match self.state {
            State::Chunk => {
                let Ok(httparse::Status::Complete((_, size))) = httparse::parse_chunk_size(text)
                else {
                    return Err(Foreign);
                };
                if size == 0 {
                    self.state = State::Trailer;
                    // The line end that would end the trailer if there were nothing in it.
                    self.text.extend_from_slice(b"\r\n");
                    return Ok(false);
                }
                self.state = State::Data(size.checked_add(2).ok_or(Foreign)?);
                Ok(false)
            }
            State::Trailer => {
                self.state = State::Head;
                Ok(true)
            }
            _ => self.on_head(text),
        }
    }

    fn on_head(&mut self, text: &[u8]) -> Result<bool, Foreign> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let Ok(httparse::Status::Complete(_)) = response.parse(text) else {
            return Err(Foreign);
        };
        let code = response.code.unwrap_or_default();
        let (mut length, mut chunked) = (None, false);
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).unwrap_or_default().trim();
            if header.name.eq_ignore_ascii_case("content-length") {
                length = Some(value.parse::<u64>().map_err(|_| Foreign)?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                let last = value.rsplit(',').next().unwrap_or_default();
                chunked = last.trim().eq_ignore_ascii_case("chunked");
            } else if header.name.eq_ignore_ascii_case("priority") {
                self.urgency = urgency(value).or(self.urgency);
            }
        }
        let bodiless = (100..200).contains(&code) || matches!(code, 204 | 304);
        (self.state, length) = match (bodiless, chunked, length) {
            // What follows another protocol's first word is not HTTP.
            _ if code == 101 => (State::Endless, None),
            (true, ..) => (State::Head, None),
            (_, true, _) => (State::Chunk, None),
            (_, _, Some(0)) => (State::Head, None),
            (_, _, Some(length)) => (State::Body(length), Some(length)),
            _ => (State::Endless, None),
        };
        // With a body of known length, head and body are one object.
        Ok(length.is_none())
    }
}

/// `u` of a Priority header's value, a dictionary of RFC 8941; of several the last counts.
fn urgency(value: &str) -> Option<u8> {
    let members = value.split(',').map(str::trim);
    let mut urgencies = members.filter_map(|member| member.strip_prefix("u="));
    let last = urgencies.next_back()?.split(';').next()?;
    last.trim().parse().ok().filter(|urgency| *urgency <= 7)
}
