//! Paths that a model gives, made into places in the workspace.
//!
//! It survives `..`, absolute paths, control characters, and symbolic links that lead out or in circles: each is
//! refused with its reason. A place that comes out contains no links, so all changes to it happen inside.

use std::{
    collections::VecDeque,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use motor_sdk::ToolError;

use crate::{fault, limits};

/// How a model calls the workspace.
const NAME: &str = "/workspace";

/// The directory of the host, where it puts output that was too long (SPEC RUN-9).
pub(crate) const HOST_DIRECTORY: &str = ".motor-output";

/// The workspace of the call.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
}

/// A place in the workspace: relative to it, `/` between names, no `.`, no `..`, no links; empty for the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place(String);

impl Workspace {
    /// The workspace in a directory.
    pub(crate) fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where a place is for the file system.
    pub(crate) fn path(&self, place: &Place) -> PathBuf {
        if place.0.is_empty() { self.root.clone() } else { self.root.join(&place.0) }
    }

    /// The place that a model's path means.
    ///
    /// # Errors
    /// `denied` for a path that leads out, `bad-input` for one that cannot be a path.
    pub(crate) fn resolve(&self, text: &str) -> Result<Place, ToolError> {
        let mut pending: VecDeque<String> = names(text)?.map(str::to_owned).collect();
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                // Only the target of a link still has these.
                done.pop().ok_or_else(|| leads_out(text))?;
                continue;
            }
            let path = self.root.join(done.join("/")).join(&name);
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_symlink() => {
                    links += 1;
                    if links > limits::LINKS {
                        return Err(ToolError::bad_input(format!(
                            "`{text}` passes through more than {} symbolic links",
                            limits::LINKS
                        )));
                    }
                    for part in target(&path, text)?.rsplit('/').filter(|part| !matches!(*part, "" | ".")) {
                        pending.push_front(part.to_owned());
                    }
                }
                Ok(_) => done.push(name),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => done.push(name),
                Err(error) => return Err(fault::of(&error, text)),
            }
        }
        Ok(Place(done.join("/")))
    }

    /// The place that a model's path means, for a change to it.
    ///
    /// # Errors
    /// As [`Workspace::resolve`]; also `denied` in the host's own directory, and `bad-input` for the workspace itself.
    pub(crate) fn resolve_to_change(&self, text: &str) -> Result<Place, ToolError> {
        let place = self.resolve(text)?;
        if place.0.is_empty() {
            return Err(ToolError::bad_input("`path` must name a file in the workspace"));
        }
        if place.is_the_hosts() {
            return Err(ToolError::denied(format!(
                "`{HOST_DIRECTORY}` is written by the host only: choose another path"
            )));
        }
        if text.ends_with('/') {
            return Err(ToolError::bad_input(format!("`{text}` ends in `/`, but `path` must name a file")));
        }
        Ok(place)
    }
}

impl Place {
    /// The place of an entry in this directory.
    pub(crate) fn join(&self, name: &str) -> Self {
        if self.0.is_empty() { Self(name.to_owned()) } else { Self(format!("{}/{name}", self.0)) }
    }

    /// As a model sees it.
    pub(crate) fn shown(&self) -> String {
        if self.0.is_empty() { ".".to_owned() } else { printable(&self.0) }
    }

    /// The part after the last `/`.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The path from a directory to this place in it.
    pub(crate) fn below(&self, directory: &Self) -> &str {
        self.0.strip_prefix(&directory.0).map_or(&self.0, |rest| rest.trim_start_matches('/'))
    }

    /// Whether it is the workspace itself.
    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is the host's own directory or in it.
    pub(crate) fn is_the_hosts(&self) -> bool {
        self.0.split('/').next() == Some(HOST_DIRECTORY)
    }
}

/// The names in a model's path, checked.
fn names(text: &str) -> Result<impl Iterator<Item = &str>, ToolError> {
    if text.is_empty() {
        return Err(ToolError::bad_input("`path` is empty: name a file, or `.` for the workspace"));
    }
    if text.len() > limits::PATH_BYTES {
        return Err(ToolError::bad_input(format!("`path` is longer than {} bytes", limits::PATH_BYTES)));
    }
    if text.chars().any(char::is_control) {
        return Err(ToolError::bad_input("`path` contains a control character, such as NUL or a newline"));
    }
    let relative = match text.strip_prefix(NAME) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ if text.starts_with('/') => {
            return Err(ToolError::denied(format!(
                "`{text}` is outside `{NAME}`: use a path relative to the workspace"
            )));
        }
        _ => text,
    };
    let names = relative.split('/').filter(|name| !matches!(*name, "" | "."));
    if names.clone().any(|name| name == "..") {
        return Err(ToolError::denied(format!("`{text}` contains `..`: use a path relative to the workspace")));
    }
    Ok(names)
}

