//! A list: the skills that were found, and their trust state.
//!
//! It reads no files. Catalogue entries select trust records by name, place, hash and permission bits, so an outdated
//! catalogue shows the state of the bytes of its moment.

use super::SkillSummary;
use super::catalogue::{Catalogue, CatalogueEntry, ReadableSkill};
use crate::review::visible_name;
use crate::{SkillForm, SkillStatus, Standing, TrustBook};

/// All entries of the catalogue in list order.
pub(super) fn summaries(catalogue: &Catalogue, trust: &TrustBook) -> Vec<SkillSummary> {
    let entries = catalogue.by_name();
    let asked: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            let found = entry.found.as_ref().ok()?;
            Some((found.name.clone(), entry.place.clone(), found.hash, found.modes))
        })
        .collect();
    let mut standings = trust.standings(&asked).into_iter();
    let last_uses = trust.last_uses();
    let mut summaries = Vec::with_capacity(entries.len());
    let mut subjects = asked.into_iter();
    for entry in entries {
        summaries.push(match &entry.found {
            Ok(contents) => {
                let last_used = subjects.next().and_then(|(name, place, ..)| last_uses.get(&(name, place)).copied());
                let standing = standings.next();
                match catalogue.refused(&entry.place, &contents.name, contents.written.as_deref()) {
                    // It is not called by the name of another skill.
                    Some(reason) => SkillSummary { name: None, ..unreadable(entry, reason) },
                    None => SkillSummary { last_used, ..readable(entry, contents, standing) },
                }
            }
            Err(problem) => unreadable(entry, problem.reason.clone()),
        });
    }
    summaries
}

fn readable(entry: &CatalogueEntry, contents: &ReadableSkill, standing: Option<Standing>) -> SkillSummary {
    // There is one for each request; a missing one counts as no trust.
    let Some(standing) = standing else { return unreadable(entry, "nothing is known of it".to_owned()) };
    let described =
        standing.record.and_then(|record| record.described).filter(|_| entry.form == Some(SkillForm::Component));
    SkillSummary {
        name: Some(contents.name.to_string()),
        written_name: contents.written.as_deref().map(visible_name),
        place: entry.place.clone(),
        form: entry.form,
        description: described.map_or_else(|| contents.description.clone(), |described| described.description),
        status: standing.status,
        reason: standing.reason,
        readable: true,
        conforms: contents.conforms,
        unavailable: contents.unavailable.clone(),
        hash: Some(contents.hash),
        last_used: None,
    }
}

fn unreadable(entry: &CatalogueEntry, reason: String) -> SkillSummary {
    SkillSummary {
        name: entry.name().map(str::to_owned),
        written_name: None,
        place: entry.place.clone(),
        form: entry.form,
        description: String::new(),
        status: SkillStatus::NeedsReapproval,
        reason,
        readable: false,
        conforms: false,
        unavailable: Vec::new(),
        hash: None,
        last_used: None,
    }
}
