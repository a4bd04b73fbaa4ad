//! All skills: discovered, watched, listed from an index, and let through by one gate (SPEC SKILL-6, SKILL-7, HOST-10).
//!
//! Display and use are kept apart. A skill is *shown* from a catalogue that a separate thread keeps from its view of
//! the roots; it may be a moment old. A skill is *used* as the gate reads it at that time; trust is asked about exactly
//! these bytes, and the caller continues with them. Neither knows a skill's abilities. Robust against files that change
//! at any moment, also while they are read; a forged index; missing roots.

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
use schemars::JsonSchema;
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

/// Maximum watched directories. A user has some hundred thousand watches for all programs; beyond this limit the roots
/// are polled twice a second.
const MAX_WATCHES: usize = 100_000;

/// Everything needed to open a [`Library`].
pub struct LibraryParts {
    /// Store of the trust records.
    pub store: Store,
    /// Clock for trust records and file stamps.
    pub clock: Arc<dyn Clock>,
    /// Directories of skills; the first is the home's own.
    pub roots: Vec<SkillsRoot>,
    /// Path of the index file: a cache, may be deleted.
    pub index: PathBuf,
    /// Directory of the kept versions.
    pub versions: PathBuf,
    /// Limits on a skill's files and bytes.
    pub bounds: SkillBounds,
    /// Whether to watch for changes, as a long-running host does.
    pub watch: bool,
}

/// A skill as a list shows it. camelCase JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillSummary {
    /// Its name; of an unreadable skill, the name derived from its entry, if that is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name as its author wrote it, if `name` is a slug of it; hidden characters are written out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_name: Option<String>,
    /// Root and entry of the skill.
    pub place: SkillPlace,
    /// Directory, archive or component, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<SkillForm>,
    /// Purpose, as the skill states it; empty if unreadable.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Trust status of its bytes.
    pub status: SkillStatus,
    /// Why it has this status, in one sentence; for an unreadable skill, the exact reason.
    pub reason: String,
    /// Whether it can be read at all.
    pub readable: bool,
    /// Whether it conforms strictly to the standard.
    pub conforms: bool,
    /// Names of commands and languages that it uses and that no tool here runs, at most 12.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<String>,
    /// Hash of its bytes; absent if unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Time of the last use, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<Timestamp>,
}

/// A skill that was read: the caller continues with these bytes and no others.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Root and entry of the skill.
    pub place: SkillPlace,
    /// Name, description and instructions of the skill.
    pub manifest: Manifest,
    /// The bytes that were read.
    pub snapshot: Snapshot,
    /// Trust state of these bytes.
    pub standing: Standing,
}

/// The skills of a home. Cheap to clone; its background thread ends with the last clone.
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
    /// Starts to look at the roots in a thread of its own; this call reads nothing. Of roots with the same id the first
    /// counts.
    ///
    /// # Errors
    /// If the system has no thread or no descriptor left.
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

    /// All skills, by name and then by place, nameless ones last. The first list waits for the first look at the roots.
    /// Trust is looked up now, in one reading of the store.
    ///
    /// # Errors
    /// If the roots are no longer looked at.
    pub async fn list(&self) -> Result<Vec<SkillSummary>, SkillError> {
        let catalogue = self.catalogue().await?;
        let trust = self.inner.trust.clone();
        blocking(move || summary::summaries(&catalogue, &trust)).await
    }

    /// The place that a selector means: a name, a place in displayed form (`agentmail.zip`), or `ROOT/ENTRY`. An
    /// unknown selector causes another look at the roots.
    ///
    /// # Errors
    /// [`SkillError::Missing`], and [`SkillError::Ambiguous`] also if only one of the candidates can be read.
    pub async fn find(&self, selector: &str) -> Result<SkillPlace, SkillError> {
        Ok(self.choose(selector).await?.place)
    }

    /// Looks at all roots now. On return, everything that existed at the time of the call is known.
    ///
    /// # Errors
    /// If the roots are no longer looked at.
    pub async fn refresh(&self) -> Result<(), SkillError> {
        self.inner.inbox.look().await.map_err(|_| ended())
    }

    /// Counter that grows whenever a skill is added, removed or changed. The first look at the roots does not count.
    #[must_use]
    pub fn changed(&self) -> Receiver<u64> {
        self.inner.changes.clone()
    }

    /// Ends the background thread and waits until the index is written. Later lists show the last known state.
    pub async fn close(&self) {
        self.inner.inbox.stop();
        let mut catalogue = self.inner.catalogue.clone();
        while catalogue.changed().await.is_ok() {}
    }

    /// The trust records of skills.
    #[must_use]
    pub fn trust(&self) -> &TrustBook {
        &self.inner.trust
    }

    /// The kept versions of skills.
    #[must_use]
    pub fn versions(&self) -> &Versions {
        &self.inner.versions
    }

    /// Directories in which skills lie.
    #[must_use]
    pub fn roots(&self) -> &[SkillsRoot] {
        &self.inner.roots
    }

    /// Limits on a skill's files and bytes.
    #[must_use]
    pub fn bounds(&self) -> &SkillBounds {
        &self.inner.bounds
    }

    /// The directory of the root that a place is in.
    ///
    /// # Errors
    /// [`SkillError::Missing`] if there is no such root, or no skill can have this place.
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
