//! The reflectors of a home (SPEC CX-3): the bundled one, and files in `reflectors` that the owner approved by their hash.
//!
//! The bytes are read and hashed at each use, and those bytes are compiled: a file that was changed after its approval is not
//! used. An approval is made only with the owner's [`Consent`], for the bytes that were shown.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use base::{ConsentRecord, ContentHash, Refusal, RefusalCode};
use consent::Consent;
use cortex::ReflectorName;
use parking_lot::Mutex;
use runtime::{Component, ComponentOrigin, LoadError, ReflectorComponent, Runtime};
use store::{Batch, Links, Scan, Store, Table, blocking};
use tokio::sync::OnceCell;
use toolbox::{bundled_component, catalogue, load};

use super::Reflections;
use crate::api::cortex::{ApproveReflector, ReflectorApproval, ReflectorStatus, ReflectorSummary};

/// Prefix of the keys of [`Table::Meta`] with the approvals, by name.
const APPROVAL: &str = "cortex/reflector/";
/// Files that are listed.
const MAX_LISTED: usize = 100;
/// The ending of their files.
const ENDING: &str = ".wasm";

/// The reflectors of a home.
pub(super) struct Reflectors {
    store: Store,
    runtime: Runtime,
    directory: PathBuf,
    bundled: OnceCell<ReflectorComponent>,
    /// The one used last.
    loaded: Mutex<Option<ReflectorComponent>>,
}

/// The bytes of a file with their hash.
struct Read {
    bytes: Arc<Vec<u8>>,
    hash: ContentHash,
}

impl Reflectors {
    pub fn new(store: Store, runtime: Runtime, directory: PathBuf) -> Self {
        Self { store, runtime, directory, bundled: OnceCell::new(), loaded: Mutex::default() }
    }

    /// The reflector of this name, or the bundled one.
    ///
    /// # Errors
    /// If it is not there, not approved, not the approved bytes, or not a reflector.
    pub async fn component(&self, name: Option<&ReflectorName>) -> Result<ReflectorComponent, Refusal> {
        match name {
            Some(name) => self.load(name, &self.approved(name).await?).await,
            None => self.bundled().await,
        }
    }

    /// Whether the reflector of this name, or the bundled one, may be used. Compiles nothing.
    ///
    /// # Errors
    /// If it is not there, not approved, not the approved bytes, or not a reflector.
    pub async fn check(&self, name: Option<&ReflectorName>) -> Result<(), Refusal> {
        match name {
            Some(name) => self.inspect(name, &self.approved(name).await?).await,
            None => bundled_component(catalogue::REFLECTOR).await.map(drop),
        }
    }

    /// The bytes of a reflector, if they are those that the owner approved.
    async fn approved(&self, name: &ReflectorName) -> Result<Read, Refusal> {
        let Some(approval) = self.approval(name)? else {
            let reason = format!("the reflector `{name}` is not approved");
            return Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy(name)));
        };
        let file = self.read(name).await?;
        if file.hash != approval.hash {
            let reason = format!("the reflector `{name}` is not the one that was approved: its bytes have changed");
            return Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy(name)));
        }
        Ok(file)
    }

    async fn bundled(&self) -> Result<ReflectorComponent, Refusal> {
        let loading = self.bundled.get_or_try_init(|| async {
            let unusable = |error: LoadError| invalid("the bundled reflector", &error);
            let component =
                load(&self.runtime, bundled_component(catalogue::REFLECTOR).await?).await.map_err(unusable)?;
            ReflectorComponent::link(&self.runtime, &component).map_err(unusable)
        });
        loading.await.cloned()
    }

    async fn load(&self, name: &ReflectorName, file: &Read) -> Result<ReflectorComponent, Refusal> {
        let kept = self.loaded.lock().clone().filter(|kept| kept.component().hash() == file.hash);
        if let Some(kept) = kept {
            return Ok(kept);
        }
        // Before it is compiled, which takes longer.
        self.inspect(name, file).await?;
        let unusable = |error: LoadError| invalid(&format!("the reflector `{name}`"), &error);
        let component =
            Component::load(&self.runtime, &file.bytes, ComponentOrigin::Untrusted).await.map_err(unusable)?;
        let linked = ReflectorComponent::link(&self.runtime, &component).map_err(unusable)?;
        *self.loaded.lock() = Some(linked.clone());
        Ok(linked)
    }

    async fn inspect(&self, name: &ReflectorName, file: &Read) -> Result<(), Refusal> {
        let inspected = self.runtime.inspect(&file.bytes, ComponentOrigin::Untrusted).await;
        let checked = inspected.and_then(|inspection| ReflectorComponent::check(&inspection));
        checked.map_err(|error| invalid(&format!("the reflector `{name}`"), &error))
    }

    async fn read(&self, name: &ReflectorName) -> Result<Read, Refusal> {
        let (path, most) = (self.directory.join(format!("{name}{ENDING}")), self.runtime.most_component_bytes());
        let name = name.clone();
        blocking(move || {
            let bytes = store::read_regular(&path, Links::Followed, most).map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    let reason = format!("there is no reflector `{name}`");
                    Refusal::new(RefusalCode::NotFound, reason)
                        .with_remedy(format!("put its component at `{}`", path.display()))
                }
                _ => Refusal::new(
                    RefusalCode::InvalidComponent,
                    format!("the reflector `{name}` cannot be read: {error}"),
                ),
            })?;
            Ok(Read { hash: ContentHash::of(&bytes), bytes: Arc::new(bytes) })
        })
        .await
    }

    fn approval(&self, name: &ReflectorName) -> Result<Option<ReflectorApproval>, Refusal> {
        Ok(self.store.get(Table::Meta, format!("{APPROVAL}{name}"))?)
    }

    /// The names of the files and of the approvals, sorted.
    async fn names(&self) -> Result<Vec<ReflectorName>, Refusal> {
        let approvals = self.store.scan::<serde::de::IgnoredAny>(Table::Meta, &Scan::prefix(APPROVAL))?;
        let approved = approvals
            .into_iter()
            .filter_map(|(key, _)| ReflectorName::parse(String::from_utf8(key).ok()?.strip_prefix(APPROVAL)?).ok());
        let directory = self.directory.clone();
        let files = blocking(move || {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => {
                    let reason = format!("`{}` cannot be listed: {error}", directory.display());
                    return Err(Refusal::new(RefusalCode::Failed, reason));
                }
            };
            let name =
                |entry: std::fs::DirEntry| ReflectorName::parse(entry.file_name().to_str()?.strip_suffix(ENDING)?).ok();
            Ok(entries.flatten().filter_map(name).take(MAX_LISTED).collect())
        });
        let mut names: Vec<ReflectorName> = files.await?;
        names.extend(approved);
        names.sort();
        names.dedup();
        Ok(names)
    }

    async fn summary(
        &self,
        name: ReflectorName,
        selected: Option<&ReflectorName>,
    ) -> Result<ReflectorSummary, Refusal> {
        let approval = self.approval(&name)?;
        let is_selected = selected == Some(&name);
        let mut summary = ReflectorSummary {
            hash: None,
            size_bytes: 0,
            status: ReflectorStatus::Unusable,
            is_selected,
            problem: None,
            approval,
            name: Some(name.clone()),
        };
        match self.read(&name).await {
            Ok(file) => {
                summary.hash = Some(file.hash);
                summary.size_bytes = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
                match self.inspect(&name, &file).await {
                    Ok(()) => {
                        summary.status = match &summary.approval {
                            Some(approval) if approval.hash == file.hash => ReflectorStatus::Approved,
                            Some(_) => ReflectorStatus::Changed,
                            None => ReflectorStatus::Unapproved,
                        };
                    }
                    Err(refusal) => summary.problem = Some(refusal.reason),
                }
            }
            Err(refusal) => {
                if refusal.code == RefusalCode::NotFound {
                    summary.status = ReflectorStatus::Missing;
                }
                summary.problem = Some(refusal.reason);
            }
        }
        Ok(summary)
    }
}

