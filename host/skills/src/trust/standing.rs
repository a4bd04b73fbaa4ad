//! Where bytes stand: the only place where a record becomes an answer.
//!
//! It must not read anything. It survives any content of the table: without a sound record about exactly these bytes,
//! in this place, with these permission bits, that is not superseded, the answer is `needs_reapproval`.

use base::ContentHash;
use base::text::cut;
use store::StoreError;

use super::record::{Flaw, StoredTrust, Unnameable};
use super::{Standing, TrustRecord};
use crate::SkillStatus;

/// The most characters of a rejection's reason that are shown.
const MAX_WHY: usize = 200;
const LOOK_AND_APPROVE: &str = "`motor skill review` it, then `motor skill approve` it";

/// Where the bytes of the record with that key stand. `around` holds all records about their place.
pub(super) fn judge(around: &[(Vec<u8>, StoredTrust)], key: &[u8], modes: ContentHash) -> Standing {
    let record = match around.iter().find(|(found, _)| found == key) {
        Some((_, Ok(record))) => record,
        Some((_, Err(flaw))) => return flawed(flaw),
        None if around.iter().any(|(_, held)| held.as_ref().is_ok_and(is_in_force)) => {
            return untrusted(format!("its files changed since the owner approved it: {LOOK_AND_APPROVE}"));
        }
        None => return unknown(),
    };
    if record.superseded {
        return untrusted(format!("another version was approved or made in its place: {LOOK_AND_APPROVE}"));
    }
    if record.modes != modes {
        return untrusted(format!("the permissions of its files changed: {LOOK_AND_APPROVE}"));
    }
    Standing { status: record.status, reason: reason(record), record: Some(record.clone()) }
}

/// Whether this is the version that the owner approved for its place.
pub(super) fn is_in_force(record: &TrustRecord) -> bool {
    record.status == SkillStatus::Approved && !record.superseded
}

fn reason(record: &TrustRecord) -> String {
    match (record.status, &record.consent) {
        (SkillStatus::Approved, Some(consent)) => format!("the owner approved exactly these files at {}", consent.at),
        // Never stored, and not trusted if it were; this function only puts words to a status that was checked.
        (SkillStatus::Approved, None) => "the owner approved exactly these files".to_owned(),
        (SkillStatus::Reviewed, _) => {
            "its review is done and the owner has not decided: `motor skill approve` it".to_owned()
        }
        (_, _) if record.rejected.is_some() => {
            let why =
                record.rejected.as_ref().and_then(|rejected| rejected.reason.as_deref()).map(why).unwrap_or_default();
            format!("the owner rejected it{why}: change it, or {LOOK_AND_APPROVE}")
        }
        (_, _) if record.advisory.as_ref().is_some_and(|advisory| !advisory.passed) => {
            format!("its review did not pass: change it, or {LOOK_AND_APPROVE}")
        }
        (SkillStatus::PendingReview, _) => {
            "a run made or changed it and nobody has reviewed it: `motor skill review` it".to_owned()
        }
        (SkillStatus::NeedsReapproval, _) => unknown().reason,
    }
}

/// The owner's reason, as short as a sentence has room for.
fn why(reason: &str) -> String {
    let words = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { String::new() } else { format!(" ({})", cut(&words, MAX_WHY)) }
}

fn unknown() -> Standing {
    untrusted(format!("nobody has approved it: {LOOK_AND_APPROVE}"))
}

fn flawed(flaw: &Flaw) -> Standing {
    untrusted(format!("its trust record counts for nothing, {flaw}: {LOOK_AND_APPROVE}"))
}

/// Nothing can be known of a place that has no key.
pub(super) fn unnameable(error: Unnameable) -> Standing {
    untrusted(format!("{error}: move it"))
}

/// Nothing is known while the table cannot be read.
pub(super) fn unreadable(error: &StoreError) -> Standing {
    untrusted(format!("what is known of it cannot be read: {error}"))
}

fn untrusted(reason: String) -> Standing {
    Standing { status: SkillStatus::NeedsReapproval, reason, record: None }
}
