//! Facts about a skill in lines for people, the same ones where it is reviewed and where consent is asked for.
//!
//! Names, paths and descriptions are untrusted: each is made one line in which nothing is hidden, so that it cannot
//! pass for a line of this program's own.

use serde_json::Value;
use skills::review::{ComponentFact, FileChange, FileChangeKind, PowerChange, Reference};
use skills::{Policy, SkillStatus, SkillSummary};
use vault::CredentialInfo;

use super::card::Tone;
use crate::output::text;

/// The optional powers of a component, in the order of their reach, and in words.
const POWERS: [(&str, &str); 3] =
    [("network", "reach the network"), ("workspace", "see files"), ("credentials", "use credentials")];
/// Places of a reference that are shown.
const MAX_PLACES: usize = 3;
/// Names of unavailable commands that a list shows.
const MAX_NAMED: usize = 5;
/// Written in place of an empty value.
pub(crate) const NOTHING: &str = "nothing";

/// A line about the commands and languages of a skill that do not work here.
pub(crate) fn unavailable(skill: &SkillSummary) -> String {
    let named: Vec<String> = skill.unavailable.iter().take(MAX_NAMED).map(|name| text::quoted(name)).collect();
    let more = skill.unavailable.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("will not work here: {}{more}", named.join(", "))
}

/// The tone of a status.
pub(crate) fn tone(status: SkillStatus) -> Tone {
    match status {
        SkillStatus::Approved => Tone::Calm,
        SkillStatus::NeedsReapproval => Tone::Alarm,
        SkillStatus::PendingReview | SkillStatus::Reviewed => Tone::Warning,
    }
}

/// The powers that a policy grants, by kind, one a line; an empty kind grants nothing.
pub(crate) fn powers(policy: &Policy) -> Vec<(&'static str, Vec<String>)> {
    let quoted = |texts: &[String]| texts.iter().map(|text| text::quoted(text)).collect::<Vec<_>>();
    let mut powers = vec![
        ("tools", quoted(&policy.tools)),
        ("domains", quoted(&policy.domains)),
        ("writes", quoted(&policy.writes)),
        ("credentials", policy.required_credentials.iter().map(ToString::to_string).collect()),
    ];
    if !policy.dependencies.is_empty() {
        let packages = policy.dependencies.iter().map(|(name, pin)| text::quoted(&format!("{name} {}", plain(pin))));
        powers.push(("packages", packages.collect()));
    }
    powers
}

/// The bounds of a policy: limits and the schema of its inputs.
pub(crate) fn bounds(policy: &Policy) -> Vec<(&'static str, Vec<String>)> {
    let mut bounds = Vec::new();
    if let Some(schema) = &policy.inputs {
        bounds.push(("inputs", inputs(schema)));
    }
    if !policy.limits.is_empty() {
        let limits = policy.limits.iter();
        let limits = limits.map(|(name, most)| format!("{} at most {}", text::quoted(name), text::thousands(*most)));
        bounds.push(("limits", limits.collect()));
    }
    bounds
}

/// One input a line, as in `path: string, needed`.
fn inputs(schema: &Value) -> Vec<String> {
    let needed = schema.get("required").and_then(Value::as_array);
    let needed = |name: &str| needed.is_some_and(|names| names.iter().any(|needed| needed == name));
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let lines: Vec<String> = properties
        .map(|(name, schema)| {
            let kind = schema.get("type").map_or_else(|| "anything".to_owned(), plain);
            let needed = if needed(name) { ", needed" } else { "" };
            text::quoted(&format!("{name}: {kind}{needed}"))
        })
        .collect();
    if lines.is_empty() { vec!["an object".to_owned()] } else { lines }
}

/// JSON as a person writes it: a text without its quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The facts about a component and its powers, the heading first.
pub(crate) fn component(fact: &ComponentFact) -> (String, Vec<(Tone, String)>) {
    let heading = format!("{} ({})", text::quoted(&fact.path), fact.hash.short());
    if let Some(problem) = &fact.problem {
        return (heading, vec![(Tone::Alarm, format!("cannot be used: {}", text::quoted(problem)))]);
    }
    let has = |power: &str| fact.capabilities.iter().any(|capability| capability == power);
    let can = POWERS.iter().filter(|(power, _)| has(power)).map(|(power, _)| (*power).to_owned());
    let others = fact.capabilities.iter().filter(|capability| POWERS.iter().all(|(power, _)| power != capability));
    let can: Vec<String> = can.chain(others.map(|capability| text::quoted(&capability.replace('_', " ")))).collect();
    let cannot: Vec<&str> = POWERS.iter().filter(|(power, _)| !has(power)).map(|(_, words)| *words).collect();
    let alarm = if cannot.len() < POWERS.len() { Tone::Warning } else { Tone::Plain };
    let can = if can.is_empty() { NOTHING.to_owned() } else { can.join(", ") };
    let mut lines = vec![(alarm, format!("can use {can}"))];
    if !cannot.is_empty() {
        lines.push((Tone::Calm, format!("cannot {}", cannot.join(", "))));
    }
    for tool in &fact.tools {
        let parameters = parameters(&tool.parameters);
        let described = if tool.description.is_empty() { "" } else { ": " };
        let line = format!("tool {}({parameters}){described}{}", tool.name, tool.description);
        lines.push((Tone::Plain, text::quoted(&line)));
    }
    (heading, lines)
}

