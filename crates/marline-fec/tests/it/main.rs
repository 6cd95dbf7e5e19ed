//! What the codes promise, against independent computations.

mod block;
mod random;
mod stream;
