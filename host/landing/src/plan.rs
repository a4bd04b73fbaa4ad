//! The effects of a landing, compared with the directories as they are now.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::ContentHash;
use layer::{FileKind, Stat, Tree, stat_of};
use receipts::tree::sum;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::edit::{Edit, Side, Target};
use crate::error::{LandError, Result};
use crate::{executed, merge, refused};

/// The edits of a landing, in their order: deletions, directories, files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The directories that it works on.
    pub targets: Vec<Target>,
    /// The change of each path.
    pub entries: Vec<Planned>,
}

/// The change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Planned {
    /// The edit of the path.
    #[serde(flatten)]
    pub edit: Edit,
    /// Whether it can be done.
    pub verdict: Verdict,
    /// The program that runs the file later, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_later: Option<String>,
    /// The hash of a file's new content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<ContentHash>,
    /// The entry that has to be there when it is done.
    pub(crate) expected: Expected,
}

/// Whether an edit can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "verdict")]
pub enum Verdict {
    /// The path is as the run saw it.
    Clean,
    /// The owner changed other lines of the file: both changes are kept.
    Merged {
        /// Absolute path of the merged text.
        content: PathBuf,
    },
    /// It is already as it is to be.
    Same,
    /// It conflicts with the entry that is there now.
    Conflict {
        /// The reason, in words for the owner.
        reason: String,
    },
    /// It is never done.
    Refused {
        /// The reason, in words for the owner.
        reason: String,
    },
}

/// The entry that has to be at a path when it is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "expected")]
pub(crate) enum Expected {
    Nothing,
    /// A file of this content.
    Content {
        hash: ContentHash,
        mode: u32,
    },
    /// This very file or link, not written to since.
    Entry {
        inode: u64,
        size: u64,
        modified: u64,
        changed: u64,
    },
    Directory {
        mode: u32,
    },
}

impl Expected {
    pub fn entry(stat: &Stat) -> Self {
        let (modified, changed) = (nanos(stat.modified), nanos(stat.changed));
        Self::Entry { inode: stat.inode, size: stat.size, modified, changed }
    }
}

pub(crate) fn nanos(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_nanos()).unwrap_or(u64::MAX)
}

impl Plan {
    /// The entries that a landing does.
    pub fn done(&self) -> impl Iterator<Item = (usize, &Planned)> {
        self.entries.iter().enumerate().filter(|(_, entry)| entry.is_done())
    }

    /// The entries that conflict.
    pub fn conflicts(&self) -> impl Iterator<Item = &Planned> {
        self.entries.iter().filter(|entry| matches!(entry.verdict, Verdict::Conflict { .. }))
    }
}

impl Planned {
    /// The path as the run saw it.
    #[must_use]
    pub fn at(&self, plan: &Plan) -> String {
        let prefix = plan.targets.get(self.edit.target).map_or("", |target| target.prefix.as_str());
        if prefix.is_empty() { self.edit.path.clone() } else { format!("{prefix}/{}", self.edit.path) }
    }

    /// Whether a landing does it.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.verdict, Verdict::Clean | Verdict::Merged { .. })
    }

    /// Whether something is gone afterwards.
    #[must_use]
    pub fn deletes(&self) -> bool {
        self.edit.after == Side::Missing
    }

    /// Absolute path of the new content of a file.
    pub(crate) fn content(&self) -> Option<&Path> {
        match (&self.verdict, &self.edit.after) {
            (Verdict::Merged { content }, _) => Some(content),
            (_, Side::File { content }) => content.as_deref(),
            _ => None,
        }
    }
}

/// The inputs of a plan.
#[derive(Debug, Clone, Copy)]
pub struct Planning<'a> {
    /// The directories that it works on.
    pub targets: &'a [Target],
    /// A file without a copy is unchanged if it was last changed before this time.
    pub began: SystemTime,
    /// A directory for merged texts.
    pub merged: &'a Path,
}

