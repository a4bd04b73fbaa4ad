//! The stored records: one for each credential, and one about the key.
//!
//! Names, scopes and domains are stored in clear, so that they can be listed without the key; the value is sealed to
//! them.

use base::{CredentialName, Secret, Timestamp};
use seal::{Key, Sealed};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Scan, Store, StoreError, Table};

use crate::key::KeyRecord;
use crate::vault::PendingRecord;
use crate::{NewCredential, VaultError};

const KEY_RECORD: &str = "key";
/// Prefix before the scope and the name of a credential; neither can contain a zero byte.
const CREDENTIALS: &str = "credential\0";
/// Prefix before the scope and the name of a credential that waits for the owner.
const PENDING: &str = "pending\0";
/// The first element of the associated data of a sealed value.
const VERSION: &str = "motor credential 1";

/// A credential as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredCredential {
    pub(crate) name: CredentialName,
    pub(crate) skill: Option<String>,
    pub(crate) domains: Vec<String>,
    pub(crate) raw: bool,
    pub(crate) set_at: Timestamp,
    value: Sealed,
}

/// A record of the table, decodable or not.
#[derive(Debug)]
pub(crate) struct CredentialEntry {
    pub(crate) name: CredentialName,
    pub(crate) skill: Option<String>,
    pub(crate) stored: Option<StoredCredential>,
    /// Differs for each value ever set.
    pub(crate) tag: String,
}

impl StoredCredential {
    pub(crate) fn seal(credential: &NewCredential, set_at: Timestamp, key: &Key) -> Result<Self, VaultError> {
        let NewCredential { name, skill, value, domains, raw } = credential;
        let beside = beside(name, skill.as_deref(), domains, *raw, set_at);
        Ok(Self {
            name: name.clone(),
            skill: skill.clone(),
            domains: domains.clone(),
            raw: *raw,
            set_at,
            value: key.seal(value.expose().as_bytes(), &beside)?,
        })
    }

    /// Returns `None` if the value does not belong to the rest of the record, or to the key.
    pub(crate) fn open(&self, key: &Key) -> Option<Secret<String>> {
        let beside = beside(&self.name, self.skill.as_deref(), &self.domains, self.raw, self.set_at);
        let value = key.open(&self.value, &beside).ok()?;
        std::str::from_utf8(&value).ok().map(|value| Secret::new(value.to_owned()))
    }
}

impl CredentialEntry {
    /// The value; `None` if the record is damaged or was sealed with another key.
    pub(crate) fn open(&self, key: &Key) -> Option<Secret<String>> {
        self.stored.as_ref()?.open(key)
    }

    pub(crate) fn is(&self, name: &CredentialName, skill: Option<&str>) -> bool {
        self.name == *name && self.skill.as_deref() == skill
    }
}

/// The associated data as JSON, so that different fields never give the same bytes.
fn beside(name: &CredentialName, skill: Option<&str>, domains: &[String], raw: bool, set_at: Timestamp) -> Vec<u8> {
    serde_json::json!([VERSION, name, skill, domains, raw, set_at]).to_string().into_bytes()
}

/// The key under which a credential is stored. A shared one has an empty scope, which no skill has.
pub(crate) fn key_of(name: &CredentialName, skill: Option<&str>) -> String {
    format!("{CREDENTIALS}{}\0{name}", skill.unwrap_or_default())
}

/// The key under which a credential waits for the owner.
pub(crate) fn pending_key(name: &CredentialName, skill: &str) -> String {
    format!("{PENDING}{skill}\0{name}")
}

/// All credentials that wait for the owner, by skill and name. One whose key is not its own is left out.
pub(crate) fn pending(store: &Store) -> Result<Vec<PendingRecord>, StoreError> {
    let records = store.scan::<Value>(Table::Vault, &Scan::prefix(PENDING))?;
    let read = |(key, record): (Vec<u8>, Value)| {
        let record = serde_json::from_value::<PendingRecord>(record).ok()?;
        let own = pending_key(&record.name, &record.skill);
        (own.as_bytes() == key.as_slice()).then_some(record)
    };
    Ok(records.into_iter().filter_map(read).collect())
}

/// A snapshot of all credentials, in order of scope and name.
pub(crate) fn all(store: &Store) -> Result<Vec<CredentialEntry>, StoreError> {
    let records = store.scan::<Value>(Table::Vault, &Scan::prefix(CREDENTIALS))?;
    Ok(records.into_iter().filter_map(|(key, record)| entry(&key, record)).collect())
}

fn entry(key: &[u8], record: Value) -> Option<CredentialEntry> {
    let key = std::str::from_utf8(key).ok()?.strip_prefix(CREDENTIALS)?;
    let (skill, name) = key.split_once('\0')?;
    let name = CredentialName::parse(name).ok()?;
    let skill = (!skill.is_empty()).then(|| skill.to_owned());
    let tag = record.to_string();
    // A record that was moved under another key is invalid.
    let stored = serde_json::from_value::<StoredCredential>(record).ok();
    let stored = stored.filter(|stored| stored.name == name && stored.skill == skill);
    Some(CredentialEntry { name, skill, stored, tag })
}

/// The record about the key, if a credential was ever set.
pub(crate) fn key_record(store: &Store) -> Result<Option<KeyRecord>, StoreError> {
    store.get(Table::Vault, KEY_RECORD)
}

pub(crate) fn put_key_record(batch: &mut store::Batch, record: &KeyRecord) -> Result<(), StoreError> {
    batch.put(Table::Vault, KEY_RECORD, record)
}

pub(crate) fn delete_key_record(batch: &mut store::Batch) {
    batch.delete(Table::Vault, KEY_RECORD);
}
