//! What a scheduler is to those who choose one: its entry, and a choice of its options.

use alloc::boxed::Box;
use core::fmt;

use super::options::Value;
use super::{OptionSpec, Scheduler};
use crate::wire::FlowKind;
use marline_base::Duration;

/// Most options that a scheduler may have.
pub(super) const MAX_OPTIONS: usize = 8;

/// A scheduler that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name in flags, configuration, metrics and plots.
    pub name: &'static str,
    /// Where it was published.
    pub publication: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// Flow kinds that it can serve.
    pub kinds: &'static [FlowKind],
    /// Its options.
    pub options: &'static [OptionSpec],
    /// Makes one; [`Choice::make`] calls it.
    pub new: Constructor,
}

/// Schedulers that look at one symbol at a time serve these.
pub(super) const PACKET_WISE: &[FlowKind] = &FlowKind::ALL;

/// Makes a scheduler as chosen.
pub type Constructor = fn(&Choice) -> Box<dyn Scheduler>;

/// A scheduler with a value for each of its options.
#[derive(Clone, Copy)]
pub struct Choice {
    entry: &'static Entry,
    /// In the order of the entry's options.
    values: [Value; MAX_OPTIONS],
}

impl From<&'static Entry> for Choice {
    /// With the default of every option.
    fn from(entry: &'static Entry) -> Self {
        let mut values = [Value::Switch(false); MAX_OPTIONS];
        for (value, option) in values.iter_mut().zip(entry.options) {
            *value = option.default;
        }
        Self { entry, values }
    }
}

impl Choice {
    /// The scheduler's entry.
    pub const fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The scheduler's name, without options.
    pub const fn name(&self) -> &'static str {
        self.entry.name
    }

    /// A new scheduler as chosen.
    pub fn make(&self) -> Box<dyn Scheduler> {
        (self.entry.new)(self)
    }

    /// Is the switch on? For the scheduler's constructor; panics if it has no such switch, which
    /// a test over the registry finds.
    pub fn switch(&self, key: &str) -> bool {
        match self.value(key) {
            Value::Switch(on) => on,
            other => unreachable!("`{key}` is {other:?}, not a switch"),
        }
    }

    /// The number; as for [`Choice::switch`].
    pub fn number(&self, key: &str) -> f64 {
        match self.value(key) {
            Value::Number(number) => number,
            other => unreachable!("`{key}` is {other:?}, not a number"),
        }
    }

    /// The word, if the option that takes a number or a word has one; as for [`Choice::switch`].
    pub fn word(&self, key: &str) -> Option<&'static str> {
        match self.value(key) {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The duration; as for [`Choice::switch`].
    pub fn time(&self, key: &str) -> Duration {
        match self.value(key) {
            Value::Time(time) => time,
            other => unreachable!("`{key}` is {other:?}, not a time"),
        }
    }

    /// The same with this switch on or off; as for [`Choice::switch`].
    pub(super) fn switched(mut self, key: &str, on: bool) -> Self {
        self.values[self.index(key)] = Value::Switch(on);
        self
    }

    /// Gives the option at this place of the entry's options another value.
    pub(super) fn set(&mut self, index: usize, value: Value) {
        self.values[index] = value;
    }

    fn value(&self, key: &str) -> Value {
        self.values[self.index(key)]
    }

    fn index(&self, key: &str) -> usize {
        let mut options = self.entry.options.iter();
        match options.position(|option| option.key == key) {
            Some(index) => index,
            None => unreachable!("scheduler {} has no option `{key}`", self.entry.name),
        }
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}

impl Eq for Choice {}

impl fmt::Display for Choice {
    /// As it is written, without what is as by default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        for (value, option) in self.values.iter().zip(self.entry.options) {
            if *value != option.default {
                write!(f, ":{}={value}", option.key)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choice({self})")
    }
}
