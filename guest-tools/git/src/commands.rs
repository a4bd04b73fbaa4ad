//! The commands: one module each.

mod add;
mod branch;
mod commit;
mod configuration;
mod diff;
mod files;
mod init;
mod log;
mod ls_remote;
mod message;
mod pretty;
mod push;
mod remove;
mod restore;
mod rev_parse;
mod show;
mod status;
mod tracking;

use std::fs;
use std::path::Path;

use crate::Invocation;
use crate::error::{Fault, Result};
use crate::output::Output;
use crate::repository::{Repository, below};

/// The text of `git help`.
const HELP: &str = "usage: git [-C <path>] <command> [<args>]

Commands here, over the working tree and without starting a program:
   init status diff log show add rm commit restore reset checkout switch
   branch tag rev-parse ls-files ls-tree cat-file config

Commands over https, to the domains of the run only:
   push [-u] [-f] [-n] [--force-with-lease] [--delete] [--tags] [--all] [--atomic]
        [<remote> | <url>] [<refspec>...]
   ls-remote [<remote> | <url>] [<pattern>...]

A push is a write, and the owner may be asked about it. The call is then made
again from its start: commit in one call, and push in the next. No password
stands in a URL: name a credential of the vault, which the host fills in.
   git -c http.extraHeader='Authorization: Bearer <credential:NAME>' push
   git -c http.extraHeader=\"Authorization: Basic $(printf '%s' \\
     'USER:<credential:NAME>' | base64 -w0)\" push

There is no clone, fetch or pull, and there are no hooks, filters, editors,
pagers or signatures.
";

/// Commands that need a network, and those that rewrite or merge.
const ELSEWHERE: [(&[&str], &str); 4] = [
    (
        &["fetch", "pull", "clone", "remote-https", "send-email", "request-pull"],
        "only `push` and `ls-remote` reach a remote repository; the owner clones and fetches",
    ),
    (
        &["merge", "rebase", "cherry-pick", "revert", "am", "apply", "stash", "bisect", "filter-branch"],
        "only commits on the current branch are made here",
    ),
    (&["submodule", "worktree", "sparse-checkout", "lfs"], "one working tree without submodules is all there is"),
    (
        &["gc", "repack", "prune", "maintenance", "hook", "credential", "daemon", "gui", "difftool", "mergetool"],
        "it starts programs or rewrites the repository",
    ),
];

/// Reads the options in front of the command and runs it.
pub(crate) fn dispatch(call: Invocation, out: &mut Output) -> Result<i32> {
    let mut call = call;
    let mut arguments = std::mem::take(&mut call.arguments).into_iter();
    let mut overrides = Vec::new();
    let command = loop {
        let Some(argument) = arguments.next() else {
            out.put(HELP)?;
            return Ok(1);
        };
        let mut value =
            || arguments.next().ok_or_else(|| Fault::usage(format_args!("no value given for `{argument}`")));
        match argument.as_str() {
            "-C" => enter(&mut call, &value()?)?,
            "-c" => overrides.push(value()?),
            "--version" | "-v" => break "version".to_owned(),
            "--help" | "-h" => break "help".to_owned(),
            "--no-pager" | "-P" | "-p" | "--paginate" | "--no-optional-locks" | "--no-replace-objects" => {}
            option if option.starts_with('-') => {
                return Err(Fault::usage(format_args!("unknown option: {option}: it is not supported here")));
            }
            _ => break argument,
        }
    };
    call.arguments = arguments.collect();
    let open = |call: &Invocation| -> Result<Repository> {
        let mut repository = Repository::discover(call)?;
        repository.config.override_with(&overrides);
        Ok(repository)
    };
    let arguments = call.arguments.clone();
    match command.as_str() {
        "version" => out.put("git version 2.47.0 (motor, without processes)\n").map(|()| 0),
        "help" => out.put(HELP).map(|()| 0),
        "init" => init::run(&call, &arguments, out),
        "status" => status::run(&open(&call)?, &arguments, out),
        "diff" => diff::run(&open(&call)?, &arguments, out),
        "log" | "whatchanged" => log::run(&open(&call)?, &arguments, out),
        "show" => show::run(&open(&call)?, &arguments, out),
        "add" | "stage" => add::run(&open(&call)?, &arguments, out),
        "rm" => remove::run(&open(&call)?, &arguments, out),
        "commit" => commit::run(&open(&call)?, &arguments, out),
        "restore" => restore::restore(&open(&call)?, &arguments, out),
        "checkout" => restore::checkout(&open(&call)?, &arguments, out),
        "switch" => branch::switch(&open(&call)?, &arguments, out),
        "reset" => restore::reset(&open(&call)?, &arguments, out),
        "branch" => branch::run(&open(&call)?, &arguments, out),
        "tag" => branch::tags(&open(&call)?, &arguments, out),
        "rev-parse" => rev_parse::run(&open(&call)?, &arguments, out),
        "ls-files" => files::ls_files(&open(&call)?, &arguments, out),
        "ls-tree" => files::ls_tree(&open(&call)?, &arguments, out),
        "cat-file" => files::cat_file(&open(&call)?, &arguments, out),
        "push" => push::run(open(&call)?, &arguments, out),
        "ls-remote" => ls_remote::run(&open(&call)?, &arguments, out),
        "config" => configuration::run(open(&call)?, &arguments, out),
        other => Err(elsewhere(other)),
    }
}

fn elsewhere(command: &str) -> Fault {
    match ELSEWHERE.iter().find(|(names, _)| names.contains(&command)) {
        Some((_, reason)) => Fault::unsupported(format_args!("`git {command}`: {reason}")),
        None => Fault {
            code: 1,
            message: format!("git: '{command}' is not a git command here. See 'git --help' for those that are."),
        },
    }
}

/// The directory of the option `-C`.
fn enter(call: &mut Invocation, directory: &str) -> Result<()> {
    let missing = || Fault::fatal(format_args!("cannot change to '{directory}': No such file or directory"));
    let mut target = call.directory.clone();
    for component in Path::new(directory).components() {
        match component {
            std::path::Component::ParentDir => {
                target.pop();
            }
            std::path::Component::CurDir => {}
            component => target.push(component),
        }
    }
    let place = call.root.join(below(&call.shown, &target).map_err(|_| missing())?);
    if !fs::metadata(place).is_ok_and(|metadata| metadata.is_dir()) {
        return Err(missing());
    }
    call.directory = target;
    Ok(())
}
