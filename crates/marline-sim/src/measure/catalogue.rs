//! What can be measured, by name: the one table for documentation, for the check of scenario files
//! and for the code that writes the values.
//!
//! A value's full name is what it is measured of, a dot, and the measure:
//! `video.frame_delay.p99_ms` for the workload `video`, `path.wifi.throughput_mbps` for the path
//! over the link `wifi`. With several sessions, their paths are `path.SESSION.LINK`; a session's
//! second path over one link is `LINK-2`.

use super::histogram;

/// What a measure is measured of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A workload.
    Workload,
    /// A path of a session.
    Path,
    /// A link, both directions of which have measures of their own.
    Link,
    /// Cross traffic.
    Cross,
}

/// In which form a measure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A distribution of times (recorded in µs): `.mean_ms`, `.sd_ms`, `.min_ms`, `.p50_ms`,
    /// `.p90_ms`, `.p95_ms`, `.p99_ms`, `.p999_ms`, `.max_ms` and `.count`. Delays of a workload's
    /// units are a series, too: the longest of those that were written in each step.
    Delay,
    /// A distribution of amounts (recorded in bytes): the same with `_kb`, and a series.
    Amount,
    /// A fraction, 0 to 1, reported with hits and trials.
    Fraction,
    /// One number, and for rates a series of the same name.
    Number,
    /// A series over time only: no value.
    Series,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The measure.
    pub measure: Measure,
    /// Its name.
    pub name: &'static str,
    /// Its name in the words of titles.
    pub words: &'static str,
    /// What it is measured of.
    pub scope: Scope,
    /// How it is reported.
    pub form: Form,
    /// Unit of the number or series; of distributions, that of the quantiles.
    pub unit: &'static str,
    /// Smaller is better.
    pub less_is_better: bool,
    /// What it is, in a sentence.
    pub help: &'static str,
}

macro_rules! catalogue {
    ($($variant:ident $name:literal $words:literal $scope:ident $form:ident $unit:literal $better:ident $help:literal)*) => {
        /// A measure of the [`CATALOGUE`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Measure {
            $(#[doc = $help] $variant,)*
        }

        /// Every measure.
        pub const CATALOGUE: &[Entry] = &[$(Entry {
            measure: Measure::$variant,
            name: $name,
            words: $words,
            scope: Scope::$scope,
            form: Form::$form,
            unit: $unit,
            less_is_better: matches!(stringify!($better).as_bytes(), b"less"),
            help: $help,
        },)*];
    };
}

catalogue! {
    InOrderDelay "in_order_delay" "delay in order" Workload Delay "ms" less
        "From the write of a unit to its delivery with all before it, in a flow that keeps the order."
    PacketDelay "packet_delay" "packets' own delay" Workload Delay "ms" less
        "From the write of a unit to its delivery, in a flow that does not keep the order; of TCP segments in any."
    BlockDelay "block_delay" "delay of blocks" Workload Delay "ms" less
        "From the write of a block to the delivery of its last byte; blocks that never came are not in it."
    BlockLateness "block_lateness" "blocks that are late or lost" Workload Fraction "" less
        "Blocks that were delivered after their deadline or never."
    ObjectDelay "object_delay" "delay of objects" Workload Delay "ms" less
        "From the write of an object to the delivery of its last byte."
    BatchDelay "batch_delay" "delay of batches" Workload Delay "ms" less
        "From the write of a batch's first byte to the delivery of its last one."
    ReplyDelay "reply_delay" "delay of replies" Workload Delay "ms" less
        "From the write of a request to the delivery of the last byte of its reply."
    FrameDelay "frame_delay" "delay of video frames" Workload Delay "ms" less
        "From the capture of a video frame to the delivery of its last byte."
    FramesDiscarded "frames_discarded" "video frames that miss their playout" Workload Fraction "" less
        "Video frames that were delivered after their playout deadline or never."
    PageLoadTime "page_load_time" "time to load a page" Workload Delay "ms" less
        "From the start of a page's navigation to the delivery of its last object."
    PageRenderTime "page_render_time" "time to render a page" Workload Delay "ms" less
        "From the start of a page's navigation to the delivery of its last object that blocks rendering."
    OutOfOrder "out_of_order" "what waits for earlier bytes" Workload Amount "kB" less
        "Bytes that have arrived and wait for earlier ones, sampled every 0.1 s."
    OutOfOrderWait "out_of_order_wait" "wait for what comes before" Workload Delay "ms" less
        "Time that pieces which arrived before an earlier one waited for it."
    Goodput "goodput_mbps" "goodput" Workload Number "Mb/s" more
        "Bytes delivered to the application over time."
    Received "received_mbps" "arriving data, copies included" Workload Number "Mb/s" less
        "Bytes of data that arrived over time, copies and repetitions among them; of TCP, only what its flow needs."
    Silence "longest_silence_ms" "longest silence" Workload Number "ms" less
        "Longest time without a delivery, of a workload that never runs dry."
    Undelivered "undelivered" "units that never came" Workload Fraction "" less
        "Units that were refused, given up, or not delivered although the longest delay seen had passed."
    Refused "refused" "units that were refused" Workload Fraction "" less
        "Units that the session did not take: its buffer was full, or the scheduler saw no way in time."
    Redundancy "redundancy" "redundancy" Workload Number "" less
        "(bytes of data sent − bytes sent for the first time) / bytes sent for the first time."
    Retransmissions "retransmissions" "what was sent again" Workload Number "" less
        "Bytes sent again because they were taken for lost / bytes sent for the first time."
    Repairs "repairs" "repair symbols" Workload Number "" less
        "Bytes of repair symbols sent / bytes sent for the first time."
    RepairsUsed "repairs_used" "repair symbols that helped" Workload Fraction "" more
        "Repair symbols that gave the receiver something before it arrived, out of those sent."
    Throughput "throughput_mbps" "throughput" Path Number "Mb/s" more
        "Bytes of datagrams that arrived in the direction of the session's first workload, without the `overhead` that a link adds to each."
    ReturnThroughput "return_mbps" "throughput of the way back" Path Number "Mb/s" less
        "Bytes of datagrams that arrived in the other direction."
    Lost "lost" "packets lost" Path Fraction "" less
        "Datagrams declared lost, out of those sent in the direction of the first workload."
    Spurious "spurious" "losses that were none" Path Fraction "" less
        "Datagrams declared lost that arrived after all, out of those declared lost."
    LawLate "law_late" "arrivals in the last tenth of their law" Path Fraction "" less
        "Datagrams that arrived in the last tenth of the time that the path's law gave them, out of some 40 a second that are followed up: a tenth if the law is right."
    Window "window_kb" "congestion window" Path Series "kB" less
        "Congestion window of the side that sends the first workload."
    InFlight "in_flight_kb" "bytes in flight" Path Series "kB" less
        "Bytes sent and neither acknowledged nor declared lost."
    RoundTrip "srtt_ms" "smoothed round trip" Path Series "ms" less
        "Smoothed round-trip time."
    QueueUp "queue_up" "queue towards the server" Link Amount "kB" less
        "Bytes in the link's queue from clients to servers, sampled every 0.1 s."
    QueueDown "queue_down" "queue towards the client" Link Amount "kB" less
        "Bytes in the link's queue from servers to clients, sampled every 0.1 s."
    DroppedUp "dropped_up" "packets dropped towards the server" Link Fraction "" less
        "Packets that the link lost from clients to servers, for whatever reason."
    DroppedDown "dropped_down" "packets dropped towards the client" Link Fraction "" less
        "Packets that the link lost from servers to clients, for whatever reason."
    CarriedUp "carried_up_mbps" "carried towards the server" Link Number "Mb/s" more
        "Bytes that left the link's queue from clients to servers, headers and everybody's traffic counted, as its rate does."
    CarriedDown "carried_down_mbps" "carried towards the client" Link Number "Mb/s" more
        "Bytes that left the link's queue from servers to clients, headers and everybody's traffic counted, as its rate does."
    CrossDelay "delay" "delay" Cross Delay "ms" less
        "From a packet's offer to the link to its arrival at the other end; of TCP, those with data."
    CrossLost "lost" "packets lost" Cross Fraction "" less
        "Packets that the link lost; of TCP, those with data."
    CrossThroughput "throughput_mbps" "throughput" Cross Number "Mb/s" more
        "Bytes that the link delivered over time; of TCP, segments with their headers."
}

