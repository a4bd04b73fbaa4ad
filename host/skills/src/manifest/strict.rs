//! The letter of the Agent Skills standard, which its reference validator checks. A skill that departs from it can be
//! used here, but perhaps not elsewhere.

use base::text::Foreign;
use unicode_normalization::UnicodeNormalization as _;

use super::yaml::{Fault, Fields, Value};

/// The fields of the standard.
const FIELDS: [&str; 6] = ["name", "description", "license", "allowed-tools", "metadata", "compatibility"];
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;

/// Each departure, one sentence. `text` has `\n` at the ends of its lines, `directory` is the name of its directory,
/// `known` is a frontmatter that was read already: most often the same one.
pub(super) fn departures(text: &str, directory: &str, known: Option<(&str, &Result<Fields, Fault>)>) -> Vec<String> {
    let front = match front(text) {
        Ok(front) => front,
        Err(departure) => return vec![departure.to_owned()],
    };
    let read;
    let fields = match known {
        Some((known, fields)) if front.strip_prefix('\n') == Some(known) => fields,
        _ => {
            read = Fields::read(front.strip_prefix('\n').unwrap_or(front));
            &read
        }
    };
    let fields = match fields {
        Ok(fields) => fields,
        // After the line `---`.
        Err(Fault::Syntax { line }) => return vec![format!("its frontmatter is no YAML at line {}", line + 1)],
        Err(Fault::NoMapping) => return vec!["its frontmatter has no fields".to_owned()],
    };
    let extras = fields.extras;
    let unread: Vec<String> = [
        (extras.flow, "its frontmatter has a value in `{}` or `[]`"),
        (extras.anchors, "its frontmatter has an anchor or an alias"),
        (extras.tags, "its frontmatter has a tag"),
        (extras.documents, "its frontmatter is several documents"),
        (extras.duplicates, "its frontmatter has a field twice"),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, departure)| departure.to_owned())
    .collect();
    if !unread.is_empty() {
        return unread;
    }
    let mut found = Vec::new();
    let mut others: Vec<&str> = fields.names().filter(|name| !FIELDS.contains(name)).collect();
    others.sort_unstable();
    for other in others.iter().take(10) {
        let shown = Foreign(other).escaped(64);
        found.push(format!("the field `{shown}` is not one of the standard's: it belongs below `metadata`"));
    }
    let exactly = |name: &str| fields.names().any(|other| other == name).then(|| fields.get(name)).flatten();
    found.extend(name(exactly("name"), directory));
    found.extend(description(exactly("description")));
    if let Some(value) = exactly("compatibility") {
        match value {
            Value::Text(text) if text.chars().count() <= MAX_COMPATIBILITY => {}
            Value::Text(_) => found.push(format!("its `compatibility` is longer than {MAX_COMPATIBILITY} characters")),
            _ => found.push("its `compatibility` is no text".to_owned()),
        }
    }
    found
}

/// The standard's reader takes the text between the first two `---`, wherever they are.
fn front(text: &str) -> Result<&str, &'static str> {
    let rest = text.strip_prefix("---").ok_or("it does not begin with `---`")?;
    rest.split_once("---").map(|(front, _)| front).ok_or("its frontmatter does not end")
}

fn name(value: Option<&Value>, directory: &str) -> Vec<String> {
    let text = match value {
        None => return vec!["it has no `name`".to_owned()],
        Some(Value::Text(text)) if !text.trim().is_empty() => text,
        Some(_) => return vec!["its `name` is no text".to_owned()],
    };
    let name: String = text.trim().nfkc().collect();
    let mut found = Vec::new();
    if name.chars().count() > MAX_NAME {
        found.push(format!("its `name` is longer than {MAX_NAME} characters"));
    }
    if name.chars().any(char::is_uppercase) {
        found.push("its `name` is not in lower case".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        found.push("its `name` begins or ends with a hyphen".to_owned());
    }
    if name.contains("--") {
        found.push("its `name` has two hyphens in a row".to_owned());
    }
    if !name.chars().all(|c| c.is_alphanumeric() || c == '-') {
        found.push("its `name` has other characters than letters, digits and hyphens".to_owned());
    }
    if name != directory.nfkc().collect::<String>() {
        found.push("its `name` is not the name of its directory".to_owned());
    }
    found
}

fn description(value: Option<&Value>) -> Option<String> {
    match value {
        None => Some("it has no `description`".to_owned()),
        Some(Value::Text(text)) if text.trim().is_empty() => Some("its `description` is empty".to_owned()),
        Some(Value::Text(text)) if text.chars().count() > MAX_DESCRIPTION => {
            Some(format!("its `description` is longer than {MAX_DESCRIPTION} characters"))
        }
        Some(Value::Text(_)) => None,
        Some(_) => Some("its `description` is no text".to_owned()),
    }
}
