//! Writing the objects of a commit. Until a reference is moved to it, nothing refers to them.

use gix::ObjectId;
use gix::bstr::BStr;
use gix::date::Time;
use gix::index::entry::Mode;
use gix::objs::tree::EntryKind;

use crate::draft::{Content, Draft, Drafted, read};
use crate::error::{CommitError, Result};
use crate::intent::{Identity, Intent, id};
use crate::open::Repository;

impl Repository {
    /// Writes the objects of a draft, durably. `seconds` is the time since 1970.
    ///
    /// # Errors
    /// If a file is another one than in the draft, the tree is that of the parent, or they cannot be written. Objects that
    /// were written by then stay, and git removes them some day.
    pub fn write(&self, draft: Draft, message: &str, seconds: i64) -> Result<Intent> {
        for change in &draft.changes {
            self.write_blob(change)?;
        }
        let tree = self.write_tree(&draft)?;
        let (name, email) = draft.who;
        let who = Identity { name, email, seconds };
        let parents = draft.parent.into_iter().collect();
        let commit = gix::objs::Commit {
            tree,
            parents,
            author: who.signature(),
            committer: who.signature(),
            encoding: None,
            message: message.into(),
            extra_headers: Vec::new(),
        };
        let failed = CommitError::failed("the commit cannot be written");
        let commit = self.repo.write_object(&commit).map_err(failed)?.detach().to_hex().to_string();
        self.sync()?;
        let subject = message.lines().next().unwrap_or_default();
        let kind = if draft.parent.is_none() { "commit (initial)" } else { "commit" };
        Ok(Intent {
            directory: self.directory.clone(),
            git_dir: self.repo.git_dir().to_owned(),
            reference: draft.reference,
            is_head: draft.is_head,
            old: if draft.is_head { draft.parent.map(|id| id.to_hex().to_string()) } else { None },
            new: Some(commit.clone()),
            commit,
            log: format!("{kind}: {}", base::text::Foreign(subject).line(200)),
            who,
            entries: draft.changes.into_iter().map(|change| change.entry).collect(),
        })
    }

    fn write_blob(&self, change: &Drafted) -> Result<()> {
        let Some(to) = &change.entry.to else { return Ok(()) };
        let path = &change.entry.path;
        let bytes = match &change.after {
            Content::Missing => return Ok(()),
            Content::Symlink(target) => target.clone().into_bytes(),
            Content::File { content, hash, .. } => {
                let bytes = read(content, path)?;
                if hash.is_some_and(|hash| hash != base::ContentHash::of(&bytes)) {
                    return Err(CommitError::Changed(path.clone()));
                }
                bytes
            }
        };
        let failed = CommitError::failed("an object cannot be written");
        let written = self.repo.write_blob(&bytes).map_err(failed)?.detach();
        if written == id(&to.id)? { Ok(()) } else { Err(CommitError::Changed(path.clone())) }
    }

    fn write_tree(&self, draft: &Draft) -> Result<ObjectId> {
        let failed = || CommitError::failed::<gix::Error>("the tree cannot be written");
        let parent = match draft.parent {
            Some(parent) => self.repo.find_commit(parent).and_then(|commit| commit.tree()),
            None => Ok(self.repo.empty_tree()),
        };
        let parent = parent.map_err(failed())?;
        let mut editor = parent.edit().map_err(failed())?;
        // Removals first: a path can have become the directory of another.
        for change in draft.changes.iter().filter(|change| change.entry.to.is_none()) {
            editor.remove(BStr::new(&change.entry.path)).map_err(failed())?;
        }
        for change in &draft.changes {
            if let Some(to) = &change.entry.to {
                let kind = match to.mode()? {
                    Mode::FILE_EXECUTABLE => EntryKind::BlobExecutable,
                    Mode::SYMLINK => EntryKind::Link,
                    _ => EntryKind::Blob,
                };
                // Refuses `.git` and the names that file systems take for it.
                let refused = |_| CommitError::Path(change.entry.path.clone());
                editor.upsert(BStr::new(&change.entry.path), kind, id(&to.id)?).map_err(refused)?;
            }
        }
        let tree = editor.write().map_err(failed())?.detach();
        match draft.parent {
            Some(_) if tree == parent.id => Err(CommitError::Empty),
            _ => Ok(tree),
        }
    }

    /// Makes everything that was written to the repository durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let failed = || CommitError::failed::<std::io::Error>("the repository cannot be made durable");
        let directory = std::fs::File::open(self.repo.common_dir()).map_err(failed())?;
        rustix::fs::syncfs(&directory).map_err(|error| failed()(error.into()))?;
        if self.repo.git_dir() != self.repo.common_dir() {
            let directory = std::fs::File::open(self.repo.git_dir()).map_err(failed())?;
            rustix::fs::syncfs(&directory).map_err(|error| failed()(error.into()))?;
        }
        Ok(())
    }
}

impl Identity {
    pub(crate) fn signature(&self) -> gix::actor::Signature {
        let time = Time::new(self.seconds, 0);
        gix::actor::Signature { name: self.name.as_str().into(), email: self.email.as_str().into(), time }
    }
}
