//! Taking over the skills that a run left in its workspace (SPEC SKILL-10): copied whole, and waiting for review.
//!
//! A crash at any point leaves the old skill or the new, and the new one unapproved: the files change in one step, and their
//! trust is a record about the new bytes that is made after. A run that ends again finds its own work and says the same.

use std::sync::Arc;

use base::{Refusal, RefusalCode, Timestamp};
use motor::{InstalledSkill, RunRecord};
use skills::extract::{Baseline, ExtractFailure, Extracted, Extraction, extract};
use skills::install::{Expected, put};
use skills::policy::ExtractedFrom;
use skills::trust::Subject;
use skills::{Place, Root, SkillError, Snapshot};
use vault::Scrubber;

use super::replace::{replace, target};
use super::SkillUse;
use crate::artifacts;
use crate::environment::{HostEnvironment, blocking};

impl HostEnvironment {
    /// Takes over what a finished run made of skills.
    pub(crate) async fn take_over(&self, run: &RunRecord, used: Option<&SkillUse>) -> Result<Vec<InstalledSkill>, Refusal> {
        let scrubber = self.access.scrubber(&run.id).await?;
        let found = self.extract(run, used, scrubber).await?;
        // What its caller put into the workspace, skills among it, is not the run's work.
        let given = artifacts::Baseline::read(&self.home.run(&run.id));
        let own = used.map(|used| &used.name);
        let found = found.into_iter().filter(|extracted| match extracted {
            Ok(found) => own == Some(&found.name) || !found.snapshot.files.values().all(|file| given.holds(file.hash)),
            Err(_) => true,
        });
        let mut installed = Vec::new();
        for extracted in found {
            installed.push(match extracted {
                Ok(extracted) => {
                    let name = extracted.name.to_string();
                    let taken = self.take_one(run, used, extracted).await;
                    taken.unwrap_or_else(|refusal| failed(name, refusal.reason))
                }
                Err(ExtractFailure { name, reason, .. }) => failed(name, reason),
            });
        }
        if !installed.is_empty() {
            self.skills.refresh().await?;
        }
        Ok(installed)
    }

    async fn extract(
        &self,
        run: &RunRecord,
        used: Option<&SkillUse>,
        scrubber: Arc<Scrubber>,
    ) -> Result<Vec<Result<Extracted, ExtractFailure>>, Refusal> {
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
        used: Option<&SkillUse>,
        extracted: Extracted,
    ) -> Result<InstalledSkill, Refusal> {
        let Extracted { name, snapshot, changed, deleted, .. } = extracted;
        let library = &self.skills;
        let trust = library.trust();
        let own = used.filter(|used| used.name == name);
        // A skill goes back to where it was; any other name is the home's.
        let place = match own {
            Some(used) => used.place.clone(),
            None => Place { root: self.first_root()?.id.clone(), entry: name.to_string() },
        };
        let (hash, to) = (snapshot.hash, target(&place, &name, snapshot.form));
        let lies = self.lies(&to).await?;
        let mut created = false;
        if lies.as_ref().is_some_and(|lies| lies.hash == hash) {
            // An earlier end of this run put it there.
            created = trust.of_place(&to)?.iter().all(|record| record.hash == hash);
        } else if let Some(used) = own {
            replace(library, &place, used.hash, &name, snapshot.clone()).await?;
        } else if let Some(lies) = lies {
            replace(library, &place, lies.hash, &name, snapshot.clone()).await?;
        } else {
            created = true;
            let (versions, new) = (library.versions().clone(), snapshot.clone());
            let root = self.first_root()?.path.clone();
            let entry = to.entry.clone();
            blocking(move || {
                versions.keep(&new)?;
                Ok(put(&root, &entry, &new, Expected::Absent)?)
            })
            .await?;
        }
        let kept = self.kept_policy(&to, &place)?;
        // The bits as they lie there now: what the host wrote, not what the workspace had.
        let modes = self.lies(&to).await?.map_or(snapshot.modes, |lies| lies.modes);
        let subject = Subject { name: name.clone(), place: to.clone(), hash, modes };
        let at: Timestamp = self.clock.now();
        let from = ExtractedFrom { run_id: run.id.clone(), at, changed_files: changed, deleted_files: deleted };
        trust.made_by_motor(&subject, from, kept).await?;
        Ok(InstalledSkill { name: name.to_string(), place: Some(to.to_string()), hash: Some(hash), created, problem: None })
    }

    /// Where new skills go.
    fn first_root(&self) -> Result<&Root, Refusal> {
        self.skills.roots().first().ok_or_else(|| Refusal::new(RefusalCode::Failed, "there is no skills directory"))
    }

    /// What lies in a place; none when nothing does.
    async fn lies(&self, place: &Place) -> Result<Option<Snapshot>, Refusal> {
        let (path, bounds) = (self.skills.path(place)?, *self.skills.bounds());
        blocking(move || match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(skills::snapshot::read(&path, &bounds).map_err(SkillError::from)?)),
        })
        .await
    }

    /// The policy that the next approval begins with: the one approved last in the place, none for a new skill.
    fn kept_policy(&self, to: &Place, from: &Place) -> Result<Option<skills::Policy>, Refusal> {
        let trust = self.skills.trust();
        let mut records = trust.of_place(to)?;
        if from != to {
            records.extend(trust.of_place(from)?);
        }
        Ok(records.into_iter().find_map(|record| record.policy))
    }
}

fn failed(name: String, problem: String) -> InstalledSkill {
    InstalledSkill { name, place: None, hash: None, created: false, problem: Some(problem) }
}
