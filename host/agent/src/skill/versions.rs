//! Versions of a skill: listing, comparing, and rolling back (SPEC SKILL-12).

use base::{ContentHash, Refusal, RefusalCode};
use consent::Consent;
use skills::review::{diff, power_changes};
use skills::trust::Subject;
use skills::{Policy, SkillError, SkillPlace, Snapshot, Taken, TrustRecord};

use super::Skills;
use super::replace;
use crate::api::skills::{DiffRequest, RollbackRequest, SkillDiff, SkillRollback, SkillVersion};
use store::blocking;

impl Skills {
    /// The known versions of a skill, newest first.
    ///
    /// # Errors
    /// If the skill does not exist.
    pub async fn versions(&self, selector: &str) -> Result<Vec<SkillVersion>, Refusal> {
        let library = &self.environment.skills;
        let place = self.place(selector).await?;
        let found = library.list().await?.into_iter().find(|summary| summary.place == place);
        let lies = found.and_then(|summary| summary.hash);
        let records = library.trust().of_place(&place)?;
        let version = |record: TrustRecord| SkillVersion {
            hash: record.hash,
            status: record.status,
            superseded: record.superseded,
            in_place: lies == Some(record.hash),
            kept: library.versions().has(record.hash),
            approved_at: record.consent.as_ref().map(|consent| consent.at),
            source: record.provenance.map(|provenance| provenance.source),
            run_id: record.extracted_from.map(|from| from.run_id),
            changed_at: record.changed_at,
        };
        Ok(records.into_iter().map(version).collect())
    }

    /// The differences between two versions: powers, then files.
    ///
    /// # Errors
    /// If the skill or a version does not exist.
    pub async fn diff(&self, request: DiffRequest) -> Result<SkillDiff, Refusal> {
        let taken = self.environment.skills.take(&request.skill).await?;
        let (from, from_policy) = match &request.from {
            Some(prefix) => self.version(&taken, prefix).await?,
            None => match self.last_approved(&taken.place)? {
                Some(record) => (self.kept(record.hash).await?, record.policy.unwrap_or_default()),
                None => {
                    let reason = "no version of the skill was approved, so there is nothing to compare with";
                    return Err(
                        Refusal::new(RefusalCode::NotFound, reason).with_remedy("`motor skill review` shows all of it")
                    );
                }
            },
        };
        let to = match &request.to {
            Some(prefix) => self.version(&taken, prefix).await?.0,
            None => taken.snapshot.clone(),
        };
        self.inspecting(move |inspect| {
            let powers = power_changes((&from, &from_policy), &to, inspect);
            SkillDiff { from: from.hash, to: to.hash, powers, files: diff(&from, &to) }
        })
        .await
    }

    /// Replaces the skill's files by an earlier version, and approves it with the policy it had; or by a version that a
    /// run made for it, which is not approved. The replaced version is kept; files that cannot be read as a skill are put
    /// aside.
    ///
    /// # Errors
    /// If the version does not exist, or cannot be put in place.
    pub async fn rollback(&self, request: RollbackRequest, consent: Consent) -> Result<SkillRollback, Refusal> {
        let library = &self.environment.skills;
        let place = self.place(&request.skill).await?;
        let present = match library.take_at(&place).await {
            Ok(taken) => Some(taken.snapshot.hash),
            Err(SkillError::Unreadable { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let record = self.approved_before(&place, present, request.to.as_deref())?;
        let snapshot = self.kept(record.hash).await?;
        let name = snapshot.manifest(&place.entry).map_err(SkillError::from)?.name;
        let put_aside = match present {
            Some(hash) if hash == record.hash => None,
            Some(hash) => {
                replace::replace(library, &place, hash, snapshot).await?;
                None
            }
            None => Some(replace::replace_unreadable(library, &place, snapshot).await?),
        };
        library.refresh().await?;
        // The permission bits now in place.
        let lies = library.take_at(&place).await?;
        if lies.snapshot.hash != record.hash {
            return Err(SkillError::Changed.into());
        }
        // A run's proposal waits for its review like any other change.
        if record.consent.is_some() {
            let subject = Subject::of(name, place.clone(), &lies.snapshot);
            let record = library.trust().approve(&subject, record.policy.unwrap_or_default(), consent).await?;
            self.write_policy(&record).await;
        }
        let put_aside = put_aside.map(|path| path.to_string_lossy().into_owned());
        Ok(SkillRollback { skill: self.summary(&place).await?, put_aside })
    }

    /// The record of an approved version: the named one, or the last that differs from the files in place. By name, also
    /// one that a run proposed.
    fn approved_before(
        &self,
        place: &SkillPlace,
        present: Option<ContentHash>,
        prefix: Option<&str>,
    ) -> Result<TrustRecord, Refusal> {
        let mut known = self.once_approved(place)?;
        if prefix.is_some() {
            let others = self.environment.skills.trust().of_place(place)?;
            known.extend(
                others
                    .into_iter()
                    .filter(|record| record.consent.is_none() && record.extracted_from.is_some() && !record.superseded),
            );
        }
        let mut fitting = known.into_iter().filter(|record| match prefix {
            Some(prefix) => matches(record.hash, prefix),
            None => Some(record.hash) != present,
        });
        let found = fitting.next();
        if prefix.is_some() && fitting.next().is_some() {
            return Err(ambiguous());
        }
        found.ok_or_else(|| {
            Refusal::new(RefusalCode::NotFound, "there is no such version that was approved")
                .with_remedy("`motor skill versions` lists them")
        })
    }

    /// A version by the beginning of its hash, with the policy it had.
    async fn version(&self, taken: &Taken, prefix: &str) -> Result<(Snapshot, Policy), Refusal> {
        if matches(taken.snapshot.hash, prefix) {
            let policy = taken.standing.record.as_ref().and_then(|record| record.policy.clone());
            return Ok((taken.snapshot.clone(), policy.unwrap_or_default()));
        }
        let records = self.environment.skills.trust().of_place(&taken.place)?;
        let mut fitting = records.into_iter().filter(|record| matches(record.hash, prefix));
        let Some(record) = fitting.next() else {
            return Err(Refusal::new(RefusalCode::NotFound, "there is no such version")
                .with_remedy("`motor skill versions` lists them"));
        };
        if fitting.next().is_some() {
            return Err(ambiguous());
        }
        Ok((self.kept(record.hash).await?, record.policy.unwrap_or_default()))
    }

    /// The kept bytes of a version, hashed again.
    pub(super) async fn kept(&self, hash: ContentHash) -> Result<Snapshot, Refusal> {
        let versions = self.environment.skills.versions().clone();
        blocking(move || Ok(versions.load(hash)?)).await
    }
}

/// Whether a hash begins with this prefix, with or without `sha256:`. Fewer than four digits match nothing.
fn matches(hash: ContentHash, prefix: &str) -> bool {
    let digits = prefix.strip_prefix("sha256:").unwrap_or(prefix);
    digits.len() >= 4 && hash.hex().starts_with(&digits.to_ascii_lowercase())
}

fn ambiguous() -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, "several versions begin like this").with_remedy("name more of the hash")
}
