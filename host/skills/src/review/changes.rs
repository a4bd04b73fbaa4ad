//! Changes against the approved version: powers before anything else, those with the widest reach first.

use std::collections::{BTreeMap, BTreeSet};

use super::diff::{self, Deadline};
use super::facts::{self, FactPlaces, Facts, Inspect};
use super::hidden::visible_name;
use super::{ComponentFact, FileChange, FileChangeKind, Hidden, PowerChange, SkillChanges, ToolFact, text};
use crate::policy::{Policy, read_proposal};
use crate::{SkillFile, Snapshot};

/// Maximum lines shown about powers.
const MAX_POWERS: usize = 1_000;

/// Abilities and requests of a new version that go beyond the approved version and its policy, and those that are gone.
/// [`super::diff`] shows the other changes.
#[must_use]
pub fn power_changes(approved: (&Snapshot, &Policy), new: &Snapshot, inspect: &Inspect<'_>) -> Vec<PowerChange> {
    compared(approved, new, &facts::find(new, inspect), inspect)
}

/// Compares with the approved version, given the facts of the new one.
pub(super) fn against(
    approved: (&Snapshot, &Policy),
    new: &Snapshot,
    facts: &Facts,
    inspect: &Inspect<'_>,
) -> SkillChanges {
    let old = approved.0;
    SkillChanges { against: old.hash, powers: compared(approved, new, facts, inspect), files: files(old, new) }
}

fn compared(approved: (&Snapshot, &Policy), new: &Snapshot, facts: &Facts, inspect: &Inspect<'_>) -> Vec<PowerChange> {
    let (old, policy) = approved;
    // An unchanged component keeps its facts.
    let known = |path: &str, bytes: &[u8]| {
        let hash = old.files.get(path).map(|file| file.hash);
        let same = facts.components.iter().find(|fact| fact.path == path && Some(fact.hash) == hash);
        same.cloned().unwrap_or_else(|| inspect(path, bytes))
    };
    powers(old, policy, new, &facts::find(old, &known), facts)
}

/// Kind of power that a line is about, in display order: abilities to run and reach out, then requests, then mere
/// oddities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Network,
    Domain,
    Script,
    Capability,
    Component,
    Tool,
    Credential,
    AskedTool,
    Limit,
    Dependency,
    Inputs,
    Hidden,
}

struct Powers {
    added: BTreeSet<(Rank, String)>,
    removed: BTreeSet<(Rank, String)>,
}

impl Powers {
    fn add(&mut self, rank: Rank, what: String) {
        self.added.insert((rank, what));
    }

    fn remove(&mut self, rank: Rank, what: String) {
        self.removed.insert((rank, what));
    }

    /// Compares in both directions: names only in `after` are added, names only in `before` are removed.
    fn compare(
        &mut self,
        rank: Rank,
        before: &BTreeSet<String>,
        after: &BTreeSet<String>,
        say: impl Fn(&str) -> String,
    ) {
        for name in after.difference(before) {
            self.add(rank, say(name));
        }
        for name in before.difference(after) {
            self.remove(rank, say(name));
        }
    }

    fn shown(self) -> Vec<PowerChange> {
        let all = self
            .added
            .into_iter()
            .map(|(_, what)| (true, what))
            .chain(self.removed.into_iter().map(|(_, what)| (false, what)));
        let mut shown: Vec<PowerChange> = all.map(|(added, what)| PowerChange { added, what }).collect();
        let more = shown.len().saturating_sub(MAX_POWERS);
        if more > 0 {
            shown.truncate(MAX_POWERS);
            shown.push(PowerChange { added: true, what: format!("… and {more} more changes") });
        }
        shown
    }
}

fn powers(old: &Snapshot, policy: &Policy, new: &Snapshot, before: &Facts, after: &Facts) -> Vec<PowerChange> {
    let mut powers = Powers { added: BTreeSet::new(), removed: BTreeSet::new() };
    components(&mut powers, &before.components, &after.components);
    scripts(&mut powers, old, new);
    let asked = new.proposal.as_deref().and_then(|bytes| read_proposal(bytes).policy);
    domains(&mut powers, policy, asked.as_ref(), before, after);
    credentials(&mut powers, policy, asked.as_ref(), before, after);
    if let Some(asked) = &asked {
        asks(&mut powers, policy, asked);
    }
    hidden(&mut powers, &before.hidden, &after.hidden);
    powers.shown()
}

