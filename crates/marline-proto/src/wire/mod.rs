//! The wire format (`docs/PROTOCOL.md`).
