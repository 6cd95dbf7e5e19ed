//! Configuration: what the user wrote (`raw`), and what the program accepts (`checked`).

mod error;
mod path;
pub mod text;

pub use error::{ConfigError, Place, Problem};
pub use path::{Local, PathSpec};