/// The path a link points to.
fn target(link: &Path, text: &str) -> Result<String, ToolError> {
    let target = match fs::read_link(link) {
        Ok(target) => target,
        // So a sandbox answers for a link that is absolute.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(leads_out(text)),
        Err(error) => return Err(fault::of(&error, text)),
    };
    if target.has_root() {
        return Err(leads_out(text));
    }
    target
        .into_os_string()
        .into_string()
        .map_err(|_| ToolError::bad_input(format!("`{text}` is a symbolic link to a name that is not UTF-8")))
}

fn leads_out(text: &str) -> ToolError {
    ToolError::denied(format!("`{text}` is a symbolic link that leads out of `{NAME}`"))
}

/// A name in one line of output: control characters would forge other lines.
pub(crate) fn printable(name: &str) -> String {
    if name.chars().any(char::is_control) { name.escape_debug().to_string() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("secret"), "s").unwrap();
        let root = outer.path().join("inner");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "f").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink("/etc", root.join("absolute")).unwrap();
        symlink("a/../../secret", root.join("winding")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink("pong", root.join("ping")).unwrap();
        symlink("ping", root.join("pong")).unwrap();
        symlink("../a/./b/..", root.join("a/here")).unwrap();
        symlink("nowhere/new", root.join("dangling")).unwrap();
        (outer, Workspace::at(root))
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let (_outer, workspace) = workspace();
        let shown = match workspace.resolve(text) {
            Ok(place) => place.shown(),
            Err(ToolError::Denied(reason)) => format!("denied: {reason}"),
            Err(ToolError::BadInput(reason)) => format!("bad input: {reason}"),
            Err(other) => panic!("wrong kind of error: {other:?}"),
        };
        assert_eq!(shown, expected, "{text:?}");
    }

    #[test]
    fn takes_paths_in_the_workspace() {
        check("a/file", "a/file");
        check("/workspace/a/file", "a/file");
        check("./a//b/./", "a/b");
        check("/workspace", ".");
        check("/workspace/", ".");
        check(".", ".");
        check("...", "...");
        check("new/dir/ü", "new/dir/ü");
        check("a/file/below", "a/file/below");
    }

    #[test]
    fn refuses_paths_that_lead_out() {
        check("/etc/passwd", "denied: `/etc/passwd` is outside `/workspace`: use a path relative to the workspace");
        check(
            "/workspace-evil",
            "denied: `/workspace-evil` is outside `/workspace`: use a path relative to the workspace",
        );
        check("/", "denied: `/` is outside `/workspace`: use a path relative to the workspace");
        for path in ["..", "../secret", "a/../../secret", "/workspace/../secret", "a/.."] {
            check(path, &format!("denied: `{path}` contains `..`: use a path relative to the workspace"));
        }
    }

    #[test]
    fn refuses_links_that_lead_out_and_follows_those_that_stay() {
        for path in ["out", "absolute", "absolute/passwd", "winding"] {
            check(path, &format!("denied: `{path}` is a symbolic link that leads out of `/workspace`"));
        }
        check("a/here/file", "a/file");
        check("dangling", "nowhere/new");
    }

    #[test]
    fn circles_end() {
        for path in ["circle", "ping", "ping/x"] {
            check(path, &format!("bad input: `{path}` passes through more than 40 symbolic links"));
        }
    }

    #[test]
    fn refuses_what_is_no_path() {
        check("", "bad input: `path` is empty: name a file, or `.` for the workspace");
        check("a\0b", "bad input: `path` contains a control character, such as NUL or a newline");
        check("a\nb", "bad input: `path` contains a control character, such as NUL or a newline");
        check(&"x/".repeat(3_000), "bad input: `path` is longer than 4096 bytes");
    }

    #[test]
    fn the_hosts_directory_is_readable_but_not_writable() {
        let (_outer, workspace) = workspace();
        assert!(workspace.resolve(".motor-output/1.txt").is_ok());
        for path in [".motor-output/1.txt", ".motor-output", "./.motor-output/x", "/workspace/.motor-output/x"] {
            let refused = workspace.resolve_to_change(path);
            assert!(matches!(refused, Err(ToolError::Denied(_))), "{path}: {refused:?}");
        }
        symlink(".motor-output", workspace.root.join("alias")).unwrap();
        let refused = workspace.resolve_to_change("alias/x");
        assert!(matches!(refused, Err(ToolError::Denied(_))), "{refused:?}");
        assert!(workspace.resolve_to_change("motor-output/x").is_ok());
        assert!(workspace.resolve_to_change("a/.motor-output").is_ok());
    }
}
