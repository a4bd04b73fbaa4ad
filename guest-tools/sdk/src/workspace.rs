//! Files of the run's workspace, by paths relative to it.
//!
//! A path may be a model's text: one that leads out is refused here with the reason, and the host refuses it again. Large
//! files are streamed with `std::fs`, at the place that [`resolve`] gives. Outside of a component the files are those of a
//! [`Sandbox`](crate::testing::Sandbox).

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::ToolError;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, without its directory.
    pub name: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// Why a file was not read or written. Each carries the path as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The path is absolute or leads out of the workspace.
    Outside(String),
    /// There is no entry of this name.
    Missing(String),
    /// The path names another kind of entry, or is invalid.
    Unfit(String),
    /// The file is not UTF-8, and text was asked for.
    NotText(String),
    /// The entry may not be accessed in this way.
    Denied(String),
    /// A limit of the workspace on sizes or numbers of files.
    Full(String),
    /// It failed for another reason.
    Failed(String),
}

impl fmt::Display for WorkspaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside(path) => write!(f, "`{path}` is outside of the workspace: give a path relative to it"),
            Self::Missing(path) => write!(f, "`{path}` does not exist"),
            Self::Unfit(path) => {
                write!(f, "`{path}` does not fit: a directory in place of a file, or a file of a directory")
            }
            Self::NotText(path) => write!(f, "`{path}` is not text in UTF-8"),
            Self::Denied(path) => write!(f, "`{path}` may not be accessed in this way"),
            Self::Full(path) => {
                write!(f, "the workspace is full: `{path}` could not be written; write less, or delete a file")
            }
            Self::Failed(path) => write!(f, "`{path}` could not be accessed"),
        }
    }
}

impl std::error::Error for WorkspaceError {}

impl From<WorkspaceError> for ToolError {
    fn from(error: WorkspaceError) -> Self {
        let sentence = error.to_string();
        match error {
            WorkspaceError::Missing(_) => Self::missing(sentence),
            WorkspaceError::Outside(_) | WorkspaceError::Denied(_) => Self::denied(sentence),
            WorkspaceError::Unfit(_) | WorkspaceError::NotText(_) => Self::bad_input(sentence),
            WorkspaceError::Full(_) => Self::limit(sentence),
            WorkspaceError::Failed(_) => Self::failed(sentence),
        }
    }
}

/// The place of a file for `std::fs`.
///
/// # Errors
/// If the path is absolute or has `..` in it.
pub fn resolve(path: &str) -> Result<PathBuf, WorkspaceError> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(path).components().all(inside) {
        return Err(WorkspaceError::Outside(path.to_owned()));
    }
    root(path).map(|root| root.join(path))
}

/// Reads a whole file.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &str) -> Result<Vec<u8>, WorkspaceError> {
    fs::read(resolve(path)?).map_err(|error| failed(&error, path))
}

/// Reads a whole file of text.
///
/// # Errors
/// If it cannot be read, or is not UTF-8.
pub fn read_text(path: &str) -> Result<String, WorkspaceError> {
    String::from_utf8(read(path)?).map_err(|_| WorkspaceError::NotText(path.to_owned()))
}

/// Writes a file in place of one that is there. Its directories are made.
///
/// # Errors
/// If it cannot be written. A file that was there may then be cut.
pub fn write(path: &str, content: impl AsRef<[u8]>) -> Result<(), WorkspaceError> {
    let place = resolve(path)?;
    let written = match (fs::write(&place, &content), place.parent()) {
        (Err(error), Some(directory)) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(directory).and_then(|()| fs::write(&place, content))
        }
        (written, _) => written,
    };
    written.map_err(|error| failed(&error, path))
}

/// Lists a directory, sorted by name; `""` is the workspace. Names that are not UTF-8 are left out.
///
/// # Errors
/// If it cannot be read.
pub fn list(path: &str) -> Result<Vec<Entry>, WorkspaceError> {
    let mut entries = entries(&resolve(path)?).map_err(|error| failed(&error, path))?;
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn entries(directory: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let is_directory = entry.file_type()?.is_dir();
        entries.extend(entry.file_name().into_string().ok().map(|name| Entry { name, is_directory }));
    }
    Ok(entries)
}

/// The root of the workspace, by its name in components.
#[cfg(target_family = "wasm")]
fn root(_: &str) -> Result<PathBuf, WorkspaceError> {
    Ok(PathBuf::from("/workspace"))
}

#[cfg(not(target_family = "wasm"))]
fn root(path: &str) -> Result<PathBuf, WorkspaceError> {
    crate::testing::workspace().ok_or_else(|| WorkspaceError::Denied(path.to_owned()))
}

/// The reason, without the system's own text: it may name places outside.
fn failed(error: &io::Error, path: &str) -> WorkspaceError {
    let of = match error.kind() {
        ErrorKind::NotFound => WorkspaceError::Missing,
        ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::InvalidFilename => WorkspaceError::Unfit,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => WorkspaceError::Denied,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => WorkspaceError::Full,
        _ => WorkspaceError::Failed,
    };
    of(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sandbox;

    #[test]
    fn files_are_written_read_and_listed() {
        let sandbox = Sandbox::new().with_file("notes/a.txt", "one");
        write("deep/er/b.txt", "two").unwrap();
        write("./c", [0xff]).unwrap();
        assert_eq!(read_text("notes/a.txt").unwrap(), "one");
        assert_eq!(sandbox.file("deep/er/b.txt").unwrap(), b"two");
        let names: Vec<(String, bool)> =
            list("").unwrap().into_iter().map(|entry| (entry.name, entry.is_directory)).collect();
        assert_eq!(names, [("c".to_owned(), false), ("deep".to_owned(), true), ("notes".to_owned(), true)]);
        assert_eq!(read_text("c"), Err(WorkspaceError::NotText("c".to_owned())));
    }

    #[test]
    fn a_path_that_leads_out_is_denied() {
        let _sandbox = Sandbox::new();
        for path in ["/etc/passwd", "../x", "a/../../x", "/workspace/a"] {
            assert_eq!(read(path), Err(WorkspaceError::Outside(path.to_owned())));
            assert_eq!(write(path, ""), Err(WorkspaceError::Outside(path.to_owned())));
            assert_eq!(list(path), Err(WorkspaceError::Outside(path.to_owned())));
        }
    }

    #[track_caller]
    fn check(error: WorkspaceError, is: fn(&ToolError) -> bool) {
        let error = ToolError::from(error);
        assert!(is(&error) && error.sentence().contains('`'), "{error:?}");
    }

    #[test]
    fn each_failure_has_its_kind() {
        let _sandbox = Sandbox::new().with_file("a", "");
        check(read("absent").unwrap_err(), |error| matches!(error, ToolError::Missing(_)));
        check(read("a/b").unwrap_err(), |error| matches!(error, ToolError::BadInput(_)));
        check(write("", "").unwrap_err(), |error| matches!(error, ToolError::BadInput(_)));
        check(read("../a").unwrap_err(), |error| matches!(error, ToolError::Denied(_)));
        check(WorkspaceError::Full("a".to_owned()), |error| matches!(error, ToolError::Limit(_)));
    }

    #[test]
    fn without_a_sandbox_there_is_no_workspace() {
        assert_eq!(read("a"), Err(WorkspaceError::Denied("a".to_owned())));
    }
}