impl Reflections {
    /// The bundled reflector, and those in the home with the owner's decisions about them.
    ///
    /// # Errors
    /// If the store or the directory cannot be read.
    pub async fn reflectors(&self) -> Result<Vec<ReflectorSummary>, Refusal> {
        self.refresh().await;
        let selected = self.0.settings.reflector();
        let bytes = bundled_component(catalogue::REFLECTOR).await.map(|component| component.bytes);
        let mut found = vec![ReflectorSummary {
            name: None,
            hash: bytes.as_ref().ok().map(|bytes| ContentHash::of(bytes)),
            size_bytes: bytes.as_ref().map_or(0, |bytes| u64::try_from(bytes.len()).unwrap_or(u64::MAX)),
            status: ReflectorStatus::Bundled,
            is_selected: selected.is_none(),
            problem: bytes.err().map(|refusal| refusal.reason),
            approval: None,
        }];
        for name in self.0.reflectors.names().await? {
            found.push(self.0.reflectors.summary(name, selected.as_ref()).await?);
        }
        Ok(found)
    }

    /// Approves exactly the bytes of the request's hash. Durable when this returns.
    ///
    /// # Errors
    /// `not_found` if there is no such file, `skill_untrusted` if its bytes have changed, `invalid_component` if it is not a
    /// reflector or imports more than a reflector may; or if the store fails.
    pub async fn approve_reflector(
        &self,
        request: ApproveReflector,
        consent: Consent,
    ) -> Result<ReflectorSummary, Refusal> {
        let ApproveReflector { name, hash } = request;
        let reflectors = &self.0.reflectors;
        let file = reflectors.read(&name).await?;
        if file.hash != hash {
            let reason = format!("the bytes of the reflector `{name}` are not those that were shown");
            return Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy(&name)));
        }
        reflectors.load(&name, &file).await?;
        let approval = ReflectorApproval { hash, consent: ConsentRecord::from(consent) };
        let mut batch = Batch::new();
        batch.put(Table::Meta, format!("{APPROVAL}{name}"), &approval)?;
        reflectors.store.commit(batch).await?;
        tracing::info!(%name, hash = %hash.short(), "a reflector was approved");
        reflectors.summary(name, self.0.settings.reflector().as_ref()).await
    }

    /// Withdraws an approval: the reflector is not used from the next cycle on.
    ///
    /// # Errors
    /// `not_found` if no reflector of this name is approved; or if the store fails.
    pub async fn revoke_reflector(&self, name: &ReflectorName) -> Result<(), Refusal> {
        let reflectors = &self.0.reflectors;
        if reflectors.approval(name)?.is_none() {
            return Err(Refusal::new(RefusalCode::NotFound, format!("no reflector `{name}` is approved"))
                .with_remedy("`motor cortex reflector list` shows them"));
        }
        let mut batch = Batch::new();
        batch.delete(Table::Meta, format!("{APPROVAL}{name}"));
        reflectors.store.commit(batch).await?;
        Ok(())
    }
}

fn remedy(name: &ReflectorName) -> String {
    format!("`motor cortex reflector approve {name}` shows it and asks")
}

fn invalid(named: &str, error: &LoadError) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, format!("{named} cannot be used: {error}"))
}
