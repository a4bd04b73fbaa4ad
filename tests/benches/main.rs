//! Benchmarks of the product's promises, as medians and ratios of one run: `cargo xtask bench [SECTION…]`.
//!
//! Sections: `code` (the code sandbox, against the forked Node design when Node is here), `limits` (ends of loops and
//! bombs), `host` (start and memory), `step` (host time of one motor step), `network` (gate, scrubber, shell), `runs`
//! (many at once, and after a million others), `parked` (ten thousand that wait), `directory` (a directory of the owner, against
//! ripgrep when it is here), `doors` (HTTP, MCP, pages). Numbers of different runs or machines do not compare; rounds of the two sides alternate, so that a slow minute hits both.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "benchmarks"
)]

mod code;
mod directory;
mod doors;
mod forked;
mod host;
mod limits;
mod network;
mod parked;
mod runs;
mod stats;
mod step;
mod watchers;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    // A child that measures itself in a process of its own.
    if asked.first().is_some_and(|first| first == "measure-host") {
        return host::measure(asked.get(1).map(String::as_str));
    }
    let all = ["code", "limits", "host", "step", "network", "runs", "parked", "directory", "doors"];
    if let Some(unknown) = asked.iter().find(|name| !all.contains(&name.as_str())) {
        bail!("there is no section `{unknown}`; there are: {}", all.join(", "));
    }
    let runs = |name: &str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    println!(
        "{} build, {} processors, PAGEMAP_SCAN {}",
        if cfg!(debug_assertions) { "dev" } else { "release" },
        std::thread::available_parallelism()?,
        if runtime::engine::pagemap_scan() { "used" } else { "not offered by this kernel: fallback in use" },
    );
    if runs("code") {
        code::run()?;
    }
    if runs("limits") {
        limits::run()?;
    }
    if runs("host") {
        host::run()?;
    }
    if runs("step") {
        step::run()?;
    }
    if runs("network") {
        network::run()?;
    }
    if runs("runs") {
        runs::run()?;
    }
    if runs("parked") {
        parked::run()?;
    }
    if runs("directory") {
        directory::run()?;
    }
    if runs("doors") {
        doors::run()?;
    }
    Ok(())
}
