//! `git commit`.

mod options;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::{Kind, WriteTo as _};

use super::pretty::{DateForm, Pretty, Printer};
use super::status::{Status, long};
use super::{add, message};
use crate::describe::Short;
use crate::diff::{self, Format, Options};
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::ident::Signature;
use crate::index::Index;
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::refs::Head;
use crate::repository::Repository;
use crate::tree;
use crate::worktree::Untracked;

use options::CommitOptions;

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let options = CommitOptions::parse(repository, arguments)?;
    if repository.git.join("MERGE_HEAD").exists() || repository.git.join("CHERRY_PICK_HEAD").exists() {
        return Err(Fault::unsupported("concluding a merge or a cherry-pick"));
    }
    let head = repository.refs.head()?;
    let last = match head.id {
        Some(id) => Some(Commit::read(repository, &id)?),
        None => None,
    };
    let mut index = repository.index()?;
    if index.has_conflicts() {
        return Err(Fault {
            code: 128,
            message: "error: Committing is not possible because you have unmerged files.\nhint: Fix them up in the work tree, \
                      and then use 'git add/rm <file>'\nhint: as appropriate to mark resolution and make a commit.\nfatal: \
                      Exiting because of an unresolved conflict."
                .to_owned(),
        });
    }
    let amended = if options.amend {
        Some(last.clone().ok_or_else(|| Fault::fatal("You have nothing to amend."))?)
    } else {
        None
    };
    let committer = Signature::committer(repository)?;
    let text = text(&options, amended.as_ref(), &committer);
    if matches!(&text, Ok(text) if text.is_empty()) && !options.allow_empty_message {
        return Err(Fault { code: 1, message: "Aborting commit due to empty commit message.".to_owned() });
    }
    let chosen = staged(repository, &mut index, last.as_ref(), &options)?;
    let tree = tree::write(&repository.objects, chosen.as_ref().unwrap_or(&index))?;
    let parents = match &amended {
        Some(amended) => amended.parents.clone(),
        None => head.id.into_iter().collect(),
    };
    let before = match parents.first() {
        Some(parent) => Some(Commit::read(repository, parent)?.tree),
        None => None,
    };
    let unchanged = before.unwrap_or(ObjectId::empty_tree(crate::objects::HASH)) == tree;
    if unchanged && !options.allow_empty && amended.is_none() {
        return nothing(repository, &index, chosen.as_ref(), out);
    }
    if unchanged && amended.is_some() && !options.allow_empty && parents.len() == 1 {
        return Err(Fault { code: 1, message: "You asked to amend the most recent commit, but doing so would make\nit empty. You can repeat your command with --allow-empty, or you can\nremove the commit entirely with \"git reset HEAD^\".".to_owned() });
    }
    // Where nothing is to be committed, that is said first.
    let text = text?;
    let author = author(repository, &options, amended.as_ref())?;
    let id = store(repository, tree, &parents, &author, &committer, &text)?;
    let reason = match (&amended, head.id) {
        (Some(_), _) => "commit (amend)",
        (None, None) => "commit (initial)",
        (None, Some(_)) => "commit",
    };
    move_head(repository, &head, id, &committer, reason, &text)?;
    if chosen.is_some() || options.all || index.written.is_some() {
        index.settle(repository)?;
        index.write()?;
    }
    if !options.quiet {
        let commit = Commit::read(repository, &id)?;
        let given = (&author.name, &author.email) != (&committer.name, &committer.email);
        let report = Report {
            head: &head,
            commit: &commit,
            before,
            author: given,
            date: options.date.is_some() || amended.is_some(),
        };
        report.print(repository, out)?;
    }
    Ok(0)
}

/// Stages the paths that the options name. Returns an index of its own where only some paths are committed.
fn staged(
    repository: &Repository,
    index: &mut Index,
    last: Option<&Commit>,
    options: &CommitOptions,
) -> Result<Option<Index>> {
    let paths = Pathspec::parse(repository, &options.paths)?;
    if options.all || !options.paths.is_empty() {
        let only = !options.all && !options.include;
        if let Some(missing) = paths.unmatched(index.entries().iter().map(|entry| entry.path.as_bstr())) {
            return Err(Fault::error(format_args!("pathspec '{missing}' did not match any file(s) known to git")));
        }
        let changed = add::tracked(repository, index, &paths)?;
        let mut alone = index.clone();
        if only {
            let files = match last {
                Some(last) => tree::files(&repository.objects, &last.tree)?,
                None => Vec::new(),
            };
            alone.replace(tree::to_entries(files, index)?);
            // The staged content of these paths is committed too.
            for entry in index.entries().iter().filter(|entry| paths.matches(entry.path.as_bstr(), false)) {
                alone.put(entry.clone())?;
            }
        }
        for (path, gone) in changed {
            for target in [&mut *index, &mut alone] {
                if gone {
                    target.remove(path.as_bstr());
                } else {
                    add::put(repository, target, path.clone(), None)?;
                }
            }
        }
        return Ok(only.then_some(alone));
    }
    Ok(None)
}

