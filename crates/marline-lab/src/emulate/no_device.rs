//! Where there are no TUN devices that this program knows how to use.

use super::Place;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// A device that cannot be opened.
#[derive(Debug)]
pub(super) enum Device {}

/// Why not.
#[derive(Debug, thiserror::Error)]
#[error("links between network devices are supported on Linux only")]
pub struct DeviceError;

impl DeviceError {
    /// What to do instead.
    pub fn hint(&self) -> String {
        "relay UDP by --listen and --to".to_owned()
    }
}

impl Device {
    /// Fails.
    pub(super) fn open(_: &Place, _: u16) -> Result<Self, DeviceError> {
        Err(DeviceError)
    }

    pub(super) fn name(&self) -> &str {
        match *self {}
    }

    pub(super) fn receive(&self, _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(super) fn send(&self, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
