//! From a model's draft to a request: every entry is read by the parsers of `grants` and kept, or dropped with a sentence.
//!
//! The draft is hostile until shown otherwise: the task may hold text of others, and a model may obey it. So a draft never
//! grants wildcards, whole hosts or a credential that neither the task nor the user points to, and never more than
//! the bounds of the user.

#[cfg(test)]
mod tests;

use std::fmt::Display;

use base::CredentialName;
use base::text::Foreign;
use grants::{commands, patterns, shapes};
use network::{Pattern, Shape};
use toolbox::catalogue;
use vault::{CredentialInfo, CredentialSource};

use super::bounds::Bounds;
use super::offer::Offer;
use super::schema::Draft;
use super::seconds;
use crate::api::ActRequest;

/// Entries of one list that are taken. A plan with more cannot be read before it is agreed to.
const MAX_ENTRIES: usize = 32;
/// Notes that are kept; the rest is counted.
const MAX_NOTES: usize = 60;
/// Characters of an entry that a note shows.
const MAX_SHOWN: usize = 80;
/// Characters of the model's reason that are kept.
const MAX_REASON: usize = 500;

/// Remarks for the owner, a bounded number of them.
#[derive(Debug, Default)]
pub(super) struct Notes {
    kept: Vec<String>,
    more: usize,
}

impl Notes {
    pub(super) fn add(&mut self, note: String) {
        if self.kept.len() < MAX_NOTES {
            self.kept.push(note);
        } else {
            self.more += 1;
        }
    }

    fn dropped(&mut self, what: &str, text: &str, why: impl Display) {
        self.add(format!("dropped {what} `{}`: {why}", Foreign(text).escaped(MAX_SHOWN)));
    }

    pub(super) fn listed(mut self) -> Vec<String> {
        if self.more > 0 {
            self.kept.push(format!("{} more remarks are not shown", self.more));
        }
        self.kept
    }
}

/// A draft that was cut to the powers that a model may propose.
pub(super) struct Narrowed {
    pub(super) request: ActRequest,
    /// Untrusted text of a model.
    pub(super) reason: Option<String>,
    /// Whether the model, and not the user, chose the skill.
    pub(super) skill_of_model: bool,
}

/// Cuts a draft. `request` has the task and the user's bounds.
pub(super) fn narrow(draft: Draft, offer: &Offer, bounds: &Bounds, request: ActRequest, notes: &mut Notes) -> Narrowed {
    let task = request.task.clone();
    let tools = tools(draft.tools, bounds, notes);
    let mut domains = domains(draft.domains, bounds, notes);
    let writes = writes(draft.writes, &mut domains, bounds, notes);
    let credentials = credentials(draft.credentials, &domains, &task, offer, bounds, notes);
    let writes: Vec<Shape> = writes
        .into_iter()
        .filter(|shape| {
            let missing = shape.credentials().iter().find(|name| !credentials.contains(name));
            if let Some(name) = missing {
                notes.dropped("the write", &shape.to_string(), format!("the plan has no credential `{name}`"));
            }
            missing.is_none()
        })
        .collect();
    for domain in &domains {
        let is_of_credential = |info: &&CredentialInfo| credentials.contains(&info.name) && is_bound_to(info, domain);
        let is_named = mentions(&task, &domain.to_string()) || is_within(&bounds.domains, domain);
        if !is_named && offer.credentials.iter().find(is_of_credential).is_none() {
            notes.add(format!("the domain `{domain}` is the model's own choice: the task does not name it"));
        }
    }
    let (skill, skill_of_model) = skill(request.skill.clone(), draft.skill, offer, notes);
    let commands = commands_of(draft.commands, &tools, bounds, notes);
    let max_iterations = within("model calls", draft.max_iterations, u64::from(bounds.max_iterations), notes);
    let timeout = within("seconds", draft.timeout_seconds, seconds(bounds.timeout), notes);
    let reason = Foreign(draft.reason.trim()).visible(MAX_REASON);
    let texts = |shown: &[&dyn Display]| shown.iter().map(ToString::to_string).collect::<Vec<_>>();
    let request = ActRequest {
        tools,
        domains: texts(&domains.iter().map(|domain| domain as &dyn Display).collect::<Vec<_>>()),
        writes: texts(&writes.iter().map(|shape| shape as &dyn Display).collect::<Vec<_>>()),
        credentials: texts(&credentials.iter().map(|name| name as &dyn Display).collect::<Vec<_>>()),
        commands,
        skill,
        max_iterations: Some(u32::try_from(max_iterations).unwrap_or(bounds.max_iterations)),
        timeout_ms: Some(timeout.saturating_mul(1_000)),
        ..request
    };
    Narrowed { request, reason: Some(reason).filter(|reason| !reason.is_empty()), skill_of_model }
}

