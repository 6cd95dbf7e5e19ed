//! Parameters of one end, which the carrier's handshake carries to the other.
//!
//! ```text
//! [ id (i) | length (i) | value (i) ] * any number, up to the end
//! ```

use alloc::vec::Vec;

use super::param_name::{self, Named};
use super::reader::Reader;
use super::{
    DecodeError, DecodeErrorKind, MAX_CODE_SYMBOL, MAX_CODE_WINDOW, MAX_COST, MAX_FLOW_COUNT,
    MAX_MESSAGE, MAX_QUIET_MS, varint,
};

/// Most parameters, known and unknown, that one end may send.
pub const MAX_PARAMETERS: usize = 64;

/// Largest [`Params::max_ack_delay_us`]: 2^24 - 1 µs, about 17 s.
pub const MAX_ACK_DELAY_US: u64 = (1 << 24) - 1;

/// Largest [`Params::max_units`].
pub const MAX_UNITS: u64 = 1 << 20;

/// Largest [`Params::max_repairs`]: as many indices as there are.
pub const MAX_REPAIRS: u64 = 1 << 16;

/// What one end is ready to take from the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The session ends after this number of milliseconds without a datagram from the peer on any
    /// path; the smaller value of both ends holds, and 0 means no limit. Default 30 000.
    pub max_idle_timeout_ms: u64,
    /// MAX_DATA at the start, in bytes. Default 16 MiB.
    pub max_data: u64,
    /// MAX_FLOW_DATA of every stream at its start, in bytes. Default 4 MiB.
    pub max_flow_data: u64,
    /// MAX_FLOW_DATA of every flow of blocks or objects at its start, in bytes; 0, the default:
    /// as of streams.
    pub max_unit_data: u64,
    /// Highest cost rank that this end takes in PATH_COST, at most [`MAX_COST`]; 0, the default,
    /// takes no such frames.
    pub max_path_cost: u64,
    /// Longest quiet time in milliseconds that this end heeds in PATH_QUIET, at most
    /// [`MAX_QUIET_MS`]; 0, the default, takes no such frames.
    pub max_path_quiet_ms: u64,
    /// MAX_FLOWS at the start; at most [`MAX_FLOW_COUNT`]. Default 1024.
    pub max_flows: u64,
    /// Longest wait, in microseconds, before an acknowledgement is sent; at most
    /// [`MAX_ACK_DELAY_US`]. Default 5000.
    pub max_ack_delay_us: u64,
    /// Longest message, in bytes, that this end takes; at most [`MAX_MESSAGE`], the default.
    pub max_message: u64,
    /// Most source symbols that this end lets a repair symbol combine, at most
    /// [`MAX_CODE_WINDOW`]; 0, the default, takes no coded flows.
    pub code_window: u64,
    /// Longest source symbol of a coded flow, in bytes, that this end takes; at most
    /// [`MAX_CODE_SYMBOL`]. Default 1500.
    pub code_symbol: u64,
    /// Coded flows that this end decodes at once. Default 32.
    pub code_flows: u64,
    /// So far may the number of a unit lie above the lowest that this end does not have yet, in a
    /// flow of blocks or objects; 0, the default, takes no such flows.
    pub max_units: u64,
    /// Repair symbols of one unit that this end takes; at most [`MAX_REPAIRS`]. Default 0.
    pub max_repairs: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            max_idle_timeout_ms: 30_000,
            max_data: 16 << 20,
            max_flow_data: 4 << 20,
            max_unit_data: 0,
            max_path_cost: 0,
            max_path_quiet_ms: 0,
            max_flows: 1024,
            max_ack_delay_us: 5000,
            max_message: MAX_MESSAGE as u64,
            code_window: 0,
            code_symbol: 1500,
            code_flows: 32,
            max_units: 0,
            max_repairs: 0,
        }
    }
}

/// A known parameter: where it lives and what it may be.
struct Known {
    id: u64,
    max: u64,
    get: fn(&Params) -> u64,
    set: fn(&mut Params, u64),
}

