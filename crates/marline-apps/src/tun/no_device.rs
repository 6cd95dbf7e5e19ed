//! Where there are no TUN devices that this program knows how to use.

use super::Port;
use crate::proxy::Tasks;

/// A device that cannot be opened.
#[derive(Debug)]
pub enum Device {}

/// Why not.
#[derive(Debug, thiserror::Error)]
#[error("tunnel devices are supported on Linux only")]
pub struct DeviceError;

impl DeviceError {
    /// What to do instead.
    pub fn hint(&self) -> &'static str {
        "use the SOCKS5 proxy or a --forward"
    }
}

impl Device {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub fn open(_: &str) -> Result<Self, DeviceError> {
        Err(DeviceError)
    }

    /// Of none.
    pub fn name(&self) -> &str {
        match *self {}
    }

    pub(super) fn serve(self, _: &Tasks) -> Port {
        match self {}
    }
}