/// The entries of a list, each once, at most [`MAX_ENTRIES`].
fn entries(mut list: Vec<String>, what: &str, notes: &mut Notes) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    list.retain(|entry| seen.insert(entry.trim().to_owned()));
    if list.len() > MAX_ENTRIES {
        let more = list.len() - MAX_ENTRIES;
        notes.add(format!("dropped {more} more {what}: a plan names at most {MAX_ENTRIES}"));
        list.truncate(MAX_ENTRIES);
    }
    list
}

fn tools(list: Vec<String>, bounds: &Bounds, notes: &mut Notes) -> Vec<String> {
    let mut kept = Vec::new();
    for text in entries(list, "tools", notes) {
        match catalogue::resolve(std::slice::from_ref(&text)) {
            Ok(names) if names.iter().all(|name| bounds.tools.contains(name)) => kept.extend(names),
            Ok(_) => notes.dropped("the tool", &text, "it is not among the tools of `--tools`"),
            Err(refusal) => notes.dropped("the tool", &text, refusal.reason),
        }
    }
    // In the order of the catalogue, each once. The names are known.
    catalogue::resolve(&kept).unwrap_or_default()
}

fn domains(list: Vec<String>, bounds: &Bounds, notes: &mut Notes) -> Vec<Pattern> {
    let mut kept: Vec<Pattern> = Vec::new();
    for text in entries(list, "domains", notes) {
        match patterns(std::slice::from_ref(&text)).map(|mut found| found.pop()) {
            Err(refusal) => notes.dropped("the domain", &text, refusal.reason),
            Ok(None) => {}
            Ok(Some(pattern)) if !pattern.is_exact() && !bounds.domains.contains(&pattern) => {
                notes.dropped("the domain", &text, "wildcards are not taken from a model; name them with `--domains`");
            }
            Ok(Some(pattern)) if !bounds.domains.is_empty() && !is_within(&bounds.domains, &pattern) => {
                notes.dropped("the domain", &text, "it is outside of `--domains`");
            }
            Ok(Some(pattern)) if !kept.contains(&pattern) => kept.push(pattern),
            Ok(Some(_)) => {}
        }
    }
    kept
}

/// The writes. A host with a kept write is also reachable, as with every grant.
fn writes(list: Vec<String>, domains: &mut Vec<Pattern>, bounds: &Bounds, notes: &mut Notes) -> Vec<Shape> {
    let mut kept: Vec<Shape> = Vec::new();
    for text in entries(list, "writes", notes) {
        let shape = match shapes(std::slice::from_ref(&text)).map(|mut found| found.pop()) {
            Err(refusal) => {
                notes.dropped("the write", &text, refusal.reason);
                continue;
            }
            Ok(None) => continue,
            Ok(Some(shape)) => shape,
        };
        let is_of_user = bounds.writes.contains(&shape);
        let why = if !is_of_user && shape.is_whole_host() {
            "it is all that can be sent to a host; a model may name single requests, as in `POST example.com/path`"
        } else if !is_of_user && (shape.is_any_path() || !shape.host().is_exact()) {
            "it covers any path or several hosts; a model may name single requests, as in `POST example.com/path`"
        } else if !bounds.writes.is_empty() && !bounds.writes.iter().any(|bound| shape.is_within(bound)) {
            "it is outside of `--writes`"
        } else if !bounds.domains.is_empty() && !is_within(&bounds.domains, shape.host()) {
            "its host is outside of `--domains`"
        } else {
            if !is_within(domains, shape.host()) {
                domains.push(shape.host().clone());
            }
            if !kept.contains(&shape) {
                kept.push(shape);
            }
            continue;
        };
        notes.dropped("the write", &text, why);
    }
    kept
}

