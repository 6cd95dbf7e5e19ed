//! What is asked of a place.

use marline_base::{Duration, Instant, Rate};
use marline_proto::FlowOptions;
use marline_proto::wire::FlowKind;

use crate::End;
use crate::scenario::{FlowPlan, Load, WebObject, WorkloadPlan};

/// The workload that is a live stream, or a call.
pub(super) const LIVE: &str = "live";
/// What the names of downloads and uploads begin with.
pub(super) const BULK: &str = "bulk";
/// The workload that is a page.
pub(super) const PAGE: &str = "page";

/// A live stream's packet: seven of a transport stream (bytes).
const LIVE_PACKET: u32 = 7 * 188;
/// The latency budget of live entries that name none (`marline_apps::live::LATENCY`).
const LIVE_LIFETIME: Duration = Duration::from_millis(300);
/// SRT's default latency (`SRTO_LATENCY`).
const SRT_LIFETIME: Duration = Duration::from_millis(120);
/// What a live stream has of the better link's mean: most of it, without filling it.
const MOST_OF_ONE: f64 = 0.6;
/// The same beside others: room is left on either link alone.
const BESIDE: f64 = 0.3;
/// What it has of the links' 10th percentiles together: what both carry nearly always.
const MOST_OF_LOW: f64 = 0.6;
/// A live stream has at least this rate (kb/s): a small picture.
const LEAST_LIVE: f64 = 200.0;
/// A call: 50 packets of 250 bytes a second (Opus at its best with RTP).
const CALL_KBPS: f64 = 100.0;
const CALL_PACKET: u32 = 250;
/// Downloads beside a call.
const DOWNLOADS: usize = 10;
/// From a page's end to its next load.
pub(super) const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// What loads need to know of a place.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Mean of the better link (kb/s).
    pub better: f64,
    /// Sum of the links' 10th percentiles (kb/s).
    pub low: f64,
    /// What its file asks, if it has one.
    pub written: Vec<WorkloadPlan>,
}

/// What is asked of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FieldLoad {
    /// One stream that never runs dry.
    Download,
    /// A live stream of most of the better link.
    Live,
    /// A live stream of what the links carry nearly always.
    LiveLow,
    /// A live stream beside a download.
    LiveDownload,
    /// A live stream beside an upload.
    LiveUpload,
    /// A web page, again and again, beside a live stream.
    PageLive,
    /// A call beside ten downloads.
    CallDownloads,
    /// A live stream whose packets are worth nothing after 120 ms.
    Srt,
    /// What a scenario file says.
    Own,
    /// That beside a download.
    OwnDownload,
}

impl FieldLoad {
    /// Those of recorded and drawn links.
    pub const ANYWHERE: &'static [Self] = &[
        Self::Download,
        Self::Live,
        Self::LiveLow,
        Self::LiveDownload,
        Self::LiveUpload,
        Self::PageLive,
        Self::CallDownloads,
        Self::Srt,
    ];
    /// Those of scenario files.
    pub const WRITTEN: &'static [Self] = &[Self::Own, Self::OwnDownload];

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Live => "live",
            Self::LiveLow => "live-low",
            Self::LiveDownload => "live+download",
            Self::LiveUpload => "live+upload",
            Self::PageLive => "page+live",
            Self::CallDownloads => "call+10-downloads",
            Self::Srt => "srt",
            Self::Own => "as-written",
            Self::OwnDownload => "as-written+download",
        }
    }

    /// Is it part of a quick bench? One of each measure.
    pub(super) const fn is_quick(self) -> bool {
        !matches!(
            self,
            Self::LiveLow | Self::LiveUpload | Self::CallDownloads | Self::Srt
        )
    }

    /// Its workloads.
    pub fn workloads(self, facts: &Facts) -> Vec<WorkloadPlan> {
        let one = facts.better * MOST_OF_ONE;
        let beside = || live(facts.better * BESIDE, LIVE_PACKET, LIVE_LIFETIME);
        match self {
            Self::Download => vec![bulk(BULK.to_owned(), End::Server)],
            Self::Live => vec![live(one, LIVE_PACKET, LIVE_LIFETIME)],
            Self::LiveLow => {
                let low = (facts.low * MOST_OF_LOW).max(LEAST_LIVE);
                vec![live(low, LIVE_PACKET, LIVE_LIFETIME)]
            }
            Self::LiveDownload => vec![beside(), bulk(BULK.to_owned(), End::Server)],
            Self::LiveUpload => vec![beside(), bulk(BULK.to_owned(), End::Client)],
            Self::PageLive => vec![beside(), page()],
            Self::CallDownloads => {
                let call = live(CALL_KBPS, CALL_PACKET, LIVE_LIFETIME);
                let bulks = (1..=DOWNLOADS).map(|n| bulk(format!("{BULK}-{n}"), End::Server));
                std::iter::once(call).chain(bulks).collect()
            }
            Self::Srt => vec![live(one, LIVE_PACKET, SRT_LIFETIME)],
            Self::Own => facts.written.clone(),
            Self::OwnDownload => {
                let download = bulk(BULK.to_owned(), End::Server);
                let own = facts.written.iter().cloned();
                own.chain(std::iter::once(download)).collect()
            }
        }
    }
}

