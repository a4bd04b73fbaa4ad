//! The credentials of a home.
//!
//! It survives a crash at any instant, the wrong key, an unavailable keyring, and tampered records: each is an explicit
//! refusal, never an empty value, another key, or a credential of a lower source in place of the intended one.

mod pending;
#[cfg(test)]
mod pending_tests;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::{Clock, ContentHash, CredentialName, Refusal, Secret, Timestamp};
use parking_lot::Mutex;
use schemars::JsonSchema;
use seal::Key;
use serde::{Deserialize, Serialize};
use store::{Batch, Store, Table};

use crate::config::MAX_PENDING_HOURS;
use crate::environment::{self, Variable, fitness, is_same};
use crate::key::{KeyRecord, KeySource, Sources};
use crate::records::{self, CredentialEntry, StoredCredential};
use crate::{GrantedCredential, RunSecrets, Scrubber, VaultError, VaultParts};

/// Time before an unavailable key is requested again: every run requests it, and a keyring that hangs takes seconds.
const ASK_AGAIN: Duration = Duration::from_secs(10);
pub(crate) use pending::PendingRecord;
pub use pending::{MAX_PENDING, NewPending, PendingFacts};

const MAX_DOMAINS: usize = 64;
const MAX_SKILL_BYTES: usize = 128;

/// Warning while the key is stored next to the data it protects.
const KEY_FILE_WARNING: &str = "the credentials are encrypted with a key that lies unprotected in `config/credentials.key` of \
    the home: whoever can read the home can read them; use a system with a keyring, or set `MOTOR_CREDENTIALS_KEY`, then \
    delete the credentials and set them again";

/// The credentials of a home. Cheap to clone.
#[derive(Clone)]
pub struct Vault {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    clock: Arc<dyn Clock>,
    directory: PathBuf,
    environment_key: Option<Secret<String>>,
    keyring: bool,
    variables: Vec<Variable>,
    warnings: Vec<String>,
    /// How long a saved credential waits for the owner.
    pending_for: Duration,
    lock: Mutex<Lock>,
    scrubber: Mutex<Known>,
    /// Serializes changes: the first one makes the key.
    writing: tokio::sync::Mutex<()>,
}

/// The state of the key in this process.
enum Lock {
    Closed,
    Open { key: Arc<Key>, record: KeyRecord },
    Failed { at: Duration, error: VaultError },
}

/// The latest scrubber, and the hash of its secrets. Its users own it: it is wiped with the last of them.
#[derive(Default)]
struct Known {
    of: Option<ContentHash>,
    scrubber: Weak<Scrubber>,
}

/// A credential to store.
#[derive(Debug)]
pub struct NewCredential {
    /// Name of the credential, unique in its scope.
    pub name: CredentialName,
    /// The skill it belongs to; `None` if shared by all.
    pub skill: Option<String>,
    /// The secret value in clear.
    pub value: Secret<String>,
    /// Domain patterns it may be sent to. The caller has checked their grammar. Empty: nowhere; then it is only usable
    /// for computing, or by a component that may have the value.
    pub domains: Vec<String>,
    /// Whether a component may be given the value itself.
    pub raw: bool,
}

/// Public information about a credential, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialInfo {
    /// Name of the credential in its scope.
    pub name: CredentialName,
    /// The skill it belongs to; `None` if shared by all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// Domain patterns it may be sent to.
    pub domains: Vec<String>,
    /// Whether a component may be given the value itself.
    pub raw: bool,
    /// The source that the credential comes from.
    pub source: CredentialSource,
    /// Time it was set; unknown for the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_at: Option<Timestamp>,
    /// Whether the value is known to be unavailable: damaged, sealed with another key, or unfit. Listing does not ask
    /// the keyring for the key, so a credential that was not needed yet may turn out to be unreadable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
    /// Present if a run saved it and the owner has not agreed: then it is not usable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingFacts>,
}

/// The source of a credential (SPEC VAULT-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialSource {
    /// The encrypted vault of the home.
    Vault,
    /// A variable `VAULT_NAME` of the host's environment.
    Environment,
}

