//! The owner's editor.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use base::{Refusal, RefusalCode};

use super::context::Context;
use super::input;

/// The editor if neither `VISUAL` nor `EDITOR` is set.
const EDITOR: &str = "vi";

/// A text for the editor.
#[derive(Debug, Clone, Copy)]
pub(super) struct EditedText {
    /// How the name of its file begins.
    pub(super) prefix: &'static str,
    /// Another way, for a terminal without an editor.
    pub(super) otherwise: &'static str,
}

/// The text after the editor has ended.
///
/// # Errors
/// If the editor does not start or reports a failure.
pub(super) async fn edited(written: String, of: EditedText, context: &Context) -> Result<String, Refusal> {
    let editor =
        ["VISUAL", "EDITOR"].into_iter().find_map(|name| (context.env)(name).filter(|value| !value.is_empty()));
    let editor = editor.unwrap_or_else(|| EDITOR.to_owned());
    let editing = tokio::task::spawn_blocking(move || run(&editor, &written, of));
    editing.await.unwrap_or_else(|_| Err(of.failed("the editor was interrupted")))
}

impl EditedText {
    fn failed(self, reason: &str) -> Refusal {
        Refusal::new(RefusalCode::Failed, reason).with_remedy(self.otherwise)
    }
}

fn run(editor: &str, written: &str, of: EditedText) -> Result<String, Refusal> {
    let io = |error: std::io::Error| of.failed(&format!("the text cannot be edited: {error}"));
    // Readable by its user alone: the text may be private.
    let mut place = tempfile::Builder::new().prefix(of.prefix).suffix(".toml").tempfile().map_err(io)?;
    place.write_all(written.as_bytes()).map_err(io)?;
    let tty = OpenOptions::new().read(true).write(true).open("/dev/tty").map_err(io)?;
    let path: PathBuf = place.path().to_owned();
    // Through the shell, because the variable may hold arguments. The streams of this command may be files.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .stdin(tty.try_clone().map_err(io)?)
        .stdout(tty.try_clone().map_err(io)?)
        .stderr(tty)
        .status()
        .map_err(io)?;
    if !status.success() {
        return Err(of.failed(&format!("the editor `{editor}` failed: {status}")));
    }
    // By name: an editor may have put another file in its place.
    input::text_file(&path)
}
