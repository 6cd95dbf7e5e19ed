//! The text form of a link, such as `rate=20mbit,delay=15ms,jitter=3ms,loss=1%,queue=200ms`.

mod keys;
mod layer;
mod parse;
mod show;

#[cfg(test)]
mod tests;

pub use keys::Key;
