//! Blocks and objects over links that lose, delay, overtake and die.

mod blocks;
mod feedback;
mod lab;
mod lost_path;
mod objects;
mod repair;
mod sos;
