//! The list of commands, and which of them a run may use.
//!
//! The interpreter looks every command up in one table, from any caller: a pipeline, `$(…)`, `eval`, `xargs`, `find
//! -exec`, `env`, a script in a file. So a command that is not allowed is not refused anywhere in particular: its code
//! is not in the table, and the entry in its place says so. It must not know how any command works. It survives every
//! way of spelling a name, because names are looked up after expansion.

use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, CommandResolver, ExecResult, async_trait};

/// Commands that do something beside moving the shell itself along: those that an allow-list chooses from.
pub(crate) const COMMANDS: [&str; 108] = [
    "awk",
    "base32",
    "base64",
    "basename",
    "bc",
    "bunzip2",
    "bzcat",
    "bzip2",
    "cat",
    "chmod",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cp",
    "curl",
    "cut",
    "date",
    "dd",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "egrep",
    "env",
    "envsubst",
    "expand",
    "expr",
    "factor",
    "fgrep",
    "file",
    "find",
    "fmt",
    "fold",
    "gawk",
    "git",
    "grep",
    "gunzip",
    "gzip",
    "head",
    "hexdump",
    "hostname",
    "iconv",
    "id",
    "join",
    "jq",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nice",
    "nl",
    "nohup",
    "numfmt",
    "od",
    "paste",
    "patch",
    "printenv",
    "printf",
    "pwd",
    "python",
    "python3",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shuf",
    "sleep",
    "sort",
    "split",
    "stat",
    "strings",
    "tac",
    "tail",
    "tar",
    "tee",
    "timeout",
    "touch",
    "tr",
    "tree",
    "truncate",
    "tsort",
    "uname",
    "unexpand",
    "uniq",
    "unlink",
    "unzip",
    "uuidgen",
    "wc",
    "which",
    "whoami",
    "xargs",
    "xxd",
    "yes",
    "yq",
    "zip",
];

/// The shell itself: commands that change or test its own state, and ones that run commands looked up in turn.
const SHELL: [&str; 52] = [
    ".",
    ":",
    "[",
    "alias",
    "bash",
    "bg",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "continue",
    "declare",
    "dirs",
    "disown",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fg",
    "getopts",
    "hash",
    "jobs",
    "kill",
    "let",
    "local",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "sh",
    "shift",
    "shopt",
    "source",
    "test",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
    "help",
    "enable",
];

/// The commands that run a script in Python. They are there only where the host has its engine.
pub(crate) const PYTHON: [&str; 2] = ["python", "python3"];

/// Commands that people look for, and the replacement for each.
const ELSEWHERE: [(&[&str], &str); 4] = [
    (
        &["node", "nodejs", "npx", "npm", "deno", "bun", "tsx", "ts-node", "python2", "perl", "ruby", "php", "lua"],
        "there is no interpreter for it here; use the `code` tool to run JavaScript",
    ),
    (&["pip", "pip3", "pipx", "uv", "uvx", "poetry", "conda"], "nothing can be installed here"),
    (&["wget", "http"], "use `curl`"),
    (
        &["ssh", "scp", "sftp", "rsync", "nc", "telnet", "ftp", "sudo", "su", "docker", "apt", "apt-get"],
        "no process can be started here",
    ),
];

/// The commands a run may use beside the shell itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// Every command there is.
    All,
    /// These. The list can only narrow: names that are not commands here are left out.
    Only(Vec<String>),
}

impl Allowed {
    /// Reads the list as the host writes it: names with commas between; empty for no commands; absent for all.
    pub(crate) fn parse(list: Option<&str>) -> Self {
        match list {
            None => Self::All,
            Some(list) => {
                let mut names: Vec<String> =
                    list.split(',').map(str::trim).filter(|name| is_command(name)).map(str::to_owned).collect();
                names.sort();
                names.dedup();
                Self::Only(names)
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|allowed| allowed == name),
        }
    }

    /// Whether the interpreter may have its own code for this name.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        SHELL.contains(&name) || (is_command(name) && self.has(name))
    }

    /// The commands that a run may not use.
    pub(crate) fn forbidden(&self) -> impl Iterator<Item = &'static str> + '_ {
        commands().filter(|name| !self.has(name))
    }

    /// The answer of a forbidden command.
    pub(crate) fn refusal(&self, name: &str) -> Refused {
        let list = match self {
            Self::Only(names) if !names.is_empty() => format!("allowed are {}", names.join(", ")),
            _ => "allowed is only what the shell does itself".to_owned(),
        };
        Refused { message: format!("bash: {name}: not allowed in this run: {list}\n"), code: 126 }
    }
}

/// The names of all commands.
pub(crate) fn commands() -> impl Iterator<Item = &'static str> {
    COMMANDS.into_iter()
}

fn is_command(name: &str) -> bool {
    COMMANDS.contains(&name)
}

/// Stands where a command's code would be.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    message: String,
    code: i32,
}

#[async_trait]
impl Builtin for Refused {
    async fn execute(&self, _context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult::err(self.message.clone(), self.code))
    }
}

/// Says where to turn instead, for names that are known not to be commands here. They are not found, not refused: a
/// script that asks with `command -v` gets the truth.
#[derive(Debug)]
pub(crate) struct Hints {
    /// Why there is no Python in this call.
    pub no_python: Option<String>,
}

impl Hints {
    fn hint(&self, name: &str) -> Option<&str> {
        if PYTHON.contains(&name) {
            return self.no_python.as_deref();
        }
        ELSEWHERE.iter().find(|(names, _)| names.contains(&name)).map(|(_, hint)| *hint)
    }
}

impl CommandResolver for Hints {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        let hint = self.hint(name)?;
        Some(Arc::new(Refused { message: format!("bash: {name}: command not found: {hint}\n"), code: 127 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_only_narrows() {
        let check = |list: Option<&str>, kept: &[&str], dropped: &[&str]| {
            let allowed = Allowed::parse(list);
            for name in kept {
                assert!(allowed.keeps(name), "{list:?} {name}");
            }
            for name in dropped {
                assert!(!allowed.keeps(name), "{list:?} {name}");
            }
        };
        check(
            None,
            &["cat", "curl", "cd", "yq"],
            &["node", "ssh", "http", "wget", "parallel", "make", "sudo", "busybox"],
        );
        check(Some(""), &["cd", "[", "eval"], &["echo", "cat", "curl", "awk"]);
        check(Some(" cat , jq,"), &["cat", "jq", "set"], &["echo", "curl", "yq"]);
        check(Some("git,node,*,ssh,http"), &["cd", "git"], &["node", "cat", "ssh", "http", "*"]);
        check(Some("CAT"), &[], &["cat", "CAT"]);
    }

    #[test]
    fn no_name_is_twice() {
        let mut names: Vec<_> = commands().chain(SHELL).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