macro_rules! known {
    ($($id:literal $field:ident <= $max:expr;)*) => {
        [$(Known {
            id: $id,
            max: $max,
            get: |params| params.$field,
            set: |params, value| params.$field = value,
        },)*]
    };
}

/// The known parameters, in the order in which they are written.
static KNOWN: [Known; 14] = known! {
    0x01 max_idle_timeout_ms <= varint::MAX;
    0x02 max_data <= varint::MAX;
    0x03 max_flow_data <= varint::MAX;
    0x04 max_flows <= MAX_FLOW_COUNT;
    0x05 max_ack_delay_us <= MAX_ACK_DELAY_US;
    0x06 max_message <= MAX_MESSAGE as u64;
    0x07 code_window <= MAX_CODE_WINDOW;
    0x08 code_symbol <= MAX_CODE_SYMBOL;
    0x09 code_flows <= MAX_FLOW_COUNT;
    0x0a max_units <= MAX_UNITS;
    0x0b max_repairs <= MAX_REPAIRS;
    0x0c max_unit_data <= varint::MAX;
    0x0d max_path_cost <= MAX_COST;
    0x0e max_path_quiet_ms <= MAX_QUIET_MS;
};

fn known(id: u64) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.id == id)
}

impl Params {
    /// MAX_FLOW_DATA of every flow of blocks or objects at its start, in bytes.
    #[must_use]
    pub fn unit_data(&self) -> u64 {
        match self.max_unit_data {
            0 => self.max_flow_data,
            bytes => bytes,
        }
    }

    /// Reads parameters to the end of `bytes`. Unknown ones are skipped, missing ones have their
    /// defaults.
    ///
    /// # Errors
    /// A parameter that appears twice, is truncated, is not exactly one integer or exceeds its
    /// limit; more than [`MAX_PARAMETERS`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut params = Self::default();
        let mut reader = Reader { rest: bytes };
        let mut seen = Vec::new();
        while !reader.rest.is_empty() {
            let offset = bytes.len() - reader.rest.len();
            decode_one(&mut params, &mut reader, &mut seen).map_err(|kind| kind.at(offset))?;
        }
        Ok(params)
    }

    /// Appends all parameters, those with default values included.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for known in &KNOWN {
            let value = (known.get)(self);
            debug_assert!(value <= known.max, "{} is {value}", Named(known.id));
            varint::encode(known.id, out);
            varint::encode(varint::len(value) as u64, out);
            varint::encode(value, out);
        }
    }

    /// Bytes that [`encode`](Self::encode) appends.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        KNOWN.iter().fold(0, |sum, known| {
            let len = varint::len((known.get)(self));
            sum + varint::len(known.id) + varint::len(len as u64) + len
        })
    }
}

fn decode_one(
    params: &mut Params,
    reader: &mut Reader<'_>,
    seen: &mut Vec<u64>,
) -> Result<(), DecodeErrorKind> {
    let id = reader.varint("parameter id")?;
    if seen.contains(&id) {
        return Err(DecodeErrorKind::DuplicateParameter { id });
    }
    if seen.len() == MAX_PARAMETERS {
        return Err(DecodeErrorKind::TooLarge {
            field: "number of parameters",
            value: MAX_PARAMETERS as u64 + 1,
            max: MAX_PARAMETERS as u64,
        });
    }
    seen.push(id);
    let len = reader.varint("parameter length")?;
    let bytes = reader.bytes(len, "parameter value")?;
    let Some(known) = known(id) else {
        return Ok(());
    };
    match varint::decode(bytes) {
        Some((value, taken)) if taken == bytes.len() => {
            if value > known.max {
                return Err(DecodeErrorKind::TooLarge {
                    field: param_name::of(id).unwrap_or("parameter value"),
                    value,
                    max: known.max,
                });
            }
            (known.set)(params, value);
            Ok(())
        }
        _ => Err(DecodeErrorKind::MalformedParameter { id }),
    }
}
