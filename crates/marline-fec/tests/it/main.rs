//! What the codes promise, against independent computations.

mod random;
mod stream;
