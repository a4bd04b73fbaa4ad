//! Adding a skill from a path or a URL, with its origin (SPEC SKILL-13). An added skill waits for the owner like one
//! dropped into the directory.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use base::{Refusal, RefusalCode};
use consent::Consent;
use skills::install::{ExpectedState, put, put_file};
use skills::policy::{SkillProvenance, write_file};
use skills::snapshot::{read, read_archive, read_component};
use skills::trust::Subject;
use skills::{Manifest, SkillBounds, SkillError, SkillForm, SkillPlace, SkillSummary, Snapshot};
use store::{Links, blocking, open_regular};

use super::Skills;
use super::download::download;
use crate::api::skills::AddRequest;

/// A source that was read.
pub(super) struct SkillSource {
    pub(super) snapshot: Snapshot,
    /// Its name at the origin.
    pub(super) entry: String,
    /// The source as the caller wrote it.
    said: String,
}

impl Skills {
    /// Adds a skill to the home's own. An existing one is not touched.
    ///
    /// # Errors
    /// If it cannot be fetched or read, or its name is taken; `consent_needed` for a URL without the owner's consent,
    /// because it is fetched in the owner's name.
    pub async fn add(&self, request: AddRequest, consent: Option<Consent>) -> Result<SkillSummary, Refusal> {
        let source = self.read_source(&request.source, consent.is_some()).await?;
        self.add_source(source).await
    }

    /// Reads the skill at a path or URL.
    pub(super) async fn read_source(&self, source: &str, is_consented: bool) -> Result<SkillSource, Refusal> {
        let bounds = *self.environment.skills.bounds();
        match url(source) {
            Some(url) if !is_consented => {
                let reason = format!("fetching `{url}` is for the owner to say");
                Err(Refusal::new(RefusalCode::ConsentNeeded, reason))
            }
            Some(url) => {
                let (bytes, entry) = download(&self.environment.access, url, bounds.total_bytes).await?;
                let said = url.to_owned();
                blocking(move || Ok(SkillSource { snapshot: of_bytes(&bytes, &entry, &bounds)?, entry, said })).await
            }
            None => {
                let path = PathBuf::from(source);
                blocking(move || of_path(&path, &bounds)).await
            }
        }
    }

    /// Adds a skill from the bytes of a file, which is known by its name alone. An existing skill is not touched.
    ///
    /// # Errors
    /// If the bytes are no skill, or its name is taken.
    pub async fn add_file(&self, name: &str, bytes: Vec<u8>) -> Result<SkillSummary, Refusal> {
        let (bounds, entry) = (*self.environment.skills.bounds(), name.to_owned());
        let source = blocking(move || {
            let snapshot = of_bytes(&bytes, &entry, &bounds)?;
            Ok(SkillSource { snapshot, said: entry.clone(), entry })
        });
        self.add_source(source.await?).await
    }

