//! Refspecs of a push: `SRC`, `SRC:DST`, `+SRC:DST`, `:DST`, and patterns (gitrevisions(7), git-push(1)).

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::current_branch;
use super::options::Options;
use super::plan::Change;
use crate::commands::tracking::short_name;
use crate::error::{Fault, Result};
use crate::limits::MAX_PUSHED_REFERENCES;
use crate::objects::HASH;
use crate::refs::Head;
use crate::remote::{Advertisement, Remote, default_name};
use crate::repository::Repository;
use crate::revision;

const BRANCHES: &str = "refs/heads/";
const TAGS: &str = "refs/tags/";

/// One refspec of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    is_forced: bool,
    /// Empty for a deletion.
    from: String,
    to: Option<String>,
}

impl Spec {
    fn parse(text: &str, is_forced: bool) -> Result<Self> {
        let invalid = || Fault::fatal(format_args!("invalid refspec '{text}'"));
        let (is_forced, body) = match text.strip_prefix('+') {
            Some(body) => (true, body),
            None => (is_forced, text),
        };
        if body == ":" {
            return Err(Fault::unsupported("the refspec ':' of matching branches; name the branches"));
        }
        let (from, to) = match body.rsplit_once(':') {
            Some((from, to)) => (from, Some(to.to_owned())),
            None => (body, None),
        };
        let stars = |text: &str| text.matches('*').count();
        let is_balanced = to.as_ref().is_none_or(|to| stars(to) == stars(from));
        if body.is_empty() || to.as_ref().is_some_and(String::is_empty) || stars(from) > 1 || !is_balanced {
            return Err(invalid());
        }
        Ok(Self { is_forced, from: from.to_owned(), to })
    }

    /// As it may be written.
    fn shown(&self) -> String {
        match &self.to {
            Some(to) => format!("{}:{to}", self.from),
            None => self.from.clone(),
        }
    }

    fn pattern(prefix: &str, is_forced: bool) -> Self {
        Self { is_forced, from: format!("{prefix}*"), to: Some(format!("{prefix}*")) }
    }
}

/// The refspecs of a command line, or those that are meant without any.
pub(super) fn of(repository: &Repository, options: &Options, remote: &Remote, head: &Head) -> Result<Vec<Spec>> {
    let mut specs = Vec::new();
    let mut words = options.specs.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "tag" if !options.delete => {
                let name = words.next().ok_or_else(|| Fault::fatal("tag shorthand without <tag>"))?;
                specs.push(Spec::parse(&format!("{TAGS}{name}"), options.force)?);
            }
            word if options.delete && (word.is_empty() || word.contains([':', '*'])) => {
                return Err(Fault::fatal("--delete only accepts plain target ref names"));
            }
            word if options.delete => specs.push(Spec::parse(&format!(":{word}"), options.force)?),
            word => specs.push(Spec::parse(word, options.force)?),
        }
    }
    if options.all {
        specs.push(Spec::pattern(BRANCHES, options.force));
    }
    if options.tags {
        specs.push(Spec::pattern(TAGS, options.force));
    }
    if specs.is_empty() {
        for configured in &remote.push {
            let text = configured.to_str().map_err(|_| Fault::fatal("a refspec of the configuration is not UTF-8"))?;
            specs.push(Spec::parse(text, options.force)?);
        }
    }
    if specs.is_empty() {
        specs.push(usual(repository, options, remote, head)?);
    }
    Ok(specs)
}

