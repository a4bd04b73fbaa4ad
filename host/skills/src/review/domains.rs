//! Domains that text mentions: in addresses with a scheme, and bare ones given to a program that fetches.
//!
//! Addresses are parsed as by a browser, so the destination counts and not the looks: user information, backslashes,
//! percent signs and numbers that are IP addresses are seen through. Parts known only at run time become `*`. A mention
//! grants nothing.

use std::sync::LazyLock;

use regex::Regex;
use url::{Host, Url};

use super::hidden::{disguise, visible_name};

/// Mention of a domain in a text.
pub(super) struct Mention {
    /// The domain or IP address in canonical form: `xn--…` followed by the letters it stands for.
    pub name: String,
    /// Byte offset in the text.
    pub at: usize,
    /// How the address imitates another, if it does.
    pub disguise: Option<String>,
}

/// An address: a scheme, and slashes of either kind, as a browser accepts them.
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(?:\b|_)(https?|wss?|ftp):(?:\\?[\\/]){2,}").ok());
/// A program that fetches, and its arguments on the same line.
static FETCH: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)(?:^|[^\w./-])(curl|wget|fetch|httpie|http|https|aria2c)(?:\.exe)?(?:[ \t]+|\()((?:\\\r?\n|[^\n|;&#])+)"#).ok()
});
/// A bare domain with an optional port and path.
static BARE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^((?:[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9])?\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9])(?::\d{1,5})?([/?#].*)?$",
    )
    .ok()
});
/// File extensions, except those that are top-level domains too: `curl get.sh` goes there.
static FILE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\.(?:7z|bin|bz2|cfg|conf|css|csv|deb|docx?|exe|gif|go|gz|html?|ini|ipynb|jar|jpe?g|js|json|jsonl|jsx|lock|log|mdx|mjs|mp3|mp4|pdf|php|png|pptx?|ps1|rb|rpm|sql|svg|tar|tgz|toml|tsx?|txt|wasm|wav|webp|whl|xlsx?|xml|xz|ya?ml|zst)$").ok()
});
/// Names that instructions use as placeholders for the reader's own.
static YOURS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^your[-_]?(?:account|api|app|backend|blog|brand|bucket|company|domain|endpoint|host|hostname|instance|name|org|organization|project|server|service|shop|site|store|team|tenant|url|username|web|website|workspace)(?:[-_](?:domain|here|name|url))?s?$").ok()
});

/// Stands for a part of an address that is known only at run time.
const ANY: &str = "any-part-of-a-name";
/// Maximum bytes between the braces of a placeholder.
const MAX_PLACEHOLDER: usize = 100;
/// Maximum placeholders in one address.
const MAX_PLACEHOLDERS: usize = 16;
/// The longest valid name (RFC 1035, 2.3.4). A longer one goes nowhere.
const MAX_NAME: usize = 253;
/// Words without a dot that name no machine, or every machine.
const STANDS_FOR: [&str; 9] = ["domain", "host", "hostname", "http", "https", "localhost", "server", "test", "url"];
/// Maximum words of a command that are examined.
const MAX_WORDS: usize = 64;
/// Options whose next word is not an address.
const TAKES_FILE: [&str; 20] = [
    "--config",
    "--cookie",
    "--cookie-jar",
    "--data",
    "--data-binary",
    "--data-raw",
    "--form",
    "--header",
    "--output",
    "--output-document",
    "--upload-file",
    "--user-agent",
    "-F",
    "-H",
    "-K",
    "-O",
    "-T",
    "-b",
    "-d",
    "-o",
];

/// The domains in a text with their byte offsets, unordered.
pub(super) fn find(text: &str) -> Vec<Mention> {
    let mut found = Vec::new();
    for captures in ADDRESS.iter().flat_map(|address| address.captures_iter(text)) {
        let (Some(all), Some(scheme)) = (captures.get(0), captures.get(1)) else { continue };
        if let Some((name, disguise)) = host(scheme.as_str(), text.get(all.end()..).unwrap_or_default()) {
            found.push(Mention { name, at: scheme.start(), disguise });
        }
    }
    for captures in FETCH.iter().flat_map(|fetch| fetch.captures_iter(text)) {
        let (Some(program), Some(words)) = (captures.get(1), captures.get(2)) else { continue };
        let is_program = matches!(program.as_str(), "curl" | "wget" | "aria2c");
        found.extend(bare(words.as_str(), is_program).map(|name| Mention {
            name,
            at: program.start(),
            disguise: None,
        }));
    }
    found
}

