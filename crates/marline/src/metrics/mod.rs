//! Metrics in Prometheus' text format over HTTP, from the same snapshot as `marline status`.

mod forecast;
mod http;
mod live;
mod text;

pub use http::serve;
pub use text::{CONTENT_TYPE, render};