/// The refspec of `push.default`: the current branch.
fn usual(repository: &Repository, options: &Options, remote: &Remote, head: &Head) -> Result<Spec> {
    let wanted = repository.config.string("push.default").unwrap_or_else(|| "simple".into());
    let branch = current_branch(head, remote)?;
    let short = short_name(branch);
    let is_elsewhere = remote.name != default_name(repository, Some(short));
    let merge = repository.config.string_in("branch", short, "merge");
    let upstream = || {
        merge.clone().ok_or_else(|| {
            Fault::fatal(format_args!(
                "The current branch {short} has no upstream branch.\nTo push the current branch and set the remote as upstream, \
                 use\n\n    git push --set-upstream {} {short}\n",
                remote.name
            ))
        })
    };
    let to = match wanted.to_str_lossy().as_ref() {
        "current" => branch.to_owned(),
        "simple" if is_elsewhere => branch.to_owned(),
        "simple" => {
            let upstream = upstream()?;
            if upstream != branch {
                return Err(Fault::fatal(format_args!(
                    "The upstream branch of your current branch does not match\nthe name of your current branch.  To push to the \
                     upstream branch\non the remote, use\n\n    git push {0} HEAD:{1}\n\nTo push to the branch of the same name on \
                     the remote, use\n\n    git push {0} HEAD\n",
                    remote.name,
                    short_name(upstream.as_bstr())
                )));
            }
            upstream
        }
        "upstream" | "tracking" if is_elsewhere => {
            return Err(Fault::fatal(format_args!(
                "You are pushing to remote '{}', which is not the upstream of\nyour current branch '{short}', without telling me \
                 what to push\nto update which remote branch.",
                remote.name
            )));
        }
        "upstream" | "tracking" => upstream()?,
        "nothing" => {
            return Err(Fault::fatal("You didn't specify any refspecs to push, and push.default is \"nothing\"."));
        }
        other => return Err(Fault::unsupported(format_args!("push.default = {other}; name the branch to push"))),
    };
    let from = branch.to_str().map_err(|_| Fault::fatal("the name of the branch is not UTF-8"))?;
    Ok(Spec { is_forced: options.force, from: from.to_owned(), to: Some(to.to_string()) })
}

/// The changes that refspecs ask for, without a decision on them.
pub(super) fn resolve(repository: &Repository, specs: &[Spec], advertised: &Advertisement) -> Result<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for spec in specs {
        let found = match spec.from.split_once('*') {
            Some((before, after)) => expand(repository, spec, before, after)?,
            None => vec![one(repository, spec, advertised)?],
        };
        for mut change in found {
            change.old = advertised.references.get(&change.to).copied().unwrap_or(ObjectId::null(HASH));
            match changes.iter().find(|other| other.to == change.to) {
                Some(other) if other.new == change.new && other.from == change.from => continue,
                Some(_) => {
                    return Err(Fault::error(format_args!("dst ref {} receives from more than one src", change.to)));
                }
                None => changes.push(change),
            }
        }
        if changes.len() > MAX_PUSHED_REFERENCES {
            return Err(Fault::limit(format_args!(
                "more than {MAX_PUSHED_REFERENCES} references are pushed; name them"
            )));
        }
    }
    // In git's order: the references of the remote as it lists them, then new ones.
    let place =
        |change: &Change| advertised.listed.iter().position(|(name, _)| *name == change.to).unwrap_or(usize::MAX);
    changes.sort_by_cached_key(place);
    Ok(changes)
}

/// The references here that a pattern matches.
fn expand(repository: &Repository, spec: &Spec, before: &str, after: &str) -> Result<Vec<Change>> {
    let target = spec.to.as_deref().unwrap_or(&spec.from);
    let (start, end) = target.split_once('*').unwrap_or((target, ""));
    if !before.starts_with("refs/") || !start.starts_with("refs/") {
        return Err(Fault::fatal(format_args!("invalid refspec '{}'\nA pattern begins with 'refs/'.", spec.shown())));
    }
    let directory = before.rsplit_once('/').map_or(before, |(directory, _)| directory);
    let mut changes = Vec::new();
    for (name, id) in repository.refs.below(&format!("{directory}/"))? {
        let middle = name.strip_prefix(before.as_bytes()).and_then(|rest| rest.strip_suffix(after.as_bytes()));
        if let Some(middle) = middle {
            let to = checked([start.as_bytes(), middle, end.as_bytes()].concat().into(), &spec.shown())?;
            changes.push(Change::new(Some(name), to, id, spec.is_forced));
        }
    }
    Ok(changes)
}

fn one(repository: &Repository, spec: &Spec, advertised: &Advertisement) -> Result<Change> {
    if spec.from.is_empty() {
        let name = spec.to.as_deref().unwrap_or_default();
        let to = on_remote(name, advertised)?.filter(|to| advertised.references.contains_key(to));
        let to =
            to.ok_or_else(|| Fault::error(format_args!("unable to delete '{name}': remote ref does not exist")))?;
        return Ok(Change::new(None, to, ObjectId::null(HASH), spec.is_forced));
    }
    let (from, id) = source(repository, &spec.from)?;
    let to = match &spec.to {
        Some(to) => match on_remote(to, advertised)? {
            Some(to) => to,
            None => guess(&from, to)?,
        },
        None => match &from {
            Source::Head(Some(branch)) => branch.clone(),
            Source::Reference(name) => name.clone(),
            Source::Head(None) | Source::Revision(_) => {
                return Err(Fault::fatal(format_args!(
                    "invalid refspec '{0}'\nName the branch: `git push REMOTE {0}:refs/heads/BRANCH`",
                    spec.from
                )));
            }
        },
    };
    Ok(Change::new(Some(from.shown()), checked(to, &spec.shown())?, id, spec.is_forced))
}

