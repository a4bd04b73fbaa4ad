//! `git ls-remote`: the references of a remote repository.

use bstr::ByteSlice as _;

use crate::error::Result;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::remote::{Connection, Remote, Service, default_name};
use crate::repository::Repository;

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut words, mut kinds, mut only_references, mut must_match) = (Vec::new(), Vec::new(), false, false);
    let mut quiet = false;
    let mut arguments = Arguments::new("ls-remote", arguments);
    while let Some(argument) = arguments.next("hbtq") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => words.push(word),
            Argument::Option(name) => match name.as_str() {
                "-h" | "-b" | "--heads" | "--branches" => kinds.push("refs/heads/"),
                "-t" | "--tags" => kinds.push("refs/tags/"),
                "--refs" => only_references = true,
                "--exit-code" => must_match = true,
                "-q" | "--quiet" => quiet = true,
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    let mut words = words.into_iter();
    let named = words.next();
    let head = repository.refs.head()?;
    let is_named = named.is_some();
    let remote = Remote::find(repository, &named.unwrap_or_else(|| default_name(repository, head.short())), false)?;
    let patterns: Vec<String> = words.map(|pattern| format!("*/{pattern}")).collect();
    let advertised = Connection::new(repository, &remote)?.advertisement(Service::UploadPack)?;
    if !is_named && !quiet {
        out.warn(&format!("From {}", remote.url));
    }
    let mut count: usize = 0;
    for (name, id) in &advertised.listed {
        let is_plain = name.starts_with(b"refs/") && !name.ends_with(b"^{}");
        if (only_references && !is_plain) || !(kinds.is_empty() || kinds.iter().any(|kind| name.starts_with_str(kind)))
        {
            continue;
        }
        // As in git, a pattern is for the end of the name, in whole components.
        let path = [b"/", name.as_slice()].concat();
        let matches = |pattern: &String| {
            gix_glob::wildmatch(pattern.as_str().into(), path.as_bstr(), gix_glob::wildmatch::Mode::empty())
        };
        if patterns.is_empty() || patterns.iter().any(matches) {
            out.put(format!("{id}\t{name}\n"))?;
            count = count.saturating_add(1);
        }
    }
    Ok(if must_match && count == 0 { 2 } else { 0 })
}