fn components(powers: &mut Powers, before: &[ComponentFact], after: &[ComponentFact]) {
    let by_path = |facts: &[ComponentFact]| -> BTreeMap<String, ComponentFact> {
        facts.iter().map(|fact| (fact.path.clone(), fact.clone())).collect()
    };
    let (before, after) = (by_path(before), by_path(after));
    for path in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        let shown = visible_name(path);
        let (old, new) = (before.get(path), after.get(path));
        match (old, new) {
            (None, Some(_)) => powers.add(Rank::Component, format!("adds component `{shown}`")),
            (Some(_), None) => powers.remove(Rank::Component, format!("component `{shown}`")),
            (Some(old), Some(new)) if old.hash != new.hash => {
                powers.add(Rank::Component, format!("changes component `{shown}`"));
            }
            _ => {}
        }
        let capabilities = |fact: Option<&ComponentFact>, network: bool| -> BTreeSet<String> {
            let words = fact.iter().flat_map(|fact| &fact.capabilities);
            words.filter(|word| (word.as_str() == "network") == network).cloned().collect()
        };
        for (rank, network) in [(Rank::Network, true), (Rank::Capability, false)] {
            let say = |word: &str| format!("imports {} (`{shown}`)", visible_name(word));
            powers.compare(rank, &capabilities(old, network), &capabilities(new, network), say);
        }
        let tools = |fact: Option<&ComponentFact>| -> BTreeMap<String, ToolFact> {
            fact.iter().flat_map(|fact| &fact.tools).map(|tool| (tool.name.clone(), tool.clone())).collect()
        };
        let (old, new) = (tools(old), tools(new));
        let names = |tools: &BTreeMap<String, ToolFact>| tools.keys().cloned().collect();
        let offers = |name: &str| format!("offers tool `{}` (`{shown}`)", visible_name(name));
        powers.compare(Rank::Tool, &names(&old), &names(&new), offers);
        for (name, _) in new.iter().filter(|(name, tool)| old.get(*name).is_some_and(|known| known != *tool)) {
            // A model uses a tool according to its description and parameters.
            powers.add(Rank::Tool, format!("changes what tool `{}` says or takes (`{shown}`)", visible_name(name)));
        }
    }
}

fn scripts(powers: &mut Powers, old: &Snapshot, new: &Snapshot) {
    let is_script = |path: &str, file: &SkillFile| text::is_script(path, &file.bytes, file.mode);
    for (path, file) in &new.files {
        let shown = visible_name(path);
        match old.files.get(path) {
            None if is_script(path, file) => powers.add(Rank::Script, format!("adds script `{shown}`")),
            // Also a file that became a script by its first line or mode.
            Some(known) if known.hash != file.hash && (is_script(path, file) || is_script(path, known)) => {
                powers.add(Rank::Script, format!("changes script `{shown}`"));
            }
            Some(known) if known.mode & 0o111 == 0 && file.mode & 0o111 != 0 => {
                powers.add(Rank::Script, format!("makes `{shown}` executable"));
            }
            _ => {}
        }
    }
    for (path, _) in old.files.iter().filter(|(path, file)| is_script(path, file) && !new.files.contains_key(*path)) {
        powers.remove(Rank::Script, format!("script `{}`", visible_name(path)));
    }
}

/// One line for each domain, whether it is asked for, mentioned or both.
fn domains(powers: &mut Powers, policy: &Policy, asked: Option<&Policy>, before: &Facts, after: &Facts) {
    let granted: BTreeSet<&str> = policy.domains.iter().map(String::as_str).collect();
    let wanted: BTreeSet<&str> = asked.iter().flat_map(|asked| &asked.domains).map(String::as_str).collect();
    let mentions = |name: &str| after.domains.get(name).filter(|_| !before.domains.contains_key(name));
    for name in wanted.difference(&granted) {
        let place = mentions(name).map(|places| format!(", mentions it{}", places_of(places))).unwrap_or_default();
        powers.add(Rank::Domain, format!("asks for domain `{}`{place}", visible_name(name)));
    }
    for (name, places) in after.domains.iter().filter(|(name, _)| mentions(name).is_some()) {
        if !wanted.contains(name.as_str()) || granted.contains(name.as_str()) {
            // After those that are asked for, in the order of the text.
            powers.add(Rank::Domain, format!("mentions domain `{}`{}", visible_name(name), places_of(places)));
        }
    }
    for name in before.domains.keys().filter(|name| !after.domains.contains_key(*name)) {
        powers.remove(Rank::Domain, format!("mentions domain `{}`", visible_name(name)));
    }
    let Some(asked) = asked else { return };
    for name in granted.difference(&wanted) {
        powers.remove(Rank::Domain, format!("asks for domain `{}`", visible_name(name)));
    }
    let set = |names: &[String]| names.iter().cloned().collect();
    powers.compare(Rank::Domain, &set(&policy.writes), &set(&asked.writes), |name| {
        format!("asks to write to domain `{}`", visible_name(name))
    });
}

fn credentials(powers: &mut Powers, policy: &Policy, asked: Option<&Policy>, before: &Facts, after: &Facts) {
    let names = |policy: &Policy| -> BTreeSet<String> {
        policy.required_credentials.iter().map(|name| name.as_str().to_owned()).collect()
    };
    let granted = names(policy);
    let wanted = asked.map(names).unwrap_or_default();
    for name in wanted.difference(&granted) {
        powers.add(Rank::Credential, format!("asks for credential `{name}`"));
    }
    for (name, places) in after.credentials.iter().filter(|(name, _)| !before.credentials.contains_key(*name)) {
        if !wanted.contains(name) || granted.contains(name) {
            powers.add(Rank::Credential, format!("mentions credential `{}`{}", visible_name(name), places_of(places)));
        }
    }
    for name in before.credentials.keys().filter(|name| !after.credentials.contains_key(*name)) {
        powers.remove(Rank::Credential, format!("mentions credential `{}`", visible_name(name)));
    }
    if asked.is_some() {
        for name in granted.difference(&wanted) {
            powers.remove(Rank::Credential, format!("asks for credential `{name}`"));
        }
    }
}

