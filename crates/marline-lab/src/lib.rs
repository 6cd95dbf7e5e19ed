//! Marline over emulated links in real time.
//!
//! | folder | what |
//! | --- | --- |
//! | `emulate/` | one link in real time: a relay for UDP, or two network devices |
//! | `process/` | the program's own processes, started and watched |
//! | `demo/` | what bonding two links does, here and now |

pub mod demo;
pub mod emulate;
pub mod process;
