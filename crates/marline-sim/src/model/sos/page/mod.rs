//! The web experiment of the SOS paper without a protocol (section 5): recorded pages over paths
//! whose packets take times that are drawn one by one.
//!
//! The browser asks for an object once it knows of it; the server has everything ready. What waits
//! there is divided among the paths again whenever a request comes or a path has nothing to do, in
//! the order of the requests, or what the page cannot be shown without first. An object that has
//! begun stays before the others of its connection, because HTTP cannot interrupt it. The document,
//! the first object that the page cannot be shown without, is sent in chunks, as documents are:
//! every packet of it is an object of its own to SOS, and what it names is asked for as the packets
//! come, evenly spread over them in the recorded order.
//!
//! Neither the browser's nor the server's own time is modelled. Times are drawn from a generator
//! for each page, load and path, so that all variants meet the same.

mod load;
mod report;
mod variant;

pub use variant::Variant;

pub(crate) use report::value_names;

use marline_base::{Duration, Rng};
use marline_link::{ConfigError, LinkConfig};

use super::path::{Path, Way};
use crate::traces::Page;
use load::Load;
use variant::Planner;

/// An experiment with web pages.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The links, from the server; a service time and a constant delay each.
    pub links: Vec<LinkConfig>,
    /// The pages that a run loads, one after the other.
    pub pages: Vec<Page>,
    /// How often it loads each.
    pub loads: u32,
    /// Bytes of a packet.
    pub packet: u32,
    /// From a request until the server has it.
    pub request: Duration,
}

/// When a page was there, from the first request (ms).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Everything that it cannot be shown without.
    pub dom: f64,
    /// All of it.
    pub whole: f64,
}

impl Experiment {
    /// How often every page is loaded.
    ///
    /// # Errors
    /// A link whose parameters lie out of their range.
    pub fn run(&self, variant: Variant, seed: u64) -> Result<Vec<Loaded>, ConfigError> {
        self.check()?;
        let rng = Rng::new(seed);
        let ways = self.links.iter().enumerate();
        let ways =
            ways.filter_map(|(i, link)| Way::new(link, &mut rng.stream(&format!("way {i}"))));
        let ways: Vec<Way> = ways.collect();
        let planner = Planner::new(variant, &ways);
        let request = self.request.as_secs_f64() * 1e3;
        let mut loaded = Vec::new();
        for page in &self.pages {
            for load in 0..self.loads {
                let path = |(i, way)| {
                    let name = format!("{} load {load} path {i}", page.name);
                    Path::new(way, rng.stream(&name))
                };
                let paths: Vec<Path<'_>> = ways.iter().enumerate().map(path).collect();
                let load = Load::new(page, self.packet, request, &planner, paths);
                loaded.push(load.go());
            }
        }
        Ok(loaded)
    }

    /// Can it be run?
    ///
    /// # Errors
    /// A link whose parameters lie out of their range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let mut links = self.links.iter().cloned();
        links.try_for_each(|link| marline_link::Link::new(link, 0).map(drop))
    }
}

#[cfg(test)]
mod tests;