impl Vault {
    /// Opens the credentials in the store and in the environment. The key is not fetched before it is needed.
    #[must_use]
    pub fn open(parts: VaultParts) -> Self {
        let VaultParts { store, clock, directory, key, keyring, variables, config } = parts;
        let (variables, warnings) = environment::read(variables, &config);
        let pending_for = Duration::from_secs(config.pending_hours.clamp(1, MAX_PENDING_HOURS) * 3_600);
        let inner = Inner {
            store,
            clock,
            directory,
            environment_key: key,
            keyring,
            variables,
            warnings,
            pending_for,
            lock: Mutex::new(Lock::Closed),
            scrubber: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Warnings for the owner, one sentence each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.inner.warnings.clone();
        let record = records::key_record(&self.inner.store);
        if record.is_ok_and(|record| record.is_some_and(|record| record.source == KeySource::File)) {
            warnings.push(KEY_FILE_WARNING.to_owned());
        }
        warnings
    }

    /// Stores a credential, replacing one of the same name and scope. Durable when this returns.
    ///
    /// # Errors
    /// If the value cannot be kept secret or begins or ends with white space, the key of the vault is not available, or
    /// the store fails. Line breaks at the end of a value of several lines, such as a PEM file, are cut off.
    pub async fn set(&self, mut credential: NewCredential) -> Result<(), Refusal> {
        cut_last_breaks(&mut credential.value);
        check(&credential)?;
        let _writing = self.inner.writing.lock().await;
        let inner = self.inner.clone();
        // Keyring, key derivation and files are slow.
        let prepared = tokio::task::spawn_blocking(move || inner.prepare(&credential)).await;
        let (stored, mut batch, made) =
            prepared.map_err(|_| VaultError::System { action: "encrypting a credential" })??;
        batch
            .put(Table::Vault, records::key_of(&stored.name, stored.skill.as_deref()), &stored)
            .map_err(VaultError::from)?;
        self.inner.store.commit(batch).await.map_err(VaultError::from)?;
        if let Some((key, record)) = made {
            *self.inner.lock.lock() = Lock::Open { key, record };
        }
        Ok(())
    }

    /// All credentials: the vault's by scope and name, then the environment's by name.
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        let entries = self.inner.entries()?;
        let key = self.inner.key_at_hand();
        let mut infos: Vec<CredentialInfo> = entries.iter().map(|entry| info(entry, key.as_ref())).collect();
        infos.extend(self.inner.variables.iter().map(|variable| CredentialInfo {
            name: variable.name.clone(),
            skill: None,
            domains: variable.domains.clone(),
            raw: false,
            source: CredentialSource::Environment,
            set_at: None,
            unreadable: fitness(&variable.name, variable.value.expose()).is_err(),
            pending: None,
        }));
        Ok(infos)
    }

    /// Fetches the key, if there are credentials to decrypt. It may block like [`Vault::for_run`].
    ///
    /// # Errors
    /// If the key is not available, or the store fails.
    pub fn check(&self) -> Result<(), Refusal> {
        let entries = self.inner.entries()?;
        self.inner.key_for(&entries).map(drop).map_err(Refusal::from)
    }

    /// Deletes a credential. This does not need the key; with the last credential the key is forgotten too.
    ///
    /// # Errors
    /// If there is no such credential, or the store fails.
    pub async fn delete(&self, name: &CredentialName, skill: Option<&str>) -> Result<(), Refusal> {
        let _writing = self.inner.writing.lock().await;
        let entries = self.inner.entries()?;
        if !entries.iter().any(|entry| entry.is(name, skill)) {
            return Err(VaultError::NotFound { name: name.clone(), skill: skill.map(str::to_owned) }.into());
        }
        let mut batch = Batch::new();
        batch.delete(Table::Vault, records::key_of(name, skill));
        if entries.len() == 1 && self.inner.waiting()?.is_empty() {
            records::delete_key_record(&mut batch);
        }
        self.inner.store.commit(batch).await.map_err(VaultError::from)?;
        Ok(())
    }

    /// Opens the named credentials for a run: the skill's own take precedence over shared ones, and those over the
    /// environment's. It may block for seconds if the key comes from the keyring.
    ///
    /// # Errors
    /// `credentials_needed`, which names every missing credential and the command that sets it, or the unreadable one,
    /// or the reason the key is not available.
    pub fn for_run(&self, names: &[CredentialName], skill: Option<&str>) -> Result<RunSecrets, Refusal> {
        let entries = self.inner.entries()?;
        let key = self.inner.key_for(&entries);
        let (mut granted, mut missing) = (Vec::<GrantedCredential>::new(), Vec::new());
        for name in names {
            if granted.iter().any(|granted| granted.name == *name) || missing.contains(name) {
                continue;
            }
            match self.inner.grant(name, skill, &entries, &key)? {
                Some(found) => granted.push(found),
                None => missing.push(name.clone()),
            }
        }
        if !missing.is_empty() {
            return Err(VaultError::Missing { names: missing }.into());
        }
        Ok(RunSecrets::new(granted, self.inner.scrubber(&entries, &key)))
    }