    /// Maximum size of a skill in bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.environment.skills.bounds().total_bytes
    }

    async fn add_source(&self, source: SkillSource) -> Result<SkillSummary, Refusal> {
        let library = &self.environment.skills;
        let SkillSource { snapshot, entry, said } = source;
        let Manifest { name, written, .. } = snapshot.manifest(&entry).map_err(no_skill)?;
        let root =
            library.roots().first().ok_or_else(|| Refusal::new(RefusalCode::Failed, "there is no skills directory"))?;
        let place = SkillPlace {
            root: root.id.clone(),
            entry: if snapshot.form == SkillForm::Component { format!("{name}.wasm") } else { name.to_string() },
        };
        if library
            .list()
            .await?
            .iter()
            .any(|known| known.name.as_deref() == Some(name.as_str()) && known.place.root == root.id)
        {
            let reason = match written {
                Some(written) => format!(
                    "`{}` is `{name}` here, and there is a skill `{name}` already",
                    skills::review::visible_name(&written)
                ),
                None => format!("there is a skill `{name}` already"),
            };
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy(format!("`motor skill delete {name}` first, or change its files in place")));
        }
        let (directory, at, hash) = (root.path.clone(), place.clone(), snapshot.hash);
        blocking(move || match snapshot.form {
            SkillForm::Component => {
                let bytes = snapshot.files.values().next().map(|file| file.bytes.clone()).unwrap_or_default();
                Ok(put_file(&directory, &at.entry, &bytes)?)
            }
            _ => {
                put(&directory, &at.entry, &snapshot, ExpectedState::Absent)?;
                copy_proposal(&directory.join(&at.entry), &snapshot)
            }
        })
        .await?;
        let taken = library.take_at(&place).await?;
        if taken.snapshot.hash != hash {
            return Err(SkillError::Changed.into());
        }
        let fetched_at = self.environment.clock.now();
        let provenance = SkillProvenance { source: said, fetched_at, content_hash: hash };
        library.trust().added(&Subject::of(name, place.clone(), &taken.snapshot), provenance).await?;
        self.summary(&place).await
    }
}

/// Copies the author's proposal into an added skill too: it is not hashed, and remains a proposal.
pub(super) fn copy_proposal(directory: &Path, snapshot: &Snapshot) -> Result<(), Refusal> {
    match snapshot.proposal.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok()) {
        Some(proposal) if snapshot.form != SkillForm::Component => Ok(write_file(directory, proposal)?),
        _ => Ok(()),
    }
}

pub(super) fn url(source: &str) -> Option<&str> {
    let source = source.trim();
    let scheme = source.split_once("://")?.0.to_ascii_lowercase();
    ["http", "https"].contains(&scheme.as_str()).then_some(source)
}

fn of_path(path: &Path, bounds: &SkillBounds) -> Result<SkillSource, Refusal> {
    let invalid = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
    if !path.is_absolute() {
        return Err(invalid(format!("`{}` is not an absolute path", path.display())));
    }
    let path = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
    let entry = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let said = path.to_string_lossy().into_owned();
    // A named file is added alone, under any name: other files in a directory of downloads are not part of it.
    if path.is_file() && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")) {
        let mut bytes = Vec::new();
        let reading = open_regular(&path, Links::Refused)
            .and_then(|file| file.take(bounds.file_bytes.saturating_add(1)).read_to_end(&mut bytes));
        reading.map_err(|error| unreadable(&path, &error))?;
        return Ok(SkillSource { snapshot: of_bytes(&bytes, &entry(&path), bounds)?, entry: entry(&path), said });
    }
    let snapshot = read(&path, bounds).map_err(no_skill)?;
    Ok(SkillSource { snapshot, entry: entry(&path), said })
}

/// The error for a source that is not a skill: the caller has to name another.
fn no_skill(error: impl Into<SkillError>) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, error.into().to_string())
}

fn unreadable(path: &Path, error: &std::io::Error) -> Refusal {
    Refusal::new(RefusalCode::NotFound, format!("cannot read `{}`: {error}", path.display()))
}

/// An archive, component, or `SKILL.md`, identified by its bytes.
fn of_bytes(bytes: &[u8], entry: &str, bounds: &SkillBounds) -> Result<Snapshot, Refusal> {
    let snapshot = match bytes {
        [b'P', b'K', ..] => read_archive(bytes, bounds).map_err(no_skill)?,
        [0, b'a', b's', b'm', ..] => read_component(bytes, entry, 0o644, bounds).map_err(no_skill)?,
        _ if bytes.len() as u64 > bounds.file_bytes => {
            let reason = format!("it has {} bytes: a `SKILL.md` may have {}", bytes.len(), bounds.file_bytes);
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        _ => Snapshot::of(SkillForm::Directory, [("SKILL.md".to_owned(), (bytes.to_vec(), 0o644))].into(), None),
    };
    Ok(snapshot)
}
