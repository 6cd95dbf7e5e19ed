//! Metrics in Prometheus' text format over HTTP, from the same snapshot as `marline status`.

mod counters;
mod forecast;
mod gauge;
mod http;
mod live;
mod names;
mod text;

pub use http::serve;
pub use names::Names;
pub use text::{OPENMETRICS, PLAIN, plain, render};
