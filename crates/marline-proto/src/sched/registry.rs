//! The schedulers by name. Each file declares its entry; adding one here is a file and a line, and
//! one from outside the tree is [added](add) by the program.

use alloc::boxed::Box;
use core::fmt;

use once_cell::race::OnceBox;

use super::auto::{Need, auto};
use super::entry::{Choice, Entry, MAX_OPTIONS};
use super::{
    acpf, blest, brim, cpf, daps, dems, ecf, edpf, hedge, hop, min_rtt, ols, otias, redundant,
    round_robin, s_edpf, sos, sttf,
};
use crate::wire::FlowKind;

/// The schedulers that come with this crate, sorted by name.
pub const SCHEDULERS: &[Entry] = &[
    acpf::ENTRY,
    blest::ENTRY,
    brim::ENTRY,
    cpf::ENTRY,
    daps::ENTRY,
    dems::ENTRY,
    ecf::ENTRY,
    edpf::ENTRY,
    hedge::ENTRY,
    hop::scheduler::FLIP,
    hop::scheduler::JUMP,
    hop::scheduler::LEAP,
    s_edpf::mend::ENTRY,
    min_rtt::ENTRY,
    ols::ENTRY,
    otias::ENTRY,
    redundant::ENTRY,
    round_robin::ENTRY,
    s_edpf::ENTRY,
    sos::scheduler::SOS,
    sos::scheduler::FEC,
    sos::scheduler::RATELESS,
    sttf::ENTRY,
];

/// Names that some schedulers have in plans and talks, and their own: a user who writes one of
/// these learns ours.
const ELSEWHERE: &[(&str, &str)] = &[("ols-x", "hedge")];

/// The name of the scheduler that is called `name` elsewhere. It is not chosen by that.
pub fn called_elsewhere(name: &str) -> Option<&'static str> {
    let found = ELSEWHERE.iter().find(|(elsewhere, _)| *elsewhere == name);
    found.map(|(_, own)| *own)
}

/// The scheduler that a flow of this kind gets when none was chosen and nothing else is known of
/// it.
pub fn default_for(kind: FlowKind) -> Choice {
    auto(Need::of(kind))
}

/// The same for packets that are delivered in order.
pub fn default_in_order() -> Choice {
    auto(Need::ordered())
}

/// Schedulers from elsewhere, in the order in which they came. A name has to mean the same all the
/// time, so the list only grows.
static FURTHER: OnceBox<Further> = OnceBox::new();

/// A link of the list: lists that only grow need no lock.
struct Further {
    entry: &'static Entry,
    next: OnceBox<Further>,
}

/// Why schedulers were not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddError {
    /// Two schedulers have this name.
    NameTaken(&'static str),
    /// This scheduler has more options than a choice has room for.
    TooManyOptions(&'static str),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(name) => write!(f, "there are two schedulers called `{name}`"),
            Self::TooManyOptions(name) => {
                write!(f, "scheduler `{name}` has more than {MAX_OPTIONS} options")
            }
        }
    }
}

impl core::error::Error for AddError {}

/// Makes schedulers from outside this crate known by their names, for as long as the process lasts.
///
/// # Errors
/// A name is taken, or an entry is not well formed; nothing is added then. Only if the same name is
/// added by two threads at once may what stands before it be there already.
pub fn add(entries: &[&'static Entry]) -> Result<(), AddError> {
    for (i, entry) in entries.iter().enumerate() {
        if find(entry.name).is_some() || entries[..i].iter().any(|other| other.name == entry.name) {
            return Err(AddError::NameTaken(entry.name));
        }
        if entry.options.len() > MAX_OPTIONS {
            return Err(AddError::TooManyOptions(entry.name));
        }
    }
    entries.iter().try_for_each(|entry| append(entry))
}

/// Puts one at the end of the list, which another thread may be lengthening, too.
fn append(entry: &'static Entry) -> Result<(), AddError> {
    let mut end = &FURTHER;
    let mut link = Box::new(Further {
        entry,
        next: OnceBox::new(),
    });
    loop {
        match end.set(link) {
            Ok(()) => return Ok(()),
            Err(refused) => link = refused,
        }
        // It was refused because there is one.
        let Some(taken) = end.get() else { continue };
        if taken.entry.name == entry.name {
            return Err(AddError::NameTaken(entry.name));
        }
        end = &taken.next;
    }
}

/// All schedulers: those of this crate, sorted by name, and those that were [added](add).
pub fn all() -> impl Iterator<Item = &'static Entry> + Clone {
    let further = core::iter::successors(FURTHER.get(), |link| link.next.get());
    SCHEDULERS.iter().chain(further.map(|link| link.entry))
}

