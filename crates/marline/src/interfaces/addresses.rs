//! The addresses that this host has now.

use std::net::IpAddr;

/// Interfaces with their addresses, a pair for each address; none when the system does not report
/// them.
pub fn addresses() -> Vec<(String, IpAddr)> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.into_iter()
        .map(|interface| (interface.name.clone(), interface.ip()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_loopback_address() {
        assert!(addresses().iter().any(|(_, ip)| ip.is_loopback()));
    }
}
