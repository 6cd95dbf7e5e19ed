use super::Lane;

/// Could another symbol of an object help that is sent on lane `index` now? It could if with luck
/// it arrives before the last of those that fly elsewhere are there for sure.
///
/// `flying` are symbols of the object on each lane, which are not among what is ahead there.
pub fn helps(lanes: &[Lane], flying: &[u32], index: usize) -> bool {
    let others = lanes.iter().zip(flying).enumerate();
    let others = others.filter(|(j, (_, n))| *j != index && **n > 0);
    let latest = others.map(|(_, (lane, n))| lane.bound(*n));
    let latest = latest.fold(f64::NEG_INFINITY, f64::max);
    let own = flying.get(index).copied().unwrap_or(0);
    lanes
        .get(index)
        .is_some_and(|lane| lane.lucky(own + 1) < latest)
}