/// Destination of an address, given its text after the slashes.
fn host(scheme: &str, rest: &str) -> Option<(String, Option<String>)> {
    let authority = authority(rest);
    let address = parse(scheme, &authority)?;
    let host = address.host()?;
    let written = authority.rsplit('@').next().unwrap_or(&authority);
    let name = match host {
        Host::Domain(name) => domain(name.trim_end_matches(['.', '_', '-']))?,
        // Written in full it is the machine itself, like `localhost`; any other notation is worth a look.
        Host::Ipv4(ip) if (ip.is_loopback() || ip.is_unspecified()) && written.starts_with(&ip.to_string()) => {
            return None;
        }
        Host::Ipv6(ip) if (ip.is_loopback() || ip.is_unspecified()) && written.starts_with(&format!("[{ip}]")) => {
            return None;
        }
        Host::Ipv4(ip) => ip.to_string(),
        Host::Ipv6(ip) => format!("[{ip}]"),
    };
    let shown_before = authority.rsplit_once('@').map(|(user, _)| user.replace(ANY, "*"));
    let disguise = match shown_before {
        Some(user) if user.contains('.') => {
            Some(format!("an address that begins like `{}` and goes to `{name}`", visible_name(&user)))
        }
        _ => address.host_str().and_then(disguised_label),
    };
    Some((name, disguise))
}

/// User information, host and port, with unknown parts as [`ANY`]. Of any length, because the decisive part comes last.
fn authority(rest: &str) -> String {
    let mut out = String::new();
    let mut left = rest;
    let (mut placeholders, mut is_bracketed) = (0, false);
    while let Some(character) = left.chars().next() {
        if placeholders < MAX_PLACEHOLDERS
            && let Some(length) = placeholder(left, out.is_empty() || out.ends_with(['.', '@']))
        {
            placeholders += 1;
            let after = left.get(length..).unwrap_or_default();
            // A placeholder after a whole name is a path in a variable: `https://api.example${PATH}`.
            if looks_whole(&out) && !after.starts_with(['.', '-', '@']) {
                break;
            }
            out.push_str(ANY);
            left = after;
            continue;
        }
        let ends = match character {
            '/' | '\\' | '?' | '#' | '"' | '\'' | '`' | '<' | '>' | '(' | ')' | '{' | '}' | ',' | ';' | '|' | '^'
            | '*' | '!' => true,
            // An IP address, or the end of a link of Markdown.
            '[' => !out.is_empty() && !out.ends_with('@'),
            ']' => !is_bracketed,
            _ => character.is_whitespace() || character.is_control() || is_punctuation(character),
        };
        if ends {
            break;
        }
        is_bracketed |= character == '[';
        out.push(character);
        left = left.get(character.len_utf8()..).unwrap_or_default();
    }
    out
}

/// The length of a placeholder for a part of a name. `begins`: a part of a name begins here.
fn placeholder(left: &str, begins: bool) -> Option<usize> {
    let closed_by = |open: usize, close: char| {
        let inner = left.get(open..left.floor_char_boundary(open + MAX_PLACEHOLDER))?;
        let length = inner.find(close)?;
        inner.get(..length).filter(|inner| !inner.contains('\n')).map(|_| open + length + close.len_utf8())
    };
    let bytes = left.as_bytes();
    match bytes {
        [b'$', b'{', b'{', ..] | [b'{', b'{', ..] => closed_by(2, '}')
            .map(|length| length + usize::from(left.get(length..).is_some_and(|rest| rest.starts_with('}')))),
        [b'$', b'{', ..] | [b'$', b'(', ..] => closed_by(2, if left.starts_with("${") { '}' } else { ')' }),
        [b'{', ..] => closed_by(1, '}'),
        [b'<', next, ..] if next.is_ascii_alphabetic() => closed_by(1, '>'),
        [b'[', next, ..] if next.is_ascii_alphabetic() && begins => {
            closed_by(1, ']').filter(|length| left.get(1..length - 1).is_some_and(|inner| !inner.contains(':')))
        }
        [b'$', next, ..] if next.is_ascii_alphabetic() || *next == b'_' => {
            let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
            Some(1 + bytes.iter().skip(1).take_while(is_name).count())
        }
        [b'%', b's' | b'd', ..] => Some(2),
        [b'*', b'.', ..] if begins => Some(1),
        _ => None,
    }
}

