//! The writes of staged runs: held at the gate, and sent once each if the owner says so (SPEC LAND-5).
//!
//! A write is a record and, beside it, its body, in one table and one commit. The host is the only sender, and at most one
//! attempt is made at a time for each write: the intent is durable before the first byte, so a crash leaves a write that may
//! have been sent, and such a write is never sent again by itself. It survives a host that dies at any commit, two consents
//! given at once, a run that stages without end, and a full disk. It must not know how a request is sent.

mod record;
mod send;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use base::text::cut;
use base::{Clock, ConsentRecord, Refusal, RefusalCode, RunId};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use network::{HeldWrite, NotHeld, Stage};
use parking_lot::Mutex;
use store::{Batch, Scan, Store, StoreError, Table};

use crate::api::staged::{ShownWrite, StagedStatus, StagedWrite};
use record::{Again, SendOutcome, StagedRecord};

/// Writes that one run can stage.
const MAX_STAGED_WRITES: usize = 100;
/// Bytes of one staged write: method, URL, headers and body.
const MAX_STAGED_WRITE_BYTES: u64 = 1 << 20;
/// Bytes of all staged writes of a run.
const MAX_STAGED_RUN_BYTES: u64 = 8 << 20;
/// Characters of a failure that are kept.
const MAX_FAILURE: usize = 500;

/// The staged writes of a home.
pub(crate) struct StagedWrites {
    store: Store,
    clock: Arc<dyn Clock>,
    /// Held while a record is read and changed.
    changing: tokio::sync::Mutex<()>,
    /// The writes that this host is sending.
    sending: Mutex<HashSet<(RunId, u32)>>,
}

/// A write with the body that belongs to it.
#[derive(Debug, Clone)]
pub(crate) struct WholeWrite {
    pub record: StagedRecord,
    pub body: Bytes,
}

