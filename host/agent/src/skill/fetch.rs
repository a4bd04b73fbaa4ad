//! Updating a skill from the source that it was added from (SPEC SKILL-13).
//!
//! The new bytes are put in place as a whole and wait for the owner like any that changed: nothing here approves. The
//! replaced bytes are kept as a version. A crash leaves the old skill or the new one, and the next update completes the
//! record of its source.

use std::path::Path;

use base::{ContentHash, Refusal, RefusalCode};
use consent::Consent;
use skills::policy::SkillProvenance;
use skills::review::{diff, power_changes};
use skills::{SkillError, Snapshot, Taken, TrustRecord};
use store::blocking;

use super::add::{SkillSource, copy_proposal, url};
use super::{Skills, replace, subject};
use crate::api::skills::{FetchOutcome, FetchRequest, SkillDiff, SkillFetch};

impl Skills {
    /// Compares a skill with its source, and puts the source's version in place unless the request only checks. It is not
    /// approved by that. Nothing changes if the bytes are the same.
    ///
    /// # Errors
    /// If no source is recorded, it cannot be read or holds another skill, or the present files would be lost;
    /// `consent_needed` without the owner's consent to a change or to fetching a URL.
    pub async fn fetch(&self, request: FetchRequest, consent: Option<Consent>) -> Result<SkillFetch, Refusal> {
        let library = &self.environment.skills;
        let taken = library.take(&request.skill).await?;
        let (name, place, from) = (taken.manifest.name.clone(), taken.place.clone(), taken.snapshot.hash);
        let records = library.trust().of_place(&place)?;
        let source = recorded_source(&taken, &records)?;
        if consent.is_none() && !request.check {
            let reason = format!("replacing the files of `{name}` is for the owner to say");
            return Err(Refusal::new(RefusalCode::ConsentNeeded, reason));
        }
        let read =
            self.read_source(&source, consent.is_some()).await.map_err(|refusal| unavailable(&source, refusal))?;
        let SkillSource { snapshot, entry, .. } = read;
        let there = snapshot.manifest(&entry).map_err(|error| unavailable(&source, SkillError::from(error).into()))?;
        if there.name != name {
            let reason = format!("its source `{source}` holds another skill by now, `{}`", there.name);
            return Err(Refusal::new(RefusalCode::IllegalState, reason)
                .with_remedy(format!("`motor skill add {source}` adds that one")));
        }
        let to = snapshot.hash;
        let changed_here = !records.iter().any(|record| is_from_source(record, from));
        let mut fetch = SkillFetch {
            name,
            place: place.clone(),
            source: source.clone(),
            outcome: if from == to { FetchOutcome::Unchanged } else { FetchOutcome::Newer },
            from,
            to,
            status: taken.standing.status,
            changed_here: changed_here && from != to,
            diff: None,
        };
        if from != to {
            fetch.diff = Some(self.compared(&taken, &snapshot).await?);
        }
        if request.check {
            return Ok(fetch);
        }
        if from != to {
            if changed_here && !records.iter().any(|record| is_restorable(record, from)) {
                let reason = "its files were changed here, and no version of them is kept: an update would lose them";
                return Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(
                    "`motor skill approve` it first to keep them, or `motor skill delete` it and add it again",
                ));
            }
            replace::replace(library, &place, from, snapshot.clone()).await?;
            let directory = library.path(&place)?;
            blocking(move || copy_proposal(&directory, &snapshot)).await?;
            fetch.outcome = FetchOutcome::Updated;
        }
        let lies = library.take_at(&place).await?;
        if lies.snapshot.hash != to {
            return Err(SkillError::Changed.into());
        }
        // A crash before this leaves the bytes of the source without their record, which is made up for.
        if !records.iter().any(|record| is_from_source(record, to)) {
            let provenance = SkillProvenance { source, fetched_at: self.environment.clock.now(), content_hash: to };
            library.trust().added(&subject(&lies), provenance).await?;
        }
        fetch.status = self.summary(&place).await?.status;
        Ok(fetch)
    }

    /// The changes that an update makes to the present files.
    async fn compared(&self, taken: &Taken, new: &Snapshot) -> Result<SkillDiff, Refusal> {
        let policy = taken.standing.record.as_ref().and_then(|record| record.policy.clone()).unwrap_or_default();
        let (from, to) = (taken.snapshot.clone(), new.clone());
        self.inspecting(move |inspect| {
            let powers = power_changes((&from, &policy), &to, inspect);
            SkillDiff { from: from.hash, to: to.hash, powers, files: diff(&from, &to) }
        })
        .await
    }
}

/// The source of the present version, otherwise that of the latest one that has a source.
fn recorded_source(taken: &Taken, records: &[TrustRecord]) -> Result<String, Refusal> {
    let name = &taken.manifest.name;
    let known = records.iter().filter_map(|record| Some((record.hash, record.provenance.as_ref()?)));
    let latest = known.max_by_key(|(hash, known)| (*hash == taken.snapshot.hash, known.fetched_at));
    let Some((_, SkillProvenance { source, .. })) = latest else {
        let reason = format!("no source of `{name}` is recorded: it was not added with `motor skill add`");
        return Err(Refusal::new(RefusalCode::NotFound, reason).with_remedy("change its files in place"));
    };
    if url(source).is_none() && !Path::new(source).is_absolute() {
        let reason =
            format!("`{name}` was added as the file `{source}`, and it is not recorded where that file came from");
        return Err(Refusal::new(RefusalCode::NotFound, reason)
            .with_remedy(format!("`motor skill delete {name}`, then add the newer file")));
    }
    Ok(source.clone())
}

fn is_from_source(record: &TrustRecord, hash: ContentHash) -> bool {
    record.hash == hash && record.provenance.as_ref().is_some_and(|provenance| provenance.content_hash == hash)
}

/// Whether `motor skill rollback` finds the version again.
fn is_restorable(record: &TrustRecord, hash: ContentHash) -> bool {
    record.hash == hash && (record.consent.is_some() || record.extracted_from.is_some())
}

fn unavailable(source: &str, refusal: Refusal) -> Refusal {
    if refusal.code == RefusalCode::ConsentNeeded {
        return refusal;
    }
    let reason = format!("its source `{source}` cannot be used, and the skill stays as it is: {}", refusal.reason);
    Refusal { reason, ..refusal }
}
