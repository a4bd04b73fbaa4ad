//! The command line of `git commit`.

use bstr::{BString, ByteSlice as _};
use gix_date::Time;

use crate::error::{Fault, Result};
use crate::ident;
use crate::options::{Argument, Arguments};
use crate::repository::Repository;
use crate::revision;

/// The content of a commit, and the way it is made.
#[derive(Debug, Default)]
pub(super) struct CommitOptions {
    pub message: Option<BString>,
    pub paths: Vec<String>,
    pub all: bool,
    pub include: bool,
    pub amend: bool,
    pub allow_empty: bool,
    pub allow_empty_message: bool,
    pub quiet: bool,
    pub sign_off: bool,
    pub reset_author: bool,
    pub author: Option<(BString, BString)>,
    pub date: Option<Time>,
}

impl CommitOptions {
    pub(super) fn parse(repository: &Repository, arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = Arguments::new("commit", arguments);
        while let Some(argument) = arguments.next("aqsniov") {
            match argument {
                Argument::Word(path) | Argument::Path(path) => options.paths.push(path),
                Argument::Option(name) => options.plain(repository, &name, &mut arguments)?,
                Argument::Valued(name, value) => {
                    if !options.valued(repository, &name, value)? {
                        return Err(arguments.unknown(&name));
                    }
                }
            }
        }
        if options.all && !options.paths.is_empty() {
            return Err(Fault::fatal(format_args!(
                "paths '{} ...' with -a does not make sense",
                options.paths.first().map_or("", String::as_str)
            )));
        }
        Ok(options)
    }

    fn plain(&mut self, repository: &Repository, name: &str, arguments: &mut Arguments) -> Result<()> {
        match name {
            "-a" | "--all" => self.all = true,
            "-i" | "--include" => self.include = true,
            "--amend" => self.amend = true,
            "--allow-empty" => self.allow_empty = true,
            "--allow-empty-message" => self.allow_empty_message = true,
            "-q" | "--quiet" => self.quiet = true,
            "-s" | "--signoff" => self.sign_off = true,
            "--reset-author" => self.reset_author = true,
            // No hook runs, no editor opens and nothing is signed, with or without these.
            "-n" | "--no-verify" | "--no-edit" | "--no-gpg-sign" | "-o" | "--only" | "-v" | "--verbose"
            | "--no-status" | "--no-post-rewrite" => {}
            "-m" | "--message" | "-F" | "--file" | "-C" | "--reuse-message" | "--author" | "--date" => {
                let value = arguments.value(name)?;
                self.valued(repository, name, value)?;
            }
            "-S" | "--gpg-sign" => return Err(Fault::unsupported("signed commits")),
            "-e" | "--edit" | "-p" | "--patch" | "--interactive" => {
                return Err(Fault::unsupported(format_args!("`git commit {name}`: nobody could answer it")));
            }
            _ => return Err(arguments.unknown(name)),
        }
        Ok(())
    }

    fn valued(&mut self, repository: &Repository, name: &str, value: String) -> Result<bool> {
        match name {
            "-m" | "--message" => {
                let mut text = self.message.take().unwrap_or_default();
                if !text.is_empty() {
                    text.push(b'\n');
                }
                text.extend_from_slice(value.as_bytes());
                text.push(b'\n');
                self.message = Some(text);
            }
            "-F" | "--file" if value == "-" => self.message = Some(repository.input.clone().into()),
            "-F" | "--file" => {
                let place = repository.prefix.to_path().map(|prefix| repository.worktree.join(prefix).join(&value));
                let place = place.map_err(|_| Fault::fatal("the directory's name is not UTF-8"))?;
                let text = crate::repository::read_patterns(&place)?;
                self.message = Some(text.map(BString::from).ok_or_else(|| {
                    Fault::fatal(format_args!("could not read log file '{value}': No such file or directory"))
                })?);
            }
            "-C" | "--reuse-message" => {
                let id = revision::commit(repository, &value)?;
                let commit = crate::history::Commit::read(repository, &id)?;
                self.message = Some(commit.message);
                self.author = Some((commit.author.name, commit.author.email));
                self.date = Some(commit.author.time);
            }
            "--author" => {
                let parts = value.strip_suffix('>').and_then(|rest| rest.split_once('<'));
                let (author, email) = parts.ok_or_else(|| {
                    Fault::fatal(format_args!(
                        "--author '{value}' is not 'Name <email>' and matches no existing author"
                    ))
                })?;
                self.author = Some((ident::clean(author.as_bytes()), ident::clean(email.as_bytes())));
            }
            "--date" => self.date = Some(ident::parse_date(&value, repository.now)?),
            "--cleanup" if matches!(value.as_str(), "default" | "whitespace" | "strip") => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}