fn looks_whole(name: &str) -> bool {
    let host = name.rsplit('@').next().unwrap_or(name);
    // Only a port may follow: `https://api.example:${PORT}`.
    if host.ends_with(':') {
        return true;
    }
    host.rsplit_once('.').is_some_and(|(before, last)| {
        !before.is_empty() && last.len() >= 2 && !last.contains(ANY) && last.chars().all(char::is_alphabetic)
    })
}

/// Punctuation of other languages, which ends an address as a comma does. Not full stops that browsers take for dots.
fn is_punctuation(character: char) -> bool {
    matches!(character,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3001}' | '\u{3008}'..='\u{3011}' | '\u{ff01}' | '\u{ff08}'
        | '\u{ff09}' | '\u{ff0c}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}')
}

/// Parses an address; drops an invalid port, as in `http://host:PORT`, and characters that no name can contain.
fn parse(scheme: &str, authority: &str) -> Option<Url> {
    let read = |authority: &str| Url::parse(&format!("{scheme}://{authority}/")).ok();
    let trimmed = authority.trim_end_matches(['.', ':', '&', '$', '%', '=', '~', '_', '-']);
    let plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_' | ':' | '@' | '%');
    let end = trimmed.find(|character| !plain(character)).unwrap_or(trimmed.len());
    read(authority)
        .or_else(|| read(trimmed))
        .or_else(|| read(trimmed.rsplit_once(':')?.0))
        .or_else(|| read(trimmed.get(..end)?))
}

/// A domain in displayed form, unless it is a placeholder for the reader's own.
fn domain(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase().replace(ANY, "*");
    if name.len() > MAX_NAME {
        return None;
    }
    let labels: Vec<&str> = name.split('.').collect();
    let [before @ .., last] = labels.as_slice() else { return None };
    let is_yours = |label: &str| YOURS.as_ref().is_some_and(|yours| yours.is_match(label));
    if before.is_empty() {
        let says = last.bytes().any(|byte| byte.is_ascii_alphanumeric()) && !last.contains('*');
        return (says && !STANDS_FOR.contains(last) && !is_yours(last)).then(|| shown(last));
    }
    let [.., owner] = before else { return None };
    if matches!(*last, "example" | "test" | "invalid" | "localhost" | "*") {
        return None;
    }
    if *owner == "example" && matches!(*last, "com" | "org" | "net" | "edu") || is_yours(owner) {
        return None;
    }
    // `https://your-project.host.dev` goes to some name under `host.dev`.
    let labels: Vec<&str> = labels.iter().map(|label| if is_yours(label) { "*" } else { label }).collect();
    let says = labels.iter().rev().skip(1).any(|label| label.bytes().any(|byte| byte.is_ascii_alphanumeric()));
    says.then(|| shown(&labels.join(".")))
}

/// Appends the letters that punycode stands for.
fn shown(name: &str) -> String {
    if !name.split('.').any(|label| label.starts_with("xn--")) {
        return name.to_owned();
    }
    format!("{name} ({})", visible_name(&url::quirks::domain_to_unicode(name)))
}

fn disguised_label(name: &str) -> Option<String> {
    if !name.contains("xn--") {
        return None;
    }
    let unicode = url::quirks::domain_to_unicode(name);
    let found = unicode.split('.').find_map(disguise)?;
    Some(format!("a domain in which {found}"))
}

/// The bare domains among the words of a command.
fn bare(words: &str, is_program: bool) -> impl Iterator<Item = String> {
    let mut takes_file = false;
    let words = words.split([' ', '\t', '\n', '\r']).filter(|word| !word.is_empty()).take(MAX_WORDS);
    let candidates = words.filter_map(move |word| {
        let is_file = takes_file;
        takes_file = TAKES_FILE.contains(&word);
        let word = word.trim_matches(['"', '\'', '`', '(', ')', '<', '>', ',', '[', ']', '{', '}', '*']);
        let word = word.trim_end_matches(['.', ':', '!', '?', '\\']);
        (!is_file).then_some(word)
    });
    candidates.filter_map(move |word| {
        let captures = BARE.as_ref()?.captures(word)?;
        let name = captures.get(1)?.as_str();
        let has_path = captures.get(2).is_some_and(|path| path.as_str().starts_with('/'));
        let is_file = FILE.as_ref().is_some_and(|file| file.is_match(name));
        (has_path || is_program && !is_file).then(|| domain(name)).flatten()
    })
}

#[cfg(test)]
mod tests;
