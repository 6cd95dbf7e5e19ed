//! The `marline` program. Everything it does is in the library, so that others can embed it.

use std::process::ExitCode;

fn main() -> ExitCode {
    marline::cli::main()
}
