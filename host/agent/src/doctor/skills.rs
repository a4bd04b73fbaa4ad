//! Skills and tools of the home that cannot be used: unreadable, changed since their approval, waiting for a review.

use ::skills::{Library, LibraryParts, SkillStatus, SkillSummary};
use base::Refusal;
use store::Store;

use super::{Check, Finding, Severity};
use crate::HostOptions;
use crate::api::skills::SkillVerification;

const SKILLS: Check = Check::new("skills", "skills");
/// Skills named in a finding.
const MAX_NAMED: usize = 5;

/// Why a skill cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkillTrouble {
    /// The bytes are not the ones that the owner approved.
    Changed,
    Unreadable,
    /// The owner has not decided about it.
    Waiting,
}

/// The name of a skill, and why it cannot be used, if it cannot.
struct SkillState {
    name: String,
    trouble: Option<SkillTrouble>,
}

impl SkillState {
    fn new(name: String, status: SkillStatus, was_approved: bool, readable: bool) -> Self {
        let trouble = match status {
            SkillStatus::Approved => None,
            _ if was_approved => Some(SkillTrouble::Changed),
            _ if !readable => Some(SkillTrouble::Unreadable),
            _ => Some(SkillTrouble::Waiting),
        };
        Self { name, trouble }
    }
}

/// The skills of a library as a list shows them: a moment old, and without reading each byte.
pub(super) async fn listed(library: &Library) -> Vec<Finding> {
    let listed = match library.list().await {
        Ok(listed) => listed,
        Err(error) => return vec![SKILLS.refused(error.into(), "motor skill list")],
    };
    let state = |skill: &SkillSummary| {
        let is_approved = skill.status == SkillStatus::Approved;
        let was_approved = is_approved || crate::skill::was_approved(library.trust(), &skill.place);
        let name = skill.name.clone().unwrap_or_else(|| skill.place.to_string());
        SkillState::new(name, skill.status, was_approved, skill.readable)
    };
    findings(&listed.iter().map(state).collect::<Vec<_>>())
}

/// The skills whose every byte was read.
pub(super) fn verified(verified: &[SkillVerification]) -> Vec<Finding> {
    let state = |skill: &SkillVerification| {
        let name = skill.name.clone().unwrap_or_else(|| skill.place.to_string());
        SkillState::new(name, skill.status, skill.was_approved, skill.hash.is_some())
    };
    findings(&verified.iter().map(state).collect::<Vec<_>>())
}

fn findings(skills: &[SkillState]) -> Vec<Finding> {
    let of = |trouble: Option<SkillTrouble>| -> Vec<&str> {
        skills.iter().filter(|skill| skill.trouble == trouble).map(|skill| skill.name.as_str()).collect()
    };
    let mut findings = vec![SKILLS.ok(format!("{} approved and unchanged", of(None).len()))];
    for (trouble, status, words, command) in [
        (SkillTrouble::Changed, Severity::Warning, "changed since the approval, and not used", "motor skill review"),
        (SkillTrouble::Unreadable, Severity::Warning, "cannot be read", "motor skill verify"),
        (SkillTrouble::Waiting, Severity::Ok, "wait for your review", "motor skill review"),
    ] {
        let names = of(Some(trouble));
        let Some(first) = names.first() else { continue };
        let named: Vec<_> = names.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > MAX_NAMED { " and more" } else { "" };
        let message = format!("{} {words}: {}{more}", names.len(), named.join(", "));
        findings.push(SKILLS.finding(status, message, Some(format!("{command} {}", super::quoted(first)))));
    }
    findings
}

/// The skills of a home without a host. Its thread ends when it is closed.
pub(super) fn library(options: &HostOptions, store: &Store) -> Result<Library, Refusal> {
    let HostOptions { home, config, clock, .. } = options;
    let config = &config.config;
    Ok(Library::open(LibraryParts {
        store: store.clone(),
        clock: clock.clone(),
        roots: config.skills.roots(home),
        index: home.skill_index(),
        versions: home.versions(),
        bounds: config.skills.bounds(config.engine.component_bytes),
        watch: false,
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(skills: &[(&str, SkillStatus, bool, bool)]) -> Vec<(Severity, String, Option<String>)> {
        let states: Vec<_> = skills
            .iter()
            .map(|(name, status, was_approved, readable)| {
                SkillState::new((*name).to_owned(), *status, *was_approved, *readable)
            })
            .collect();
        findings(&states).into_iter().map(|finding| (finding.status, finding.message, finding.fix)).collect()
    }

    #[test]
    fn skills_are_counted_and_named_by_what_is_to_be_done() {
        use SkillStatus::{Approved, NeedsReapproval, PendingReview, Reviewed};
        let good = (Severity::Ok, "1 approved and unchanged".to_owned(), None);
        assert_eq!(said(&[("good", Approved, true, true)]), std::slice::from_ref(&good));
        let all = said(&[
            ("good", Approved, true, true),
            ("swapped", NeedsReapproval, true, true),
            ("broken", NeedsReapproval, false, false),
            ("new", PendingReview, false, true),
            ("read", Reviewed, false, true),
        ]);
        let line = |status, message: &str, fix: &str| (status, message.to_owned(), Some(fix.to_owned()));
        assert_eq!(
            all,
            [
                good,
                line(
                    Severity::Warning,
                    "1 changed since the approval, and not used: `swapped`",
                    "motor skill review swapped"
                ),
                line(Severity::Warning, "1 cannot be read: `broken`", "motor skill verify broken"),
                line(Severity::Ok, "2 wait for your review: `new`, `read`", "motor skill review new"),
            ]
        );
    }

    #[test]
    fn many_names_are_cut() {
        let names: Vec<String> = (0..7).map(|number| format!("s{number}")).collect();
        let skills: Vec<_> =
            names.iter().map(|name| (name.as_str(), SkillStatus::PendingReview, false, true)).collect();
        assert!(said(&skills)[1].1.ends_with("`s4` and more"));
    }
}
