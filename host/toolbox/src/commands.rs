//! The names that `--commands` chooses from. The shell has the commands themselves, and drops names that it does not know.

use base::text::{Foreign, did_you_mean, nearest};

/// The commands of the shell, as its component has them.
const COMMANDS: [&str; 108] = [
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

/// The shell's own words: always there, so a list of commands may name them without effect.
const BUILTINS: [&str; 36] = [
    "[", "alias", "bash", "break", "builtin", "cd", "command", "continue", "declare", "eval", "exec", "exit", "export",
    "false", "getopts", "hash", "let", "local", "mapfile", "popd", "pushd", "read", "readonly", "return", "set", "sh",
    "shift", "shopt", "source", "test", "trap", "true", "type", "unalias", "unset", "wait",
];

/// A warning for each name that is not a command of the shell, with the command that is probably meant.
#[must_use]
pub fn unknown_commands(names: &[String]) -> Vec<String> {
    let is_known = |name: &str| COMMANDS.contains(&name) || BUILTINS.contains(&name);
    let unknown = names.iter().filter(|name| !is_known(name));
    let warning = |name: &String| {
        let meant = did_you_mean(nearest(name, COMMANDS.map(|known| (known, known))));
        format!("`{}` is not a command of the shell{meant}", Foreign(name).escaped(40))
    };
    unknown.map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_component() {
        let source = include_str!("../../../guest-tools/bundled/bash/src/commands.rs");
        let (_, table) = source.split_once("COMMANDS: [&str;").unwrap();
        let (_, table) = table.split_once("= [").unwrap();
        let (table, _) = table.split_once("];").unwrap();
        let names: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
        assert_eq!(names, COMMANDS);
    }

    #[test]
    fn a_mistyped_command_is_named_with_the_one_that_is_meant() {
        let warnings =
            |names: &[&str]| unknown_commands(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(
            warnings(&["gerp", "sort", "qqq", "cd"]),
            ["`gerp` is not a command of the shell; did you mean `grep`?", "`qqq` is not a command of the shell"]
        );
        assert!(warnings(&["curl", "grep", "["]).is_empty());
    }
}
