//! The `motor` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    interfaces::cli::main()
}
