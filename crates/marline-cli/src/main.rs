//! The program `marline`.

use std::process::ExitCode;

fn main() -> ExitCode {
    marline_cli::main()
}
