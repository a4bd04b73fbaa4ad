//! The command line of `git log` and `git show`.

use bstr::ByteSlice as _;

use super::super::pretty::{DateForm, Pretty, Printer, decorations, mailmap};
use crate::describe::Short;
use crate::diff::Options;
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::ident;
use crate::options::{Argument, Arguments, number};
use crate::repository::Repository;
use crate::revision;

/// The commits and details that a log shows.
#[derive(Debug)]
pub(in super::super) struct LogOptions {
    pub revisions: Vec<String>,
    pub paths: Vec<String>,
    pub diff: Options,
    pub most: Option<usize>,
    pub skip: usize,
    pub reverse: bool,
    pub first_parent: bool,
    /// Merges are compared with their first parent.
    pub first_parent_diff: bool,
    /// Merges are compared with all their parents.
    pub combined: bool,
    /// Directories of references to begin at, in addition.
    pub references: Vec<String>,
    /// The time in seconds since 1970.
    pub since: Option<i64>,
    until: Option<i64>,
    authors: Vec<String>,
    words: Vec<String>,
    invert: bool,
    ignore_case: bool,
    parents: (usize, usize),
    pretty: Pretty,
    dates: DateForm,
    abbreviated: bool,
    decorate: bool,
}

impl LogOptions {
    pub(in super::super) fn parse(
        repository: &Repository,
        command: &'static str,
        arguments: &[String],
    ) -> Result<Self> {
        let mut options = Self {
            revisions: Vec::new(),
            paths: Vec::new(),
            diff: Options::default(),
            most: None,
            skip: 0,
            reverse: false,
            first_parent: false,
            first_parent_diff: false,
            combined: false,
            references: Vec::new(),
            since: None,
            until: None,
            authors: Vec::new(),
            words: Vec::new(),
            invert: false,
            ignore_case: false,
            parents: (0, usize::MAX),
            pretty: Pretty::Medium,
            dates: DateForm::Default,
            abbreviated: repository.config.boolean("log.abbrevCommit", false),
            decorate: false,
        };
        let mut arguments = Arguments::new(command, arguments);
        while let Some(argument) = arguments.next("") {
            if options.diff.take(&argument, &mut arguments)? {
                continue;
            }
            match argument {
                Argument::Path(path) => options.paths.push(path),
                Argument::Word(word) => options.word(repository, word, arguments.has_separator())?,
                Argument::Option(name) => options.plain(repository, &name, &mut arguments)?,
                Argument::Valued(name, value) => {
                    if !options.valued(repository, &name, &value)? {
                        return Err(arguments.unknown(&format!("{name}={value}")));
                    }
                }
            }
        }
        Ok(options)
    }

    fn word(&mut self, repository: &Repository, word: String, separated: bool) -> Result<()> {
        if self.paths.is_empty() {
            let known = match super::super::diff::range(&word) {
                Some((from, to, _)) => {
                    let known = |text: &str| text.is_empty() || matches!(revision::find(repository, text), Ok(Some(_)));
                    known(from) && known(to)
                }
                None => {
                    let text = word.strip_prefix('^').unwrap_or(&word);
                    // A fault of a name with a path names its cause.
                    match revision::find(repository, text) {
                        Ok(found) => found.is_some(),
                        Err(fault) if !super::super::diff::exists(repository, &word) => return Err(fault),
                        Err(_) => false,
                    }
                }
            };
            if known || separated {
                self.revisions.push(word);
                return Ok(());
            }
        }
        if !super::super::diff::exists(repository, &word) {
            return Err(revision::unknown(&word));
        }
        self.paths.push(word);
        Ok(())
    }

