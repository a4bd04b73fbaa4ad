//! The file tools: `read`, `write`, `append`, `patch`, `list`, `glob`, `grep` over `/workspace` (SPEC TOOL-1, TOOL-3).
//!
//! The boundary is the host's: it opens `/workspace` for the component and nothing else. The checks here give a model
//! a clear reason where the host's refusal would be a bare error number. They must not know anything about runs,
//! policies or the path that `/workspace` has outside. They survive hostile paths, symbolic links that lead out
//! or in circles, names that are not UTF-8, binary, huge and endless-line files; each answer is bounded and in a fixed
//! order.

mod fault;
mod glob;
mod grep;
mod limits;
mod lines;
mod list;
mod page;
mod patch;
mod read;
mod similar;
mod walk;
mod workspace;
mod write;

use motor_sdk::{Context, Effects, Tool, ToolError};
use workspace::Workspace;

/// Where the host opens the workspace.
const ROOT: &str = "/workspace";

/// Overwrites, and does the same when it is repeated: the host may run it again after a crash.
const OVERWRITES: Effects = Effects { read_only: false, destructive: true, idempotent: true, open_world: false };

/// Keeps the content, but adds again if it is repeated.
const ADDS: Effects = Effects { read_only: false, destructive: false, idempotent: false, open_world: false };

/// Changes the content, and might change it further if it is repeated.
const CHANGES: Effects = Effects { read_only: false, destructive: true, idempotent: false, open_world: false };

fn tools() -> Vec<Tool> {
    tools_over(ROOT)
}

fn tools_over(root: &str) -> Vec<Tool> {
    vec![
        Tool::new(
            "read",
            "Reads a text file with line numbers: `limit` (at most 2,000) from line `offset` (first is 1). It says where to go on.",
            over(root, read::read),
        )
        .read_only(),
        Tool::new(
            "write",
            "Writes a whole file, replacing what was there; directories are made.",
            over(root, write::write),
        )
        .effects(OVERWRITES),
        Tool::new(
            "append",
            "Adds text at the end of a file, new or not; no newline is added.",
            over(root, write::append),
        )
        .effects(ADDS),
        Tool::new(
            "patch",
            "Replaces text in a file: `find` must occur exactly once, whitespace aside.",
            over(root, patch::patch),
        )
        .effects(CHANGES),
        Tool::new(
            "list",
            "Lists a directory, files with their bytes.",
            over(root, list::list),
        )
        .read_only(),
        Tool::new(
            "glob",
            "Finds files: `src/**/{a,b}*.rs`; without `/` in any directory below `path`.",
            over(root, glob::glob),
        )
        .read_only(),
        Tool::new(
            "grep",
            "Searches lines of files for a regular expression (no look-around, no back-references); first 100 matches.",
            over(root, grep::grep),
        )
        .read_only(),
    ]
}

/// A handler that finds its workspace at `root`.
fn over<A: 'static>(
    root: &str,
    handler: fn(&Workspace, A) -> Result<String, ToolError>,
) -> impl Fn(A, &Context) -> Result<String, ToolError> + 'static {
    let workspace = Workspace::at(root);
    move |arguments, _context| handler(&workspace, arguments)
}

motor_sdk::export!(tools);

#[cfg(test)]
mod tests;
