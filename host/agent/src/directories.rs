//! The directories of the owner that runs work on (SPEC LAND-1): found when the run is planned, opened as a layer.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use base::text::Foreign;
use base::{Refusal, RefusalCode};
use grants::{DirectoryGrant, Grant};
use layer::{Layer, LayerError, SourceRequest};
use toolbox::catalogue;

use crate::api::changes::LandingSummary;
use crate::api::commits::CommitState;
use crate::api::{ActRequest, Caller, DirectoryInput};
use crate::{Home, landing};

/// The tools of a run that works on a directory and was granted none by name.
pub(crate) fn default_tools() -> [String; 2] {
    [catalogue::BASH, catalogue::FILESYSTEM].map(str::to_owned)
}

/// Finds the directories of a request. A link that the caller names is followed once, here.
///
/// # Errors
/// If one is not a directory, holds the home or lies in it, or a model asks.
pub(crate) fn resolve(request: &ActRequest, home: &Home, by: Caller) -> Result<Vec<DirectoryGrant>, Refusal> {
    let inputs = &request.directories;
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    if by == Caller::Model {
        let reason = "a model cannot choose a directory of this machine for a run";
        return Err(
            Refusal::new(RefusalCode::Forbidden, reason).with_remedy("the owner starts it: `motor act --on DIR`")
        );
    }
    let home = fs::canonicalize(home.path()).unwrap_or_else(|_| home.path().to_owned());
    let found = inputs.iter().map(|input| find(input, &home)).collect::<Result<_, _>>()?;
    grants::directories(found, request.files.is_empty() && request.skill.is_none())
}

fn find(input: &DirectoryInput, home: &Path) -> Result<DirectoryGrant, Refusal> {
    let named = shown(&input.path);
    let wrong = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
    let path = fs::canonicalize(&input.path).map_err(|error| wrong(format!("cannot work on {named}: {error}")))?;
    if !path.is_dir() {
        let remedy = "`--file PATH` copies a single file into the workspace";
        return Err(wrong(format!("{named} is not a directory")).with_remedy(remedy));
    }
    if path.starts_with(home) || home.starts_with(&path) {
        let reason = format!("{named} and the home of the host, {}, lie in one another", shown(home));
        return Err(wrong(reason).with_remedy("name a directory that does not hold the home"));
    }
    Ok(DirectoryGrant { path, prefix: String::new(), read_only: input.read_only, shown: input.shown.clone() })
}

/// Makes the layer of a run whose workspace exists. Nothing of the directories is read.
///
/// # Errors
/// If a directory cannot be opened, or the layer cannot be written.
pub(crate) fn create(workspace: &Path, directories: &[DirectoryGrant]) -> Result<(), Refusal> {
    let Some(run) = workspace.parent().filter(|_| !directories.is_empty()) else { return Ok(()) };
    // The run begins when its workspace was made, by the clock that stamps files.
    let made = fs::metadata(workspace).map_err(|error| storage(&error))?;
    let seconds = Duration::from_secs(u64::try_from(made.ctime()).unwrap_or_default());
    let nanos = Duration::from_nanos(u64::try_from(made.ctime_nsec()).unwrap_or_default());
    let sources = directories.iter().map(request).collect();
    Layer::create(run, sources, UNIX_EPOCH + seconds + nanos).map_err(|error| refused(&error))?;
    Ok(())
}

/// Opens the layer of a run again, and tells of its landings; no layer if it works on no directory.
///
/// # Errors
/// If a directory is gone or is another one now, or the layer cannot be read.
pub(crate) fn open(run: &Path, grant: &Grant) -> Result<(Option<Arc<Layer>>, Vec<String>), Refusal> {
    if grant.directories.is_empty() {
        return Ok((None, Vec::new()));
    }
    let layer = landing::settled(run)?;
    Ok((Some(layer), landing::summaries(run)?.iter().filter_map(told).collect()))
}

/// The sentence for the model about a landing, so that it does not take its own files for the user's.
fn told(landing: &LandingSummary) -> Option<String> {
    let LandingSummary { landing, state, paths, undoes, commit, .. } = landing;
    if let (Some(commit), None) = (commit.as_ref().filter(|commit| commit.is_new_branch), undoes) {
        let branch = base::text::Foreign(&commit.branch).escaped(200);
        let without = "the directory is without them, and `/workspace` still shows your version";
        return match (state.as_str(), commit.state) {
            ("landed", CommitState::Made) => {
                Some(format!("the user put your changes of {paths} paths on the git branch `{branch}`: {without}"))
            }
            ("undone", _) => {
                Some(format!("the user put your changes of {paths} paths on a git branch, and deleted it: {without}"))
            }
            _ => None,
        };
    }
    match (state.as_str(), undoes) {
        ("landed", None) => {
            Some(format!("the user applied your changes of {paths} paths to the directory (landing {landing})"))
        }
        ("undone", None) => Some(format!(
            "the user applied your changes of {paths} paths (landing {landing}) and took them back: the directory is without \
             them, and `/workspace` still shows your version"
        )),
        ("landed", Some(undone)) => Some(format!("the user took back landing {undone}")),
        _ => None,
    }
}

fn request(directory: &DirectoryGrant) -> SourceRequest {
    let DirectoryGrant { path, prefix, read_only, shown } = directory;
    SourceRequest { prefix: prefix.clone(), directory: path.clone(), writable: !read_only, shown: shown.clone() }
}

fn refused(error: &LayerError) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, format!("cannot work on the directory: {error}"))
}

fn storage(error: &std::io::Error) -> Refusal {
    Refusal::new(RefusalCode::StorageFailed, format!("cannot make the run's layer: {error}"))
}

fn shown(path: &Path) -> String {
    format!("`{}`", Foreign(&path.to_string_lossy()).escaped(200))
}