/// Compares edits with the directories as they are now.
///
/// # Errors
/// If a directory is another one now, or something cannot be read.
pub fn plan(planning: Planning<'_>, edits: Vec<Edit>) -> Result<Plan> {
    let trees = planning.targets.iter().map(Target::open).collect::<Result<Vec<_>>>()?;
    let mut known = Known::default();
    let mut entries = Vec::with_capacity(edits.len());
    for (index, edit) in ordered(edits).into_iter().enumerate() {
        let tree = trees.get(edit.target).ok_or(LandError::Damaged("edits"))?;
        let compare = Compare { planning, tree, edit: &edit, index };
        let (verdict, expected) = compare.verdict(&known)?;
        let executed_later = executed_later(tree, &edit);
        if verdict == Verdict::Clean {
            match edit.after {
                Side::Missing => known.cleared.insert((edit.target, edit.path.clone())),
                Side::Directory => known.made.insert((edit.target, edit.path.clone())),
                _ => false,
            };
        }
        let mut entry = Planned { edit, verdict, executed_later, new: None, expected };
        entry.new = entry.content().filter(|_| entry.is_done()).map(hash_of).transpose()?;
        entries.push(entry);
    }
    Ok(Plan { targets: planning.targets.to_vec(), entries })
}

/// Deletions, the deepest first; then directories, the highest first; then files. A path that changes its kind is deleted and
/// made.
fn ordered(edits: Vec<Edit>) -> Vec<Edit> {
    let (mut deleted, mut made) = (Vec::new(), Vec::new());
    for edit in edits {
        let Edit { target, path, before, after } = edit;
        let split = !matches!(
            (&before, &after),
            (Side::File { .. }, Side::File { .. }) | (Side::Missing, _) | (_, Side::Missing)
        );
        match (split, &after) {
            (true, _) => {
                deleted.push(Edit { target, path: path.clone(), before, after: Side::Missing });
                made.push(Edit { target, path, before: Side::Missing, after });
            }
            (false, Side::Missing) => deleted.push(Edit { target, path, before, after }),
            (false, _) => made.push(Edit { target, path, before, after }),
        }
    }
    deleted.sort_by(|one, other| (one.target, &other.path).cmp(&(other.target, &one.path)));
    made.sort_by(|one, other| {
        let key = |edit: &Edit| (edit.after != Side::Directory, edit.target);
        key(one).cmp(&key(other)).then_with(|| one.path.cmp(&other.path))
    });
    deleted.append(&mut made);
    deleted
}

/// The effects of earlier entries of a plan on the paths of later ones.
#[derive(Debug, Default)]
struct Known {
    /// The present entry is deleted.
    cleared: HashSet<(usize, String)>,
    /// A directory is made.
    made: HashSet<(usize, String)>,
}

struct Compare<'a> {
    planning: Planning<'a>,
    tree: &'a Tree,
    edit: &'a Edit,
    index: usize,
}

