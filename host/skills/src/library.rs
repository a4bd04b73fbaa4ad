//! All skills there are: found, watched, listed from an index, and let through by one gate (SPEC SKILL-6, SKILL-7, HOST-10).
//!
//! Two things that are kept apart. What is *shown* comes from a catalogue that a thread of its own keeps from what it sees
//! of the roots; it may be a moment old. What is *used* is read by the gate when it is used, and the bytes that were read are
//! those that trust is asked about and that the caller goes on with. Neither knows what a skill can do. What it survives:
//! files that change at any moment, also while they are read; an index that was forged; roots that are missing.

mod catalogue;
mod discover;
mod gate;
mod inbox;
mod index;
mod keeper;
mod summary;
#[cfg(test)]
mod tests;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, ContentHash, Timestamp};
use serde::{Deserialize, Serialize};
use store::Store;
use tokio::sync::watch::Receiver;

use crate::{
    Manifest, SkillBounds, SkillError, SkillForm, SkillPlace, SkillStatus, SkillsRoot, Snapshot, Standing, TrustBook,
    Versions,
};
use catalogue::Catalogue;
use inbox::Inbox;
use keeper::Keeper;

pub use gate::VerifiedPlace;

/// Directories that are watched. A user has some hundred thousand watches for all programs; where this is not enough, the
/// roots are looked at twice a second.
const MAX_WATCHES: usize = 100_000;

/// What a library is made of.
pub struct LibraryParts {
    /// Where trust is kept.
    pub store: Store,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Where skills lie; the first is the home's own.
    pub roots: Vec<SkillsRoot>,
    /// The file of the index: a cache, may be deleted.
    pub index: PathBuf,
    /// Where versions are kept.
    pub versions: PathBuf,
    /// What a skill may have.
    pub bounds: SkillBounds,
    /// Whether changes are watched for: a host that stays.
    pub watch: bool,
}

/// A skill as a list shows it. camelCase JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillSummary {
    /// Its name; of one that cannot be read, what it would be called by its entry, if that is a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Where it lies.
    pub place: SkillPlace,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<SkillForm>,
    /// What it says it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where it stands.
    pub status: SkillStatus,
    /// Why, in one sentence; for one that cannot be read, the one exact reason.
    pub reason: String,
    /// Whether it can be read at all.
    pub readable: bool,
    /// Whether it conforms to the standard to the letter.
    pub conforms: bool,
    /// The hash of its bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// When it was last used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
}

/// A skill that was read: these bytes and no others are what the caller goes on with.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Where it lies.
    pub place: SkillPlace,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its bytes.
    pub snapshot: Snapshot,
    /// Where these bytes stand.
    pub standing: Standing,
}

/// The skills of a home. Cheap to clone; what runs behind it ends with the last clone.
#[derive(Clone)]
pub struct Library {
    inner: Arc<Inner>,
}

struct Inner {
    trust: TrustBook,
    versions: Versions,
    roots: Vec<SkillsRoot>,
    bounds: SkillBounds,
    inbox: Arc<Inbox>,
    catalogue: Receiver<Option<Arc<Catalogue>>>,
    changes: Receiver<u64>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.inbox.stop();
    }
}

impl Library {
    /// Begins to look at the roots, in a thread of its own: nothing is read before this returns. Of roots with the same id the
    /// first counts.
    ///
    /// # Errors
    /// When the system has no thread or no descriptor left.
    pub fn open(parts: LibraryParts) -> Result<Self, SkillError> {
        Self::open_with(parts, MAX_WATCHES)
    }

