//! `list`: the entries of a directory.

use std::{fs, ops::ControlFlow};

use motor_sdk::ToolError;

use crate::{
    limits,
    page::Page,
    walk::{self, Entry, Kind, Reach},
    workspace::{Workspace, printable},
};

motor_sdk::arguments! {
    /// Arguments of `list`.
    pub(crate) struct List {
        path: Option<String>,
        recursive: Option<bool>,
    }
}

/// Lists the entries of a directory.
pub(crate) fn list(workspace: &Workspace, arguments: List) -> Result<String, ToolError> {
    let start = workspace.resolve(arguments.path.as_deref().unwrap_or("."))?;
    let shown = start.shown();
    if fs::symlink_metadata(workspace.path(&start)).is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(ToolError::bad_input(format!("`{shown}` is a file: use `read`")));
    }
    let reach = if arguments.recursive.unwrap_or(false) { Reach::Tree } else { Reach::Directory };
    let mut page = Page::default();
    let (mut listed, mut more) = (0_usize, false);
    let omitted = walk::walk(workspace, &start, reach, &mut |entry| {
        let name = printable(entry.place.below(&start));
        if listed < limits::SHOWN_PATHS && page.push(&line(workspace, entry, &name)) {
            listed += 1;
            return ControlFlow::Continue(());
        }
        more = true;
        ControlFlow::Break(())
    })?;
    let mut notes = omitted.notes();
    if more {
        notes.insert(0, format!("more than {listed} entries: choose a smaller `path`, or use `glob`"));
    }
    if listed == 0 && notes.is_empty() {
        return Ok(format!("[`{shown}` is an empty directory]"));
    }
    Ok(page.finish(&notes))
}

fn line(workspace: &Workspace, entry: &Entry, name: &str) -> String {
    let path = workspace.path(&entry.place);
    match entry.kind {
        Kind::Directory => format!("{name}/"),
        Kind::File => match fs::symlink_metadata(path) {
            Ok(metadata) => format!("{name}  {}", metadata.len()),
            Err(_) => format!("{name}  (unknown size)"),
        },
        // Where a link leads may be a path outside; that it is one is enough.
        Kind::Link => format!("{name}  (symbolic link)"),
        Kind::Other => format!("{name}  (not a regular file)"),
    }
}
