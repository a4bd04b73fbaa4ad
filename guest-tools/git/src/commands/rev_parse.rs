//! `git rev-parse`.

use bstr::ByteSlice as _;

use super::tracking::short_name;
use crate::describe::Short;
use crate::error::{Fault, Result};
use crate::output::Output;
use crate::repository::Repository;
use crate::{quote, revision};

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut verify, mut quiet, mut short, mut names, mut symbolic) = (false, false, None, false, false);
    for argument in arguments {
        match argument.as_str() {
            "--show-toplevel" => out.put(format!("{}\n", repository.shown.display()))?,
            "--show-prefix" => out.put(format!("{}\n", repository.prefix))?,
            "--show-cdup" => {
                let ups = repository.prefix.find_iter("/").count();
                out.put(format!("{}\n", "../".repeat(ups)))?;
            }
            "--git-dir" | "--git-common-dir" if repository.prefix.is_empty() => out.put(".git\n")?,
            "--git-dir" | "--git-common-dir" | "--absolute-git-dir" => {
                out.put(format!("{}\n", repository.shown.join(".git").display()))?;
            }
            "--is-inside-work-tree" => out.put("true\n")?,
            "--is-inside-git-dir" | "--is-bare-repository" | "--is-shallow-repository" => {
                let shallow = argument == "--is-shallow-repository" && repository.git.join("shallow").exists();
                out.put(format!("{shallow}\n"))?;
            }
            "--show-object-format" => out.put("sha1\n")?,
            "--verify" => verify = true,
            "-q" | "--quiet" => quiet = true,
            "--short" => short = Some(None),
            "--abbrev-ref" => names = true,
            "--symbolic-full-name" => symbolic = true,
            "--" | "--revs-only" | "--no-flags" | "--end-of-options" => {}
            option if option.starts_with("--short=") => {
                let digits = option.strip_prefix("--short=").unwrap_or_default();
                short = Some(Some(crate::options::number("--short", digits)?));
            }
            option if option.starts_with("--") => {
                return Err(Fault::unsupported(format_args!("the option `{option}` of `git rev-parse`")));
            }
            text => {
                let id = match revision::find(repository, text.strip_prefix('^').unwrap_or(text)) {
                    Ok(Some(id)) => id,
                    Ok(None) | Err(_) if quiet => return Ok(1),
                    Ok(None) if verify => return Err(Fault::fatal("Needed a single revision")),
                    Ok(None) => {
                        if let Some((from, to, _)) = super::diff::range(text).filter(|_| !verify) {
                            let head = |text: &str| if text.is_empty() { "HEAD".to_owned() } else { text.to_owned() };
                            let (from, to) = (
                                revision::resolve(repository, &head(from))?,
                                revision::resolve(repository, &head(to))?,
                            );
                            out.put(format!("{to}\n^{from}\n"))?;
                            continue;
                        }
                        out.put(format!("{text}\n"))?;
                        return Err(revision::unknown(text));
                    }
                    Err(fault) => {
                        out.put(format!("{text}\n"))?;
                        return Err(fault);
                    }
                };
                if names || symbolic {
                    if let Some(name) = name_of(repository, text, !names)? {
                        out.put(format!("{name}\n"))?;
                    }
                    continue;
                }
                let printed = match short {
                    Some(Some(digits)) => Short::with_digits(repository, digits).of(&id)?,
                    Some(None) => Short::new(repository).of(&id)?,
                    None => id.to_string(),
                };
                let mark = if text.starts_with('^') { "^" } else { "" };
                out.put(format!("{mark}{printed}\n"))?;
            }
        }
    }
    Ok(0)
}

/// The name of the reference that a word means.
fn name_of(repository: &Repository, text: &str, full: bool) -> Result<Option<String>> {
    let name = match text {
        "HEAD" | "@" => repository.refs.head()?.branch.unwrap_or_else(|| "HEAD".into()),
        _ => {
            if let Some(branch) = text.strip_suffix("@{u}").or_else(|| text.strip_suffix("@{upstream}")) {
                let branch = match branch {
                    "" | "HEAD" => repository.refs.head()?.branch,
                    name => repository.refs.expand(name.into())?.map(|(full, _)| full),
                };
                match branch {
                    Some(branch) => crate::history::upstream(repository, branch.as_bstr())?.unwrap_or_default(),
                    None => return Ok(None),
                }
            } else {
                match repository.refs.expand(text.into())? {
                    Some((full, _)) => full,
                    None => return Ok(None),
                }
            }
        }
    };
    let name = if full { name.as_bstr() } else { short_name(name.as_bstr()) };
    Ok(Some(quote::name(name).to_string()))
}
