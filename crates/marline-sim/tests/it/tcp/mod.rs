//! TCP endpoints over a toy network of two links.

mod delivery;
mod fairness;
mod law;
mod pipe;
mod recovery;
mod shapes;
mod throughput;