impl StagedWrites {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, changing: tokio::sync::Mutex::default(), sending: Mutex::default() }
    }

    /// Holds the writes of one run.
    pub fn of_run(self: &Arc<Self>, run: RunId) -> Arc<dyn Stage> {
        Arc::new(RunStage { staged: Arc::clone(self), run })
    }

    /// The writes of a run without their bodies, in order.
    fn records(&self, run: &RunId) -> Result<Vec<StagedRecord>, StoreError> {
        let records = self.store.scan::<StagedRecord>(Table::Staged, &Scan::prefix(format!("{run}/write/")))?;
        Ok(records.into_iter().map(|(_, record)| self.as_it_is(run, record)).collect())
    }

    /// A write that was being sent when its host died may have been sent.
    fn as_it_is(&self, run: &RunId, mut record: StagedRecord) -> StagedRecord {
        let is_sending = || self.sending.lock().contains(&(run.clone(), record.number));
        if record.status == StagedStatus::Sending && !is_sending() {
            record.status = StagedStatus::OutcomeUnknown;
            record.failure = Some("the host stopped while it was sent".to_owned());
        }
        record
    }

    /// The writes of a run, in order.
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(&self, run: &RunId) -> Result<Vec<StagedWrite>, Refusal> {
        let records = self.records(run)?;
        records.into_iter().map(|record| Ok(view(self.whole(run, record)?))).collect()
    }

    fn whole(&self, run: &RunId, record: StagedRecord) -> Result<WholeWrite, Refusal> {
        let lost = || {
            let reason = format!("the body of the staged write #{} of run `{run}` cannot be read", record.number);
            Refusal::new(RefusalCode::StateUnusable, reason)
        };
        let text: String = self.store.get(Table::Staged, body_key(run, record.number))?.ok_or_else(lost)?;
        let body = STANDARD.decode(text).map_err(|_| lost())?.into();
        Ok(WholeWrite { record, body })
    }

    /// The write of a run with this number.
    fn find(&self, run: &RunId, number: u32) -> Result<StagedRecord, Refusal> {
        let record = self.store.get::<StagedRecord>(Table::Staged, write_key(run, number))?;
        let record = record.ok_or_else(|| {
            let reason = format!("run `{run}` has no staged write #{number}");
            Refusal::new(RefusalCode::NotFound, reason)
                .with_remedy(format!("`motor task staged {run}` lists its staged writes"))
        })?;
        Ok(self.as_it_is(run, record))
    }

    /// Checks that writes may be sent as they were shown, without changing anything.
    ///
    /// # Errors
    /// `not_found`, or `illegal_state` with the reason.
    pub fn check(&self, run: &RunId, shown: &[ShownWrite], again: Again) -> Result<(), Refusal> {
        let mut seen = HashSet::new();
        for ShownWrite { number, hash } in shown {
            let record = self.find(run, *number)?;
            if !seen.insert(*number) {
                let reason = format!("#{number} is named twice, and a write is sent once");
                return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
            }
            if record.write.hash != *hash {
                let reason = format!("#{number} is another write than the one that was shown");
                return Err(Refusal::new(RefusalCode::IllegalState, reason)
                    .with_remedy(format!("look at it again: `motor task staged {run}`")));
            }
            record.check_sendable(again)?;
        }
        Ok(())
    }

    /// Makes the intent to send a write durable, and returns the attempt. While the attempt lives no other begins.
    ///
    /// # Errors
    /// As [`StagedWrites::check`], or if the store fails: then nothing may be sent.
    pub async fn begin(
        self: &Arc<Self>,
        run: &RunId,
        shown: &ShownWrite,
        again: Again,
        consent: ConsentRecord,
    ) -> Result<SendAttempt, Refusal> {
        let _changing = self.changing.lock().await;
        self.check(run, std::slice::from_ref(shown), again)?;
        let record = self.find(run, shown.number)?;
        let before = record.status;
        let mut whole = self.whole(run, record)?;
        whole.record.begin(consent);
        // In place before the commit, so that a reader never takes the intent for that of a dead host.
        let claim = SendClaim::new(Arc::clone(self), (run.clone(), shown.number));
        self.put(run, &whole.record).await?;
        Ok(SendAttempt { claim, whole, before })
    }

    /// Discards writes; all that are held if none is named.
    ///
    /// # Errors
    /// `not_found`, or `illegal_state` if one was sent; nothing is discarded then.
    pub async fn discard(&self, run: &RunId, numbers: &[u32], consent: &ConsentRecord) -> Result<(), Refusal> {
        let _changing = self.changing.lock().await;
        let chosen = match numbers {
            [] => self.records(run)?.into_iter().filter(|record| record.status == StagedStatus::Held).collect(),
            numbers => numbers.iter().map(|number| self.find(run, *number)).collect::<Result<Vec<_>, _>>()?,
        };
        let mut batch = Batch::new();
        for mut record in chosen {
            record.discard(consent.clone())?;
            batch.put(Table::Staged, write_key(run, record.number), &record)?;
        }
        Ok(self.store.commit(batch).await?)
    }

    async fn put(&self, run: &RunId, record: &StagedRecord) -> Result<(), StoreError> {
        let mut batch = Batch::new();
        batch.put(Table::Staged, write_key(run, record.number), record)?;
        self.store.commit(batch).await
    }

    async fn hold(&self, run: &RunId, write: HeldWrite) -> Result<u32, HoldError> {
        let bytes = write.bytes() as u64;
        let _changing = self.changing.lock().await;
        let records = self.records(run)?;
        if let Some(held) = records.iter().find(|record| record.write.key == write.key) {
            return Ok(held.number);
        }
        let all: u64 = records.iter().map(|record| record.bytes).sum();
        let over = |what: &str, limit: u64| Err(HoldError::Limit(format!("{what}, and at most {limit} are held")));
        if records.len() >= MAX_STAGED_WRITES {
            return over("the run has staged as many writes as it may", MAX_STAGED_WRITES as u64);
        }
        if bytes > MAX_STAGED_WRITE_BYTES {
            return over(&format!("it has {bytes} bytes"), MAX_STAGED_WRITE_BYTES);
        }
        if all.saturating_add(bytes) > MAX_STAGED_RUN_BYTES {
            return over("the staged writes of the run have too many bytes together", MAX_STAGED_RUN_BYTES);
        }
        let number = records.last().map_or(0, |record| record.number).saturating_add(1);
        let (body, mut batch) = (STANDARD.encode(&write.body), Batch::new());
        let record = StagedRecord {
            number,
            status: StagedStatus::Held,
            staged_at: self.clock.now(),
            bytes,
            write,
            consent: None,
            failure: None,
            response: None,
        };
        batch.put(Table::Staged, write_key(run, number), &record)?;
        batch.put(Table::Staged, body_key(run, number), &body)?;
        self.store.commit(batch).await?;
        Ok(number)
    }
}

