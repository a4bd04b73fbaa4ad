//! Taking over the skills that a run left in its workspace (SPEC SKILL-10): copied whole, and waiting for review.
//!
//! A crash at any point leaves the old skill or the new, and the new one unapproved: the files change in one step, and
//! their trust record is made after. A run that ends again finds its own work and returns the same result.

use std::sync::Arc;

use base::{ContentHash, Refusal, RefusalCode, Timestamp};
use grants::SkillGrant;
use motor::{InstalledSkill, RunRecord};
use skills::extract::{Baseline, ExtractFailure, ExtractedSkill, Extraction, extract};
use skills::install::{ExpectedState, put};
use skills::policy::ExtractedFrom;
use skills::trust::Subject;
use skills::{SkillError, SkillName, SkillPlace, SkillStatus, SkillsRoot, Snapshot, TrustRecord};
use vault::Scrubber;

use super::replace::replace;
use crate::artifacts;
use crate::environment::HostEnvironment;
use store::blocking;

impl HostEnvironment {
    /// Takes over the skills that a finished run made or changed.
    pub(crate) async fn take_over(
        &self,
        run: &RunRecord,
        used: Option<&SkillGrant>,
    ) -> Result<Vec<InstalledSkill>, Refusal> {
        let scrubber = self.access.scrubber(&run.id).await?;
        let found = self.extract(run, used, scrubber).await?;
        // The caller's input files, including skills, are not the run's work.
        let given = artifacts::WorkspaceBaseline::read(&self.home.run(&run.id));
        let own = used.map(|used| &used.name);
        let found = found.into_iter().filter(|extracted| match extracted {
            Ok(found) => own == Some(&found.name) || !found.snapshot.files.values().all(|file| given.holds(file.hash)),
            Err(_) => true,
        });
        let mut installed = Vec::new();
        for extracted in found {
            match extracted {
                Ok(extracted) => {
                    let name = extracted.name.to_string();
                    let taken = self.take_one(run, used, extracted).await;
                    installed.extend(taken.unwrap_or_else(|refusal| Some(InstalledSkill::lost(name, refusal.reason))));
                }
                Err(ExtractFailure { name, reason, .. }) => installed.push(InstalledSkill::lost(name, reason)),
            }
        }
        if !installed.is_empty() {
            self.skills.refresh().await?;
        }
        Ok(installed)
    }

    async fn extract(
        &self,
        run: &RunRecord,
        used: Option<&SkillGrant>,
        scrubber: Arc<Scrubber>,
    ) -> Result<Vec<Result<ExtractedSkill, ExtractFailure>>, Refusal> {
        let (workspace, bounds) = (self.home.workspace(&run.id), *self.skills.bounds());
        let (versions, hash) = (self.skills.versions().clone(), used.map(|used| used.hash));
        let name = used.map(|used| used.name.clone());
        blocking(move || {
            let snapshot: Option<Snapshot> = hash.map(|hash| versions.load(hash)).transpose()?;
            let baseline = snapshot.as_ref().zip(name.as_ref()).map(|(snapshot, name)| Baseline { name, snapshot });
            let scrub = |bytes: &[u8]| {
                let mut stream = scrubber.stream();
                let mut scrubbed = stream.push(bytes).to_vec();
                scrubbed.extend_from_slice(&stream.finish());
                scrubbed
            };
            Ok(extract(&Extraction { workspace: &workspace, baseline, scrub: &scrub, bounds }))
        })
        .await
    }

    async fn take_one(
        &self,
        run: &RunRecord,
        used: Option<&SkillGrant>,
        extracted: ExtractedSkill,
    ) -> Result<Option<InstalledSkill>, Refusal> {
        let ExtractedSkill { name, snapshot, changed, deleted, .. } = extracted;
        let library = &self.skills;
        let trust = library.trust();
        let own = used.filter(|used| used.name == name);
        // A changed skill returns to its own place; any other goes to the home's.
        let place = match own {
            Some(used) => used.place.clone(),
            None => SkillPlace { root: self.first_root()?.id.clone(), entry: name.to_string() },
        };
        let hash = snapshot.hash;
        let lies = self.lies(&place).await?;
        let mut created = false;
        match (&lies, own) {
            (Some(lies), _) if lies.hash == hash => {
                let record = trust.get(&name, &place, hash)?;
                let mine = record.as_ref().is_none_or(|record| from_run(record, run));
                if !mine {
                    // The same bytes were already there.
                    return Ok(None);
                }
                // An earlier end of this run put it there. Later decisions about it stay.
                created = trust.of_place(&place)?.iter().all(|record| record.hash == hash);
                if record.is_some() {
                    return Ok(Some(installed(&name, &place, hash, created)));
                }
            }
            (_, Some(used)) => replace(library, &place, used.hash, snapshot.clone()).await?,
            // A run has no business in an approved skill that it was not given.
            (Some(lies), None) if self.is_approved(&name, &place, lies)? => {
                let from = self.extracted_from(run, changed, deleted);
                return Ok(Some(self.propose(name, place, &snapshot, from).await?));
            }
            (Some(lies), None) => {
                self.may_replace(&name, &place, lies)?;
                replace(library, &place, lies.hash, snapshot.clone()).await?;
            }
            (None, None) => {
                self.is_free(&name).await?;
                created = true;
                let (versions, new) = (library.versions().clone(), snapshot.clone());
                let (root, entry) = (self.first_root()?.path.clone(), place.entry.clone());
                blocking(move || {
                    versions.keep(&new)?;
                    Ok(put(&root, &entry, &new, ExpectedState::Absent)?)
                })
                .await?;
            }
        }
        let kept = trust.of_place(&place)?.into_iter().filter(|record| record.name == name);
        let kept = kept.into_iter().find_map(|record| record.policy);
        // The bits now in place: as written by the host, not as in the workspace.
        let modes = self.lies(&place).await?.map_or(snapshot.modes, |lies| lies.modes);
        let subject = Subject { name: name.clone(), place: place.clone(), hash, modes };
        let from = self.extracted_from(run, changed, deleted);
        trust.made_by_motor(&subject, from, kept).await?;
        Ok(Some(installed(&name, &place, hash, created)))
    }