    fn plain(&mut self, repository: &Repository, name: &str, arguments: &mut Arguments) -> Result<()> {
        match name {
            "--oneline" => {
                self.pretty = Pretty::Oneline;
                self.abbreviated = true;
            }
            "--pretty" => self.pretty = Pretty::Medium,
            "--reverse" => self.reverse = true,
            "--first-parent" => {
                self.first_parent = true;
                self.first_parent_diff = true;
            }
            "-m" | "--diff-merges" => self.first_parent_diff = true,
            "-c" | "--cc" => self.combined = true,
            "--merges" => self.parents.0 = 2,
            "--no-merges" => self.parents.1 = 1,
            "--all" => self.references.push("refs/".to_owned()),
            "--branches" => self.references.push("refs/heads/".to_owned()),
            "--tags" => self.references.push("refs/tags/".to_owned()),
            "--remotes" => self.references.push("refs/remotes/".to_owned()),
            "--abbrev-commit" => self.abbreviated = true,
            "--no-abbrev-commit" => self.abbreviated = false,
            "--decorate" => self.decorate = true,
            "--no-decorate" => self.decorate = false,
            "--relative-date" => self.dates = DateForm::Relative,
            "-i" | "--regexp-ignore-case" => self.ignore_case = true,
            "--invert-grep" => self.invert = true,
            "-F"
            | "--fixed-strings"
            | "--no-mailmap"
            | "--use-mailmap"
            | "--mailmap"
            | "--date-order"
            | "--root"
            | "--no-notes"
            | "--no-show-signature" => {}
            "-n" | "--max-count" | "--skip" | "--format" | "--date" | "--since" | "--after" | "--until"
            | "--before" | "--author" | "--grep" => {
                let value = arguments.value(name)?;
                self.valued(repository, name, &value)?;
            }
            "--graph" => return Err(Fault::unsupported("`--graph`; `--oneline` with `--decorate` is")),
            "--follow" => return Err(Fault::unsupported("`--follow`; give the old path too")),
            _ if name.strip_prefix('-').is_some_and(|digits| digits.parse::<usize>().is_ok()) => {
                self.most = Some(number(name, name.strip_prefix('-').unwrap_or_default())?);
            }
            _ => return Err(arguments.unknown(name)),
        }
        Ok(())
    }

    fn valued(&mut self, repository: &Repository, name: &str, value: &str) -> Result<bool> {
        let date = |text: &str| ident::parse_date(text, repository.now).map(|time| time.seconds);
        match name {
            "-n" | "--max-count" => self.most = Some(number(name, value)?),
            "--skip" => self.skip = number(name, value)?,
            "--pretty" | "--format" => {
                self.pretty = Pretty::parse(value)?;
                // `%d` in a format asks for the names that it shows.
                self.decorate |= value.contains("%d") || value.contains("%D");
            }
            "--date" => self.dates = DateForm::parse(value)?,
            "--since" | "--after" => self.since = Some(date(value)?),
            "--until" | "--before" => self.until = Some(date(value)?),
            "--author" => self.authors.push(value.to_owned()),
            "--grep" => self.words.push(value.to_owned()),
            "--decorate" => self.decorate = value != "no",
            "--diff-merges" => match value {
                "off" | "none" => {}
                "first-parent" | "1" => self.first_parent_diff = true,
                _ => self.combined = true,
            },
            _ => {
                let digits = format!("{}{value}", name.strip_prefix('-').unwrap_or_default());
                match digits.parse() {
                    Ok(most) if !name.starts_with("--") => self.most = Some(most),
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// The format that the commits are printed with.
    pub(in super::super) fn printer<'a>(&self, repository: &'a Repository) -> Result<Printer<'a>> {
        Ok(Printer {
            repository,
            pretty: self.pretty.clone(),
            dates: self.dates,
            short: match self.diff.digits {
                Some(digits) => Short::with_digits(repository, digits),
                None => Short::new(repository),
            },
            abbreviated: self.abbreviated,
            decorations: if self.decorate { decorations(repository)? } else { Default::default() },
            mailmap: mailmap(repository)?,
        })
    }

    /// Whether a commit passes the filters.
    pub(super) fn wants(&self, printer: &Printer<'_>, commit: &Commit) -> bool {
        let parents = commit.parents.len();
        if parents < self.parents.0 || parents > self.parents.1 {
            return false;
        }
        if self.until.is_some_and(|until| commit.committer.time.seconds > until) {
            return false;
        }
        if !self.authors.is_empty() {
            let (name, email) = printer.mapped(&commit.author);
            let author = format!("{name} <{email}>");
            if !self.authors.iter().any(|wanted| self.contains(author.as_bytes(), wanted)) {
                return false;
            }
        }
        self.words.is_empty()
            || self.words.iter().any(|wanted| commit.message.lines().any(|line| self.contains(line, wanted)))
                != self.invert
    }

    /// Whether a text has a word. Patterns are plain words here, with `^` and `$` for the ends of a line.
    fn contains(&self, text: &[u8], wanted: &str) -> bool {
        let (text, wanted) = match self.ignore_case {
            true => (text.to_lowercase(), wanted.to_lowercase()),
            false => (text.to_owned(), wanted.to_owned()),
        };
        let (from_start, wanted) = wanted.strip_prefix('^').map_or((false, wanted.as_str()), |rest| (true, rest));
        let (to_end, wanted) = wanted.strip_suffix('$').map_or((false, wanted), |rest| (true, rest));
        match (from_start, to_end) {
            (true, true) => text == wanted.as_bytes(),
            (true, false) => text.starts_with(wanted.as_bytes()),
            (false, true) => text.ends_with(wanted.as_bytes()),
            (false, false) => text.contains_str(wanted),
        }
    }
}
