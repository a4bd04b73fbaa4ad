//! The gate: reads a skill once and asks for the trust of exactly the bytes it read (SPEC SKILL-6, HOST-8).
//!
//! It must use the index and other prior knowledge only to find the place. Robust against files that are swapped at any
//! moment: trust is asked about the bytes that were read, and only these are handed on; a path that was checked is
//! never read again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use base::ContentHash;
use tokio::time::Instant;

use super::catalogue::{Catalogue, SelectedSkill};
use super::{Inner, Library, Taken, blocking, discover};
use crate::snapshot::{self, SnapshotError};
use crate::{SkillError, SkillForm, SkillPlace, SkillStatus, Snapshot, Standing};

/// Threads that verify skills.
const THREADS: usize = 2;

/// Result of verifying one place.
#[derive(Debug)]
pub struct VerifiedPlace {
    /// Root and entry of the skill.
    pub place: SkillPlace,
    /// Name of the skill, if known.
    pub name: Option<String>,
    /// The hash of its bytes and their trust state.
    ///
    /// # Errors
    /// If the skill cannot be read.
    pub result: Result<(ContentHash, Standing), SkillError>,
    /// Time for reading, hashing and asking for trust.
    pub took: Duration,
}

/// Why a reading returned no skill.
pub(super) enum Miss {
    /// The known place is outdated: it is empty, or holds a skill of another name.
    Moved,
    Failed(SkillError),
}

impl Library {
    /// Reads the skill that a selector means (as [`Library::find`]) and tells the trust state of exactly these bytes. A
    /// skill selected by name has that name in the bytes that were read.
    ///
    /// # Errors
    /// As [`Library::find`]; [`SkillError::Unreadable`] with the exact reason.
    pub async fn take(&self, selector: &str) -> Result<Taken, SkillError> {
        match self.read(self.choose(selector).await?).await {
            Ok(taken) => return Ok(taken),
            Err(Miss::Failed(error)) => return Err(error),
            // The catalogue was outdated.
            Err(Miss::Moved) => self.refresh().await?,
        }
        let chosen = self.choose(selector).await?;
        self.read(chosen).await.map_err(|miss| miss.about(selector))
    }

    /// As [`Library::take`], for a known place.
    ///
    /// # Errors
    /// [`SkillError::Missing`] and [`SkillError::Unreadable`].
    pub async fn take_at(&self, place: &SkillPlace) -> Result<Taken, SkillError> {
        let chosen = SelectedSkill { place: place.clone(), name: None };
        self.read(chosen).await.map_err(|miss| miss.about(&place.to_string()))
    }

    /// As [`Library::take`], for bytes that the owner approved.
    ///
    /// # Errors
    /// [`SkillError::Untrusted`] if these bytes are not approved, and the errors of [`Library::take`].
    pub async fn approved(&self, selector: &str) -> Result<Taken, SkillError> {
        let taken = self.take(selector).await?;
        match taken.standing.status {
            SkillStatus::Approved => Ok(taken),
            status => Err(SkillError::Untrusted { status, reason: taken.standing.reason }),
        }
    }

    /// Reads every byte of one skill, or of all in the roots now, and asks for the trust of each. Sorted by place.
    ///
    /// # Errors
    /// As [`Library::find`], and [`SkillError::Io`] if a root cannot be read. An unreadable skill has an `Err` result.
    pub async fn verify(&self, selector: Option<&str>) -> Result<Vec<VerifiedPlace>, SkillError> {
        let inner = self.inner.clone();
        let one = match selector {
            Some(selector) => Some(self.find(selector).await?),
            None => None,
        };
        blocking(move || Ok(inner.verify_all(&one.map_or_else(|| inner.places(), |one| Ok(vec![one]))?))).await?
    }

    /// Resolves a selector, with another look at the roots if it is unknown.
    pub(super) async fn choose(&self, selector: &str) -> Result<SelectedSkill, SkillError> {
        match self.catalogue().await?.choose(selector) {
            Err(SkillError::Missing { .. }) => {}
            known => return known,
        }
        self.refresh().await?;
        self.catalogue().await?.choose(selector)
    }

