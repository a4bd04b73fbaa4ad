//! How large a policy may be, and which characters its texts may have.
//!
//! It must not know the meaning of domains, tools or limits. It survives texts that break out of a line or table.

use base::text::Foreign;
use serde_json::Value;

use super::{Policy, inputs};

/// The most domains, writes, tools, credentials, dependencies and limits, each.
pub(super) const MAX_ENTRIES: usize = 200;
/// The most bytes of a domain or a tool: the length of the longest domain.
pub(super) const MAX_TEXT_BYTES: usize = 253;
/// The most bytes of JSON of all dependencies together.
const MAX_DEPENDENCY_BYTES: usize = 64 << 10;
/// The most characters of foreign text that are shown.
const MAX_SHOWN: usize = 60;

pub(super) fn check(policy: &Policy) -> Result<(), String> {
    for (what, texts) in [("domains", &policy.domains), ("writes", &policy.writes), ("tools", &policy.tools)] {
        check_count(what, texts.len())?;
        for one in texts {
            text(one).map_err(|problem| format!("`{what}` has the entry `{}`, which {problem}", shown(one)))?;
        }
    }
    check_count("requiredCredentials", policy.required_credentials.len())?;
    check_count("dependencies", policy.dependencies.len())?;
    check_count("limits", policy.limits.len())?;
    for name in policy.dependencies.keys().chain(policy.limits.keys()) {
        text(name).map_err(|problem| format!("there is the name `{}`, which {problem}", shown(name)))?;
    }
    let bytes: usize = policy.dependencies.values().map(size).sum();
    if bytes > MAX_DEPENDENCY_BYTES {
        return Err(format!("`dependencies` has {bytes} bytes: at most {MAX_DEPENDENCY_BYTES} are possible"));
    }
    policy.inputs.as_ref().map_or(Ok(()), inputs::check_schema)
}

fn check_count(what: &str, count: usize) -> Result<(), String> {
    if count > MAX_ENTRIES {
        return Err(format!("`{what}` has {count} entries: at most {MAX_ENTRIES} are possible"));
    }
    Ok(())
}

/// Checks that a text is fit to be an entry; the error is the fault, as the end of a sentence.
pub(super) fn text(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > MAX_TEXT_BYTES {
        return Err(format!("has {} bytes: at most {MAX_TEXT_BYTES} are possible", text.len()));
    }
    if text.chars().any(|character| character.is_control() || character.is_whitespace()) {
        return Err("has spaces or control characters: write it without".to_owned());
    }
    Ok(())
}

/// Foreign text within a message: cut, and with unprintable characters escaped.
pub(super) fn shown(text: &str) -> String {
    Foreign(text).escaped(MAX_SHOWN)
}

/// The size of a value as JSON.
pub(super) fn size(value: &Value) -> usize {
    value.to_string().len()
}
