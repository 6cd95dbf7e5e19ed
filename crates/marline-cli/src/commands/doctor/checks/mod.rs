//! The checks, a file each. Each is given what it judges, and returns what it found.

pub(super) mod address;
pub(super) mod clock;
pub(super) mod files;
pub(super) mod firewall;
pub(super) mod gso;
pub(super) mod interface;
pub(super) mod ipv6;
pub(super) mod key;
pub(super) mod key_file;
pub(super) mod listening;
pub(super) mod mtu;
pub(super) mod names;
pub(super) mod nat;
pub(super) mod privileges;
pub(super) mod published;
pub(super) mod reach;
pub(super) mod route;
pub(super) mod rp_filter;