fn nothing(repository: &Repository, index: &Index, chosen: Option<&Index>, out: &mut Output) -> Result<i32> {
    let paths = Pathspec::all(repository)?;
    let mut status = Status::gather(repository, chosen.unwrap_or(index), &paths, Untracked::Normal)?;
    status.unknown.ignored.clear();
    long(repository, &status, out)?;
    Ok(1)
}

fn text(options: &CommitOptions, amended: Option<&Commit>, committer: &Signature) -> Result<BString> {
    let text = match (&options.message, amended) {
        (Some(text), _) => message::tidy(text)?,
        (None, Some(amended)) => amended.message.clone(),
        (None, None) => {
            return Err(Fault {
                code: 1,
                message: "error: there is no editor here: give the message with `-m` or `-F`".to_owned(),
            });
        }
    };
    if options.sign_off && !text.is_empty() {
        return Ok(message::sign_off(&text, &format!("{} <{}>", committer.name, committer.email)));
    }
    Ok(text)
}

fn author(repository: &Repository, options: &CommitOptions, amended: Option<&Commit>) -> Result<Signature> {
    let mut author = match amended {
        Some(amended) if !options.reset_author => amended.author.clone(),
        _ => Signature::author(repository)?,
    };
    if let Some((name, email)) = &options.author {
        (author.name, author.email) = (name.clone(), email.clone());
    }
    if let Some(date) = options.date {
        author.time = date;
    }
    Ok(author)
}

/// Stores a commit, and returns its id.
fn store(
    repository: &Repository,
    tree: ObjectId,
    parents: &[ObjectId],
    author: &Signature,
    committer: &Signature,
    text: &BString,
) -> Result<ObjectId> {
    let person =
        |who: &Signature| gix_actor::Signature { name: who.name.clone(), email: who.email.clone(), time: who.time };
    let commit = gix_object::Commit {
        tree,
        parents: parents.iter().copied().collect(),
        author: person(author),
        committer: person(committer),
        encoding: None,
        message: text.clone(),
        extra_headers: Vec::new(),
    };
    let mut data = Vec::new();
    commit.write_to(&mut data).map_err(|error| Fault::fatal(format_args!("the commit cannot be written: {error}")))?;
    repository.objects.write(Kind::Commit, &data)
}

/// Moves the branch, or a detached `HEAD`, and notes it in the logs.
fn move_head(
    repository: &Repository,
    head: &Head,
    id: ObjectId,
    who: &Signature,
    reason: &str,
    text: &BString,
) -> Result<()> {
    let name = head.branch.clone().unwrap_or_else(|| "HEAD".into());
    repository.refs.update(name.as_bstr(), id, head.id)?;
    let note = BString::from(format!("{reason}: {}", text.lines().next().unwrap_or_default().as_bstr()));
    let line = who.line();
    let mut names: Vec<&BStr> = vec!["HEAD".into()];
    names.extend(head.branch.as_ref().map(|branch| branch.as_bstr()));
    names.into_iter().try_for_each(|name| repository.refs.note(name, (head.id, id), line.as_bstr(), note.as_bstr()))
}

/// The lines that are printed of a new commit.
struct Report<'a> {
    head: &'a Head,
    commit: &'a Commit,
    before: Option<ObjectId>,
    author: bool,
    date: bool,
}

impl Report<'_> {
    fn print(&self, repository: &Repository, out: &mut Output) -> Result<()> {
        let branch = self.head.short().map_or("detached HEAD".to_owned(), ToString::to_string);
        let root = if self.commit.parents.is_empty() { " (root-commit)" } else { "" };
        let short = Short::new(repository);
        out.put(format!("[{branch}{root} {}] {}\n", short.of(&self.commit.id)?, self.commit.subject()))?;
        let printer = Printer {
            repository,
            pretty: Pretty::Medium,
            dates: DateForm::Default,
            short,
            abbreviated: false,
            decorations: Default::default(),
            mailmap: Default::default(),
        };
        if self.author {
            out.put(format!(" Author: {} <{}>\n", self.commit.author.name, self.commit.author.email))?;
        }
        if self.date {
            out.put(format!(" Date: {}\n", printer.date(self.commit.author.time, DateForm::Default)))?;
        }
        if self.commit.parents.len() < 2 {
            let options = Options { formats: vec![Format::ShortStat, Format::Summary], ..Options::default() };
            let changes = diff::trees(repository, self.before, Some(self.commit.tree), &Pathspec::all(repository)?)?;
            diff::show(repository, changes, &options, out)?;
        }
        Ok(())
    }
}
