//! The figures that are kept: totals and the functions that cost most, a packet.

use super::Failure;
use super::profile::Profile;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/cost/kept.csv");
/// What stands for all functions together.
pub(super) const ALL: &str = "all";
/// Functions that are kept of an end of a case.
const MOST: usize = 12;
/// Instructions a packet below which a change is not printed.
const LEAST: f64 = 20.0;

/// Instructions a packet by function.
pub(super) type Costs = BTreeMap<String, f64>;

/// What is kept, by case and end.
pub(super) fn read() -> Result<BTreeMap<(String, String), Costs>, Failure> {
    let mut all = BTreeMap::<_, Costs>::new();
    for line in std::fs::read_to_string(FILE)?.lines().skip(1) {
        let words: Vec<_> = line.split(',').collect();
        let [case, end, function, cost] = words[..] else {
            return Err(format!("{FILE}: `{line}` has not four columns").into());
        };
        let costs = all.entry((case.to_owned(), end.to_owned())).or_default();
        costs.insert(function.to_owned(), cost.parse()?);
    }
    Ok(all)
}

/// Keeps these.
pub(super) fn write(rows: &[(String, &str, Profile)]) -> Result<(), Failure> {
    let mut text = String::from("case,end,function,instructions_per_packet\n");
    for (case, end, profile) in rows {
        writeln!(text, "{case},{end},{ALL},{:.0}", profile.each())?;
        for (function, cost) in dearest(profile).into_iter().take(MOST) {
            writeln!(text, "{case},{end},{function},{cost:.0}")?;
        }
    }
    std::fs::write(FILE, text)?;
    Ok(())
}

fn dearest(profile: &Profile) -> Vec<(&str, f64)> {
    let packets = profile.packets as f64;
    let each = profile.functions.iter();
    let mut each: Vec<_> = each
        .map(|(name, n)| (name.as_str(), *n as f64 / packets))
        .collect();
    each.sort_by(|a, b| b.1.total_cmp(&a.1));
    each
}

/// Prints by how much functions have changed, the most first. One that was not kept was cheaper
/// than those that are, so that its change is at least what is printed.
pub(super) fn differences(known: &Costs, profile: &Profile) {
    let floor = known.values().copied().fold(f64::INFINITY, f64::min);
    let now = dearest(profile).into_iter();
    let mut changes: Vec<_> = now
        .filter_map(|(function, cost)| {
            let before = known.get(function).copied();
            let change = cost - before.unwrap_or(floor);
            (before.is_some() || change > 0.0).then_some((function, change))
        })
        .collect();
    let gone = known
        .iter()
        .filter(|(function, _)| *function != ALL && !profile.functions.contains_key(*function));
    changes.extend(gone.map(|(function, cost)| (function.as_str(), -cost)));
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    for (function, change) in changes.iter().take_while(|(_, c)| c.abs() >= LEAST) {
        println!("    {change:>+8.0}  {function}");
    }
}