/// One attempt to send a write, whose intent is durable.
pub(crate) struct SendAttempt {
    claim: SendClaim,
    pub whole: WholeWrite,
    before: StagedStatus,
}

impl SendAttempt {
    /// Notes its end. A failure to store it leaves a write whose outcome is unknown.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn end(self, outcome: SendOutcome) -> Result<StagedWrite, Refusal> {
        let Self { claim, mut whole, before } = self;
        let (staged, (run, _)) = (&claim.staged, &claim.write);
        whole.record.end(before, outcome);
        let _changing = staged.changing.lock().await;
        // A run that was deleted meanwhile gets no record back.
        if staged.store.get::<StagedRecord>(Table::Staged, write_key(run, whole.record.number))?.is_some() {
            staged.put(run, &whole.record).await?;
        }
        Ok(view(whole))
    }
}

/// Says that this host is sending a write, for as long as it lives.
struct SendClaim {
    staged: Arc<StagedWrites>,
    write: (RunId, u32),
}

impl SendClaim {
    fn new(staged: Arc<StagedWrites>, write: (RunId, u32)) -> Self {
        staged.sending.lock().insert(write.clone());
        Self { staged, write }
    }
}

impl Drop for SendClaim {
    fn drop(&mut self) {
        self.staged.sending.lock().remove(&self.write);
    }
}

/// Holds the writes of one run.
struct RunStage {
    staged: Arc<StagedWrites>,
    run: RunId,
}

#[async_trait]
impl Stage for RunStage {
    async fn hold(&self, write: HeldWrite) -> Result<u32, NotHeld> {
        // In its own task: a call that ends meanwhile must not leave a commit that was not counted.
        let (staged, run) = (Arc::clone(&self.staged), self.run.clone());
        let held = tokio::spawn(async move { staged.hold(&run, write).await }).await;
        held.unwrap_or_else(|_| Err(HoldError::Limit("the host failed while it held it".to_owned()))).map_err(|error| {
            match error {
                HoldError::Limit(reason) => NotHeld {
                    reason,
                    remedy: "make fewer or smaller writes, and say in your answer which are missing".to_owned(),
                },
                HoldError::Store(error) => {
                    tracing::warn!(run = %self.run, %error, "a write could not be staged");
                    NotHeld {
                        reason: "the host could not store it".to_owned(),
                        remedy: "say in your answer that the write is missing".to_owned(),
                    }
                }
            }
        })
    }
}

/// Why a write is not held.
#[derive(Debug)]
enum HoldError {
    Limit(String),
    Store(StoreError),
}

impl From<StoreError> for HoldError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn write_key(run: &RunId, number: u32) -> String {
    format!("{run}/write/{number:08}")
}

fn body_key(run: &RunId, number: u32) -> String {
    format!("{run}/body/{number:08}")
}

/// A write as callers see it.
fn view(WholeWrite { record, body }: WholeWrite) -> StagedWrite {
    let StagedRecord { number, status, staged_at, write, consent, failure, response, .. } = record;
    let body_bytes = body.len() as u64;
    let idempotency_key = write.idempotency_key().to_owned();
    let (text, binary) = match std::str::from_utf8(&body) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(&body))),
    };
    StagedWrite {
        number,
        status,
        method: write.method,
        url: write.url,
        headers: write.headers,
        idempotency_key,
        credentials: write.credentials.iter().map(ToString::to_string).collect(),
        body_bytes,
        body: text,
        body_base64: binary,
        hash: write.hash,
        staged_at,
        sources: write.sources,
        consent,
        failure: failure.map(|failure| cut(&failure, MAX_FAILURE)),
        response,
    }
}
