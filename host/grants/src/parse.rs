//! Powers in the words of a caller: patterns, shapes, names.

use base::text::Foreign;
use base::{CredentialName, Refusal, RefusalCode};
use network::{Pattern, Shape};

/// Parses domain patterns written by a person.
///
/// # Errors
/// If a pattern is invalid or too broad; the error names it.
pub fn patterns(texts: &[String]) -> Result<Vec<Pattern>, Refusal> {
    let read = |text: &String| {
        text.trim().parse().map_err(|error: network::InvalidPattern| {
            Refusal::new(RefusalCode::InvalidRequest, error.to_string())
                .with_remedy("write `example.com`, `*.example.com` or `*`, with `:PORT` where it is not 80 or 443")
        })
    };
    texts.iter().map(read).collect()
}

/// Parses request shapes written by a person.
///
/// # Errors
/// If a shape is invalid; the error names it.
pub fn shapes(texts: &[String]) -> Result<Vec<Shape>, Refusal> {
    let read = |text: &String| {
        text.trim().parse().map_err(|error: network::InvalidShape| {
            Refusal::new(RefusalCode::InvalidRequest, error.to_string())
                .with_remedy("write `POST example.com/path`, or `example.com` for all that can be sent there")
        })
    };
    texts.iter().map(read).collect()
}

/// The credentials a run is granted: named ones, and those with placeholders in its task.
///
/// # Errors
/// If a name is invalid.
pub fn credentials(task: &str, named: &[String]) -> Result<Vec<CredentialName>, Refusal> {
    let mut names = CredentialName::mentioned_in(task);
    for text in named {
        let name = CredentialName::parse(text.trim())
            .map_err(|error| Refusal::new(RefusalCode::InvalidRequest, error.to_string()))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Names of commands for the shell: an empty allow-list allows nothing.
///
/// # Errors
/// If a name is not that of a command.
pub fn commands(names: &[String]) -> Result<Vec<String>, Refusal> {
    let plain = |name: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[');
        !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
    };
    let mut checked = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        if !plain(name) {
            let reason = format!("`{}` is not the name of a command", Foreign(name).escaped(40));
            return Err(
                Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("write `--commands curl,grep,sort`")
            );
        }
        checked.push(name.to_owned());
    }
    Ok(checked)
}
