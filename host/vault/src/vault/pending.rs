//! Credentials that a run saved, until the owner agrees to them (SPEC VAULT-4).
//!
//! They are sealed like all others and known to the scrubber, but no run is granted one. They survive a run that saves
//! many, saves one twice, or tries to replace one: each is kept once or refused.

use base::{CredentialName, Refusal, RefusalCode, RunId, Secret, Timestamp};
use schemars::JsonSchema;
use seal::Key;
use serde::{Deserialize, Serialize};
use store::{Batch, Table};

use super::{CredentialInfo, CredentialSource, Inner, Lock, NewCredential, Vault, check, is_same};
use crate::VaultError;
use crate::records::{self, StoredCredential};

/// The most credentials that wait for the owner at a time, of all skills together.
pub const MAX_PENDING: usize = 64;

/// A credential that a run hands over.
#[derive(Debug)]
pub struct NewPending {
    /// Name of the credential. The caller has checked that the skill's policy declares it.
    pub name: CredentialName,
    /// The approved skill of the run.
    pub skill: String,
    /// The secret value in clear.
    pub value: Secret<String>,
    /// Domain patterns of the skill's policy.
    pub domains: Vec<String>,
    /// The run that saves it.
    pub run: RunId,
}

/// Facts about a credential that waits for the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingFacts {
    /// The run that saved it.
    pub run_id: RunId,
    /// Length of the value in bytes.
    pub bytes: u64,
    /// Time from which it no longer waits: its value is removed then.
    pub expires_at: Timestamp,
    /// Whether that time has passed. The entry is a note, kept as long as the value was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
}

/// A pending credential as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PendingRecord {
    pub(crate) name: CredentialName,
    pub(crate) skill: String,
    domains: Vec<String>,
    run: RunId,
    bytes: u64,
    saved_at: Timestamp,
    expires_at: Timestamp,
    /// `None` once it has expired.
    credential: Option<StoredCredential>,
}

impl PendingRecord {
    pub(crate) fn open(&self, key: &Key) -> Option<Secret<String>> {
        self.credential.as_ref()?.open(key)
    }