/// Is the smaller of two values of the measure, named in full, the better one? Of names that are
/// not in the table: yes, except for rates.
pub(crate) fn is_less_better(value: &str) -> bool {
    let measured = |entry: &&Entry| value.split('.').any(|part| part == entry.name);
    let entry = CATALOGUE.iter().find(measured);
    entry.map_or(!value.ends_with("_mbps"), |entry| entry.less_is_better)
}

impl Measure {
    /// Its row.
    pub const fn entry(self) -> &'static Entry {
        &CATALOGUE[self as usize]
    }

    /// How many there are.
    pub(crate) const COUNT: usize = CATALOGUE.len();
}

impl Entry {
    /// The names of the values that the measure yields, without what it is measured of.
    pub fn values(&self) -> Vec<String> {
        let name = self.name;
        match self.form {
            Form::Delay | Form::Amount => {
                let unit = self.form.suffix();
                histogram::endings(unit)
                    .map(|e| format!("{name}{e}"))
                    .collect()
            }
            Form::Fraction | Form::Number => vec![name.to_owned()],
            Form::Series => Vec::new(),
        }
    }
}

impl Form {
    /// What the names of a distribution's values end in.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Delay => "ms",
            Self::Amount => "kb",
            Self::Fraction | Self::Number | Self::Series => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_their_measures_point() {
        for (i, entry) in CATALOGUE.iter().enumerate() {
            assert_eq!(entry.measure as usize, i);
            assert_eq!(entry.measure.entry().name, entry.name);
            let same = CATALOGUE
                .iter()
                .filter(|e| (e.scope, e.name) == (entry.scope, entry.name));
            assert_eq!(same.count(), 1, "{} twice", entry.name);
        }
    }

    #[test]
    fn more_goodput_is_better_and_less_delay() {
        for less in [
            "live.in_order_delay.p99_ms",
            "live.redundancy",
            "path.a.lost",
            "x",
        ] {
            assert!(is_less_better(less), "{less}");
        }
        for more in [
            "bulk.goodput_mbps",
            "bulk.repairs_used",
            "path.a.throughput_mbps",
            "x_mbps",
        ] {
            assert!(!is_less_better(more), "{more}");
        }
    }

    #[test]
    fn a_delay_is_never_a_mean_alone() {
        let values = Measure::InOrderDelay.entry().values();
        for ending in [
            "mean_ms", "sd_ms", "p50_ms", "p99_ms", "p999_ms", "max_ms", "count",
        ] {
            let name = format!("in_order_delay.{ending}");
            assert!(values.contains(&name), "{name} in {values:?}");
        }
    }
}
