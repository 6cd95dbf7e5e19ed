//! Who may use the SOCKS5 proxy.

/// User name and password of the proxy, by SOCKS5 (RFC 1929) and HTTP (RFC 7617).
#[derive(Clone, PartialEq, Eq)]
pub struct SocksLogin {
    /// 1 to 255 bytes.
    pub user: String,
    /// 1 to 255 bytes.
    pub password: String,
}

impl SocksLogin {
    /// Is it this one? Both are compared in full, so that the time taken tells nothing of where
    /// they differ.
    pub(super) fn fits(&self, user: &str, password: &str) -> bool {
        same(user.as_bytes(), self.user.as_bytes())
            & same(password.as_bytes(), self.password.as_bytes())
    }

    /// The same of `user:password`. A user name that has a colon cannot be given so.
    pub(super) fn is(&self, both: &[u8]) -> bool {
        same(both, format!("{}:{}", self.user, self.password).as_bytes())
    }
}

/// Compares in time that depends on lengths only.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

impl std::fmt::Debug for SocksLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocksLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
