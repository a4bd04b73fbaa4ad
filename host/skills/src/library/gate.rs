//! The gate: a skill is read once, and where it stands is asked about the bytes that were read (SPEC SKILL-6, HOST-8).
//!
//! It must not use the index or anything else that was known before but to find the place. What it survives: files that are
//! swapped at any moment. Whichever bytes it read, it is these that trust is asked about, and these that it hands on; a path
//! that was checked is never read again.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use base::ContentHash;
use tokio::time::Instant;

use super::catalogue::SelectedSkill;
use super::{Inner, Library, Taken, blocking, discover};
use crate::snapshot::{self, SnapshotError};
use crate::{SkillError, SkillForm, SkillPlace, SkillStatus, Standing};

/// Threads that verify.
const THREADS: usize = 2;

/// What came of verifying one place.
#[derive(Debug)]
pub struct VerifiedPlace {
    /// Where.
    pub place: SkillPlace,
    /// What it is called, as far as that is known.
    pub name: Option<String>,
    /// The hash of its bytes and where they stand.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub result: Result<(ContentHash, Standing), SkillError>,
    /// How long reading, hashing and asking took.
    pub took: Duration,
}

/// Why a reading gave nothing.
pub(super) enum Miss {
    /// What is known of the place is not so any more: nothing is there, or a skill of another name.
    Moved,
    Failed(SkillError),
}

impl Library {
    /// Reads the skill that a selector means (as [`Library::find`]) and says where exactly these bytes stand. A skill that was
    /// selected by its name has that name in the bytes that were read.
    ///
    /// # Errors
    /// As [`Library::find`]; [`SkillError::Unreadable`] with the one exact reason.
    pub async fn take(&self, selector: &str) -> Result<Taken, SkillError> {
        match self.read(self.choose(selector).await?).await {
            Ok(taken) => return Ok(taken),
            Err(Miss::Failed(error)) => return Err(error),
            // The catalogue was a moment old.
            Err(Miss::Moved) => self.refresh().await?,
        }
        let chosen = self.choose(selector).await?;
        self.read(chosen).await.map_err(|miss| miss.about(selector))
    }

    /// As [`Library::take`], for a place that is known.
    ///
    /// # Errors
    /// [`SkillError::Missing`] and [`SkillError::Unreadable`].
    pub async fn take_at(&self, place: &SkillPlace) -> Result<Taken, SkillError> {
        let chosen = SelectedSkill { place: place.clone(), name: None };
        self.read(chosen).await.map_err(|miss| miss.about(&place.to_string()))
    }

    /// As [`Library::take`], of bytes that the owner approved.
    ///
    /// # Errors
    /// [`SkillError::Untrusted`] when these bytes are anything but approved, and what [`Library::take`] says.
    pub async fn approved(&self, selector: &str) -> Result<Taken, SkillError> {
        let taken = self.take(selector).await?;
        match taken.standing.status {
            SkillStatus::Approved => Ok(taken),
            status => Err(SkillError::Untrusted { status, reason: taken.standing.reason }),
        }
    }

    /// Reads every byte of one skill, or of all that lie in the roots now, and asks where each stands. By place.
    ///
    /// # Errors
    /// As [`Library::find`], and [`SkillError::Io`] when a root cannot be read. That a skill cannot be read is in its result.
    pub async fn verify(&self, selector: Option<&str>) -> Result<Vec<VerifiedPlace>, SkillError> {
        let inner = self.inner.clone();
        let one = match selector {
            Some(selector) => Some(self.find(selector).await?),
            None => None,
        };
        blocking(move || Ok(inner.verify_all(&one.map_or_else(|| inner.places(), |one| Ok(vec![one]))?))).await?
    }

    /// What a selector means, looked for once more if it is not known.
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
    /// The gate itself.
    pub(super) fn read(&self, chosen: &SelectedSkill) -> Result<Taken, Miss> {
        let SelectedSkill { place, name } = chosen;
        let root = self.roots.iter().find(|root| root.id == place.root).ok_or(Miss::Moved)?;
        if !place.is_plain() {
            return Err(Miss::Moved);
        }
        let snapshot = match snapshot::read(&root.path.join(&place.entry), &self.bounds) {
            Ok(snapshot) => snapshot,
            Err(SnapshotError::Missing) => return Err(Miss::Moved),
            Err(error) => return Err(Miss::Failed(error.into())),
        };
        let unreadable = |reason: String| Miss::Failed(SkillError::Unreadable { reason });
        let mut manifest = snapshot.manifest(&place.entry).map_err(|error| unreadable(error.to_string()))?;
        if name.as_ref().is_some_and(|name| *name != manifest.name) {
            return Err(Miss::Moved);
        }
        let standing = self.trust.standing(&manifest.name, place, snapshot.hash, snapshot.modes);
        let described = standing.record.as_ref().and_then(|record| record.described.as_ref());
        if let Some(described) = described.filter(|_| snapshot.form == SkillForm::Component) {
            manifest.description.clone_from(&described.description);
            manifest.body.clone_from(&described.body);
        }
        Ok(Taken { place: place.clone(), manifest, snapshot, standing })
    }

    /// The places in which something lies that is a skill or should be one.
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
