//! Commands and languages that a skill uses and that no tool here runs.
//!
//! An advance notice, not a limit: the shell refuses such a command by itself. Only names of the table are reported,
//! since any word may be a function of the script or output that a document shows.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::facts::MAX_PLACES;
use super::text::{self, Lines, is_markdown, shell_parts};
use super::{FileKind, Unavailable};
use crate::Snapshot;

/// Maximum entries of a skill.
const MAX_ENTRIES: usize = 200;

/// The commands of the shell that run Python, and the entry for scripts: they work where the host has the engine.
const PYTHON: [&str; 2] = ["python", "python3"];
const PYTHON_SCRIPTS: &str = "Python scripts";
const NO_PYTHON: &str = "this host was built without Python (`cargo xtask python`)";

/// Whether an entry with this name is only for hosts without an engine for Python.
#[must_use]
pub fn needs_python(name: &str) -> bool {
    PYTHON.contains(&name) || name == PYTHON_SCRIPTS
}

/// Commands that the shell does not have, and the replacement for each group.
const COMMANDS: [(&[&str], &str); 9] = [
    (&PYTHON, NO_PYTHON),
    (
        &[
            "bun",
            "bunx",
            "deno",
            "node",
            "nodejs",
            "ts-node",
            "tsx",
            "npx",
            "perl",
            "php",
            "python2",
            "Rscript",
            "ruby",
            "lua",
            "java",
            "pwsh",
            "powershell",
            "osascript",
            "swift",
            "julia",
            "elixir",
        ],
        "there are no interpreters; `code` runs JavaScript",
    ),
    (
        &[
            "npm", "pnpm", "yarn", "pip", "pip3", "pipx", "uv", "uvx", "poetry", "conda", "gem", "bundle", "composer",
            "cargo", "rustup", "brew", "apt", "apt-get", "yum", "dnf", "apk", "pacman", "winget", "choco", "snap",
            "nix", "asdf", "nvm", "clawhub", "skills",
        ],
        "packages are not fetched",
    ),
    (
        &[
            "cmake",
            "dotnet",
            "g++",
            "gcc",
            "clang",
            "go",
            "gradle",
            "javac",
            "make",
            "mvn",
            "ninja",
            "rustc",
            "tsc",
            "swiftc",
            "xcodebuild",
            "pytest",
            "jest",
            "vitest",
            "eslint",
            "ruff",
            "mypy",
            "black",
        ],
        "there are no compilers and test runners",
    ),
    (
        &[
            "docker",
            "docker-compose",
            "podman",
            "kubectl",
            "helm",
            "minikube",
            "kind",
            "terraform",
            "ansible",
            "ansible-playbook",
            "pulumi",
            "vagrant",
            "systemctl",
            "service",
            "launchctl",
            "crontab",
            "sudo",
            "su",
            "doas",
            "tmux",
            "screen",
            "kubeadm",
            "argocd",
            "istioctl",
        ],
        "no process can be started and no service managed",
    ),
    (
        &[
            "aws", "az", "gcloud", "gsutil", "gh", "glab", "heroku", "vercel", "netlify", "wrangler", "flyctl", "fly",
            "stripe", "firebase", "supabase", "azd", "op", "claude", "codex", "gemini", "openclaw",
        ],
        "its API can be reached with `curl`, if its domain is granted",
    ),
    (&["wget", "http", "httpie", "aria2c"], "use `curl`"),
    (
        &[
            "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "telnet", "ftp", "ping", "dig", "nslookup", "nmap",
            "openssl",
        ],
        "only HTTP through the gate leaves a run",
    ),
    (
        &[
            "ffmpeg",
            "ffprobe",
            "convert",
            "magick",
            "pandoc",
            "pdftotext",
            "pdftoppm",
            "qpdf",
            "libreoffice",
            "soffice",
            "tesseract",
            "yt-dlp",
            "chromium",
            "google-chrome",
            "playwright",
            "psql",
            "mysql",
            "sqlite3",
            "redis-cli",
            "mongosh",
            "open",
            "xdg-open",
            "pbcopy",
            "pbpaste",
            "xclip",
        ],
        "no such program is here; `code` may be able to replace it",
    ),
];

/// Extensions of programs in languages that no tool runs, and the name of each language.
const LANGUAGES: [(&str, &str); 18] = [
    ("py", "Python"),
    ("ts", "TypeScript"),
    ("mts", "TypeScript"),
    ("tsx", "TypeScript"),
    ("jsx", "JSX"),
    ("rb", "Ruby"),
    ("pl", "Perl"),
    ("php", "PHP"),
    ("go", "Go"),
    ("rs", "Rust"),
    ("java", "Java"),
    ("c", "C"),
    ("r", "R"),
    ("lua", "Lua"),
    ("ps1", "PowerShell"),
    ("bat", "Windows batch"),
    ("cmd", "Windows batch"),
    ("swift", "Swift"),
];
const NO_INTERPRETER: &str = "only shell scripts and JavaScript are run";