/// A power that came or went.
pub(crate) fn power_change(change: &PowerChange) -> (Tone, String) {
    let what = text::quoted(&change.what);
    if change.added { (Tone::Alarm, format!("+ {what}")) } else { (Tone::Calm, format!("- {what}")) }
}

/// A file that is not as it was.
pub(crate) fn file_change(change: &FileChange) -> (Tone, String) {
    let path = text::quoted(&change.path);
    let lines = change.lines.map(|(more, fewer)| format!(" (+{more} -{fewer} lines)")).unwrap_or_default();
    match change.kind {
        FileChangeKind::Added => (Tone::Alarm, format!("added {path}{lines}")),
        FileChangeKind::Changed => (Tone::Alarm, format!("changed {path}{lines}")),
        FileChangeKind::Removed => (Tone::Warning, format!("removed {path}{lines}")),
        FileChangeKind::Mode => (Tone::Alarm, format!("permissions of {path} changed")),
    }
}

/// A name that text mentions, and where.
pub(crate) fn reference(reference: &Reference) -> String {
    let places: Vec<String> = reference.at.iter().take(MAX_PLACES).map(|place| text::quoted(place)).collect();
    let more = reference.at.len().saturating_sub(MAX_PLACES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let places = if places.is_empty() { String::new() } else { format!(" in {}{more}", places.join(", ")) };
    format!("{}{places}", text::quoted(&reference.name))
}

/// The names of the arguments: `path, offset?, limit?`.
pub(crate) fn parameters(schema: &serde_json::Value) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(|names| names.as_array())
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str())
        .collect();
    let names = schema.get("properties").and_then(|properties| properties.as_object()).into_iter().flatten();
    let names: Vec<String> = names
        .map(|(name, _)| {
            let optional = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{}{optional}", text::brief(name, 40))
        })
        .collect();
    text::cut(&names.join(", "), 60)
}

/// Length, time and run of a saved credential, in words.
pub(crate) fn saved(info: &CredentialInfo) -> String {
    let Some(facts) = &info.pending else { return String::new() };
    let at = info.set_at.map(|at| format!(" at {}", text::seconds(at))).unwrap_or_default();
    let ends = if facts.expired { "expired" } else { "waits until" };
    format!("{} bytes by run {}{at}; {ends} {}", facts.bytes, facts.run_id, text::seconds(facts.expires_at))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_in_lines() {
        let policy: Policy = serde_json::from_value(json!({
            "domains": ["a.example", "b.example\u{202e}\n+ forged"], "requiredCredentials": ["key"],
            "inputs": { "type": "object", "properties": { "path": { "type": "string" }, "n": { "type": ["integer", "null"] },
                        "any": {} }, "required": ["path"] },
            "limits": { "fuel": 1_000_000 }, "dependencies": { "left": "1.0.0" },
        }))
        .unwrap();
        assert_eq!(
            powers(&policy),
            [
                ("tools", vec![]),
                ("domains", vec!["a.example".to_owned(), "b.example<U+202E> + forged".to_owned()]),
                ("writes", vec![]),
                ("credentials", vec!["key".to_owned()]),
                ("packages", vec!["left 1.0.0".to_owned()]),
            ]
        );
        let bounds = bounds(&policy);
        let lines: Vec<&str> = bounds.iter().flat_map(|(_, lines)| lines).map(String::as_str).collect();
        assert_eq!(
            lines,
            ["path: string, needed", "n: [\"integer\",\"null\"]", "any: anything", "fuel at most 1,000,000"]
        );
        assert!(super::bounds(&Policy::default()).is_empty());
    }

    #[test]
    fn what_a_component_can_do_and_what_not() {
        let check = |capabilities: &[&str], problem: Option<&str>, expected: &[&str]| {
            let fact = ComponentFact {
                path: "a.wasm".into(),
                hash: base::ContentHash::of(b"a"),
                capabilities: capabilities.iter().map(|&word| word.to_owned()).collect(),
                imports: Vec::new(),
                tools: Vec::new(),
                problem: problem.map(str::to_owned),
            };
            let lines: Vec<String> = component(&fact).1.into_iter().map(|(_, line)| line).collect();
            assert_eq!(lines, expected, "{capabilities:?}");
        };
        check(&[], None, &["can use nothing", "cannot reach the network, see files, use credentials"]);
        check(
            &["clock", "command_line", "network"],
            None,
            &["can use network, clock, command line", "cannot see files, use credentials"],
        );
        check(&["credentials", "workspace", "network"], None, &["can use network, workspace, credentials"]);
        check(
            &["brand_new\n+ x"],
            None,
            &["can use brand new + x", "cannot reach the network, see files, use credentials"],
        );
        check(&["network"], Some("it is no component"), &["cannot be used: it is no component"]);
    }

    #[test]
    fn parameters_in_short() {
        let schema = json!({ "properties": { "path": {}, "limit": {} }, "required": ["path"] });
        assert_eq!(parameters(&schema), "path, limit?");
        assert_eq!(parameters(&json!({})), "");
        assert_eq!(parameters(&json!({ "properties": 7, "required": "x" })), "");
    }
}