    /// Differs for each value ever saved.
    pub(crate) fn tag(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn is(&self, name: &CredentialName, skill: &str) -> bool {
        self.name == *name && self.skill == skill
    }

    fn info(&self) -> CredentialInfo {
        CredentialInfo {
            name: self.name.clone(),
            skill: Some(self.skill.clone()),
            domains: self.domains.clone(),
            raw: false,
            source: CredentialSource::Vault,
            set_at: Some(self.saved_at),
            unreadable: false,
            pending: Some(PendingFacts {
                run_id: self.run.clone(),
                bytes: self.bytes,
                expires_at: self.expires_at,
                expired: self.credential.is_none(),
            }),
        }
    }
}

impl Vault {
    /// Keeps a credential of a run until the owner agrees to it. Durable when this returns. The same value of the same
    /// run is kept once, however often it is saved.
    ///
    /// # Errors
    /// `illegal_state` if there is a credential of that name for the skill, set, shared or pending: none is replaced;
    /// `busy` if too many wait; `invalid_request` if the value cannot be kept secret, has control characters, or holds the value
    /// of another credential; otherwise as [`Vault::set`].
    pub async fn save(&self, new: NewPending) -> Result<(), Refusal> {
        let NewPending { name, skill, value, domains, run } = new;
        self.expire_pending().await?;
        let _writing = self.inner.writing.lock().await;
        let (inner, kept) = (self.inner.clone(), self.inner.waiting()?);
        let before = kept.iter().find(|record| record.is(&name, &skill)).cloned();
        if before.is_none() {
            self.inner.check_free(&name, &skill)?;
            if kept.len() >= MAX_PENDING {
                return Err(Refusal::new(
                    RefusalCode::Busy,
                    format!("{MAX_PENDING} saved credentials wait for the owner"),
                )
                .with_remedy("`motor credential list` shows them; accept or reject some"));
            }
        }
        let credential = NewCredential { name, skill: Some(skill.clone()), value, domains, raw: false };
        check(&credential)?;
        if credential.value.expose().contains(char::is_control) {
            let reason = "it has control characters, such as line breaks";
            return Err(VaultError::Unfit { name: credential.name, reason }.into());
        }
        let of_run = run.clone();
        let prepared = tokio::task::spawn_blocking(move || {
            let Some(before) = before else {
                let entries = inner.entries()?;
                let scrubber = inner.scrubber(&entries, &inner.key_for(&entries));
                if let Some(other) = scrubber.secrets_in(credential.value.expose().as_bytes()).first() {
                    return Err(holds_another(&credential.name, &other.name));
                }
                return Ok(Some((credential.value.expose().len(), inner.prepare(&credential)?)));
            };
            let is_same_value = || {
                let key = inner.key().ok().flatten()?;
                Some(before.open(&key)?.expose() == credential.value.expose())
            };
            if before.run == of_run && is_same_value() == Some(true) { Ok(None) } else { Err(waits(&before)) }
        });
        let prepared = prepared.await.map_err(|_| VaultError::System { action: "encrypting a credential" })?;
        let Some((bytes, (stored, mut batch, made))) = prepared? else { return Ok(()) };
        let record = PendingRecord {
            name: stored.name.clone(),
            skill,
            domains: stored.domains.clone(),
            run,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            saved_at: stored.set_at,
            expires_at: stored.set_at.after(self.inner.pending_for),
            credential: Some(stored),
        };
        batch
            .put(Table::Vault, records::pending_key(&record.name, &record.skill), &record)
            .map_err(VaultError::from)?;
        self.inner.store.commit(batch).await.map_err(VaultError::from)?;
        if let Some((key, record)) = made {
            *self.inner.lock.lock() = Lock::Open { key, record };
        }
        Ok(())
    }

    /// The value that this run saved under a name and that still waits, for its scrubber. It may block like
    /// [`Vault::for_run`].
    ///
    /// # Errors
    /// If the key is not available, or the store fails.
    pub fn saved_by(&self, run: &RunId, name: &CredentialName, skill: &str) -> Result<Option<Secret<String>>, Refusal> {
        let waiting = self.inner.waiting()?;
        let Some(record) = waiting.iter().find(|record| record.is(name, skill) && record.run == *run) else {
            return Ok(None);
        };
        let key = self.inner.key()?;
        Ok(key.and_then(|key| record.open(&key)))
    }

    /// Credentials that wait for the owner, and notes about those that waited for too long.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn pending(&self) -> Result<Vec<CredentialInfo>, Refusal> {
        self.expire_pending().await?;
        let records = records::pending(&self.inner.store).map_err(VaultError::from)?;
        Ok(records.iter().map(PendingRecord::info).collect())
    }

    /// Makes a pending credential one of its skill. The caller has checked the owner's consent and the skill's policy.
    ///
    /// # Errors
    /// `not_found` if it does not wait any more, or another was saved since it was shown (`saved_at`); `illegal_state` if
    /// the skill has a credential of that name by now.
    pub async fn accept(&self, name: &CredentialName, skill: &str, saved_at: Option<Timestamp>) -> Result<(), Refusal> {
        self.expire_pending().await?;
        let _writing = self.inner.writing.lock().await;
        let not_found = || VaultError::NotFound { name: name.clone(), skill: Some(skill.to_owned()) };
        let mut waiting = self.inner.waiting()?.into_iter();
        let record = waiting.find(|record| record.is(name, skill)).ok_or_else(not_found)?;
        if saved_at.is_some_and(|shown| shown != record.saved_at) {
            return Err(not_found().into());
        }
        self.inner.check_free(name, skill)?;
        let stored = record.credential.ok_or_else(not_found)?;
        let mut batch = Batch::new();
        batch.put(Table::Vault, records::key_of(name, Some(skill)), &stored).map_err(VaultError::from)?;
        batch.delete(Table::Vault, records::pending_key(name, skill));
        self.inner.store.commit(batch).await.map_err(VaultError::from)?;
        Ok(())
    }

