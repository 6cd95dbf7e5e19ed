//! A bench of links that nobody chose: what `auto` is worth away from the links that it was built
//! on.
//!
//! Places are recordings of links that were measured at once, links that processes draw, and links
//! that misbehave as a scenario file says. Loads are asked of each place, by what the program
//! chooses over all links, by other schedulers, and by each link alone; the best of these in
//! hindsight is what bonding promises not to fall behind. All draws follow from one seed, which is
//! another one in every run unless it is given, so that what only holds on known seeds shows.
//!
//! ```text
//! recorded ┐
//! drawn    ├─▶ Place ─▶ Scenario ─▶ run ─▶ Measured ─▶ Row (ratios, broken?) ─▶ table
//! written  ┘     load, contender, seed
//! ```

mod bench;
mod cells;
mod drawn;
mod ideal;
mod load;
mod measured;
mod network;
mod place;
mod places;
mod profile;
mod recorded;
mod report;
mod table;
mod verdict;

pub use bench::{MOST_SEED, Options, prepare};
pub use cells::{Contender, FieldCell, Prepared};
pub use load::{Facts, FieldLoad};
pub use measured::{Measure, Measured};
pub use network::{Grain, Network, RoundTrip, SLOT};
pub use place::{FieldLink, Length, Move, Place, Way};
pub use places::FOLDER;
pub use profile::{Profile, Step};
pub use recorded::{RecordedSet, Recording, recording, sets};
pub use report::{Report, Row, VERSION};
pub use table::text;
pub use verdict::PairedRatio;
