//! The command line of `git push`.

use crate::error::{Fault, Result};
use crate::options::{Argument, Arguments};

/// Options that change nothing here.
const IGNORED: [&str; 10] = [
    "--progress",
    "--no-progress",
    "--no-verify",
    "--verify",
    "--thin",
    "--no-thin",
    "--no-signed",
    "--no-follow-tags",
    "--no-recurse-submodules",
    "--ipv4",
];

/// The value that a reference of the remote has to have: `--force-with-lease`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lease {
    /// The reference; `None` for all that are pushed.
    pub name: Option<String>,
    /// The revision that it has to be at; `None` for the branch that follows it here. Empty: it must not exist.
    pub expected: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Options {
    pub remote: Option<String>,
    pub specs: Vec<String>,
    pub force: bool,
    pub leases: Vec<Lease>,
    pub delete: bool,
    pub all: bool,
    pub tags: bool,
    pub atomic: bool,
    pub dry_run: bool,
    pub set_upstream: bool,
    pub quiet: bool,
    pub verbose: bool,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = Vec::new();
        let mut arguments = Arguments::new("push", arguments);
        while let Some(argument) = arguments.next("fudnqv") {
            match argument {
                Argument::Word(word) | Argument::Path(word) => words.push(word),
                Argument::Option(name) => match name.as_str() {
                    "-f" | "--force" => options.force = true,
                    "--force-with-lease" => options.leases.push(Lease { name: None, expected: None }),
                    "--no-force-with-lease" => options.leases.clear(),
                    "-d" | "--delete" => options.delete = true,
                    "--all" | "--branches" => options.all = true,
                    "--tags" => options.tags = true,
                    "--atomic" => options.atomic = true,
                    "--no-atomic" => options.atomic = false,
                    "-n" | "--dry-run" => options.dry_run = true,
                    "-u" | "--set-upstream" => options.set_upstream = true,
                    "-q" | "--quiet" => options.quiet = true,
                    "-v" | "--verbose" => options.verbose = true,
                    "--repo" => options.remote = Some(arguments.value(&name)?),
                    name if IGNORED.contains(&name) => {}
                    "--mirror" | "--prune" => {
                        return Err(Fault::unsupported(format_args!(
                            "`git push {name}`, which deletes references by itself; name them with `--delete`"
                        )));
                    }
                    _ => return Err(arguments.unknown(&name)),
                },
                Argument::Valued(name, value) => match name.as_str() {
                    "--force-with-lease" => options.leases.push(lease(&value)),
                    "--repo" => options.remote = Some(value),
                    "--recurse-submodules" if value == "no" => {}
                    _ => return Err(arguments.unknown(&name)),
                },
            }
        }
        let mut words = words.into_iter();
        options.remote = words.next().or(options.remote);
        options.specs = words.collect();
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<()> {
        let refuse = |message: &str| Err(Fault::fatal(message));
        if self.delete && (self.all || self.tags) {
            return refuse("options '--delete' and '--all/--branches/--mirror/--tags' cannot be used together");
        }
        if self.delete && self.specs.is_empty() {
            return refuse("--delete doesn't make sense without any refs");
        }
        if self.all && self.tags {
            return refuse("options '--all' and '--tags' cannot be used together");
        }
        if self.all && !self.specs.is_empty() {
            return refuse("--all can't be combined with refspecs");
        }
        Ok(())
    }
}

/// `NAME` or `NAME:REVISION`.
fn lease(value: &str) -> Lease {
    match value.split_once(':') {
        Some((name, expected)) => Lease { name: Some(name.to_owned()), expected: Some(expected.to_owned()) },
        None => Lease { name: Some(value.to_owned()), expected: None },
    }
}