    /// Removes a pending credential, or the note about an expired one.
    ///
    /// # Errors
    /// `not_found` if no credential waits under this name for that skill.
    pub async fn reject(&self, name: &CredentialName, skill: &str) -> Result<(), Refusal> {
        let _writing = self.inner.writing.lock().await;
        let records = records::pending(&self.inner.store).map_err(VaultError::from)?;
        if !records.iter().any(|record| record.is(name, skill)) {
            return Err(VaultError::NotFound { name: name.clone(), skill: Some(skill.to_owned()) }.into());
        }
        let mut batch = Batch::new();
        batch.delete(Table::Vault, records::pending_key(name, skill));
        let others = records.iter().any(|record| record.credential.is_some() && !record.is(name, skill));
        if !others && self.inner.entries()?.is_empty() {
            records::delete_key_record(&mut batch);
        }
        self.inner.store.commit(batch).await.map_err(VaultError::from)?;
        Ok(())
    }

    /// Removes the values of pending credentials that have waited for too long, and leaves a note in their place.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn expire_pending(&self) -> Result<(), Refusal> {
        let _writing = self.inner.writing.lock().await;
        let now = self.inner.clock.now();
        let mut batch = Batch::new();
        let mut changed = false;
        for mut record in records::pending(&self.inner.store).map_err(VaultError::from)? {
            let key = records::pending_key(&record.name, &record.skill);
            if record.credential.is_some() && record.expires_at <= now {
                tracing::info!(credential = %record.name, skill = record.skill, run = %record.run,
                    "a saved credential expired: the owner did not agree to it in time");
                record.credential = None;
                batch.put(Table::Vault, key, &record).map_err(VaultError::from)?;
            } else if record.expires_at.after(self.inner.pending_for) <= now {
                batch.delete(Table::Vault, key);
            } else {
                continue;
            }
            changed = true;
        }
        if changed {
            self.inner.store.commit(batch).await.map_err(VaultError::from)?;
        }
        Ok(())
    }
}

impl Inner {
    /// The pending credentials with a value.
    pub(super) fn waiting(&self) -> Result<Vec<PendingRecord>, VaultError> {
        let mut records = records::pending(&self.store)?;
        records.retain(|record| record.credential.is_some());
        Ok(records)
    }

    /// Checks that a run by the skill would find no credential of that name.
    fn check_free(&self, name: &CredentialName, skill: &str) -> Result<(), Refusal> {
        let is_stored = |entry: &crate::records::CredentialEntry| {
            is_same(entry.name.as_str(), name.as_str()) && entry.skill.as_deref().is_none_or(|of| of == skill)
        };
        let is_set = self.entries()?.iter().any(is_stored)
            || self.variables.iter().any(|variable| is_same(variable.name.as_str(), name.as_str()));
        if !is_set {
            return Ok(());
        }
        let reason = format!("credential `{name}` is set already, and a run replaces none");
        Err(Refusal::new(RefusalCode::IllegalState, reason)
            .with_remedy(format!("the owner sets it again: `motor credential set {name} --skill {skill}`")))
    }
}

fn waits(record: &PendingRecord) -> Refusal {
    let PendingRecord { name, skill, run, .. } = record;
    let reason = format!("another value for `{name}` of the skill `{skill}` waits for the owner, saved by run `{run}`");
    Refusal::new(RefusalCode::IllegalState, reason)
        .with_remedy(format!("the owner runs `motor credential accept {name}` or `motor credential reject {name}`"))
}

fn holds_another(name: &CredentialName, other: &CredentialName) -> Refusal {
    let reason = format!("the value for `{name}` holds that of the credential `{other}`");
    Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("save only what the run was given itself")
}