    fn extracted_from(&self, run: &RunRecord, changed: Vec<String>, deleted: Vec<String>) -> ExtractedFrom {
        let at: Timestamp = self.clock.now();
        ExtractedFrom { run_id: run.id.clone(), at, changed_files: changed, deleted_files: deleted }
    }

    /// Keeps a version of an approved skill beside it: the files in place and their approval stay.
    async fn propose(
        &self,
        name: SkillName,
        place: SkillPlace,
        snapshot: &Snapshot,
        from: ExtractedFrom,
    ) -> Result<InstalledSkill, Refusal> {
        let (versions, new) = (self.skills.versions().clone(), snapshot.clone());
        blocking(move || Ok(versions.keep(&new)?)).await?;
        let trust = self.skills.trust();
        let kept = trust.approved(&name, &place)?.and_then(|record| record.policy);
        let subject = Subject::of(name.clone(), place.clone(), snapshot);
        trust.proposed(&subject, from, kept).await?;
        let short = snapshot.hash.short();
        let problem = format!(
            "the owner approved `{name}`, and the run was not given it; its version is kept beside it: \
             `motor skill diff {name} --to {short}` shows it, `motor skill rollback {name} --to {short}` puts it in place"
        );
        let (place, hash) = (Some(place.to_string()), Some(snapshot.hash));
        Ok(InstalledSkill { place, hash, ..InstalledSkill::lost(name.to_string(), problem) })
    }

    /// Whether the owner approved these files as this skill.
    fn is_approved(&self, name: &SkillName, place: &SkillPlace, lies: &Snapshot) -> Result<bool, Refusal> {
        let theirs = lies.manifest(&place.entry).map_err(SkillError::from)?.name;
        let standing = self.skills.trust().standing(&theirs, place, lies.hash, lies.modes);
        Ok(theirs == *name && standing.status == SkillStatus::Approved)
    }

    /// A run without this skill may write another version of it, but only over one that a run made, which is kept;
    /// never over a person's work.
    fn may_replace(&self, name: &SkillName, place: &SkillPlace, lies: &Snapshot) -> Result<(), Refusal> {
        let theirs = lies.manifest(&place.entry).map_err(SkillError::from)?.name;
        let standing = self.skills.trust().standing(&theirs, place, lies.hash, lies.modes);
        if theirs == *name && standing.record.as_ref().is_some_and(|record| record.extracted_from.is_some()) {
            return Ok(());
        }
        let reason = format!("`{place}` has files that no run made, and they are not overwritten");
        Err(Refusal::new(RefusalCode::IllegalState, reason))
    }

    /// A new skill does not take the name of one elsewhere: neither could be used by that name.
    async fn is_free(&self, name: &SkillName) -> Result<(), Refusal> {
        let listed = self.skills.list().await?;
        match listed.iter().find(|listed| listed.name.as_deref() == Some(name.as_str())) {
            None => Ok(()),
            Some(other) => {
                let reason = format!("there is a skill `{name}` at `{}` already", other.place);
                Err(Refusal::new(RefusalCode::IllegalState, reason))
            }
        }
    }

    /// The directory for new skills.
    fn first_root(&self) -> Result<&SkillsRoot, Refusal> {
        self.skills.roots().first().ok_or_else(|| Refusal::new(RefusalCode::Failed, "there is no skills directory"))
    }

    /// The files in a place; `None` if it is empty.
    async fn lies(&self, place: &SkillPlace) -> Result<Option<Snapshot>, Refusal> {
        let (path, bounds) = (self.skills.path(place)?, *self.skills.bounds());
        blocking(move || match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(skills::snapshot::read(&path, &bounds).map_err(SkillError::from)?)),
        })
        .await
    }
}

fn from_run(record: &TrustRecord, run: &RunRecord) -> bool {
    record.extracted_from.as_ref().is_some_and(|from| from.run_id == run.id)
}

fn installed(name: &SkillName, place: &SkillPlace, hash: ContentHash, created: bool) -> InstalledSkill {
    InstalledSkill { name: name.to_string(), place: Some(place.to_string()), hash: Some(hash), created, problem: None }
}
