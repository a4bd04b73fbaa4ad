//! `git config`: values of the repository's own configuration, and the identity of commits.

use crate::error::{Fault, Result};
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::repository::Repository;

/// Keys that can be set. The others would change the work of a program, which does not exist here.
const SETTABLE: [&str; 6] =
    ["user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email"];

/// Runs the command, and prints its result.
pub(super) fn run(repository: Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let mut repository = repository;
    let (mut words, mut all) = (Vec::new(), false);
    let mut arguments = Arguments::new("config", arguments);
    while let Some(argument) = arguments.next("") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => words.push(word),
            Argument::Option(name) => match name.as_str() {
                "--get" | "--local" => {}
                "--get-all" => all = true,
                "--global" | "--system" => {
                    return Err(Fault::unsupported(format_args!(
                        "`git config {name}`: there is only the repository's own"
                    )));
                }
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let words = match words.as_slice() {
        ["get" | "set", rest @ ..] if rest.len() == words.len() - 1 && !rest.is_empty() => rest,
        words => words,
    };
    match words {
        [key] => {
            if !key.contains('.') {
                return Err(Fault::error(format_args!("key does not contain a section: {key}")));
            }
            let values =
                if all { repository.config.all(key) } else { repository.config.string(key).into_iter().collect() };
            for value in &values {
                out.put(format!("{value}\n"))?;
            }
            Ok(i32::from(values.is_empty()))
        }
        [key, value] => {
            if !SETTABLE.iter().any(|known| key.eq_ignore_ascii_case(known)) {
                return Err(Fault::unsupported(format_args!(
                    "setting `{key}`; `user.name` and `user.email` can be set"
                )));
            }
            repository.config.set(key, value)?;
            Ok(0)
        }
        _ => Err(Fault::usage("`git config` takes a key, or a key and a value")),
    }
}
