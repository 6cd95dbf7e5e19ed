//! `[[handovers]]`: a link that moves from cell to cell at random times.

use marline_base::Duration;

use super::around::Around;
use super::links::Keys;
use super::plan::{CellPlan, Change, HandoverPlan, Setting};
use super::reader::{LONGEST, Reader};
use super::sessions::link;

/// The mean time between two handovers is at least this long, which bounds their number.
const SHORTEST: Duration = Duration::from_millis(100);
/// Most cells of a link besides the one it is written with.
const MOST_CELLS: usize = 100;

/// Reads the handovers; a link has at most one such table, and none of the `changes` sets its keys.
pub(super) fn read(top: &Reader<'_>, around: &Around<'_>, changes: &[Change]) -> Vec<HandoverPlan> {
    let mut handovers: Vec<HandoverPlan> = Vec::new();
    for one in top.tables("handovers").unwrap_or_default() {
        one.needed("every", "\"20s\"");
        let every = one.time_in("every", SHORTEST..=LONGEST);
        let dark = one.time("dark").unwrap_or(Duration::ZERO);
        let link = link(&one, around);
        if let Some(node) = one.get("link")
            && link.is_some_and(|link| handovers.iter().any(|other| other.link == link))
        {
            let mend = "write its cells into one [[handovers]]";
            one.wrong("link", node, "has handovers already", mend);
        }
        let sets = |change: &Change| {
            Some(change.link) == link && matches!(change.setting, Setting::Link { .. })
        };
        if let Some(node) = one.get("link")
            && changes.iter().any(sets)
        {
            let mend = "give the link a cell instead of the change";
            let message = "would undo what a [[changes]] sets of the same link";
            one.wrong("link", node, message, mend);
        }
        let cells = one.tables("cells").unwrap_or_default();
        if cells.is_empty() {
            one.missing("cells", "`cells = [{ delay = \"60ms\" }]`");
        }
        if let Some(node) = one.get("cells")
            && cells.len() > MOST_CELLS
        {
            let mend = format!("give at most {MOST_CELLS}");
            one.wrong("cells", node, "too many cells", mend);
        }
        one.finish();
        let read = |cell: &Reader<'_>| {
            let own = &around.links[link?].keys;
            let keys = own.overlaid(&Keys::read(cell, &[]));
            let [up, down] = keys.directions(cell, around.files)?;
            Some(CellPlan { up, down })
        };
        let cells: Option<Vec<CellPlan>> = cells.iter().take(MOST_CELLS).map(read).collect();
        if let (Some(link), Some(every), Some(cells)) = (link, every, cells) {
            handovers.push(HandoverPlan {
                link,
                every,
                dark,
                cells,
            });
        }
    }
    handovers
}