fn workload(name: String, from: End, flow: FlowPlan, load: Load) -> WorkloadPlan {
    WorkloadPlan {
        name,
        starts: Instant::ZERO,
        stops: None,
        from,
        flow,
        load,
    }
}

fn stream() -> FlowPlan {
    FlowPlan {
        kind: FlowKind::Stream,
        ordered: true,
        priority: FlowOptions::MIDDLE_PRIORITY,
        lifetime: None,
        queue: None,
        scheduler: None,
    }
}

/// As the program opens a live entry's flow: before what asks for no priority.
fn live(kbps: f64, size: u32, lifetime: Duration) -> WorkloadPlan {
    let flow = FlowPlan {
        kind: FlowKind::Packets,
        priority: FlowOptions::MIDDLE_PRIORITY - 1,
        lifetime: Some(lifetime),
        ..stream()
    };
    let rate = Rate::from_bps((kbps * 1e3) as u64);
    workload(
        LIVE.to_owned(),
        End::Server,
        flow,
        Load::Constant { rate, size },
    )
}

fn bulk(name: String, from: End) -> WorkloadPlan {
    let load = Load::Backlogged {
        size: 16 << 10,
        bytes: None,
    };
    workload(name, from, stream(), load)
}

/// A page of 0.95 MB in 28 objects over six connections: a document, a style sheet and two scripts
/// that block it, then pictures. A third of the median page's bytes (HTTP Archive, 2024), so that a
/// run has a dozen loads.
fn page() -> WorkloadPlan {
    const CONNECTIONS: u32 = 6;
    let object = |size, after, connection, blocking| WebObject {
        size,
        after,
        think: Duration::from_millis(10),
        connection,
        priority: FlowOptions::MIDDLE_PRIORITY,
        blocking,
    };
    let mut objects = vec![
        object(40_000, None, 0, true),
        object(30_000, Some(0), 1, true),
        object(80_000, Some(0), 2, true),
        object(80_000, Some(0), 3, true),
    ];
    let pictures = (0..24).map(|n| object(30_000, Some(1 + n % 3), n as u32 % CONNECTIONS, false));
    objects.extend(pictures);
    let load = Load::Web {
        reopen: false,
        page: objects.into(),
        pause: PAGE_PAUSE,
    };
    workload(PAGE.to_owned(), End::Client, stream(), load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_as_large_as_they_are_called() {
        let facts = Facts {
            better: 16_000.0,
            low: 5_000.0,
            written: Vec::new(),
        };
        let rate = |load: FieldLoad| match load.workloads(&facts)[0].load {
            Load::Constant { rate, .. } => rate.as_bps() / 1_000,
            _ => 0,
        };
        assert_eq!(rate(FieldLoad::Live), 9_600);
        assert_eq!(rate(FieldLoad::LiveLow), 3_000);
        assert_eq!(rate(FieldLoad::LiveDownload), 4_800);
        assert_eq!(rate(FieldLoad::CallDownloads), 100);
        assert_eq!(FieldLoad::CallDownloads.workloads(&facts).len(), 11);
        let Load::Web { page, .. } = page().load else {
            panic!("a page")
        };
        let bytes: u64 = page.iter().map(|object| object.size).sum();
        assert_eq!((page.len(), bytes), (28, 950_000));
    }
}