/// The proposal's requests other than domains and credentials. An empty list of tools or dependencies asks for less.
fn asks(powers: &mut Powers, policy: &Policy, asked: &Policy) {
    let set = |names: &[String]| names.iter().cloned().collect();
    powers.compare(Rank::AskedTool, &set(&policy.tools), &set(&asked.tools), |name| {
        format!("asks for tool `{}`", visible_name(name))
    });
    for (name, limit) in &policy.limits {
        match asked.limits.get(name) {
            Some(more) if more > limit => {
                powers.add(Rank::Limit, format!("asks to raise limit `{}` from {limit} to {more}", visible_name(name)));
            }
            None => powers.add(Rank::Limit, format!("asks for no limit `{}`, which is {limit}", visible_name(name))),
            Some(less) if less < limit => {
                powers.remove(
                    Rank::Limit,
                    format!("asks to lower limit `{}` from {limit} to {less}", visible_name(name)),
                );
            }
            Some(_) => {}
        }
    }
    let pins = |policy: &Policy| -> BTreeSet<String> {
        let pin = |(name, pin): (&String, &serde_json::Value)| match pin {
            serde_json::Value::String(version) => format!("{name}` as `{version}"),
            other => format!("{name}` as `{other}"),
        };
        policy.dependencies.iter().map(pin).collect()
    };
    powers.compare(Rank::Dependency, &pins(policy), &pins(asked), |pin| {
        format!("asks for dependency `{}`", visible_name(pin))
    });
    if policy.inputs != asked.inputs {
        powers.add(Rank::Inputs, "asks for other inputs".to_owned());
    }
}

fn hidden(powers: &mut Powers, before: &[Hidden], after: &[Hidden]) {
    let mut counts: BTreeMap<(&str, &str), i128> = BTreeMap::new();
    for (findings, sign) in [(before, -1), (after, 1)] {
        for hidden in findings {
            *counts.entry((&hidden.path, &hidden.what)).or_default() += sign * i128::from(hidden.count);
        }
    }
    for ((path, what), count) in counts {
        let line =
            after.iter().find(|hidden| hidden.path == path && hidden.what == what).map_or(0, |hidden| hidden.line);
        let shown = visible_name(path);
        let place = if line == 0 { format!("(`{shown}`)") } else { format!("({shown}:{line})") };
        match count {
            1.. => powers.add(Rank::Hidden, format!("hides something: {what} {place}")),
            ..=-1 => powers.remove(Rank::Hidden, format!("hides something: {what} (`{shown}`)")),
            0 => {}
        }
    }
}

fn places_of(places: &FactPlaces) -> String {
    let Some(first) = places.at.first() else { return String::new() };
    let more = if places.at.len() > 1 { ", …" } else { "" };
    format!(" ({}{more})", visible_name(first))
}

/// Changed files, executable ones before those that are only read.
fn files(old: &Snapshot, new: &Snapshot) -> Vec<FileChange> {
    let deadline = Deadline::soon();
    let paths: BTreeSet<&String> = old.files.keys().chain(new.files.keys()).collect();
    let mut changes: Vec<(u8, FileChange)> = Vec::new();
    for path in paths {
        let (before, after) = (old.files.get(path), new.files.get(path));
        if let Some(kind) = kind(before, after) {
            let order = before.into_iter().chain(after).map(|file| order(path, file)).min().unwrap_or(u8::MAX);
            let lines = diff::lines(path, diff::bytes(before), diff::bytes(after), &deadline);
            changes.push((order, FileChange { path: path.clone(), kind, lines }));
        }
    }
    // The sort is stable: within a kind they stay sorted by path.
    changes.sort_by_key(|(order, _)| *order);
    changes.into_iter().map(|(_, change)| change).collect()
}

/// How a file changed; `None` if it did not.
pub(super) fn kind(before: Option<&SkillFile>, after: Option<&SkillFile>) -> Option<FileChangeKind> {
    match (before, after) {
        (None, Some(_)) => Some(FileChangeKind::Added),
        (Some(_), None) => Some(FileChangeKind::Removed),
        (Some(before), Some(after)) if before.hash != after.hash => Some(FileChangeKind::Changed),
        (Some(before), Some(after)) if before.mode != after.mode => Some(FileChangeKind::Mode),
        _ => None,
    }
}

/// Display rank: scripts and components, then the manifest for the model, then the rest.
pub(super) fn order(path: &str, file: &SkillFile) -> u8 {
    if text::is_script(path, &file.bytes, file.mode) || text::is_component(path, &file.bytes) {
        0
    } else if crate::snapshot::is_manifest(path) {
        1
    } else {
        2
    }
}

#[cfg(test)]
mod tests;