    /// A scrubber for every readable secret of the home and the environment. It may block like [`Vault::for_run`].
    ///
    /// # Errors
    /// If the store fails.
    pub fn scrubber(&self) -> Result<Arc<Scrubber>, Refusal> {
        let entries = self.inner.entries()?;
        Ok(self.inner.scrubber(&entries, &self.inner.key_for(&entries)))
    }
}

/// The key, or `None` if there are no credentials to open.
type MaybeKey = Result<Option<Arc<Key>>, VaultError>;

impl Inner {
    fn entries(&self) -> Result<Vec<CredentialEntry>, VaultError> {
        Ok(records::all(&self.store)?)
    }

    fn sources(&self) -> Sources<'_> {
        Sources { keyring: self.keyring, environment: self.environment_key.as_ref(), directory: &self.directory }
    }

    /// The sealed credential, the batch that is to store it, and the key that was made for it if it is the first.
    #[expect(clippy::type_complexity, reason = "three things that belong together, once")]
    fn prepare(
        &self,
        credential: &NewCredential,
    ) -> Result<(StoredCredential, Batch, Option<(Arc<Key>, KeyRecord)>), VaultError> {
        let mut batch = Batch::new();
        let (key, made) = match self.key()? {
            Some(key) => (key, None),
            // Credentials without a record of their key: making another key would lose them.
            None if !self.entries()?.is_empty() || !self.waiting()?.is_empty() => return Err(no_key_record()),
            None => {
                let (key, record) = self.sources().create()?;
                records::put_key_record(&mut batch, &record)?;
                let key = Arc::new(key);
                (key.clone(), Some((key, record)))
            }
        };
        let stored = StoredCredential::seal(credential, self.clock.now(), &key)?;
        Ok((stored, batch, made))
    }

    /// The key of the vault; `None` if there is no record of one.
    fn key(&self) -> MaybeKey {
        let Some(record) = records::key_record(&self.store)? else { return Ok(None) };
        let mut lock = self.lock.lock();
        let now = self.clock.monotonic();
        match &*lock {
            Lock::Open { key, record: of } if of.check == record.check => return Ok(Some(key.clone())),
            Lock::Failed { at, error }
                if now.saturating_sub(*at) < ASK_AGAIN && record.source == KeySource::Keyring =>
            {
                return Err(error.clone());
            }
            _ => {}
        }
        match self.sources().open(&record) {
            Ok(key) => {
                let key = Arc::new(key);
                *lock = Lock::Open { key: key.clone(), record };
                Ok(Some(key))
            }
            Err(error) => {
                *lock = Lock::Failed { at: now, error: error.clone() };
                Err(error)
            }
        }
    }

    fn key_for(&self, entries: &[CredentialEntry]) -> MaybeKey {
        if entries.is_empty() && self.waiting()?.is_empty() {
            return Ok(None);
        }
        match self.key() {
            Ok(None) => Err(no_key_record()),
            key => key,
        }
    }

    /// The key, or `None` if that would take a request to the keyring. An error if it is known to be unavailable.
    fn key_at_hand(&self) -> Option<MaybeKey> {
        let is_away = match records::key_record(&self.store) {
            Ok(Some(record)) => {
                record.source == KeySource::Keyring
                    && !matches!(&*self.lock.lock(), Lock::Open { record: of, .. } if of.check == record.check)
            }
            _ => false,
        };
        (!is_away).then(|| self.key())
    }

    /// Returns `None` if there is no such credential.
    fn grant(
        &self,
        name: &CredentialName,
        skill: Option<&str>,
        entries: &[CredentialEntry],
        key: &MaybeKey,
    ) -> Result<Option<GrantedCredential>, VaultError> {
        let own = skill.and_then(|skill| entries.iter().find(|entry| entry.is(name, Some(skill))));
        if let Some(entry) = own.or_else(|| entries.iter().find(|entry| entry.is(name, None))) {
            let unreadable = || VaultError::Unreadable { name: name.clone() };
            let key = key.clone()?.ok_or_else(unreadable)?;
            let stored = entry.stored.as_ref().ok_or_else(unreadable)?;
            let value = stored.open(&key).ok_or_else(unreadable)?;
            let (domains, raw) = (stored.domains.clone(), stored.raw);
            return Ok(Some(GrantedCredential { name: name.clone(), value, domains, raw }));
        }
        let variable = self.variables.iter().find(|variable| is_same(variable.name.as_str(), name.as_str()));
        let Some(Variable { value, domains, .. }) = variable else { return Ok(None) };
        fitness(name, value.expose()).map_err(|reason| VaultError::Unfit { name: name.clone(), reason })?;
        Ok(Some(GrantedCredential { name: name.clone(), value: value.clone(), domains: domains.clone(), raw: false }))
    }

    fn scrubber(&self, entries: &[CredentialEntry], key: &MaybeKey) -> Arc<Scrubber> {
        // If they cannot be read now, the run cannot be written either.
        let waiting = self.waiting().unwrap_or_default();
        let mut of = String::from(if matches!(key, Ok(Some(_))) { "open" } else { "closed" });
        entries.iter().for_each(|entry| of.push_str(&entry.tag));
        waiting.iter().for_each(|record| of.push_str(&record.tag()));
        let of = ContentHash::of(of.as_bytes());
        let mut known = self.scrubber.lock();
        if known.of == Some(of)
            && let Some(scrubber) = known.scrubber.upgrade()
        {
            return scrubber;
        }
        if let Err(error) = key {
            // This host never sent them, so they cannot flow back.
            tracing::warn!(%error, "stored credentials are not looked for in what flows back");
        }
        let key = key.as_ref().ok().and_then(Option::as_deref);
        let stored = entries.iter().filter_map(|entry| Some((entry.name.clone(), entry.open(key?)?)));
        let pending = waiting.iter().filter_map(|record| Some((record.name.clone(), record.open(key?)?)));
        // Values that are never granted would be found in unrelated texts.
        let fit = self.variables.iter().filter(|variable| fitness(&variable.name, variable.value.expose()).is_ok());
        let variables = fit.map(|variable| (variable.name.clone(), variable.value.clone()));
        let scrubber = Arc::new(Scrubber::new(stored.chain(pending).chain(variables).collect()));
        *known = Known { of: Some(of), scrubber: Arc::downgrade(&scrubber) };
        scrubber
    }
}

