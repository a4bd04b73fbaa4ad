//! Landing a part of the changes of a run.

use std::collections::{BTreeSet, HashSet};

use layer::{plain, within};

use crate::edit::{Edit, Side};
use crate::error::{LandError, Result};

/// Keeps the edits at the given paths and below them, and the new directories that they lie in; all if none is given.
/// `at` names the path of an edit as the run saw it.
///
/// # Errors
/// If a path selects nothing.
pub fn select(edits: Vec<Edit>, paths: &[String], at: impl Fn(&Edit) -> String) -> Result<Vec<Edit>> {
    if paths.is_empty() {
        return Ok(edits);
    }
    let named = |path: &String| plain(path).ok_or_else(|| LandError::Unselected(path.clone()));
    let paths = paths.iter().map(named).collect::<Result<Vec<_>>>()?;
    let mut used = BTreeSet::new();
    let chosen: Vec<bool> = edits
        .iter()
        .map(|edit| {
            let named = at(edit);
            let by: Vec<_> = paths.iter().filter(|path| within(&named, path)).collect();
            used.extend(by.iter().map(|path| (*path).clone()));
            !by.is_empty()
        })
        .collect();
    if let Some(unused) = paths.iter().find(|path| !used.contains(*path)) {
        return Err(LandError::Unselected(unused.clone()));
    }
    let mut holding = HashSet::new();
    for (edit, _) in edits.iter().zip(&chosen).filter(|(edit, chosen)| **chosen && edit.after != Side::Missing) {
        let mut path = edit.path.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            holding.insert((edit.target, above));
            path = above;
        }
    }
    let holds = |edit: &Edit| edit.after == Side::Directory && holding.contains(&(edit.target, edit.path.as_str()));
    let kept = edits.iter().zip(&chosen).filter(|(edit, chosen)| **chosen || holds(edit));
    Ok(kept.map(|(edit, _)| edit.clone()).collect())
}