/// Places in a shell part where a command begins.
static POSITION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^[ \t>]*(?:[$%] )?|[|;&(`]").ok());
/// Words that another command follows.
const BEFORE: [&str; 16] = [
    "!", "command", "do", "doas", "elif", "else", "env", "exec", "if", "nohup", "sudo", "then", "time", "until",
    "while", "xargs",
];
/// A command with an argument as code within a line of Markdown.
static INLINE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"`(?:[$] ?|sudo )?([A-Za-z][\w.+-]*) [^`\n]+`").ok());

/// Everything in a skill that will not work here, by name.
pub(crate) fn find(snapshot: &Snapshot) -> Vec<Unavailable> {
    let mut found: BTreeMap<String, Unavailable> = BTreeMap::new();
    for (path, file) in &snapshot.files {
        if let Some(language) = language(path).filter(|_| text::is_script(path, &file.bytes, file.mode)) {
            let name = format!("{language} scripts");
            let instead = if name == PYTHON_SCRIPTS { NO_PYTHON } else { NO_INTERPRETER };
            add(&mut found, &name, instead, path.clone());
        }
        let text::Text { kind: FileKind::Text, text: Some(text), .. } = text::read(path, &file.bytes) else { continue };
        let lines = Lines::of(&text);
        let mut named = commands(path, &text);
        named.sort_by_key(|(_, at)| *at);
        for (name, at) in named {
            if let Some(instead) = instead(name) {
                add(&mut found, name, instead, format!("{path}:{}", lines.at(at)));
            }
        }
    }
    found.into_values().take(MAX_ENTRIES).collect()
}

fn add(found: &mut BTreeMap<String, Unavailable>, name: &str, instead: &str, place: String) {
    let entry = found.entry(name.to_owned()).or_insert_with(|| Unavailable {
        name: name.to_owned(),
        instead: instead.to_owned(),
        at: Vec::new(),
    });
    if entry.at.len() < MAX_PLACES && !entry.at.contains(&place) {
        entry.at.push(place);
    }
}

fn commands<'a>(path: &str, text: &'a str) -> Vec<(&'a str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for part in shell_parts(path, text) {
        let Some(content) = text.get(part.clone()) else { continue };
        for position in POSITION.iter().flat_map(|position| position.find_iter(content)) {
            push_words(&mut found, content, position.end(), part.start);
        }
    }
    if is_markdown(path) {
        for captures in INLINE.iter().flat_map(|inline| inline.captures_iter(text)) {
            found.extend(captures.get(1).map(|name| (name.as_str(), name.start())));
        }
    }
    found
}

/// The command at a position, and the ones that it runs in turn: `sudo make` is two.
fn push_words<'a>(found: &mut Vec<(&'a str, usize)>, content: &'a str, mut at: usize, base: usize) {
    let line = content.get(at..).and_then(|rest| rest.split('\n').next()).unwrap_or_default();
    for word in line.split_inclusive([' ', '\t']) {
        let bare = word.trim_end();
        let name = bare.trim_end_matches([';', '|', '&', ')', '`', '"']);
        let skipped = bare.is_empty() || bare.starts_with('-') || bare.contains('=');
        if !skipped {
            found.push((name, base + at));
            if !BEFORE.contains(&bare) {
                return;
            }
        }
        at += word.len();
    }
}

fn instead(name: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead)
}

fn language(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (_, extension) = name.rsplit_once('.')?;
    LANGUAGES.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known)).map(|(_, language)| *language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SkillForm;

    fn check(files: &[(&str, &str)], expected: &[(&str, &[&str])]) {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (text.as_bytes().to_vec(), 0o644))).collect();
        let found = find(&Snapshot::of::<Vec<u8>>(SkillForm::Directory, files, None));
        let found: Vec<(&str, Vec<&str>)> =
            found.iter().map(|one| (one.name.as_str(), one.at.iter().map(String::as_str).collect())).collect();
        let expected: Vec<(&str, Vec<&str>)> = expected.iter().map(|(name, at)| (*name, at.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn commands_that_are_not_here_are_named_with_their_places() {
        let text = "Use node.\n```bash\n$ npx create x && python3 a.py\nFOO=1 npm test | tee x\nnode\n```\nThen `pip install x`.\n";
        check(
            &[("SKILL.md", text)],
            &[
                ("node", &["SKILL.md:5"]),
                ("npm", &["SKILL.md:4"]),
                ("npx", &["SKILL.md:3"]),
                ("pip", &["SKILL.md:7"]),
                ("python3", &["SKILL.md:3"]),
            ],
        );
        check(
            &[("run.sh", "#!/bin/sh\nif x; then docker ps; fi\nsudo make\n")],
            &[("docker", &["run.sh:2"]), ("make", &["run.sh:3"]), ("sudo", &["run.sh:3"])],
        );
    }

    #[test]
    fn every_pattern_compiles() {
        assert!(POSITION.is_some() && INLINE.is_some());
    }

    #[test]
    fn what_works_here_is_not_named() {
        let shell =
            "cat a | jq . > b\ngit log --oneline\ncurl -s https://x.example | sort\necho node npm\n# npm is not used\n";
        check(&[("run.sh", shell), ("scripts/a.js", "return 1"), ("a.md", "Run `node` or go on; make it so.")], &[]);
    }

    #[test]
    fn scripts_in_other_languages_are_named() {
        check(
            &[("scripts/a.py", "x = 1"), ("scripts/b.py", ""), ("scripts/c.ts", ""), ("d.js", "")],
            &[("Python scripts", &["scripts/a.py", "scripts/b.py"]), ("TypeScript scripts", &["scripts/c.ts"])],
        );
    }

    #[test]
    fn the_table_names_no_command_of_the_shell() {
        let source = include_str!("../../../../guest-tools/bundled/bash/src/commands.rs");
        let (here, _) = source.split_once("/// Commands that people look for").unwrap();
        let (_, here) = here.split_once("const COMMANDS").unwrap();
        for name in COMMANDS.iter().flat_map(|(names, _)| *names).filter(|name| !needs_python(name)) {
            assert!(!here.contains(&format!("\n    \"{name}\",")), "{name} is a command of the shell");
        }
        assert!(here.contains("\n    \"jq\","));
        assert!(PYTHON.iter().all(|name| here.contains(&format!("\n    \"{name}\","))));
    }
}
