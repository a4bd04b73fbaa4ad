//! A run's workspace: made before the run is accepted, filled with the owner's input files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use base::{ContentHash, ContentHasher, Refusal, RefusalCode};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use runtime::Limits;
use skills::Snapshot;
use store::{Links, open_regular};

use crate::api::FileInput;
use crate::artifacts::WorkspaceBaseline;

/// Makes `directory`, unpacks the skill's files into it and copies `files` next to them. Their hashes are written next
/// to the directory, out of reach of guests, and returned.
///
/// # Errors
/// If a file is missing, not a regular file, too large, or would land outside; nothing is left behind then.
pub(crate) fn prepare(
    directory: &Path,
    skill: Option<&Snapshot>,
    files: &[FileInput],
    limits: &Limits,
) -> Result<Vec<ContentHash>, Refusal> {
    let storage = |error: io::Error| {
        Refusal::new(RefusalCode::StorageFailed, format!("cannot make the run's workspace: {error}"))
    };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(storage)?;
    let filled = fill(directory, skill, files, limits).and_then(|given| {
        let hashes = given.values().copied().collect();
        if let Some(run) = directory.parent().filter(|_| !given.is_empty()) {
            WorkspaceBaseline::of(given).write(run)?;
        }
        Ok(hashes)
    });
    if filled.is_err() {
        discard(directory);
    }
    filled
}

/// Removes the directory of a run that was not accepted.
pub(crate) fn discard(workspace: &Path) {
    if let Some(run) = workspace.parent()
        && let Err(error) = fs::remove_dir_all(run)
    {
        tracing::warn!(%error, "cannot remove the directory of a run that was not accepted");
    }
}

/// Copies the files, and returns the hash of each.
fn fill(
    directory: &Path,
    skill: Option<&Snapshot>,
    files: &[FileInput],
    limits: &Limits,
) -> Result<BTreeMap<String, ContentHash>, Refusal> {
    let mut given = BTreeMap::new();
    if files.is_empty() && skill.is_none() {
        return Ok(given);
    }
    let (most_bytes, most_files) = (limits.workspace_bytes, limits.workspace_files);
    if files.len() as u64 > most_files {
        let reason =
            format!("{} files are more than the workspace may have: `workspace_files` is {most_files}", files.len());
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
    }
    let io = |what: &Path, error: io::Error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => RefusalCode::NotFound,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => RefusalCode::StorageFailed,
            _ => RefusalCode::InvalidRequest,
        };
        Refusal::new(code, format!("cannot take the file `{}`: {error}", what.display()))
    };
    let workspace = Dir::open_ambient_dir(directory, ambient_authority()).map_err(|error| io(directory, error))?;
    let mut left = most_bytes;
    if let Some(skill) = skill {
        left = unpack(&workspace, skill, left, &mut given)?;
    }
    for file in files {
        let name = destination(file)?;
        let mut source = open_regular(&file.path, Links::Followed).map_err(|error| io(&file.path, error))?;
        if let Some(parent) = name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            workspace.create_dir_all(parent).map_err(|error| io(&file.path, error))?;
        }
        // Two files of one name are the caller's mistake, and a silent choice would lose one.
        let options = cap_std::fs::OpenOptions::new().write(true).create_new(true).clone();
        let target = workspace.open_with(&name, &options).map_err(|error| {
            let taken = error.kind() == io::ErrorKind::AlreadyExists;
            let refusal = io(&file.path, error);
            if taken { refusal.with_remedy("give one of them another name: `--file NAME=PATH`") } else { refusal }
        })?;
        let mut target = HashedFile { to: target, hasher: ContentHasher::default() };
        // A file's stated size may be wrong: the copied bytes count.
        let copied = io::copy(&mut (&mut source).take(left.saturating_add(1)), &mut target);
        left = left.checked_sub(copied.map_err(|error| io(&file.path, error))?).ok_or_else(|| {
            let reason = format!("the files are larger than the workspace may be: `workspace_bytes` is {most_bytes}");
            Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("raise `limits.workspace_bytes`")
        })?;
        // As a walk of the workspace names it.
        let parts: Vec<_> = name.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        given.insert(parts.join("/"), target.hasher.finish());
    }
    Ok(given)
}