/// The left side of a refspec.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// `HEAD`, with its branch.
    Head(Option<BString>),
    /// A reference by its full name.
    Reference(BString),
    /// Another revision, as it was written.
    Revision(String),
}

impl Source {
    fn shown(&self) -> BString {
        match self {
            Self::Head(_) => "HEAD".into(),
            Self::Reference(name) => name.clone(),
            Self::Revision(text) => text.as_str().into(),
        }
    }
}

fn source(repository: &Repository, text: &str) -> Result<(Source, ObjectId)> {
    let none = || Fault::error(format_args!("src refspec {text} does not match any"));
    if text == "HEAD" || text == "@" {
        let head = repository.refs.head()?;
        return Ok((Source::Head(head.branch), head.id.ok_or_else(none)?));
    }
    let is_there = |prefix: &str| Ok(repository.refs.resolve(BStr::new(&format!("{prefix}{text}")))?.is_some());
    if is_there(BRANCHES)? && is_there(TAGS)? {
        return Err(Fault::error(format_args!("src refspec {text} matches more than one")));
    }
    if let Some((name, id)) = repository.refs.expand(BStr::new(text))? {
        return Ok((Source::Reference(name), id));
    }
    // A path of a revision has a `:`, which a refspec cannot have.
    let found = if text.contains(':') { None } else { revision::find(repository, text)? };
    let id = found.ok_or_else(none)?;
    if !repository.objects.contains(&id)? {
        return Err(none());
    }
    Ok((Source::Revision(text.to_owned()), id))
}

/// The reference of the remote that a name means. One that begins with `refs/` need not exist.
fn on_remote(name: &str, advertised: &Advertisement) -> Result<Option<BString>> {
    if name.starts_with("refs/") {
        return Ok(Some(name.into()));
    }
    let full = |prefix: &str| BString::from(format!("{prefix}{name}"));
    let found: Vec<BString> = ["refs/", TAGS, BRANCHES]
        .map(full)
        .into_iter()
        .filter(|name| advertised.references.contains_key(name))
        .collect();
    match found.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        _ => Err(Fault::error(format_args!("dst refspec {name} matches more than one"))),
    }
}

/// The full name of a new reference, of the kind of its source.
fn guess(from: &Source, to: &str) -> Result<BString> {
    let name = match from {
        Source::Head(Some(name)) | Source::Reference(name) => name.as_bstr(),
        Source::Head(None) | Source::Revision(_) => BStr::new(""),
    };
    for kind in [BRANCHES, TAGS] {
        if name.starts_with(kind.as_bytes()) {
            return Ok(format!("{kind}{to}").into());
        }
    }
    Err(Fault::error(format_args!(
        "The destination you provided is not a full refname (i.e.,\nstarting with \"refs/\"), and the kind of the source does not \
         tell one: write 'refs/heads/{to}'"
    )))
}

fn checked(name: BString, shown: &str) -> Result<BString> {
    if name.starts_with(b"refs/") && gix_validate::reference::name(name.as_bstr()).is_ok() {
        return Ok(name);
    }
    Err(Fault::fatal(format_args!("invalid refspec '{shown}'\nThe name on the remote is not valid.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refspecs_are_read_as_git_reads_them() {
        let check = |text: &str| {
            let spec = Spec::parse(text, false).ok()?;
            Some(format!("{} {} {}", spec.is_forced, spec.from, spec.to.as_deref().unwrap_or("-")))
        };
        assert_eq!(check("main").as_deref(), Some("false main -"));
        assert_eq!(check("+a:b").as_deref(), Some("true a b"));
        assert_eq!(check(":b").as_deref(), Some("false  b"));
        assert_eq!(check("HEAD~1:refs/heads/x").as_deref(), Some("false HEAD~1 refs/heads/x"));
        assert_eq!(check("refs/heads/*:refs/heads/x/*").as_deref(), Some("false refs/heads/* refs/heads/x/*"));
        for text in ["", "+", ":", "a:", "refs/*:a", "a:refs/*", "refs/*/*:refs/*/*"] {
            assert_eq!(check(text), None, "{text}");
        }
    }
}