    fn open_with(parts: LibraryParts, most_watches: usize) -> Result<Self, SkillError> {
        let LibraryParts { store, clock, roots, index, versions, bounds, watch } = parts;
        let mut own: Vec<SkillsRoot> = Vec::with_capacity(roots.len());
        for root in roots {
            if own.iter().all(|known| known.id != root.id) {
                own.push(root);
            }
        }
        let failed = |source| SkillError::Io { what: "starting to look at skills".to_owned(), source };
        let inbox = Arc::new(Inbox::new().map_err(failed)?);
        let (published, catalogue) = tokio::sync::watch::channel(None);
        let (changes, changed) = tokio::sync::watch::channel(0);
        let keeper = Keeper {
            roots: own.clone(),
            bounds,
            index,
            clock: clock.clone(),
            most_watches,
            inbox: inbox.clone(),
            published,
            changes,
        };
        std::thread::Builder::new().name("skills".to_owned()).spawn(move || keeper.run(watch)).map_err(failed)?;
        let (trust, versions) = (TrustBook::new(store, clock), Versions::at(versions));
        let inner = Inner { trust, versions, roots: own, bounds, inbox, catalogue, changes: changed };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// All skills, by name and then by place, what has no name last. The first list waits for the first look at the roots.
    /// Where each stands is asked now, in one reading of the store.
    ///
    /// # Errors
    /// When nobody looks at the roots any more.
    pub async fn list(&self) -> Result<Vec<SkillSummary>, SkillError> {
        let catalogue = self.catalogue().await?;
        let trust = self.inner.trust.clone();
        blocking(move || summary::summaries(&catalogue, &trust)).await
    }

    /// The place that a selector means: a name, a place as it is shown (`agentmail.zip`), or `ROOT/ENTRY`. What is not
    /// known is looked for once more.
    ///
    /// # Errors
    /// [`SkillError::Missing`], and [`SkillError::Ambiguous`] also when only one of those can be read.
    pub async fn find(&self, selector: &str) -> Result<SkillPlace, SkillError> {
        Ok(self.choose(selector).await?.place)
    }

    /// Looks at all roots now. When this returns, what was there when it was called is known.
    ///
    /// # Errors
    /// When nobody looks at the roots any more.
    pub async fn refresh(&self) -> Result<(), SkillError> {
        self.inner.inbox.look().await.map_err(|_| ended())
    }

    /// Grows whenever a skill came, went or is not what it was. The first look at the roots does not count.
    #[must_use]
    pub fn changed(&self) -> Receiver<u64> {
        self.inner.changes.clone()
    }

    /// Ends what runs behind the library and waits until the index is written. Lists show from now on what was last known.
    pub async fn close(&self) {
        self.inner.inbox.stop();
        let mut catalogue = self.inner.catalogue.clone();
        while catalogue.changed().await.is_ok() {}
    }

    /// Where trust is kept.
    #[must_use]
    pub fn trust(&self) -> &TrustBook {
        &self.inner.trust
    }

    /// Where versions are kept.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        &self.inner.versions
    }

    /// Where skills lie.
    #[must_use]
    pub fn roots(&self) -> &[SkillsRoot] {
        &self.inner.roots
    }

    /// What a skill may have.
    #[must_use]
    pub fn bounds(&self) -> &SkillBounds {
        &self.inner.bounds
    }

    /// The directory of the root that a place is in.
    ///
    /// # Errors
    /// [`SkillError::Missing`] when there is no such root, or the place is none that a skill could have.
    pub fn root_path(&self, place: &SkillPlace) -> Result<PathBuf, SkillError> {
        let root = self.inner.roots.iter().find(|root| root.id == place.root && place.is_plain());
        let missing = || SkillError::Missing { selector: place.to_string(), nearest: None };
        root.map(|root| root.path.clone()).ok_or_else(missing)
    }

    /// The path of a place.
    ///
    /// # Errors
    /// As [`Library::root_path`].
    pub fn path(&self, place: &SkillPlace) -> Result<PathBuf, SkillError> {
        Ok(self.root_path(place)?.join(&place.entry))
    }

    async fn catalogue(&self) -> Result<Arc<Catalogue>, SkillError> {
        let mut catalogue = self.inner.catalogue.clone();
        let known = catalogue.wait_for(Option::is_some).await.map_err(|_| ended())?;
        known.clone().ok_or_else(ended)
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library").field("roots", &self.inner.roots).finish_non_exhaustive()
    }
}

fn ended() -> SkillError {
    SkillError::Io {
        what: "the skills are not looked at any more".to_owned(),
        source: std::io::ErrorKind::BrokenPipe.into(),
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, SkillError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| match error.is_cancelled() {
        true => store::StoreError::Closed.into(),
        false => SkillError::Io {
            what: "a skill cannot be looked at".to_owned(),
            source: std::io::Error::other("the thread that read it failed"),
        },
    })
}
