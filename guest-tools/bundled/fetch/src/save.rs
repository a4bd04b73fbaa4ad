//! Saving a body in the workspace, as it comes: its length is the host's to bound, not this memory's.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use motor_sdk::ToolError;
use motor_sdk::http::{HttpError, Response};

use crate::{answer, body};

/// How a model calls the workspace.
const NAME: &str = "/workspace";
/// The directory of the host, where it puts output that was too long (SPEC RUN-9).
const HOST_DIRECTORY: &str = ".motor-output";
const MAX_PATH_BYTES: usize = 4096;

/// A file in the workspace. The boundary is the host's; this is where a model gets a reason.
#[derive(Debug)]
pub struct Target(String);

impl Target {
    /// The file that a model's path means.
    ///
    /// # Errors
    /// `denied` for a path that leads out, `bad-input` for one that cannot be a file.
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        if text.len() > MAX_PATH_BYTES || text.chars().any(char::is_control) || text.ends_with('/') {
            return Err(ToolError::bad_input("`save_to` must name a file in the workspace"));
        }
        let relative = match text.strip_prefix(NAME) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
            _ if text.starts_with('/') => {
                return Err(ToolError::denied(format!(
                    "`save_to` is outside `{NAME}`: use a path relative to the workspace"
                )));
            }
            _ => text,
        };
        let names: Vec<&str> = relative.split('/').filter(|name| !matches!(*name, "" | ".")).collect();
        match names.first() {
            _ if names.contains(&"..") => {
                Err(ToolError::denied("`save_to` contains `..`: use a path relative to the workspace"))
            }
            None => Err(ToolError::bad_input("`save_to` must name a file in the workspace")),
            Some(&HOST_DIRECTORY) => {
                Err(ToolError::denied(format!("`{HOST_DIRECTORY}` is written by the host only: choose another path")))
            }
            Some(_) => Ok(Self(names.join("/"))),
        }
    }
}

/// Saves the body of a response and describes the response.
///
/// # Errors
/// If the body breaks off or cannot be written; nothing of it is left then.
pub fn save(mut response: Response, workspace: &Path, target: &Target) -> Result<String, ToolError> {
    body::refuse_encoded(&response)?;
    let path = workspace.join(&target.0);
    let cannot = |error: &io::Error| ToolError::failed(format!("cannot write `{}`: {}", target.0, error.kind()));
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| cannot(&error))?;
    }
    // Beside the place and then renamed: a body that breaks off does not take the earlier file away.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let mut file = File::create(&part).map_err(|error| cannot(&error))?;
    let copied = copy(&mut response, &mut file)
        .and_then(|bytes| fs::rename(&part, &path).map_err(Stopped::Write).map(|()| bytes));
    match copied {
        Ok(bytes) => Ok(format!("{}saved {bytes} bytes as `{}`", answer::lines(&response), target.0)),
        Err(stopped) => {
            drop(file);
            // It may be gone already; only the reason counts.
            fs::remove_file(&part).ok();
            Err(match stopped {
                Stopped::Read(error) => error.into(),
                Stopped::Write(error) => cannot(&error),
            })
        }
    }
}

enum Stopped {
    Read(HttpError),
    Write(io::Error),
}

fn copy(response: &mut Response, file: &mut File) -> Result<u64, Stopped> {
    let mut piece = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        let count = io::Read::read(&mut response.body, &mut piece)
            .map_err(|error| Stopped::Read(HttpError::of_read(&error)))?;
        if count == 0 {
            return Ok(total);
        }
        file.write_all(piece.get(..count).unwrap_or_default()).map_err(Stopped::Write)?;
        total += count as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_stay_in_the_workspace() {
        for good in ["a.png", "/workspace/a.png", "./a//b", "x/.motor-output"] {
            assert!(Target::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "/",
            "/workspace",
            "/workspace/",
            "/etc/passwd",
            "/workspacex",
            "..",
            "a/../b",
            "a/",
            "a\0b",
            "a\nb",
            ".motor-output/x",
            "./.motor-output",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}
