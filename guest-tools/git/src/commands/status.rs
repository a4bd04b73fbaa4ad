//! `git status`.

mod long;

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice as _};

use super::tracking::tracking;
use crate::diff::{self, Change, Newer, detect_renames};
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::index::Index;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::refs::Head;
use crate::repository::Repository;
use crate::worktree::{self, Unknown, Untracked};

pub(super) use long::{detached, long};

/// Everything that `git status` tells.
pub(super) struct Status {
    pub head: Head,
    pub staged: Vec<Change>,
    pub unstaged: Vec<Change>,
    pub unknown: Unknown,
    pub how: Untracked,
}

impl Status {
    pub(super) fn gather(repository: &Repository, index: &Index, paths: &Pathspec, how: Untracked) -> Result<Self> {
        let head = repository.refs.head()?;
        let tree = match head.id {
            Some(id) => Some(Commit::read(repository, &id)?.tree),
            None => None,
        };
        let staged = diff::since(repository, tree, Newer::Index(index), paths)?;
        Ok(Self {
            head,
            staged: detect_renames(repository, staged, 50)?,
            unstaged: without_conflicts(diff::unstaged(repository, index, paths)?),
            unknown: worktree::unknown(repository, index, paths, how)?,
            how,
        })
    }
}

/// A path in conflict is told by its conflict alone, which the staged side has too.
fn without_conflicts(changes: Vec<Change>) -> Vec<Change> {
    let conflicts: Vec<BString> =
        changes.iter().filter(|change| change.conflict.is_some()).map(|change| change.path().to_owned()).collect();
    changes.into_iter().filter(|change| !conflicts.iter().any(|path| path == change.path())).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Long,
    Short,
    Porcelain,
}

#[derive(Debug)]
struct Options {
    form: Form,
    branch: bool,
    zero: bool,
    ignored: bool,
    how: Untracked,
    paths: Vec<String>,
}

fn parse(repository: &Repository, arguments: &[String]) -> Result<Options> {
    let how = match repository.config.string("status.showUntrackedFiles") {
        Some(value) if value == "no" => Untracked::None,
        Some(value) if value == "all" => Untracked::All,
        _ => Untracked::Normal,
    };
    let mut options = Options { form: Form::Long, branch: false, zero: false, ignored: false, how, paths: Vec::new() };
    let mut arguments = Arguments::new("status", arguments);
    while let Some(argument) = arguments.next("sbz") {
        match argument {
            Argument::Word(path) | Argument::Path(path) => options.paths.push(path),
            Argument::Option(name) => match name.as_str() {
                "-s" | "--short" => options.form = Form::Short,
                "--porcelain" => options.form = Form::Porcelain,
                "--long" => options.form = Form::Long,
                "-b" | "--branch" => options.branch = true,
                "-z" => options.zero = true,
                "-u" | "--untracked-files" => options.how = Untracked::All,
                "--ignored" => options.ignored = true,
                "--ahead-behind" | "--no-ahead-behind" | "--renames" | "--no-column" | "--show-stash" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, value) => match (name.as_str(), value.as_str()) {
                ("-u" | "--untracked-files", "no") => options.how = Untracked::None,
                ("-u" | "--untracked-files", "normal") => options.how = Untracked::Normal,
                ("-u" | "--untracked-files", "all") => options.how = Untracked::All,
                ("--porcelain", "v1" | "1") => options.form = Form::Porcelain,
                ("--porcelain", _) => return Err(Fault::unsupported("`--porcelain=v2`; `--porcelain` is")),
                ("--ignored", "traditional") => options.ignored = true,
                _ => return Err(arguments.unknown(&format!("{name}={value}"))),
            },
        }
    }
    if options.zero && options.form == Form::Long {
        options.form = Form::Porcelain;
    }
    Ok(options)
}

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let options = parse(repository, arguments)?;
    let index = repository.index()?;
    let paths = Pathspec::parse(repository, &options.paths)?;
    let mut status = Status::gather(repository, &index, &paths, options.how)?;
    if !options.ignored {
        status.unknown.ignored.clear();
    }
    match options.form {
        Form::Long => long(repository, &status, out)?,
        Form::Short | Form::Porcelain => short(repository, &status, &options, out)?,
    }
    Ok(0)
}

/// The two letters of a path in conflict, by its stages.
pub(super) fn conflict_letters(stages: u32) -> &'static str {
    match stages {
        1 => "DD",
        2 => "AU",
        3 => "UD",
        4 => "UA",
        5 => "DU",
        6 => "AA",
        _ => "UU",
    }
}

fn short(repository: &Repository, status: &Status, options: &Options, out: &mut Output) -> Result<()> {
    if options.branch {
        branch_line(repository, status, options, out)?;
    }
    let mut lines: BTreeMap<&BStr, (String, Option<&BStr>)> = BTreeMap::new();
    for change in &status.staged {
        let letters = match change.conflict {
            Some(stages) => conflict_letters(stages).to_owned(),
            None => format!("{} ", change.letter()),
        };
        let from = change.old.as_ref().filter(|_| change.similarity.is_some()).map(|side| side.path.as_bstr());
        lines.insert(change.path(), (letters, from));
    }
    for change in status.unstaged.iter().filter(|change| change.conflict.is_none()) {
        let letter = change.letter();
        let (letters, _) = lines.entry(change.path()).or_insert_with(|| ("  ".to_owned(), None));
        let first = letters.chars().next().unwrap_or(' ');
        *letters = format!("{first}{letter}");
    }
    let end = if options.zero { "\0" } else { "\n" };
    let name = |path: &BStr| -> BString {
        match options {
            Options { zero: true, .. } => path.to_owned(),
            Options { form: Form::Porcelain, .. } => quote::name_with_space(path),
            _ => quote::name_with_space(quote::relative(path, repository.prefix.as_bstr()).as_bstr()),
        }
    };
    for (path, (letters, from)) in lines {
        out.put(letters)?;
        out.put(" ")?;
        match from {
            Some(from) if options.zero => out.put([name(path).as_bytes(), b"\0", &name(from)].concat())?,
            Some(from) => out.put(format!("{} -> {}", name(from), name(path)))?,
            None => out.put(name(path))?,
        }
        out.put(end)?;
    }
    for (mark, list) in [("??", &status.unknown.untracked), ("!!", &status.unknown.ignored)] {
        for path in list {
            out.put(format!("{mark} "))?;
            out.put(name(path.as_bstr()))?;
            out.put(end)?;
        }
    }
    Ok(())
}

fn branch_line(repository: &Repository, status: &Status, options: &Options, out: &mut Output) -> Result<()> {
    let end = if options.zero { "\0" } else { "\n" };
    out.put("## ")?;
    match status.head.short() {
        None => out.put("HEAD (no branch)")?,
        Some(branch) => {
            if status.head.id.is_none() {
                out.put("No commits yet on ")?;
            }
            out.put(branch)?;
            if let Some(tracking) = tracking(repository, &status.head)? {
                out.put(format!("...{}", tracking.upstream))?;
                let brief = tracking.brief();
                if !brief.is_empty() {
                    out.put(format!(" [{brief}]"))?;
                }
            }
        }
    }
    out.put(end)
}
