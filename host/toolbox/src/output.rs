//! Long tool output goes to the workspace, and a pointer to the model (SPEC RUN-9).

use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// Bytes of output that are worth keeping next to the conversation.
const KEPT_BYTES: usize = 4_096;
/// Directory of long output, in the workspace.
const DIRECTORY: &str = ".motor-output";

/// Which outputs are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Save {
    /// Only outputs that do not fit.
    Long,
    /// All of the outputs.
    Always,
}

/// The room for outputs of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Bytes of an output that fit in the conversation.
    pub bytes: usize,
    /// Lines of an output that fit in the conversation.
    pub lines: usize,
    /// Bytes of all saved outputs together.
    pub saved_bytes: u64,
}

/// An output in the form shown in the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FittedOutput {
    pub output: String,
    /// Path of the full output, in the workspace.
    pub saved: Option<String>,
}

/// Returns `output` unchanged if it may stay; otherwise saves it in `workspace` and returns a pointer without a
/// preview. An output that may stay but is not short is saved too, for when the conversation has grown and shows only
/// its beginning (SPEC RUN-11); without room for that, it stays as it is. `call` only names the call.
///
/// # Errors
/// If an output that cannot stay cannot be written, or there are too many.
pub(crate) fn fit(
    workspace: &Path,
    call: &str,
    output: String,
    save: Save,
    room: Room,
) -> std::io::Result<FittedOutput> {
    let lines = output.lines().count();
    let fits = output.len() <= room.bytes && lines <= room.lines;
    if fits && save == Save::Long {
        let kept = (output.len() > KEPT_BYTES).then(|| keep(workspace, call, &output, room.saved_bytes).ok()).flatten();
        return Ok(FittedOutput { output, saved: kept });
    }
    let path = keep(workspace, call, &output, room.saved_bytes)?;
    let why = if fits { "" } else { " too long to show;" };
    let pointer = format!(
        "the output is{why} saved as {path} ({} bytes, {lines} lines): look at the parts you need",
        output.len()
    );
    Ok(FittedOutput { output: pointer, saved: Some(path) })
}

/// Saves an output, and returns its path as guests know it.
fn keep(workspace: &Path, call: &str, output: &str, most_bytes: u64) -> std::io::Result<String> {
    // Guests write here too: the directory handle keeps every step inside, even if they replaced it.
    let workspace = Dir::open_ambient_dir(workspace, ambient_authority())?;
    workspace.create_dir_all(DIRECTORY)?;
    let mut saved = output.len() as u64;
    for entry in workspace.read_dir(DIRECTORY)? {
        saved = saved.saturating_add(entry?.metadata()?.len());
    }
    if saved > most_bytes {
        return Err(std::io::Error::new(std::io::ErrorKind::QuotaExceeded, "the workspace is full of long outputs"));
    }
    let name: String =
        call.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(80).collect();
    let path = format!("{DIRECTORY}/{name}.txt");
    workspace.write(&path, output)?;
    Ok(format!("/workspace/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { bytes: 50_000, lines: 2_000, saved_bytes: 1 << 20 };

    #[test]
    fn short_output_stays_and_long_output_is_saved_whole() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(fit(directory.path(), "1", "short".into(), Save::Long, ROOM).unwrap().output, "short");
        assert!(!directory.path().join(DIRECTORY).exists());
        for long in ["x".repeat(ROOM.bytes + 1), "x\n".repeat(ROOM.lines + 1)] {
            let pointer = fit(directory.path(), "../run_1/step 2", long.clone(), Save::Long, ROOM).unwrap().output;
            assert!(pointer.contains("/workspace/.motor-output/___run_1_step_2.txt"), "{pointer}");
            let saved = std::fs::read_to_string(directory.path().join(".motor-output/___run_1_step_2.txt")).unwrap();
            assert_eq!(saved, long);
        }
    }

    #[test]
    fn what_is_not_short_stays_and_is_kept_too() {
        let directory = tempfile::tempdir().unwrap();
        let text = "x".repeat(KEPT_BYTES + 1);
        let fitted = fit(directory.path(), "1", text.clone(), Save::Long, ROOM).unwrap();
        let saved = Some("/workspace/.motor-output/1.txt".to_owned());
        assert_eq!(fitted, FittedOutput { output: text.clone(), saved });
        assert_eq!(std::fs::read_to_string(directory.path().join(".motor-output/1.txt")).unwrap(), text);
        assert_eq!(
            fit(directory.path(), "2", text, Save::Long, Room { saved_bytes: 100, ..ROOM }).unwrap().saved,
            None
        );
    }

    #[test]
    fn what_is_always_saved_is_saved_however_short() {
        let directory = tempfile::tempdir().unwrap();
        let pointer = fit(directory.path(), "1", "page".into(), Save::Always, ROOM).unwrap().output;
        assert_eq!(pointer.lines().count(), 1);
        assert!(
            pointer.starts_with("the output is saved as /workspace/.motor-output/1.txt (4 bytes, 1 lines)"),
            "{pointer}"
        );
    }

    #[test]
    fn a_link_in_the_way_is_not_followed() {
        let outside = tempfile::tempdir().unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(outside.path(), directory.path().join(DIRECTORY)).unwrap();
        assert!(fit(directory.path(), "1", "x".repeat(ROOM.bytes + 1), Save::Long, ROOM).is_err());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn long_outputs_together_are_limited() {
        let directory = tempfile::tempdir().unwrap();
        let long = "x".repeat(ROOM.bytes + 1);
        assert!(fit(directory.path(), "1", long.clone(), Save::Long, Room { saved_bytes: 120_000, ..ROOM }).is_ok());
        assert!(fit(directory.path(), "2", long.clone(), Save::Long, Room { saved_bytes: 120_000, ..ROOM }).is_ok());
        assert!(fit(directory.path(), "3", long, Save::Long, Room { saved_bytes: 120_000, ..ROOM }).is_err());
    }
}
