//! The files that a run produced, with paths that the owner can open (SPEC RUN-12).

use base::{Refusal, RunId};
use motor::{Artifact, RunTrace};
use schemars::JsonSchema;
use serde::Serialize;

use super::context::Context;
use crate::output::text;

/// At most so many files are listed for people; JSON has all.
pub(super) const MAX_LISTED: usize = 20;

/// A file that a run produced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProducedFile {
    /// Absolute path of the file in the home.
    pub(super) path: String,
    /// Size of the file in bytes.
    pub(super) bytes: u64,
}

/// The files of a run, by path.
///
/// # Errors
/// If the home cannot be located.
pub(super) fn produced(trace: &RunTrace, context: &Context) -> Result<Vec<ProducedFile>, Refusal> {
    let home = context.place()?.home.artifacts(&trace.run_id);
    // A home is named relative to the directory of this command.
    let directory = std::path::absolute(&home).unwrap_or(home);
    let file = |Artifact { path, bytes, .. }: &Artifact| ProducedFile {
        path: directory.join(path).display().to_string(),
        bytes: *bytes,
    };
    Ok(trace.artifacts.iter().map(file).collect())
}

/// One line for each file, at most [`MAX_LISTED`], and one for the rest.
pub(super) fn lines(files: &[ProducedFile], run: &RunId) -> Vec<String> {
    let line = |file: &ProducedFile| format!("file {} {}", text::bytes(file.bytes), text::one_line(&file.path));
    let mut lines: Vec<_> = files.iter().take(MAX_LISTED).map(line).collect();
    if let Some(more) = files.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        lines.push(format!("and {more} more: `motor task status {run} --json` lists all"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_cut_and_counted() {
        let run = RunId::parse("run_1").unwrap();
        let files = |count: usize| {
            let file = |number| ProducedFile { path: format!("/home/a/{number}"), bytes: 7 };
            (0..count).map(file).collect::<Vec<_>>()
        };
        assert_eq!(lines(&[], &run), Vec::<String>::new());
        assert_eq!(lines(&files(1), &run), [format!("file {} /home/a/0", text::bytes(7))]);
        assert_eq!(lines(&files(20), &run).len(), 20);
        let cut = lines(&files(23), &run);
        assert_eq!(cut.len(), 21);
        assert!(cut.last().is_some_and(|last| last.starts_with("and 3 more")), "{cut:?}");
    }
}
