use super::{Emulator, drawn, lanes};
use crate::emulate::device::Device;
use crate::emulate::ends::Ends;
use crate::emulate::{EmulateError, Place};
use marline_link::LinkConfig;
use std::sync::Arc;

/// A device's MTU in bytes where its link names none: Ethernet's.
const MTU: u32 = 1500;

/// Two devices between which an emulator carries packets, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct DevicesConfig {
    /// The end whose packets go up.
    pub near: Place,
    /// The other end, in another network namespace: between addresses of one namespace the kernel
    /// needs no device.
    pub far: Place,
    /// The link from the near end to the far one. Its `mtu` is the near device's, and otherwise
    /// that is 1500 bytes.
    pub up: LinkConfig,
    /// The link from the far end to the near one. Its `mtu` is the far device's, and otherwise that
    /// is 1500 bytes.
    pub down: LinkConfig,
    /// Seed of both links, each of which draws from a stream of its own.
    pub seed: u64,
}

impl DevicesConfig {
    /// Both directions alike. The seed is drawn, as by
    /// [`EmulatorConfig::new`](crate::emulate::EmulatorConfig::new).
    pub fn new(near: Place, far: Place, link: LinkConfig) -> Self {
        Self {
            near,
            far,
            up: link.clone(),
            down: link,
            seed: drawn(),
        }
    }
}

impl Emulator<[Place; 2]> {
    /// Opens both devices and starts the thread. Devices that it makes are gone with it.
    ///
    /// # Errors
    ///
    /// When a link's parameters are out of range, a namespace is not there, or the system refuses a
    /// device (it takes root) or a thread.
    pub fn between(config: DevicesConfig) -> Result<Self, EmulateError> {
        let DevicesConfig {
            near,
            far,
            up,
            down,
            seed,
        } = config;
        let lanes = lanes(&up, &down, seed)?;
        let open = |place: &Place, link: &LinkConfig| {
            let mtu = link.mtu.unwrap_or(MTU);
            Device::open(place, u16::try_from(mtu).unwrap_or(u16::MAX)).map(Arc::new)
        };
        let devices = [open(&near, &up)?, open(&far, &down)?];
        let name = format!("link {}", near.device);
        Self::run([near, far], name, Ends::Devices(devices), lanes)
    }

    /// The near end and the far one.
    pub const fn places(&self) -> &[Place; 2] {
        &self.at
    }
}