/// The credentials that exist, and that the task or the user points to: by name, or by a host that they are bound to.
fn credentials(
    list: Vec<String>,
    domains: &[Pattern],
    task: &str,
    offer: &Offer,
    bounds: &Bounds,
    notes: &mut Notes,
) -> Vec<CredentialName> {
    let mut kept = Vec::new();
    for text in entries(list, "credentials", notes) {
        let Ok(name) = CredentialName::parse(text.trim()) else {
            notes.dropped("the credential", &text, "it is not a name");
            continue;
        };
        let Some(info) = offer.credentials.iter().find(|info| is_same(&name, info)) else {
            let why = if bounds.credentials.is_empty() {
                "no such credential is set"
            } else {
                "it is not among the credentials of `--credentials`"
            };
            notes.dropped("the credential", &text, why);
            continue;
        };
        let is_named = bounds.credentials.contains(&info.name) || mentions(task, name.as_str());
        let is_needed = |domain: &&Pattern| {
            is_bound_to(info, domain) && (mentions(task, &domain.to_string()) || is_within(&bounds.domains, domain))
        };
        if !is_named && domains.iter().find(is_needed).is_none() {
            let why =
                "neither the task nor a flag names it or a host that it is bound to; name it with `--credentials`";
            notes.dropped("the credential", &text, why);
        } else if !kept.contains(&info.name) {
            kept.push(info.name.clone());
        }
    }
    kept
}

fn skill(
    of_user: Option<String>,
    of_model: Option<String>,
    offer: &Offer,
    notes: &mut Notes,
) -> (Option<String>, bool) {
    let Some(name) = of_model.filter(|name| !name.trim().is_empty() && of_user.as_ref() != Some(name)) else {
        return (of_user, false);
    };
    let name = name.trim();
    if of_user.is_none() && offer.skills.iter().any(|skill| skill.name == name) {
        return (Some(name.to_owned()), true);
    }
    let why = match &of_user {
        Some(user) => format!("the user named `{user}`"),
        None => "it is not approved, does not exist, or the flags set bounds that it could not be held to".to_owned(),
    };
    notes.dropped("the skill", name, why);
    (of_user, false)
}

/// The commands of the shell. Without any the shell runs none: it is never left open because a draft forgot them.
fn commands_of(list: Vec<String>, tools: &[String], bounds: &Bounds, notes: &mut Notes) -> Option<Vec<String>> {
    if !tools.iter().any(|tool| tool == catalogue::BASH) {
        return None;
    }
    let mut kept = Vec::new();
    for text in entries(list, "commands", notes) {
        match commands(std::slice::from_ref(&text)) {
            Err(refusal) => notes.dropped("the command", &text, refusal.reason),
            Ok(names) if bounds.commands.as_ref().is_some_and(|most| names.iter().any(|name| !most.contains(name))) => {
                notes.dropped("the command", &text, "it is not among the commands of `--commands`");
            }
            Ok(names) => grants::extend(&mut kept, names),
        }
    }
    if kept.is_empty() {
        notes.add("`bash` may run no command: the draft names none".to_owned());
    }
    Some(kept)
}

fn within(what: &str, asked: u64, most: u64, notes: &mut Notes) -> u64 {
    if asked > most {
        notes.add(format!("{asked} {what} are cut to the limit of {most}"));
    }
    asked.clamp(1, most.max(1))
}

fn is_within(bounds: &[Pattern], pattern: &Pattern) -> bool {
    bounds.iter().any(|bound| bound == pattern || bound.is_wider(pattern))
}

/// Whether a credential may be sent to a host.
fn is_bound_to(info: &CredentialInfo, host: &Pattern) -> bool {
    is_within(&patterns(&info.domains).unwrap_or_default(), host)
}

/// Names of the vault are exact, those of variables are case-insensitive.
fn is_same(name: &CredentialName, info: &CredentialInfo) -> bool {
    let folded = |name: &CredentialName| name.as_str().to_ascii_lowercase().replace('-', "_");
    info.name == *name || (info.source == CredentialSource::Environment && folded(&info.name) == folded(name))
}

/// Whether a text has a name or a host as a word of its own: `evil-api.example.com` does not mention `api.example.com`.
fn mentions(text: &str, word: &str) -> bool {
    let (text, word) = (text.to_lowercase(), word.to_lowercase());
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    !word.is_empty()
        && text.match_indices(&word).any(|(start, _)| {
            let before = text.get(..start).unwrap_or_default().chars().next_back();
            let mut after = text.get(start + word.len()..).unwrap_or_default().chars();
            // A dot or a colon ends a word at the end of a sentence, and continues a name before a letter or digit.
            let ends = match after.next() {
                Some('.' | ':') => after.next().is_none_or(|c| !is_inner(c)),
                next => next.is_none_or(|c| !is_inner(c)),
            };
            ends && before.is_none_or(|c| !is_inner(c) && c != '.')
        })
}
