//! Files that a program runs later: a change of one is named before it is landed.

/// Names of files, in lower case, with the program that runs them.
const NAMES: [(&str, &str); 46] = [
    (".bash_aliases", "a shell runs it"),
    (".bash_login", "a shell runs it"),
    (".bash_logout", "a shell runs it"),
    (".bash_profile", "a shell runs it"),
    (".bashrc", "a shell runs it"),
    (".envrc", "direnv runs it"),
    (".gitattributes", "git runs the filters that it names"),
    (".gitlab-ci.yml", "continuous integration runs it"),
    (".gitmodules", "git fetches what it names"),
    (".npmrc", "npm follows it"),
    (".pre-commit-config.yaml", "git runs its hooks"),
    (".profile", "a shell runs it"),
    (".travis.yml", "continuous integration runs it"),
    (".vimrc", "an editor runs it"),
    (".zprofile", "a shell runs it"),
    (".zshenv", "a shell runs it"),
    (".zshrc", "a shell runs it"),
    ("agents.md", "agents follow it"),
    ("build.gradle", "gradle runs it"),
    ("build.gradle.kts", "gradle runs it"),
    ("build.rs", "cargo runs it"),
    ("cargo.toml", "cargo follows it"),
    ("claude.md", "agents follow it"),
    ("cmakelists.txt", "cmake runs it"),
    ("compose.yaml", "docker runs it"),
    ("compose.yml", "docker runs it"),
    ("conftest.py", "pytest runs it"),
    ("crontab", "cron runs it"),
    ("docker-compose.yaml", "docker runs it"),
    ("docker-compose.yml", "docker runs it"),
    ("gemfile", "bundler runs it"),
    ("gemini.md", "agents follow it"),
    ("jenkinsfile", "continuous integration runs it"),
    ("justfile", "just runs it"),
    ("meson.build", "meson runs it"),
    ("noxfile.py", "nox runs it"),
    ("package.json", "npm runs its scripts"),
    ("pom.xml", "maven runs it"),
    ("procfile", "it names programs to run"),
    ("pyproject.toml", "python builds follow it"),
    ("rakefile", "rake runs it"),
    ("setup.cfg", "python builds follow it"),
    ("setup.py", "python builds run it"),
    ("skill.md", "agents follow it"),
    ("tox.ini", "tox runs it"),
    ("vagrantfile", "vagrant runs it"),
];
/// Beginnings of names, in lower case.
const BEGINNINGS: [(&str, &str); 4] = [
    ("dockerfile", "docker runs it"),
    ("makefile", "make runs it"),
    ("gnumakefile", "make runs it"),
    ("containerfile", "docker runs it"),
];
/// Ends of names, in lower case.
const ENDS: [(&str, &str); 14] = [
    (".bash", "a shell runs it"),
    (".bat", "a shell runs it"),
    (".cmd", "a shell runs it"),
    (".command", "a shell runs it"),
    (".desktop", "the desktop runs it"),
    (".fish", "a shell runs it"),
    (".mk", "make runs it"),
    (".plist", "the system may run it"),
    (".ps1", "a shell runs it"),
    (".service", "the system runs it"),
    (".sh", "a shell runs it"),
    (".timer", "the system runs it"),
    (".wasm", "it is a program"),
    (".zsh", "a shell runs it"),
];
/// Directories, with `/` at both ends.
const DIRECTORIES: [(&str, &str); 10] = [
    ("/.cargo/", "cargo follows it"),
    ("/.circleci/", "continuous integration runs it"),
    ("/.claude/", "agents follow it"),
    ("/.cursor/", "agents follow it"),
    ("/.devcontainer/", "an editor runs it"),
    ("/.github/", "continuous integration runs it"),
    ("/.githooks/", "git runs it"),
    ("/.husky/", "git runs it"),
    ("/.vscode/", "an editor follows it"),
    ("/.idea/", "an editor follows it"),
];

/// The program that runs a file later, if one is known. `beginning` is the start of its content.
pub fn later(path: &str, executable: bool, beginning: &[u8]) -> Option<&'static str> {
    let path = format!("/{}", path.to_lowercase());
    let name = path.rsplit('/').next().unwrap_or_default();
    let of = |table: &[(&str, &'static str)], matches: &dyn Fn(&str) -> bool| {
        table.iter().find(|(known, _)| matches(known)).map(|(_, why)| *why)
    };
    of(&NAMES, &|known| name == known)
        .or_else(|| {
            of(&BEGINNINGS, &|known| {
                name.strip_prefix(known).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
            })
        })
        .or_else(|| of(&ENDS, &|known| name.ends_with(known)))
        .or_else(|| of(&DIRECTORIES, &|known| path.contains(known)))
        .or_else(|| executable.then_some("it is executable"))
        .or_else(|| beginning.starts_with(b"#!").then_some("it is a script"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_later_is_named_and_prose_is_not() {
        for path in [
            "Makefile",
            "makefile.am",
            "a/.github/workflows/ci.yml",
            "x/SKILL.md",
            "tools/go.sh",
            "build.rs",
            "Dockerfile.dev",
        ] {
            assert!(later(path, false, b"").is_some(), "{path}");
        }
        assert_eq!(later("run", false, b"#!/bin/sh\n"), Some("it is a script"));
        assert_eq!(later("run", true, b""), Some("it is executable"));
        for path in ["README.md", "src/main.rs", "makefiles/notes.txt", "makefilenames.txt", "data.json"] {
            assert_eq!(later(path, false, b"text"), None, "{path}");
        }
    }
}