/// The scheduler called `name`.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::tests::{Backlog, path};
    use crate::sched::{AUTO, Accepts, Plan, Value};
    use alloc::format;
    use alloc::string::ToString;
    use alloc::vec::Vec;
    use marline_base::{Duration, Instant, Rng};

    #[test]
    fn entries_are_well_formed() {
        for (i, entry) in SCHEDULERS.iter().enumerate() {
            assert!(
                entry
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'-'),
                "{} is not kebab-case",
                entry.name
            );
            assert!(
                SCHEDULERS[..i].iter().all(|e| e.name < entry.name),
                "sorted and unique"
            );
            assert!(!entry.help.is_empty() && !entry.publication.is_empty());
            assert!(!entry.kinds.is_empty());
            assert!(entry.options.len() <= MAX_OPTIONS);
            for (i, option) in entry.options.iter().enumerate() {
                let key = option.key;
                assert!(key.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'));
                assert!(entry.options[..i].iter().all(|o| o.key != key), "{key}");
                assert!(!option.help.is_empty(), "{key}");
                let default = option.default.to_string();
                assert_eq!(option.read(&default), Some(option.default), "{key}");
                let text = format!("{}:{key}={default}", entry.name);
                assert_eq!(text.parse(), Ok(Choice::from(entry)));
            }
        }
        for (elsewhere, own) in ELSEWHERE {
            assert!(find(elsewhere).is_none() && find(own).is_some(), "{own}");
        }
        assert!(find(AUTO).is_none(), "a word of its own");
    }

    /// The registry is the process's: other tests may see these names, none depends on them.
    #[test]
    fn further_ones_are_added_one_by_one_and_keep_their_names() {
        static ONE: Entry = Entry {
            name: "registry-test-one",
            ..min_rtt::ENTRY
        };
        static TWO: Entry = Entry {
            name: "registry-test-two",
            ..min_rtt::ENTRY
        };
        assert_eq!(add(&[&ONE]), Ok(()));
        assert_eq!(add(&[&TWO, &ONE]), Err(AddError::NameTaken(ONE.name)));
        assert!(
            find(TWO.name).is_none(),
            "nothing is added by a call that fails"
        );
        assert_eq!(add(&[&TWO]), Ok(()));
        let names: Vec<_> = all().skip(SCHEDULERS.len()).map(|e| e.name).collect();
        assert_eq!(names, [ONE.name, TWO.name]);
        assert_eq!(find(TWO.name).map(|entry| entry.name), Some(TWO.name));
        let taken = Err(AddError::NameTaken("min-rtt"));
        assert_eq!(add(&[&min_rtt::ENTRY]), taken);
    }

    /// Every scheduler with its defaults, and with each option at its ends.
    fn choices() -> Vec<Choice> {
        let mut choices = Vec::new();
        for entry in SCHEDULERS {
            choices.push(Choice::from(entry));
            for option in entry.options {
                let others: Vec<_> = match option.accepts {
                    Accepts::Switch => ["on", "off"].map(ToString::to_string).to_vec(),
                    Accepts::Number(low, high) => [low, high].map(|n| n.to_string()).to_vec(),
                    Accepts::Count(low, high) => [low, high].map(|n| n.to_string()).to_vec(),
                    Accepts::CountOr(low, high, words) => {
                        let words = words.iter().map(|word| word.to_string());
                        words.chain([low, high].map(|n| n.to_string())).collect()
                    }
                    Accepts::Time(low, high) => {
                        [low, high].map(|t| Value::Time(t).to_string()).to_vec()
                    }
                };
                for value in others {
                    let text = format!("{}:{}={value}", entry.name, option.key);
                    choices.push(text.parse().expect("accepted"));
                }
            }
        }
        choices
    }

    /// They may leave a path idle and wait for one with something in flight.
    const PATIENT: &[&str] = &["blest", "ecf"];

    /// What every scheduler owes: it terminates, sends a symbol when some path is idle, and sends
    /// nothing without paths.
    #[test]
    fn every_scheduler_keeps_the_contract() {
        for choice in choices() {
            let entry = choice.entry();
            let mut rng = Rng::new(1).stream(entry.name);
            for _ in 0..200 {
                let mut scheduler = choice.make();
                let mut paths: alloc::vec::Vec<_> = (0..rng.below(4)).map(path).collect();
                for p in &mut paths {
                    p.srtt = Duration::from_micros(1 + rng.below(300_000));
                    p.min_rtt = p.srtt;
                    p.window = rng.below(60_000);
                    if rng.chance(0.7) {
                        p.in_flight = rng.below(p.window + 1);
                    }
                    if rng.chance(0.1) {
                        p.window = u64::MAX;
                    }
                }
                let quiet = paths.iter().all(|p| p.in_flight == 0);
                let idle = paths.iter().any(|p| p.in_flight == 0 && p.window > 3_000);
                let mut backlog = Backlog::of(300);
                if !entry.kinds.contains(&FlowKind::Stream) {
                    backlog = backlog.in_units_of(300);
                }
                scheduler.plan(&mut Plan::new(Instant::ZERO, &mut paths, &mut backlog));
                let sent = backlog.sent_on();
                assert!(!paths.is_empty() || sent.is_empty(), "{}", entry.name);
                if idle && (quiet || !PATIENT.contains(&entry.name)) {
                    assert!(
                        !sent.is_empty(),
                        "{} sends nothing over idle paths",
                        entry.name
                    );
                }
            }
        }
    }
}
