//! Benchmarks of the product's promises, as medians and ratios of one run: `cargo xtask bench [SECTION…]`.
//!
//! Sections: `code` (the code sandbox, against the forked Node design when Node is here), `limits` (ends of loops and
//! bombs), `host` (start and memory), `step` (host time of one motor step), `network` (gate, scrubber, shell), `runs`
//! (many at once, and after a million others), `parked` (ten thousand that wait), `directory` (a directory of the owner,
//! against ripgrep when it is here), `doors` (HTTP, MCP, pages), `users` (the program from outside, and other sandboxes
//! beside it), `neurons` (ticks), `python` (against the machine's interpreter when it is here), `component` (a large one,
//! compiled and from the cache), `turn` (of cognition), `authors` (a tool from nothing, and saved again). Numbers of
//! different runs or machines do not compare; rounds of the two sides alternate, so that a slow minute hits both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "benchmarks"
)]

mod authors;
mod code;
mod component;
mod directory;
mod doors;
mod host;
mod limits;
mod network;
mod neurons;
mod parked;
mod peer;
mod python;
mod runs;
mod stats;
mod step;
mod turn;
mod users;
mod watchers;

use anyhow::{Result, bail};

/// A section of benchmarks, by its name.
type Section = (&'static str, fn() -> Result<()>);

const SECTIONS: [Section; 15] = [
    ("code", code::run),
    ("limits", limits::run),
    ("host", host::run),
    ("step", step::run),
    ("network", network::run),
    ("runs", runs::run),
    ("parked", parked::run),
    ("directory", directory::run),
    ("doors", doors::run),
    ("users", users::run),
    ("neurons", neurons::run),
    ("python", python::run),
    ("component", component::run),
    ("turn", turn::run),
    ("authors", authors::run),
];

fn main() -> Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    // A child that measures itself in a process of its own.
    if asked.first().is_some_and(|first| first == "measure-host") {
        return host::measure(asked.get(1).map(String::as_str));
    }
    if let Some(unknown) = asked.iter().find(|asked| !SECTIONS.iter().any(|(name, _)| name == asked)) {
        bail!("there is no section `{unknown}`; there are: {}", SECTIONS.map(|(name, _)| name).join(", "));
    }
    println!(
        "{} build, {} processors, PAGEMAP_SCAN {}",
        if cfg!(debug_assertions) { "dev" } else { "release" },
        std::thread::available_parallelism()?,
        if runtime::engine::pagemap_scan() { "used" } else { "not offered by this kernel: fallback in use" },
    );
    for (name, run) in SECTIONS {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            run()?;
        }
    }
    Ok(())
}
