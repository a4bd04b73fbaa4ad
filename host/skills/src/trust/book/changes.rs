//! Changes of trust, each one batch; [`SkillStatus::transition`] decides which event is allowed in which state.
//!
//! It must not decide who is the owner: a consent is evidence from the gate that made it. It survives concurrent
//! changes (serialized), a caller that goes away (a change that began is finished), and a crash (a change is one
//! batch).

use base::text::cut;
use base::{ConsentRecord, Timestamp};
use consent::Consent;
use store::{Batch, Scan, StoreError, Table};
use tokio::sync::{OwnedMutexGuard, watch};

use super::super::record::{self, Records};
use super::super::standing::judge;
use super::super::{Advisory, Described, Rejection, Subject, TrustRecord};
use super::{TrustBook, UsedMark, invalid};
use crate::policy::{ExtractedFrom, Policy, SkillProvenance};
use crate::status::SkillEvent;
use crate::{SkillError, SkillName, SkillPlace, SkillStatus};

/// Reasons of rejections and texts of advice are kept this long, in characters.
const MAX_TEXT: usize = 4_000;
/// The most bytes of a component's self-description, which goes into prompts: as many as a text file may have.
const MAX_DESCRIBED_BYTES: usize = 1 << 20;

struct Announcement(watch::Sender<u64>);

impl Drop for Announcement {
    fn drop(&mut self) {
        self.0.send_modify(|changes| *changes += 1);
    }
}

/// The state that a change rests on, and the lock that keeps it current.
struct PriorState {
    guard: OwnedMutexGuard<()>,
    around: Records,
    key: Vec<u8>,
    /// The record as far as it counts, otherwise a new one.
    record: TrustRecord,
}

impl TrustBook {
    /// Records that the deterministic review of these bytes is complete. `described` is a component's self-description.
    /// An approved record is left as it is.
    ///
    /// # Errors
    /// If `described` is too long, or the store fails.
    pub async fn reviewed(&self, subject: &Subject, described: Option<Described>) -> Result<TrustRecord, SkillError> {
        let mut before = self.before(subject).await?;
        let status = before.record.status.transition(SkillEvent::Reviewed)?;
        if status == SkillStatus::Approved {
            return Ok(before.record);
        }
        if let Some(described) = &described
            && described.description.len() + described.body.len() > MAX_DESCRIBED_BYTES
        {
            let reason = format!("what the component says of itself is longer than {MAX_DESCRIBED_BYTES} bytes");
            return Err(SkillError::Invalid { reason });
        }
        let now = self.clock.now();
        before.record.status = status;
        before.record.reviewed_at = Some(now);
        // The first self-description is the one that was shown: it is not replaced after people have seen it.
        before.record.described = before.record.described.take().or(described);
        self.store_one(before, now).await
    }

