//! What the parameters are called.

use core::fmt;

/// Name of a parameter as `docs/PROTOCOL.md` writes it; `None` if no parameter has this id.
pub(super) const fn of(id: u64) -> Option<&'static str> {
    Some(match id {
        0x01 => "max_idle_timeout",
        0x02 => "max_data",
        0x03 => "max_flow_data",
        0x04 => "max_flows",
        0x05 => "max_ack_delay",
        0x06 => "max_message",
        0x07 => "code_window",
        0x08 => "code_symbol",
        0x09 => "code_flows",
        0x0a => "max_units",
        0x0b => "max_repairs",
        0x0c => "max_unit_data",
        0x0d => "max_path_cost",
        0x0e => "max_path_quiet",
        _ => return None,
    })
}

/// A parameter's id and, where it has one, its name.
pub(super) struct Named(pub(super) u64);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match of(self.0) {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#04x}", self.0),
        }
    }
}
