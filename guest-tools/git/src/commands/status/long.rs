//! `git status` as people read it.

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;

use super::super::tracking::{short_name, tracking};
use super::Status;
use crate::describe::Short;
use crate::diff::Change;
use crate::error::Result;
use crate::output::Output;
use crate::quote;
use crate::repository::Repository;
use crate::worktree::Untracked;

/// Prints the long form of a status.
pub(in super::super) fn long(repository: &Repository, status: &Status, out: &mut Output) -> Result<()> {
    where_we_are(repository, status, out)?;
    let initial = status.head.id.is_none();
    let merging = repository.git.join("MERGE_HEAD").exists();
    let conflicts: Vec<&Change> = status.staged.iter().filter(|change| change.conflict.is_some()).collect();
    if merging {
        out.put(if conflicts.is_empty() {
            "All conflicts fixed but you are still merging.\n  (use \"git commit\" to conclude merge)\n\n"
        } else {
            "You have unmerged paths.\n  (fix conflicts and run \"git commit\")\n  (use \"git merge --abort\" to abort the merge)\n\n"
        })?;
    }
    let staged: Vec<&Change> = status.staged.iter().filter(|change| change.conflict.is_none()).collect();
    let unstage = if initial {
        "  (use \"git rm --cached <file>...\" to unstage)\n"
    } else {
        "  (use \"git restore --staged <file>...\" to unstage)\n"
    };
    if !staged.is_empty() {
        let hint = if merging { "" } else { unstage };
        section(repository, &format!("Changes to be committed:\n{hint}"), &staged, out)?;
    }
    if !conflicts.is_empty() {
        let mark = if conflicts.iter().any(|change| matches!(change.conflict, Some(1 | 3 | 5))) {
            "  (use \"git add/rm <file>...\" as appropriate to mark resolution)\n"
        } else {
            "  (use \"git add <file>...\" to mark resolution)\n"
        };
        let hint = if merging { "" } else { unstage };
        section(repository, &format!("Unmerged paths:\n{hint}{mark}"), &conflicts, out)?;
    }
    let unstaged: Vec<&Change> = status.unstaged.iter().filter(|change| change.conflict.is_none()).collect();
    if !unstaged.is_empty() {
        let rm = if unstaged.iter().any(|change| change.new.is_none()) { "/rm" } else { "" };
        let head = format!(
            "Changes not staged for commit:\n  (use \"git add{rm} <file>...\" to update what will be committed)\n  (use \"git \
             restore <file>...\" to discard changes in working directory)\n"
        );
        section(repository, &head, &unstaged, out)?;
    }
    let name = |path: &BStr| quote::name(quote::relative(path, repository.prefix.as_bstr()).as_bstr());
    for (title, verb, list) in
        [("Untracked files", "add", &status.unknown.untracked), ("Ignored files", "add -f", &status.unknown.ignored)]
    {
        if !list.is_empty() {
            out.put(format!("{title}:\n  (use \"git {verb} <file>...\" to include in what will be committed)\n"))?;
            for path in list {
                out.put(format!("\t{}\n", name(path.as_bstr())))?;
            }
            out.put("\n")?;
        }
    }
    let hidden = status.how == Untracked::None;
    if hidden && !staged.is_empty() {
        out.put("Untracked files not listed (use -u option to show untracked files)\n")?;
    }
    if !staged.is_empty() {
        return Ok(());
    }
    out.put(if !unstaged.is_empty() || !conflicts.is_empty() {
        "no changes added to commit (use \"git add\" and/or \"git commit -a\")\n"
    } else if merging {
        ""
    } else if !status.unknown.untracked.is_empty() {
        "nothing added to commit but untracked files present (use \"git add\" to track)\n"
    } else if initial {
        "nothing to commit (create/copy files and use \"git add\" to track)\n"
    } else if hidden {
        "nothing to commit (use -u to show untracked files)\n"
    } else {
        "nothing to commit, working tree clean\n"
    })
}

fn where_we_are(repository: &Repository, status: &Status, out: &mut Output) -> Result<()> {
    match status.head.short() {
        Some(branch) => out.put(format!("On branch {branch}\n"))?,
        None => {
            let place = detached(repository, status.head.id)?;
            out.put(format!("{}\n", place.as_deref().unwrap_or("Not currently on any branch.")))?;
        }
    }
    if let Some(tracking) = tracking(repository, &status.head)?
        && status.head.id.is_some()
    {
        out.put(tracking.sentences())?;
        out.put("\n")?;
    }
    if status.head.id.is_none() {
        out.put("\nNo commits yet\n\n")?;
    }
    Ok(())
}

/// Where a detached `HEAD` was moved to last, as its log has it.
pub(in super::super) fn detached(repository: &Repository, here: Option<ObjectId>) -> Result<Option<String>> {
    let log = repository.refs.log("HEAD".into())?;
    let moved = log.iter().find_map(|entry| {
        let target = entry.message.strip_prefix(b"checkout: moving from ")?.rsplit_once_str(" to ")?.1;
        Some((target.as_bstr().to_owned(), entry.new))
    });
    let Some((target, id)) = moved else { return Ok(None) };
    let name = match repository.refs.expand(target.as_bstr())? {
        Some((full, at)) if at == id || full.starts_with(b"refs/tags/") => short_name(full.as_bstr()).to_string(),
        _ => Short::new(repository).of(&id)?,
    };
    let how = if here == Some(id) { "at" } else { "from" };
    Ok(Some(format!("HEAD detached {how} {name}")))
}

fn section(repository: &Repository, head: &str, changes: &[&Change], out: &mut Output) -> Result<()> {
    out.put(head)?;
    let name = |path: &BStr| quote::name(quote::relative(path, repository.prefix.as_bstr()).as_bstr());
    for change in changes {
        let label = match change.conflict {
            Some(stages) => conflict_label(stages),
            None => match change.letter() {
                'A' => "new file:   ",
                'D' => "deleted:    ",
                'R' => "renamed:    ",
                'T' => "typechange: ",
                _ => "modified:   ",
            },
        };
        out.put(format!("\t{label}"))?;
        if let (Some(old), Some(_)) = (&change.old, change.similarity) {
            out.put(format!("{} -> ", name(old.path.as_bstr())))?;
        }
        out.put(name(change.path()))?;
        if change.old.as_ref().is_some_and(|side| side.mode == crate::index::mode::SUBMODULE) && change.new.is_some() {
            out.put(" (new commits)")?;
        }
        out.put("\n")?;
    }
    out.put("\n")
}

fn conflict_label(stages: u32) -> &'static str {
    match stages {
        1 => "both deleted:    ",
        2 => "added by us:     ",
        3 => "deleted by them: ",
        4 => "added by them:   ",
        5 => "deleted by us:   ",
        6 => "both added:      ",
        _ => "both modified:   ",
    }
}
