use std::io::{self, Write};
use std::{env, thread};

/// Set where everything is installed that tests run: then nothing of it may be missing.
const REQUIRED: &str = "MARLINE_REQUIRE_TOOLS";

/// Says that the test that calls this is left out, and why.
pub(crate) fn skipped(why: &str) {
    let test = thread::current();
    let line = format!("SKIPPED: {}: {why}\n", test.name().unwrap_or("a test"));
    // What `eprintln!` prints is shown of tests that fail, and this one passes.
    let _ = io::stderr().write_all(line.as_bytes());
}

/// The same of a test whose tool is not installed.
///
/// # Panics
/// Where tools are required.
pub(crate) fn not_installed(tool: &str) {
    let why = format!("{tool} is not installed (docs/TESTING.md says what to install)");
    let required = env::var_os(REQUIRED).is_some_and(|value| !value.is_empty());
    assert!(!required, "{why}, and {REQUIRED} is set");
    skipped(&why);
}