    /// Records a read-only run's advice on these bytes. If it did not pass, an earlier review no longer counts.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn advised(&self, subject: &Subject, mut advisory: Advisory) -> Result<TrustRecord, SkillError> {
        let mut before = self.before(subject).await?;
        if !advisory.passed && before.record.status == SkillStatus::Reviewed {
            // Back to the status that it had on arrival.
            let came = match before.record.extracted_from {
                Some(_) => SkillEvent::MotorChanged,
                None => SkillEvent::ContentChanged,
            };
            before.record.status = before.record.status.transition(came)?;
            before.record.reviewed_at = None;
        }
        advisory.text = cut(&advisory.text, MAX_TEXT);
        before.record.advisory = Some(advisory);
        self.store_one(before, self.clock.now()).await
    }

    /// The owner approves exactly these bytes with exactly this policy. Every other version of the place is superseded.
    ///
    /// # Errors
    /// If a run's output has not been reviewed, the policy is out of bounds, or the store fails.
    pub async fn approve(
        &self,
        subject: &Subject,
        policy: Policy,
        consent: Consent,
    ) -> Result<TrustRecord, SkillError> {
        policy.check_bounds()?;
        let mut before = self.before(subject).await?;
        before.record.status = before.record.status.transition(SkillEvent::Approved)?;
        before.record.policy = Some(policy);
        before.record.consent = Some(consent.into());
        self.store_and_supersede(before).await
    }

    /// The owner rejects these bytes.
    ///
    /// # Errors
    /// If they are approved, or the store fails.
    pub async fn reject(
        &self,
        subject: &Subject,
        consent: Consent,
        reason: Option<String>,
    ) -> Result<TrustRecord, SkillError> {
        let mut before = self.before(subject).await?;
        before.record.status = before.record.status.transition(SkillEvent::Rejected)?;
        before.record.rejected =
            Some(Rejection { consent: consent.into(), reason: reason.map(|reason| cut(&reason, MAX_TEXT)) });
        self.store_one(before, self.clock.now()).await
    }

    /// The owner gives approved bytes another policy.
    ///
    /// # Errors
    /// If they are not approved, the policy is out of bounds, or the store fails.
    pub async fn update(&self, subject: &Subject, policy: Policy, consent: Consent) -> Result<TrustRecord, SkillError> {
        policy.check_bounds()?;
        let mut before = self.before(subject).await?;
        before.record.status = before.record.status.transition(SkillEvent::PolicyUpdated)?;
        before.record.policy = Some(policy);
        before.record.consent = Some(consent.into());
        self.store_one(before, self.clock.now()).await
    }

    /// A run made these bytes. Every other version of the place is superseded, the approved one too. `kept` is the
    /// policy that the next approval begins with.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn made_by_motor(
        &self,
        subject: &Subject,
        from: ExtractedFrom,
        kept: Option<Policy>,
    ) -> Result<TrustRecord, SkillError> {
        let before = self.motor_changed(subject, from, kept).await?;
        self.store_and_supersede(before).await
    }

    /// A run made these bytes for a place in which others stay: no other version is superseded.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn proposed(
        &self,
        subject: &Subject,
        from: ExtractedFrom,
        kept: Option<Policy>,
    ) -> Result<TrustRecord, SkillError> {
        let before = self.motor_changed(subject, from, kept).await?;
        self.store_one(before, self.clock.now()).await
    }

    async fn motor_changed(
        &self,
        subject: &Subject,
        from: ExtractedFrom,
        kept: Option<Policy>,
    ) -> Result<PriorState, SkillError> {
        let mut before = self.before(subject).await?;
        let status = before.record.status.transition(SkillEvent::MotorChanged)?;
        let (provenance, consent) = (before.record.provenance.take(), before.record.consent.take());
        before.record = TrustRecord {
            status,
            policy: kept,
            provenance,
            consent,
            extracted_from: Some(from),
            ..blank(subject, self.clock.now())
        };
        Ok(before)
    }

    /// Records where these bytes were fetched or copied from. Their status does not change.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn added(&self, subject: &Subject, provenance: SkillProvenance) -> Result<TrustRecord, SkillError> {
        let mut before = self.before(subject).await?;
        // The owner approved the record with its provenance, which is not rewritten behind their back.
        if before.record.status == SkillStatus::Approved {
            return Ok(before.record);
        }
        before.record.provenance = Some(provenance);
        self.store_one(before, self.clock.now()).await
    }

    /// The owner deleted the files in a place: all its records are removed, under every name.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn forget(&self, place: &SkillPlace, consent: Consent) -> Result<(), SkillError> {
        let guard = self.writing.clone().lock_owned().await;
        let mut batch = Batch::new();
        for prefix in [record::prefix(place), record::used_prefix(place)] {
            let prefix = prefix.map_err(invalid)?;
            for (key, _) in self.store.scan_each::<serde::de::IgnoredAny>(Table::Skills, &Scan::prefix(prefix))? {
                batch.delete(Table::Skills, key);
            }
        }
        self.commit(batch, (self.known.changing(), self.uses.changing(), self.announcing(), guard)).await?;
        tracing::info!(%place, by = ConsentRecord::from(consent).given_by, "a skill was forgotten");
        Ok(())
    }

    /// Records the time of a skill's last use.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn used(&self, name: &SkillName, place: &SkillPlace, at: Timestamp) -> Result<(), SkillError> {
        let key = record::used_key(name, place).map_err(invalid)?;
        let guard = self.writing.clone().lock_owned().await;
        let mut batch = Batch::new();
        batch.put(Table::Skills, key, &UsedMark { at })?;
        self.commit(batch, (self.uses.changing(), guard)).await?;
        Ok(())
    }

    async fn before(&self, subject: &Subject) -> Result<PriorState, SkillError> {
        let key = record::key(&subject.name, &subject.place, subject.hash).map_err(invalid)?;
        let guard = self.writing.clone().lock_owned().await;
        let around = self.around(&subject.place)?;
        let record = judge(&around, &key, subject.modes).record.unwrap_or_else(|| {
            let blank = blank(subject, self.clock.now());
            // A record that is superseded, or about other permission bits, keeps only its sources, the policy to
            // propose, and that it was once approved: a rollback to it stays possible.
            match around.iter().find(|(found, _)| *found == key) {
                Some((_, Ok(old))) => TrustRecord {
                    policy: old.policy.clone(),
                    provenance: old.provenance.clone(),
                    extracted_from: old.extracted_from.clone(),
                    consent: old.consent.clone(),
                    ..blank
                },
                _ => blank,
            }
        });
        Ok(PriorState { guard, around, key, record })
    }

    async fn store_one(&self, before: PriorState, now: Timestamp) -> Result<TrustRecord, SkillError> {
        self.store_with(before, now, Batch::new()).await
    }

    async fn store_and_supersede(&self, before: PriorState) -> Result<TrustRecord, SkillError> {
        let mut batch = Batch::new();
        for (key, held) in before.around.iter().filter(|(key, _)| *key != before.key) {
            match held {
                Ok(other) if other.superseded => {}
                Ok(other) => {
                    record::put(&mut batch, key.clone(), &TrustRecord { superseded: true, ..other.clone() })?;
                }
                // A record unreadable to this version must not become trust for a later one.
                Err(_) => batch.delete(Table::Skills, key.clone()),
            }
        }
        self.store_with(before, self.clock.now(), batch).await
    }

    async fn store_with(
        &self,
        before: PriorState,
        now: Timestamp,
        mut batch: Batch,
    ) -> Result<TrustRecord, SkillError> {
        let PriorState { guard, key, mut record, .. } = before;
        record.changed_at = now;
        record::put(&mut batch, key, &record)?;
        self.commit(batch, (self.known.changing(), self.announcing(), guard)).await?;
        Ok(record)
    }

    /// Announces a change when it is dropped: after the commit, and after the cached state is forgotten.
    fn announcing(&self) -> Announcement {
        Announcement(self.changes.clone())
    }

    /// Runs in its own task: if the caller were dropped mid-commit, the next change would build on stale state. `held`
    /// is dropped after the commit.
    async fn commit(&self, batch: Batch, held: impl Send + 'static) -> Result<(), StoreError> {
        let store = self.store.clone();
        let writing = tokio::spawn(async move {
            let written = store.commit(batch).await;
            drop(held);
            written
        });
        writing.await.unwrap_or(Err(StoreError::Poisoned))
    }
}

fn blank(subject: &Subject, now: Timestamp) -> TrustRecord {
    TrustRecord {
        name: subject.name.clone(),
        place: subject.place.clone(),
        hash: subject.hash,
        modes: subject.modes,
        status: SkillStatus::NeedsReapproval,
        superseded: false,
        policy: None,
        provenance: None,
        extracted_from: None,
        consent: None,
        reviewed_at: None,
        advisory: None,
        rejected: None,
        described: None,
        changed_at: now,
    }
}
