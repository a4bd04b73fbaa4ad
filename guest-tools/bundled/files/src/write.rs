//! `write` and `append`. A file is replaced by renaming a finished one over it: a reader at the same time, or one after
//! a crash or a full disk, sees the old content or the new, never a part.

use std::{
    fs::{self, File, OpenOptions},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use motor_sdk::ToolError;

use crate::{
    fault,
    workspace::{Place, Workspace},
};

motor_sdk::arguments! {
    /// Arguments of `write`.
    pub(crate) struct Write {
        path: String,
        content: String,
    }

    /// Arguments of `append`.
    pub(crate) struct Append {
        path: String,
        content: String,
    }
}

/// Writes a whole file at once.
pub(crate) fn write(workspace: &Workspace, arguments: Write) -> Result<String, ToolError> {
    let place = workspace.resolve_to_change(&arguments.path)?;
    let before = size_of_file(workspace, &place)?;
    prepare_parents(workspace, &place)?;
    replace(workspace, &place, arguments.content.as_bytes())?;
    let (shown, bytes) = (place.shown(), arguments.content.len());
    Ok(match before {
        None => format!("created `{shown}`: {bytes} bytes"),
        Some(before) => format!("overwrote `{shown}`: {bytes} bytes, before {before}"),
    })
}

/// Adds to the end of a file.
pub(crate) fn append(workspace: &Workspace, arguments: Append) -> Result<String, ToolError> {
    let place = workspace.resolve_to_change(&arguments.path)?;
    let before = size_of_file(workspace, &place)?;
    prepare_parents(workspace, &place)?;
    let shown = place.shown();
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(workspace.path(&place))
        .and_then(|mut file| file.write_all(arguments.content.as_bytes()))
        .map_err(|error| fault::of(&error, &shown))?;
    let added = arguments.content.len() as u64;
    Ok(match before {
        None => format!("created `{shown}`: {added} bytes"),
        Some(before) => format!("added {added} bytes to `{shown}`: now {}", before + added),
    })
}

/// Replaces the content of a file as one step.
///
/// # Errors
/// Those of the file system; the old content is then still there.
pub(crate) fn replace(workspace: &Workspace, place: &Place, content: &[u8]) -> Result<(), ToolError> {
    let path = workspace.path(place);
    let unfinished = unfinished(&path, place.name());
    let outcome = write_new(&unfinished, content).and_then(|()| fs::rename(&unfinished, &path));
    outcome.map_err(|error| {
        // The first failure is the one to tell; the rest is found and removed by the next attempt.
        drop(fs::remove_file(&unfinished));
        fault::of(&error, &place.shown())
    })
}

/// A file that is not there yet, so that nothing can have been put in its place, such as a link.
fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(content)
}

/// Beside the file, under a name that depends on its name only: two calls that write different files do not meet, and
/// a name of the greatest length still has one.
fn unfinished(path: &Path, name: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    path.with_file_name(format!(".motor-unfinished-{:016x}", hasher.finish()))
}

/// The size of the file at a place; `None` if there is no file.
fn size_of_file(workspace: &Workspace, place: &Place) -> Result<Option<u64>, ToolError> {
    let shown = place.shown();
    match fs::symlink_metadata(workspace.path(place)) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(metadata) if metadata.is_dir() => {
            Err(ToolError::bad_input(format!("`{shown}` is a directory: add the name of a file")))
        }
        Ok(_) => Err(ToolError::bad_input(format!("`{shown}` is not a regular file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault::of(&error, &shown)),
    }
}

fn prepare_parents(workspace: &Workspace, place: &Place) -> Result<(), ToolError> {
    let path = workspace.path(place);
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            ToolError::bad_input(format!("a part of `{}` is a file, so nothing can be below it", place.shown()))
        }
        _ => fault::of(&error, &place.shown()),
    })
}