impl Compare<'_> {
    fn verdict(&self, known: &Known) -> Result<(Verdict, Expected)> {
        let Edit { path, before, after, target } = self.edit;
        let plain = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        if let Some(reason) = refused::why(path).or((!plain).then_some("it is no plain path")) {
            return Ok((Verdict::Refused { reason: reason.to_owned() }, Expected::Nothing));
        }
        let above = path.rsplit_once('/').map(|(above, _)| above.to_owned());
        let is_new = above.as_ref().is_some_and(|above| known.made.contains(&(*target, above.clone())));
        let now = match self.tree.stat(path) {
            // The present entry is deleted first.
            _ if is_new || known.cleared.contains(&(*target, path.clone())) => None,
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(Errno::NOTDIR | Errno::LOOP) => return Ok(conflict("a directory above it is another thing now")),
            Err(error) => return Err(LandError::at(path)(error)),
        };
        match (before, after, now) {
            (Side::Missing, _, None) => Ok(match above {
                Some(above) if !is_new && !self.is_directory(&above) => conflict("its directory is gone"),
                _ => (Verdict::Clean, Expected::Nothing),
            }),
            (_, Side::Missing, None) => Ok((Verdict::Same, Expected::Nothing)),
            (_, _, None) => Ok(conflict("it was deleted in the meantime")),
            (Side::Missing, _, Some(now)) => self.in_the_way(after, now),
            (Side::File { content }, _, Some(now)) if now.kind == FileKind::File => self.file(content.as_deref(), now),
            (Side::Symlink { target }, _, Some(now)) if now.kind == FileKind::Symlink => {
                let expected = Expected::entry(&now);
                let unchanged = match target {
                    Some(target) => self.tree.read_link(path).is_ok_and(|now| now == *target),
                    None => now.changed < self.planning.began,
                };
                Ok(if unchanged {
                    (Verdict::Clean, expected)
                } else {
                    conflict("the link was changed in the meantime")
                })
            }
            (Side::Directory, Side::Missing, Some(now)) if now.kind == FileKind::Directory => {
                Ok((Verdict::Clean, Expected::Directory { mode: now.mode }))
            }
            _ => Ok(conflict("there is another thing now")),
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        self.tree.stat(path).is_ok_and(|found| found.kind == FileKind::Directory)
    }

    /// Something is where the run found nothing.
    fn in_the_way(&self, after: &Side, now: Stat) -> Result<(Verdict, Expected)> {
        let same = match after {
            Side::Directory => now.kind == FileKind::Directory,
            Side::File { content: Some(content) } if now.kind == FileKind::File => {
                now.size == fs::metadata(content).map_err(LandError::journal)?.len()
                    && self.hash_now()? == hash_of(content)?
            }
            _ => false,
        };
        Ok(match same {
            true => (Verdict::Same, Expected::Nothing),
            false => conflict("there is something at this path that the run did not see"),
        })
    }

    /// A file, compared with its copy of when the run began.
    fn file(&self, base: Option<&Path>, now: Stat) -> Result<(Verdict, Expected)> {
        let Some(base) = base else {
            return Ok(match (now.changed < self.planning.began, &self.edit.after) {
                (false, _) => conflict("it was changed in the meantime"),
                (true, Side::Missing) => (Verdict::Clean, Expected::entry(&now)),
                (true, _) => (Verdict::Clean, Expected::Content { hash: self.hash_now()?, mode: now.mode }),
            });
        };
        let expected = Expected::Content { hash: self.hash_now()?, mode: now.mode };
        let Expected::Content { hash, .. } = expected else { return Ok(conflict("it cannot be read")) };
        let size = fs::metadata(base).map_err(LandError::journal)?.len();
        if size == now.size && hash_of(base)? == hash {
            return Ok((Verdict::Clean, expected));
        }
        let Side::File { content: Some(content) } = &self.edit.after else {
            return Ok(conflict("it was changed in the meantime"));
        };
        if hash_of(content)? == hash {
            return Ok((Verdict::Same, Expected::Nothing));
        }
        match self.merge(base, content)? {
            Some(content) => Ok((Verdict::Merged { content }, expected)),
            None => Ok(conflict("it was changed in the meantime, too, in the same lines")),
        }
    }

    /// Merges the file as it is now with the run's, and keeps the text.
    fn merge(&self, base: &Path, ours: &Path) -> Result<Option<PathBuf>> {
        let whole = |file: File| {
            let mut file = file;
            merge::whole(&mut file).map_err(LandError::journal)
        };
        let open = |path: &Path| File::open(path).map_err(LandError::journal);
        let now = self.tree.read(&self.edit.path).map_err(LandError::at(&self.edit.path))?;
        let (Some(base), Some(now), Some(ours)) = (whole(open(base)?)?, whole(now)?, whole(open(ours)?)?) else {
            return Ok(None);
        };
        let Some(merged) = merge::merged(&base, &now, &ours) else { return Ok(None) };
        fs::create_dir_all(self.planning.merged).map_err(LandError::journal)?;
        let kept = self.planning.merged.join(self.index.to_string());
        fs::write(&kept, merged).map_err(LandError::journal)?;
        Ok(Some(kept))
    }

    fn hash_now(&self) -> Result<ContentHash> {
        let mut file = self.tree.read(&self.edit.path).map_err(LandError::at(&self.edit.path))?;
        Ok(sum(&mut file, u64::MAX).map_err(LandError::journal)?.hash)
    }
}

/// The hash of a file of the run or of the landing.
pub(crate) fn hash_of(content: &Path) -> Result<ContentHash> {
    let mut file = File::open(content).map_err(LandError::journal)?;
    Ok(sum(&mut file, u64::MAX).map_err(LandError::journal)?.hash)
}

fn conflict(reason: &str) -> (Verdict, Expected) {
    (Verdict::Conflict { reason: reason.to_owned() }, Expected::Nothing)
}

/// The program that runs the file later, as it is now or as it is to be.
fn executed_later(tree: &Tree, edit: &Edit) -> Option<String> {
    let mut beginning = [0; 2];
    let mut look = |file: Option<File>| {
        use std::io::Read as _;
        let mut file = file?;
        let mode = stat_of(&file).ok()?.mode;
        let read = file.read(&mut beginning).ok()?;
        executed::later(&edit.path, mode & 0o111 != 0, beginning.get(..read).unwrap_or_default())
    };
    let Side::File { content } = &edit.after else { return None };
    let new = look(content.as_ref().and_then(|content| File::open(content).ok()));
    let why = new.or_else(|| look(tree.read(&edit.path).ok()))?;
    Some(why.to_owned())
}