fn no_key_record() -> VaultError {
    VaultError::key(
        "the record of their key is missing",
        "restore the home's `state` directory from a backup, or delete the credentials and set them again",
    )
}

/// Cuts off the line breaks with which files end. A value of one line does not count as a file.
fn cut_last_breaks(value: &mut Secret<String>) {
    let cut = value.expose().trim_end_matches(['\r', '\n']);
    if cut.contains('\n') && cut.len() < value.expose().len() {
        *value = Secret::new(cut.to_owned());
    }
}

fn check(credential: &NewCredential) -> Result<(), VaultError> {
    let NewCredential { name, skill, value, domains, .. } = credential;
    let is_skill =
        |skill: &str| !skill.is_empty() && skill.len() <= MAX_SKILL_BYTES && !skill.contains(char::is_control);
    let reason = if let Err(reason) = fitness(name, value.expose()) {
        reason
    } else if value.expose().trim() != value.expose() {
        return Err(VaultError::Padded { name: name.clone() });
    } else if domains.len() > MAX_DOMAINS {
        "it has more than 64 domains"
    } else if !skill.as_deref().is_none_or(is_skill) {
        "its skill has no possible name"
    } else {
        return Ok(());
    };
    Err(VaultError::Unfit { name: name.clone(), reason })
}

fn info(entry: &CredentialEntry, key: Option<&MaybeKey>) -> CredentialInfo {
    let stored = entry.stored.as_ref();
    let is_unreadable = match key {
        None => false,
        Some(Ok(Some(key))) => entry.open(key).is_none(),
        Some(Ok(None) | Err(_)) => true,
    };
    CredentialInfo {
        name: entry.name.clone(),
        skill: entry.skill.clone(),
        domains: stored.map(|stored| stored.domains.clone()).unwrap_or_default(),
        raw: stored.is_some_and(|stored| stored.raw),
        source: CredentialSource::Vault,
        set_at: stored.map(|stored| stored.set_at),
        unreadable: stored.is_none() || is_unreadable,
        pending: None,
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}
