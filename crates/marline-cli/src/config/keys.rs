//! The keys of a configuration, which are those of its flags.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A raw configuration: the same struct is filled from flags and from a file.
pub trait Raw: clap::Args + Serialize + DeserializeOwned + Default {
    /// The subcommand that takes it, for messages.
    const SUBCOMMAND: &'static str;

    /// These values, completed by those of `file`. A list that is given replaces the file's list.
    #[must_use]
    fn over(self, file: Self) -> Self;

    /// Keys of the other subcommand and its name, to tell a misplaced key from a misspelt one.
    fn other() -> (&'static str, Vec<String>);
}

/// Names of the keys of `R`, which are those of its flags.
pub(super) fn keys<R: Raw>() -> Vec<String> {
    R::augment_args(clap::Command::new("keys"))
        .get_arguments()
        .filter_map(|argument| argument.get_long().map(str::to_owned))
        .collect()
}
