//! The same ways out, asked of the host directly: the C library refuses a path outside before the host sees it, so
//! only this shows that the host refuses it as well.

use wasip2::filesystem::{
    preopens::get_directories,
    types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags},
};

/// Makes a symbolic link in the workspace with any target.
pub(crate) fn symlink(target: &str, name: &str) -> Result<(), ErrorCode> {
    workspace()?.0.symlink_at(target, name)
}

/// The attempts, and the host's answer to each.
pub(crate) fn attempts() -> Vec<(String, Result<(), ErrorCode>)> {
    let (workspace, others) = match workspace() {
        Ok(opened) => opened,
        Err(error) => return vec![("the workspace itself".to_owned(), Err(error))],
    };
    let mut tried: Vec<(String, Result<(), ErrorCode>)> =
        others.into_iter().map(|name| (format!("the directory {name:?} that was opened"), Ok(()))).collect();
    let read = DescriptorFlags::READ;
    let write = DescriptorFlags::READ | DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY;
    for path in ["..", "../", "/", "/etc/passwd", "../etc/passwd", "a/../..", "./../../etc", "", "\0", ".\0/../.."] {
        for (how, follow) in [("", PathFlags::empty()), (", links followed", PathFlags::SYMLINK_FOLLOW)] {
            let opened = workspace.open_at(follow, path, OpenFlags::empty(), read);
            tried.push((format!("raw open of {path:?}{how}"), opened.map(drop)));
            tried.push((format!("raw stat of {path:?}{how}"), workspace.stat_at(follow, path).map(drop)));
        }
        tried.push((format!("raw directory {path:?}"), workspace.create_directory_at(&format!("{path}/escaped"))));
        tried.push((format!("raw readlink of {path:?}"), workspace.readlink_at(path).map(drop)));
    }
    for path in ["../escaped", "/tmp/escaped", "a/../../escaped"] {
        let created = workspace.open_at(PathFlags::empty(), path, OpenFlags::CREATE, write);
        tried.push((format!("raw creation of {path:?}"), created.map(drop)));
        let own = "raw-own";
        let made = workspace.open_at(PathFlags::empty(), own, OpenFlags::CREATE, write).map(drop);
        tried.push((format!("raw rename to {path:?}"), made.and_then(|()| workspace.rename_at(own, &workspace, path))));
        tried.push((format!("raw link to {path:?}"), workspace.link_at(PathFlags::empty(), own, &workspace, path)));
        tried.push((format!("raw unlinking of {path:?}"), workspace.unlink_file_at(path)));
    }
    // From a directory below, the way up is a way out twice over.
    let inner = workspace
        .create_directory_at("raw-inner")
        .and_then(|()| workspace.open_at(PathFlags::empty(), "raw-inner", OpenFlags::DIRECTORY, read));
    if let Ok(inner) = inner {
        let up = inner.open_at(PathFlags::SYMLINK_FOLLOW, "../..", OpenFlags::DIRECTORY, read);
        tried.push(("raw way up from a directory".to_owned(), up.map(drop)));
    }
    tried
}

/// The workspace, and the names of all other directories that were opened for this component.
fn workspace() -> Result<(Descriptor, Vec<String>), ErrorCode> {
    let mut found = None;
    let mut others = Vec::new();
    for (descriptor, name) in get_directories() {
        if name == "/workspace" && found.is_none() {
            found = Some(descriptor);
        } else {
            others.push(name);
        }
    }
    Ok((found.ok_or(ErrorCode::NoEntry)?, others))
}
