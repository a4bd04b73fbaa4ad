//! How records lie in the table: under which keys, in which form, and when one is sound.
//!
//! It must not know the use of a record. It survives a record of any content under any key: one that contradicts its
//! key, or claims an approval without the owner's consent, is flawed, and never repaired.

use base::{ContentHash, Door};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use store::{Scan, Store, StoreError, Table};

use crate::{SkillName, SkillPlace, SkillStatus, TrustRecord};

/// The version of stored records. A record of any other version is not trusted.
const VERSION: u32 = 1;

/// File-system limits of a path and an entry: no real place is longer, and keys stay within the table's limit.
const MAX_ROOT_BYTES: usize = 4096;
const MAX_ENTRY_BYTES: usize = 255;

const TRUST: &str = "trust";
const USED: &str = "used";

#[derive(Serialize)]
struct OutgoingTrust<'a> {
    version: u32,
    record: &'a TrustRecord,
}

#[derive(Deserialize)]
struct IncomingTrust {
    version: u32,
    record: TrustRecord,
}

#[derive(Deserialize)]
struct TrustVersion {
    version: u32,
    #[serde(rename = "record")]
    _record: IgnoredAny,
}

/// The record under a key, or its flaw.
pub(super) type StoredTrust = Result<TrustRecord, Flaw>;

/// Keys in order, with the record or flaw under each.
pub(super) type Records = Vec<(Vec<u8>, StoredTrust)>;

/// Why a record is not sound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    #[error("it cannot be read")]
    Unreadable,
    #[error("it has version {found}, and this version of `motor` reads {VERSION}")]
    Version { found: u32 },
    #[error("it is about something else")]
    Foreign,
    #[error("it claims an approval that nobody gave")]
    Unconsented,
}

/// The table cannot hold a record of that place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its place has a name that no record can be kept of: it is too long, or has a NUL character")]
pub(super) struct Unnameable;

/// The key of a version's record: kind, root, entry and name, each ended by NUL and without one, then the 32-byte hash.
pub(super) fn key(name: &SkillName, place: &SkillPlace, hash: ContentHash) -> Result<Vec<u8>, Unnameable> {
    let mut key = prefix(place)?;
    push(&mut key, name.as_str())?;
    key.extend_from_slice(hash.as_bytes());
    Ok(key)
}

/// The key prefix of all records about a place, and of no others.
pub(super) fn prefix(place: &SkillPlace) -> Result<Vec<u8>, Unnameable> {
    of_place(TRUST, place)
}

/// The prefix of a record's key: kind and place.
pub(super) fn place_in(key: &[u8]) -> &[u8] {
    let third = key.iter().enumerate().filter(|(_, byte)| **byte == 0).map(|(index, _)| index).nth(2);
    key.get(..=third.unwrap_or_default()).unwrap_or_default()
}

/// The key of a skill's last use.
pub(super) fn used_key(name: &SkillName, place: &SkillPlace) -> Result<Vec<u8>, Unnameable> {
    let mut key = used_prefix(place)?;
    push(&mut key, name.as_str())?;
    Ok(key)
}

/// The key prefix of all last uses in a place.
pub(super) fn used_prefix(place: &SkillPlace) -> Result<Vec<u8>, Unnameable> {
    of_place(USED, place)
}

fn of_place(kind: &str, place: &SkillPlace) -> Result<Vec<u8>, Unnameable> {
    if place.root.len() > MAX_ROOT_BYTES || place.entry.len() > MAX_ENTRY_BYTES {
        return Err(Unnameable);
    }
    let mut key = Vec::with_capacity(kind.len() + place.root.len() + place.entry.len() + 3 + 129);
    for part in [kind, &place.root, &place.entry] {
        push(&mut key, part)?;
    }
    Ok(key)
}

fn push(key: &mut Vec<u8>, part: &str) -> Result<(), Unnameable> {
    if part.contains('\0') {
        return Err(Unnameable);
    }
    key.extend_from_slice(part.as_bytes());
    key.push(0);
    Ok(())
}

/// Puts a record into a batch.
pub(super) fn put(batch: &mut store::Batch, key: Vec<u8>, record: &TrustRecord) -> Result<(), StoreError> {
    batch.put(Table::Skills, key, &OutgoingTrust { version: VERSION, record })
}

/// The records about a place.
pub(super) fn at(store: &Store, prefix: Vec<u8>) -> Result<Records, StoreError> {
    read(store, &Scan::prefix(prefix))
}

/// Every trust record of the store.
pub(super) fn all(store: &Store) -> Result<Records, StoreError> {
    read(store, &Scan::prefix(format!("{TRUST}\0")))
}

fn read(store: &Store, scan: &Scan) -> Result<Records, StoreError> {
    let found = store.scan_each::<IncomingTrust>(Table::Skills, scan)?;
    let held = |(key, value): (Vec<u8>, Result<IncomingTrust, StoreError>)| {
        let held = value.map_err(|_| why_unreadable(store, &key)).and_then(|incoming| sound(&key, incoming));
        (key, held)
    };
    Ok(found.into_iter().map(held).collect())
}

/// A record of another version may have another shape: only its version is read.
fn why_unreadable(store: &Store, key: &[u8]) -> Flaw {
    match store.get::<TrustVersion>(Table::Skills, key) {
        Ok(Some(TrustVersion { version, .. })) if version != VERSION => Flaw::Version { found: version },
        _ => Flaw::Unreadable,
    }
}

fn sound(found: &[u8], incoming: IncomingTrust) -> StoredTrust {
    if incoming.version != VERSION {
        return Err(Flaw::Version { found: incoming.version });
    }
    let record = incoming.record;
    if !key(&record.name, &record.place, record.hash).is_ok_and(|key| key == found) {
        return Err(Flaw::Foreign);
    }
    let consented =
        record.policy.is_some() && record.consent.as_ref().is_some_and(|consent| consent.door != Door::Model);
    if record.status == SkillStatus::Approved && !consented {
        return Err(Flaw::Unconsented);
    }
    Ok(record)
}

/// The skill and place that a last-use key names.
pub(super) fn used_subject(key: &[u8]) -> Option<(SkillName, SkillPlace)> {
    let mut parts = std::str::from_utf8(key).ok()?.split('\0');
    let (USED, root, entry, name, "", None) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next()?, parts.next())
    else {
        return None;
    };
    Some((SkillName::parse(name).ok()?, SkillPlace { root: root.to_owned(), entry: entry.to_owned() }))
}

/// A scan over the keys of all last uses.
pub(super) fn all_used() -> Scan {
    Scan::prefix(format!("{USED}\0"))
}
