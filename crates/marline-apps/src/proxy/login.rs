//! Who may use the SOCKS5 proxy.

/// User name and password of the SOCKS5 proxy (RFC 1929).
#[derive(Clone, PartialEq, Eq)]
pub struct SocksLogin {
    /// 1 to 255 bytes.
    pub user: String,
    /// 1 to 255 bytes.
    pub password: String,
}

impl std::fmt::Debug for SocksLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocksLogin")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