/// Writes the files of a skill from the verified bytes: its directory is not read again.
fn unpack(
    workspace: &Dir,
    skill: &Snapshot,
    room: u64,
    given: &mut BTreeMap<String, ContentHash>,
) -> Result<u64, Refusal> {
    let failed = |path: &str, error: io::Error| {
        Refusal::new(
            RefusalCode::StorageFailed,
            format!("cannot write `{path}` of the skill to the workspace: {error}"),
        )
    };
    let mut left = room;
    for (path, file) in &skill.files {
        left = left.checked_sub(file.bytes.len() as u64).ok_or_else(|| {
            Refusal::new(RefusalCode::InvalidRequest, "the skill is larger than the workspace may be")
                .with_remedy("raise `limits.workspace_bytes`")
        })?;
        if let Some(parent) = Path::new(path).parent().filter(|parent| !parent.as_os_str().is_empty()) {
            workspace.create_dir_all(parent).map_err(|error| failed(path, error))?;
        }
        let options = cap_std::fs::OpenOptions::new().write(true).create_new(true).clone();
        let mut target = workspace.open_with(path, &options).map_err(|error| failed(path, error))?;
        target.write_all(&file.bytes).map_err(|error| failed(path, error))?;
        given.insert(path.clone(), file.hash);
    }
    Ok(left)
}

/// Hashes all written bytes.
struct HashedFile<W> {
    to: W,
    hasher: ContentHasher,
}

impl<W: Write> Write for HashedFile<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The name of a file in the workspace, for people.
pub(crate) fn name_of(file: &FileInput) -> String {
    let path =
        file.name.as_ref().map_or_else(|| file.path.file_name().map(PathBuf::from).unwrap_or_default(), PathBuf::from);
    path.to_string_lossy().into_owned()
}

fn destination(file: &FileInput) -> Result<PathBuf, Refusal> {
    let name = match &file.name {
        Some(name) => PathBuf::from(name),
        None => file.path.file_name().map(PathBuf::from).unwrap_or_default(),
    };
    let plain = name.components().all(|part| matches!(part, Component::Normal(_)));
    if name.as_os_str().is_empty() || !plain || name.to_str().is_none() {
        let reason = format!("`{}` is not a path in the workspace", name.display());
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("use a relative path without `..`"));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(workspace_bytes: u64) -> Limits {
        Limits { workspace_bytes, ..Limits::default() }
    }

    #[test]
    fn files_land_where_they_were_named() {
        let source = tempfile::tempdir().unwrap();
        fs::write(source.path().join("a.csv"), "1,2").unwrap();
        let run = tempfile::tempdir().unwrap();
        let workspace = run.path().join("run/workspace");
        let path = source.path().join("a.csv");
        let files = [
            FileInput { path: path.clone(), name: None },
            FileInput { path: path.clone(), name: Some("in/b.csv".into()) },
        ];
        prepare(&workspace, None, &files, &limits(100)).unwrap();
        let baseline = WorkspaceBaseline::read(workspace.parent().unwrap());
        for path in ["a.csv", "in/b.csv"] {
            assert!(
                baseline.has(path, ContentHash::of(b"1,2")) && !baseline.has(path, ContentHash::of(b"1,3")),
                "{path}"
            );
        }
        assert_eq!(fs::read_to_string(workspace.join("a.csv")).unwrap(), "1,2");
        assert_eq!(fs::read_to_string(workspace.join("in/b.csv")).unwrap(), "1,2");
    }

    #[test]
    fn what_is_refused_leaves_nothing() {
        let source = tempfile::tempdir().unwrap();
        let path = source.path().join("a.csv");
        fs::write(&path, "1,2").unwrap();
        let run = tempfile::tempdir().unwrap();
        let workspace = run.path().join("run/workspace");
        for (path, name, most) in [
            (path.clone(), Some("../out"), 100),
            (path.clone(), Some("/out"), 100),
            (path.clone(), Some(""), 100),
            (path.clone(), None, 2),
            (source.path().join("missing"), None, 100),
            (source.path().to_owned(), Some("dir"), 100),
        ] {
            let file = FileInput { path, name: name.map(str::to_owned) };
            assert!(prepare(&workspace, None, &[file], &limits(most)).is_err(), "{name:?}");
            assert!(!workspace.exists());
        }
    }

    #[test]
    fn two_files_of_one_name_and_files_that_lie_about_their_size_are_refused() {
        let source = tempfile::tempdir().unwrap();
        let path = source.path().join("a.csv");
        fs::write(&path, "1,2").unwrap();
        let run = tempfile::tempdir().unwrap();
        let workspace = run.path().join("run/workspace");
        let twice = [FileInput { path: path.clone(), name: None }, FileInput { path, name: None }];
        assert!(prepare(&workspace, None, &twice, &limits(100)).unwrap_err().remedy.unwrap().contains("NAME=PATH"));
        let environment = FileInput { path: "/proc/self/status".into(), name: None };
        assert_eq!(fs::metadata(&environment.path).unwrap().len(), 0);
        assert!(prepare(&workspace, None, &[environment], &limits(10)).is_err());
        assert!(!workspace.exists());
    }
}
