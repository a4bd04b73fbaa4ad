//! Names of credentials that text mentions: variables that its programs would read from their environment, and requests
//! to the host for a secret.
//!
//! A finding is a fact about the text, not about its behaviour: a program can hide a name. Findings grant nothing.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::text::shell_parts;

/// Reads of the environment in the languages that skills are written in, and placeholders for secrets of the host.
static READS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    // Constant patterns, and a test compiles each.
    READ_PATTERNS.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
});

const READ_PATTERNS: [&str; 9] = [
    // JavaScript: `process.env.X`, `process.env?.X`, `process.env["X"]`.
    r#"\b(?:process|Bun|import\.meta)\s*\.\s*env\s*\??\.\s*([A-Za-z_][A-Za-z0-9_]*)"#,
    r#"\b(?:process|Bun|import\.meta)\s*\.\s*env\s*(?:\?\.)?\s*\[\s*["'`]([A-Za-z_][A-Za-z0-9_-]*)["'`]"#,
    // Python: `os.environ["X"]`, `os.environ.get("X")`.
    r#"\benviron\s*(?:\.\s*(?:get|pop|setdefault)\s*\(|\[)\s*[rbfu]?["']([A-Za-z_][A-Za-z0-9_-]*)["']"#,
    // C and its descendants, Python, Go, Rust, Deno.
    r#"(?i:getenv|lookupenv|\benv::var(?:_os)?|\b(?:option_)?env!|\bDeno\s*\.\s*env\s*\.\s*get)\s*\(\s*[rbfu]?["'`]([A-Za-z_][A-Za-z0-9_-]*)["'`]"#,
    // Ruby, Perl, PowerShell.
    r#"\bENV\s*(?:\.fetch\s*\(|\[)\s*["']([A-Za-z_][A-Za-z0-9_-]*)["']"#,
    r#"\$ENV\{\s*["']?([A-Za-z_][A-Za-z0-9_]*)["']?\s*\}|\$(?i:env):([A-Za-z_][A-Za-z0-9_]*)"#,
    // The host's own names and placeholders.
    r"\b(VAULT_[A-Za-z0-9_]*[A-Za-z0-9])\b",
    r"<credential:([A-Za-z][A-Za-z0-9_-]{0,63})>",
    // Names that look like secrets, in prose too: a model is told to use them.
    r"\b([A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*?(?:API_?KEY|ACCESS_KEY(?:_ID)?|SECRET_KEY|PRIVATE_KEY|API_TOKEN|ACCESS_TOKEN|AUTH_TOKEN|BOT_TOKEN|CLIENT_SECRET))\b",
];

