//! `policy.json` as the host writes it: for people to read, and read back only as a proposal (SPEC SKILL-4, VAULT-6).
//!
//! It must not know secrets: callers say which credentials are set. It survives a skill's directory that its author has
//! prepared with links, a crash while it writes, and a concurrent reader. The draft lies beside the skill: inside, it
//! would change the content hash for as long as it exists.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use base::{ContentHash, CredentialName};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::{ExtractedFrom, SkillProvenance};
use crate::{SkillError, TrustRecord};

/// The file's name in the skill's directory.
const NAME: &str = "policy.json";
/// The version of the file's form.
const SCHEMA_VERSION: u32 = 1;

/// The text of the file for a record: JSON, the same for the same record.
///
/// Credentials that the policy names and that are set appear as `"[set]"`.
#[must_use]
pub fn render(record: &TrustRecord, credentials_set: &[CredentialName]) -> String {
    let mut file = content(record);
    let policy = record.policy.clone().unwrap_or_default();
    let set = policy.required_credentials.iter().filter(|name| credentials_set.contains(name));
    let set: Map<String, Value> = set.map(|name| (name.to_string(), json!("[set]"))).collect();
    file.insert("credentials".to_owned(), Value::Object(set));
    let mut text = format!("{:#}", Value::Object(file));
    text.push('\n');
    text
}

/// Whether `bytes` equal the host's output for this record, apart from the credentials that are set: then the claims in
/// the file are not the author's.
#[must_use]
pub fn wrote(bytes: &[u8], record: &TrustRecord) -> bool {
    let Ok(Value::Object(mut found)) = serde_json::from_slice(bytes) else { return false };
    found.remove("credentials");
    found == content(record)
}

fn content(record: &TrustRecord) -> Map<String, Value> {
    let policy = record.policy.clone().unwrap_or_default();
    let mut file = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            file.insert(name.to_owned(), value);
        }
    };
    put("schemaVersion", json!(SCHEMA_VERSION));
    put("status", json!(record.status.as_str()));
    put("domains", json!(policy.domains));
    put("writes", json!(policy.writes));
    put("tools", json!(policy.tools));
    put("requiredCredentials", json!(policy.required_credentials));
    put("dependencies", json!(policy.dependencies));
    put("inputs", json!(policy.inputs));
    put("limits", json!(policy.limits));
    put("provenance", json!(record.provenance.as_ref().map(provenance)));
    put("extractedFrom", json!(record.extracted_from.as_ref().map(extracted_from)));
    put("approvedBy", json!(record.consent.as_ref().map(|consent| &consent.given_by)));
    put("approvedAt", json!(record.consent.as_ref().map(|consent| consent.at.to_string())));
    file
}

fn provenance(from: &SkillProvenance) -> Value {
    json!({ "source": from.source, "fetchedAt": from.fetched_at.to_string(), "contentHash": from.content_hash })
}

fn extracted_from(from: &ExtractedFrom) -> Value {
    json!({
        "runId": from.run_id,
        "timestamp": from.at.to_string(),
        "changedFiles": from.changed_files,
        "deletedFiles": from.deleted_files,
    })
}

/// Replaces `policy.json` in a skill's directory with `text`, readable by its owner alone. After a crash it is the old
/// file or the new one. No link is followed in the directory or to it.
///
/// # Errors
/// If `directory` is not a directory, or the file cannot be written there.
pub fn write_file(directory: &Path, text: &str) -> Result<(), SkillError> {
    write(directory, text).map_err(|source| SkillError::Io { what: "writing `policy.json` failed".to_owned(), source })
}

fn write(directory: &Path, text: &str) -> io::Result<()> {
    let (Some(around), Some(entry)) = (directory.parent(), directory.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let around = if around.as_os_str().is_empty() { Path::new(".") } else { around };
    let folder = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let around = File::from(rustix::fs::open(around, folder, Mode::empty())?);
    let within = File::from(rustix::fs::openat(&around, entry, folder | OFlags::NOFOLLOW, Mode::empty())?);
    // Hidden, so that it is never taken for a skill; one name for each entry, so that the next write clears it.
    let draft = format!(".motor-policy-{}", ContentHash::of(entry.as_encoded_bytes()).short());
    match rustix::fs::unlinkat(&around, &draft, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let exclusive = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(&around, &draft, exclusive, Mode::RUSR | Mode::WUSR)?);
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| store::sync(&file).map_err(io::Error::other))
        .and_then(|()| Ok(rustix::fs::renameat(&around, &draft, &within, NAME)?));
    if written.is_err() {
        // The first error is the one returned.
        rustix::fs::unlinkat(&around, &draft, AtFlags::empty()).ok();
    }
    written
}