    async fn read(&self, chosen: SelectedSkill) -> Result<Taken, Miss> {
        let inner = self.inner.clone();
        blocking(move || inner.read(&chosen)).await.map_err(Miss::Failed)?
    }
}

impl Inner {
    /// Reads a selected skill and its trust state.
    pub(super) fn read(&self, chosen: &SelectedSkill) -> Result<Taken, Miss> {
        let SelectedSkill { place, name } = chosen;
        let root = self.roots.iter().find(|root| root.id == place.root).ok_or(Miss::Moved)?;
        if !place.is_plain() {
            return Err(Miss::Moved);
        }
        let path = root.path.join(&place.entry);
        let snapshot = match snapshot::read(&path, &self.bounds) {
            Ok(snapshot) if place.is_tool() => Snapshot { proposal: snapshot::proposal_beside(&path), ..snapshot },
            Ok(snapshot) => snapshot,
            Err(SnapshotError::Missing) => return Err(Miss::Moved),
            Err(error) => return Err(Miss::Failed(error.into())),
        };
        let unreadable = |reason: String| Miss::Failed(SkillError::Unreadable { reason });
        let mut manifest = snapshot.manifest(&place.entry).map_err(|error| unreadable(error.to_string()))?;
        if name.as_ref().is_some_and(|name| *name != manifest.name) {
            return Err(Miss::Moved);
        }
        // The list may be a moment old: it decides about a name and not about trust.
        let catalogue = self.catalogue.borrow().clone();
        let refused = |known: Arc<Catalogue>| known.refused(place, &manifest.name, manifest.written.as_deref());
        if let Some(reason) = catalogue.and_then(refused) {
            return Err(unreadable(reason));
        }
        let standing = self.trust.standing(&manifest.name, place, snapshot.hash, snapshot.modes);
        let described = standing.record.as_ref().and_then(|record| record.described.as_ref());
        if let Some(described) = described.filter(|_| snapshot.form == SkillForm::Component) {
            manifest.description.clone_from(&described.description);
            manifest.body.clone_from(&described.body);
        }
        Ok(Taken { place: place.clone(), manifest, snapshot, standing })
    }

    /// The places of entries that are skills or should be.
    fn places(&self) -> Result<Vec<SkillPlace>, SkillError> {
        let mut places = Vec::new();
        for root in &self.roots {
            match discover::candidates(root) {
                Ok(found) => places.extend(found.into_iter().map(|candidate| candidate.place)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(SkillError::Io { what: format!("`{}` cannot be read", root.id), source }),
            }
        }
        places.sort();
        Ok(places)
    }

    fn verify_all(&self, places: &[SkillPlace]) -> Vec<VerifiedPlace> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(place) = places.get(at) else { return done };
                done.push((at, self.verify(place)));
            }
        };
        let mut all = thread::scope(|scope| {
            let others: Vec<_> = (1..THREADS).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            all.extend(others.into_iter().filter_map(|other| other.join().ok()).flatten());
            all
        });
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, verified)| verified).collect()
    }

    fn verify(&self, place: &SkillPlace) -> VerifiedPlace {
        let began = Instant::now();
        let read = self.read(&SelectedSkill { place: place.clone(), name: None });
        let (name, result) = match read {
            Ok(taken) => (Some(taken.manifest.name.to_string()), Ok((taken.snapshot.hash, taken.standing))),
            Err(miss) => (None, Err(miss.about(&place.to_string()))),
        };
        VerifiedPlace { place: place.clone(), name, result, took: began.elapsed() }
    }
}

impl Miss {
    fn about(self, selector: &str) -> SkillError {
        match self {
            Self::Moved => SkillError::Missing { selector: selector.to_owned(), nearest: None },
            Self::Failed(error) => error,
        }
    }
}