/// Names that end like a secret, in prose.
static TELLING: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b([A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*?(?:TOKEN|PASSWORD|PASSWD|SECRET))\b").ok());
/// First words of such names that are limits, marks of a model's vocabulary, places in a list, and codes of errors.
const NOT_SECRET: [&str; 25] = [
    "BOS", "CHANGE", "CLS", "END", "EOS", "EXPIRED", "FORGOT", "IMAGE", "INVALID", "MASK", "MAX", "MIN", "MISSING",
    "NEXT", "NO", "NUM", "PAD", "PAGE", "RESET", "SEP", "SPECIAL", "START", "STOP", "UNK", "WRONG",
];

/// `const { X, Y: z } = process.env`.
static TAKEN_APART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{([^{}]{1,300})\}\s*=\s*(?:process|Bun|import\.meta)\s*\.\s*env\b").ok());
/// A shell variable: `$X` or `${X}`.
static VARIABLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$(?:\{[#!]?([A-Za-z_][A-Za-z0-9_]*)|([A-Za-z_][A-Za-z0-9_]*))").ok());
/// `X=`, `for X in`, `read X`.
static ASSIGNED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)(?:^|[;&|(]|\b(?:export|local|readonly|declare|typeset)\b(?:[ \t]+-\w+)*)[ \t]*([A-Za-z_][A-Za-z0-9_]*)\+?=|\bfor[ \t]+([A-Za-z_]\w*)[ \t]+in\b|\bread[ \t]+(?:-\w+[ \t]+)*([A-Za-z_]\w*)").ok()
});

/// Variables that every environment has, and those that configure programs and hold no secret.
const KNOWN: [&str; 81] = [
    "APPDATA",
    "BASE_URL",
    "BASH",
    "BASHPID",
    "BASH_SOURCE",
    "BASH_VERSION",
    "CI",
    "COLORTERM",
    "COLUMNS",
    "COMSPEC",
    "DEBUG",
    "DEV",
    "DISPLAY",
    "EDITOR",
    "EUID",
    "FORCE_COLOR",
    "FUNCNAME",
    "GOPATH",
    "GOROOT",
    "GROUPS",
    "HISTFILE",
    "HOME",
    "HOST",
    "HOSTNAME",
    "HOSTTYPE",
    "IFS",
    "JAVA_HOME",
    "LANG",
    "LANGUAGE",
    "LINENO",
    "LINES",
    "LOCALAPPDATA",
    "LOGNAME",
    "MACHTYPE",
    "MODE",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NO_COLOR",
    "OLDPWD",
    "OPTARG",
    "OPTERR",
    "OPTIND",
    "OSTYPE",
    "PAGER",
    "PATH",
    "PIPESTATUS",
    "PORT",
    "PPID",
    "PROD",
    "PROGRAMFILES",
    "ProgramFiles",
    "PS1",
    "PS2",
    "PS4",
    "PWD",
    "PYTHONPATH",
    "RANDOM",
    "REPLY",
    "SECONDS",
    "SHELL",
    "SHLVL",
    "SSR",
    "SYSTEMROOT",
    "SystemRoot",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "UID",
    "USER",
    "USERNAME",
    "USERPROFILE",
    "VARIABLE",
    "VERBOSE",
    "VIRTUAL_ENV",
    "VISUAL",
    "WINDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// Last words of names of settings, such as `OUTPUT_DIR`.
const SETTINGS: [&str; 34] = [
    "ADDR",
    "ADDRESS",
    "ARCH",
    "BRANCH",
    "COUNT",
    "DATE",
    "DESCRIPTION",
    "DIR",
    "DIRECTORY",
    "ENDPOINT",
    "EXIT",
    "FILE",
    "FLAGS",
    "FORMAT",
    "FROM",
    "HOST",
    "INPUT",
    "LEVEL",
    "LIMIT",
    "MODE",
    "MODEL",
    "NAME",
    "OPTS",
    "OS",
    "PATH",
    "PORT",
    "REGION",
    "RETRIES",
    "ROOT",
    "SIZE",
    "STATUS",
    "TIMEOUT",
    "TIMESTAMP",
    "VERSION",
];

/// Words that make a setting one of a secret, such as `KEY_PATH`.
const OPENS: [&str; 8] = ["AUTH", "CERT", "COOKIE", "KEY", "KEYS", "PASS", "PEM", "SESSION"];

/// Words of names that a shell's variable needs to be counted, unless it indicates a secret: others are a script's own
/// parameters, such as `BRANCH` and `URL`.
const PERSONAL: [&str; 24] = [
    "ACCOUNT", "AUTH", "CERT", "CLIENT", "COOKIE", "CREDS", "DATABASE", "DB", "DSN", "KEY", "KEYS", "LOGIN", "MONGO",
    "MONGODB", "PASS", "PEM", "POSTGRES", "PWD", "REDIS", "RPC", "SESSION", "TENANT", "USER", "WEBHOOK",
];

/// Variables of awk, which a shell does not expand.
const AWK: [&str; 14] =
    ["ARGC", "ARGV", "ENVIRON", "FILENAME", "FNR", "FS", "NF", "NR", "OFS", "ORS", "RLENGTH", "RS", "RSTART", "SUBSEP"];

/// Parts of variable names that indicate a secret.
const SECRET: [&str; 8] = ["token", "secret", "passw", "credential", "api_key", "apikey", "access_key", "private_key"];

/// The names in a text with their byte offsets, unordered.
pub(super) fn find(path: &str, text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut add = |name: &str, at: usize| {
        if !is_known(name) {
            found.push((name.to_owned(), at));
        }
    };
    for read in READS.iter() {
        for captures in read.captures_iter(text) {
            if let Some(name) = captures.iter().skip(1).flatten().next() {
                add(name.as_str(), name.start());
            }
        }
    }
    for name in TELLING.iter().flat_map(|telling| telling.captures_iter(text)).filter_map(|captures| captures.get(1)) {
        let first = name.as_str().split('_').next();
        if first.is_none_or(|first| !NOT_SECRET.contains(&first)) {
            add(name.as_str(), name.start());
        }
    }
    for captures in TAKEN_APART.iter().flat_map(|taken| taken.captures_iter(text)) {
        let Some(names) = captures.get(1) else { continue };
        for part in names.as_str().split(',') {
            let name = part.split([':', '=']).next().unwrap_or_default().trim();
            let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
            if !name.is_empty() && name.chars().all(is_name) {
                add(name, names.start());
            }
        }
    }
    for part in shell_parts(path, text) {
        for (name, at) in shell_variables(text.get(part.clone()).unwrap_or_default()) {
            add(&name, part.start + at);
        }
    }
    found
}

/// Variables that a shell would take from its environment: those assigned further up are the script's own. A name that
/// indicates a secret is always reported.
fn shell_variables(text: &str) -> Vec<(String, usize)> {
    let mut assigned: BTreeMap<&str, usize> = BTreeMap::new();
    for captures in ASSIGNED.iter().flat_map(|assigned| assigned.captures_iter(text)) {
        if let Some(name) = captures.iter().skip(1).flatten().next() {
            // Its value may name the variable itself: it counts from the next line on.
            assigned.entry(name.as_str()).or_insert_with(|| {
                let rest = text.get(name.end()..).unwrap_or_default();
                rest.find('\n').map_or(text.len(), |length| name.end() + length)
            });
        }
    }
    let variables = VARIABLE.iter().flat_map(|variable| variable.captures_iter(text));
    let names = variables.filter_map(|captures| captures.iter().skip(1).flatten().next());
    let of_environment = names.filter(|name| {
        let is_own = || assigned.get(name.as_str()).is_some_and(|from| *from <= name.start());
        let is_constant = || !name.as_str().bytes().any(|byte| byte.is_ascii_lowercase());
        is_secret(name.as_str()) || is_constant() && is_personal(name.as_str()) && !is_own()
    });
    of_environment.map(|name| (name.as_str().to_owned(), name.start())).collect()
}

fn is_known(name: &str) -> bool {
    let is_setting = || {
        let last = name.rsplit('_').next();
        last.is_some_and(|word| SETTINGS.contains(&word)) && !name.split('_').any(|word| OPENS.contains(&word))
    };
    let is_of_a_shell = name.starts_with("LC_") || name.starts_with("BASH_") || AWK.contains(&name);
    let is_placeholder = || name.starts_with("YOUR_") || name.bytes().all(|byte| byte == b'_');
    let is_plain = || !is_secret(name) && (is_setting() || name.ends_with("_BASE_URL"));
    is_of_a_shell || KNOWN.contains(&name) || is_placeholder() || is_plain()
}

/// Whether a word of the name is one of secrets and accounts.
fn is_personal(name: &str) -> bool {
    name.split('_').any(|word| PERSONAL.contains(&word))
}

/// Whether a name indicates a secret.
fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        let found = find(path, text);
        let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected.iter().copied().collect(), "{text}");
        assert!(found.iter().all(|(name, at)| text[*at..].starts_with(name) || text[*at..].contains(name)), "{text}");
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(READS.len(), READ_PATTERNS.len());
        assert!(TELLING.is_some() && TAKEN_APART.is_some() && VARIABLE.is_some() && ASSIGNED.is_some());
    }

    #[test]
    fn environment_in_any_language() {
        for text in [
            "process.env.MY_KEY",
            "process . env\n?.MY_KEY",
            "process.env[\"MY_KEY\"]",
            "process.env['MY_KEY']",
            "process.env?.[`MY_KEY`]",
            "const { NODE_ENV, MY_KEY: key = 'x' } = process.env",
            "import.meta.env.MY_KEY",
            "os.environ[\"MY_KEY\"]",
            "os.environ['MY_KEY']",
            "environ.get('MY_KEY', None)",
            "os.environ.setdefault(\"MY_KEY\", \"\")",
            "os.getenv(\"MY_KEY\")",
            "os.Getenv(`MY_KEY`)",
            "os.LookupEnv(\"MY_KEY\")",
            "System.getenv(\"MY_KEY\")",
            "std::env::var(\"MY_KEY\")",
            "env::var_os( \"MY_KEY\" )",
            "option_env!(\"MY_KEY\")",
            "Deno.env.get(\"MY_KEY\")",
            "ENV[\"MY_KEY\"] ENV.fetch('PATH')",
            "$ENV{MY_KEY} $env:MY_KEY",
            "<credential:MY_KEY> <credential:1> <credential:",
        ] {
            check("a.txt", text, &["MY_KEY"]);
        }
    }

    #[test]
    fn ours_and_telling_names_anywhere() {
        check("SKILL.md", "use VAULT_MAIL_KEY here, VAULT_ is none", &["VAULT_MAIL_KEY"]);
        check(
            "SKILL.md",
            "Set OPENAI_API_KEY and AWS_ACCESS_KEY_ID, not MAX_TOKEN",
            &["AWS_ACCESS_KEY_ID", "OPENAI_API_KEY"],
        );
        check(
            "SKILL.md",
            "Set `GITHUB_TOKEN` and DB_PASSWORD. Send $NOTION_TOKEN; `curl -H \"token: $SLACK_TOKEN\"`, sign with HOOK_SECRET",
            &["DB_PASSWORD", "GITHUB_TOKEN", "HOOK_SECRET", "NOTION_TOKEN", "SLACK_TOKEN"],
        );
        check(
            "SKILL.md",
            "MAX_TOKEN, NEXT_PAGE_TOKEN, EOS_TOKEN, INVALID_TOKEN, YOUR_JWT_TOKEN, TOKEN, GITHUB_TOKENS",
            &[],
        );
        check("SKILL.md", "<credential:agentmail_api_key>", &["agentmail_api_key"]);
    }

    #[test]
    fn shell_only_where_a_shell_reads() {
        check(
            "a.sh",
            "curl -H \"x: $MY_KEY\" ${OTHER_PASS:-} $1 $? ${#DATABASE_URL} $HOME $DB_HOST",
            &["DATABASE_URL", "MY_KEY", "OTHER_PASS"],
        );
        check("a.md", "$ONE_KEY\n```bash\n$TWO_KEY\n```\n```js\n`${THREE_KEY}`\n```", &["TWO_KEY"]);
        check("a.js", "`${MY_KEY}`", &[]);
    }

    #[test]
    fn own_variables_are_none() {
        check("a.sh", "DIR=$(pwd)\ncd $DIR\nfor F in *; do\n echo $F\ndone\nread -r LINE\necho $LINE $name", &[]);
        // The value is from the environment, even if a variable of the same name then holds it.
        check("a.sh", "CLIENT_ID=${CLIENT_ID:-x}\necho $CLIENT_ID", &["CLIENT_ID"]);
        check("a.sh", "echo $LATER_KEY\nLATER_KEY=1", &["LATER_KEY"]);
        check("a.sh", "api_token=1\necho $api_token", &["api_token"]);
        check("a.sh", "if false; then KEY=1; fi; echo $KEY", &["KEY"]);
    }

    #[test]
    fn well_known_ones_are_none() {
        check("a.sh", "$PATH ${HOME} $LC_ALL $_ $IFS", &[]);
        check("a.js", "process.env.NODE_ENV", &[]);
        check("a.sh", "${BASH_REMATCH[1]} $VERSION $OUTPUT_DIR\nawk '{ print $NF, $NR }' x", &[]);
        check(
            "a.sh",
            "$TOKEN_FILE ${KEY_PATH} $API_KEY_VERSION $USER_DIRECTION",
            &["API_KEY_VERSION", "KEY_PATH", "TOKEN_FILE", "USER_DIRECTION"],
        );
        check("a.sh", "git push origin \"$BRANCH_NAME\" \"$PREV_TAG\"; open \"$URL\" \"$APP\"", &[]);
        check("a.ps1", "$env:ProgramFiles $env:VARIABLE", &[]);
        check("a.py", "os.environ['SERVER_NAME'], os.environ['CUSTOM_BASE_URL'], 'YOUR_CLIENT_SECRET'", &[]);
    }

    #[test]
    fn hostile_text_is_linear() {
        let text = "process.env[\"".repeat(50_000) + &"{".repeat(100_000) + &"${".repeat(100_000);
        assert!(find("a.sh", &text).is_empty());
    }
}
