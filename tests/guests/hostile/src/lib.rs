//! Guests that attack the host's resources, one tool for each attack. Every tool either runs until the host ends it or
//! answers with the things it reached; `REACHED` in an answer means that a boundary failed.

mod cpu;
mod escape;
mod files;
mod flood;
mod memory;
mod raw;

use motor_sdk::{Context, Tool, ToolError};

motor_sdk::arguments! {
    struct Nothing {}
}

/// Name, description, and the function that attacks.
type Attack = (&'static str, &'static str, fn() -> String);

/// A tool without arguments; nothing is said of its effects, so the host takes the worst case.
fn attack(name: &str, description: &str, run: fn() -> String) -> Tool {
    Tool::new(name, description, move |_: Nothing, _: &Context| -> Result<String, ToolError> { Ok(run()) })
}

fn tools() -> Vec<Tool> {
    let attacks: [Attack; 29] = [
        ("spin", "Loops for ever.", cpu::spin),
        ("bulk_fill", "Fills memory for ever, megabytes with each instruction.", cpu::bulk_fill),
        (
            "straight_line",
            "Computes for ever with thousands of slow instructions between two branches.",
            cpu::straight_line,
        ),
        ("recurse", "Calls itself without end.", cpu::recurse),
        ("trap", "Executes `unreachable`.", cpu::trap),
        ("panic", "Panics.", cpu::panic),
        ("exit_zero", "Exits with code 0.", cpu::exit_zero),
        ("exit_three", "Exits with code 3, which WASI 0.2 tells the host as a failure.", cpu::exit_three),
        ("sleeper", "Sleeps for an hour.", cpu::sleeper),
        ("grow_step", "Asks for nearly 4 GiB of memory at once.", memory::grow_step),
        ("grow_slow", "Asks for memory page by page until it is refused, then spins.", memory::grow_slow),
        ("allocate", "Allocates and touches memory until the allocation fails.", memory::allocate),
        ("big_output", "Returns 60 MiB.", memory::big_output),
        ("log_flood", "Logs lines for ever.", flood::log_lines),
        ("log_bytes", "Logs one line of 60 MiB.", flood::log_bytes),
        ("progress_flood", "Reports progress for ever.", flood::progress_reports),
        ("progress_bytes", "Reports progress once, with 60 MiB of text and no number.", flood::progress_bytes),
        ("host_call_flood", "Asks for the time for ever.", flood::clock_calls),
        ("stdout_flood", "Prints for ever.", flood::stdout),
        ("stderr_flood", "Prints errors for ever.", flood::stderr),
        ("random_flood", "Takes random bytes for ever.", flood::random),
        ("random_huge", "Takes a terabyte of random bytes at once.", flood::random_huge),
        ("fill_disk", "Writes one file for ever.", files::fill_disk),
        ("sparse_file", "Makes a file of a terabyte without writing it.", files::sparse_file),
        ("many_files", "Makes files for ever.", files::many_files),
        ("deep_directories", "Makes directories in directories for ever.", files::deep_directories),
        ("table_bomb", "Opens the workspace for ever and closes nothing.", files::table_bomb),
        ("listing_bomb", "Lists the workspace for ever and closes nothing.", files::listing_bomb),
        ("escape", "Tries every way out and tells what it reached.", escape::escape),
    ];
    attacks.into_iter().map(|(name, description, run)| attack(name, description, run)).collect()
}

motor_sdk::export!(tools);
