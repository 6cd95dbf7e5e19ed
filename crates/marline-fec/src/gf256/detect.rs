//! Which kernels this machine has.

use alloc::vec::Vec;

use super::{Kernel, Naive, Scalar};

type Detect = fn() -> Option<&'static dyn Kernel>;

/// All kernels of this architecture, fastest first. The last two run anywhere.
const ALL: &[Detect] = &[
    #[cfg(target_arch = "x86_64")]
    || super::Gfni::detect().map(|kernel| kernel as _),
    #[cfg(target_arch = "x86_64")]
    || super::Avx2::detect().map(|kernel| kernel as _),
    #[cfg(target_arch = "x86_64")]
    || super::Ssse3::detect().map(|kernel| kernel as _),
    #[cfg(target_arch = "aarch64")]
    || super::Neon::detect().map(|kernel| kernel as _),
    || Some(&Scalar),
    || Some(&Naive),
];

/// Every kernel that this machine can run, fastest first; the last is [`Naive`].
pub fn supported() -> Vec<&'static dyn Kernel> {
    ALL.iter().filter_map(|detect| detect()).collect()
}

/// The fastest kernel that this machine has.
///
/// The machine is asked once; later calls cost a few loads.
pub fn best() -> &'static dyn Kernel {
    ALL.iter().find_map(|detect| detect()).unwrap_or(&Scalar)
}
