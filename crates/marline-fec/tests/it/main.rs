//! What the codes promise, against independent computations.

mod analysis;
mod block;
mod random;
mod stream;
