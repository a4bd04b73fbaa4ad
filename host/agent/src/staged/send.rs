//! Sends staged writes for the owner, through the gate, with the run's own grant.

use std::sync::Arc;

use base::{ConsentRecord, Refusal, RefusalCode, RunId};
use consent::Consent;
use network::{CallLimits, Delivered, Delivery, GateError, HeldWrite, MAX_KEPT_RESPONSE_BYTES};

use super::record::{Again, SendOutcome};
use super::{StagedWrites, WholeWrite};
use crate::Runs;
use crate::api::staged::{
    DiscardStaged, SendStaged, ShownWrite, StagedResponse, StagedStatus, StagedTask, StagedWrite,
};
use crate::environment::HostEnvironment;

impl Runs {
    /// The staged writes of a run.
    ///
    /// # Errors
    /// If the run does not exist, or the store fails.
    pub fn staged(&self, run: &RunId) -> Result<StagedTask, Refusal> {
        let record = self.record(run)?;
        let writes = self.environment.staged.list(run)?;
        let held = writes.iter().filter(|write| write.status == StagedStatus::Held).count();
        let held = u32::try_from(held).unwrap_or(u32::MAX);
        Ok(StagedTask { run_id: record.id, task: record.task, held, writes })
    }

    /// Sends staged writes, each at most once, and returns the outcome of each. The owner consents to exactly the writes that
    /// were shown. It stops at the first that does not get an answer: later ones may depend on it.
    ///
    /// # Errors
    /// `illegal_state` or `not_found` if one of them may not be sent: nothing is sent then.
    pub async fn send_staged(
        &self,
        run: &RunId,
        request: SendStaged,
        consent: Consent,
    ) -> Result<Vec<StagedWrite>, Refusal> {
        self.record(run)?.grant.check()?;
        if request.writes.is_empty() {
            return Err(Refusal::new(RefusalCode::InvalidRequest, "it names no write to send")
                .with_remedy("name each write that was shown, with its hash"));
        }
        let again = if request.again { Again::Allowed } else { Again::Refused };
        let staged = &self.environment.staged;
        staged.check(run, &request.writes, again)?;
        // In its own task: a caller that goes away must not leave writes without a known outcome.
        let (environment, run) = (Arc::clone(&self.environment), run.clone());
        let record = self.record(&run)?;
        let sending = tokio::spawn(async move {
            let consent = ConsentRecord::from(consent);
            let mut done = Vec::new();
            for shown in &request.writes {
                let sent = send_one(&environment, &record, shown, again, consent.clone()).await?;
                let is_sent = sent.status == StagedStatus::Sent;
                done.push(sent);
                if !is_sent {
                    break;
                }
            }
            Ok(done)
        });
        sending.await.unwrap_or_else(|_| {
            let reason = "the host failed while it sent the writes";
            Err(Refusal::new(RefusalCode::OutcomeUnknown, reason)
                .with_remedy(format!("`motor task staged {run}` shows which were sent")))
        })
    }

    /// Discards staged writes.
    ///
    /// # Errors
    /// If the run does not exist, or one of the writes does not exist or was sent.
    pub async fn discard_staged(
        &self,
        run: &RunId,
        request: &DiscardStaged,
        consent: Consent,
    ) -> Result<StagedTask, Refusal> {
        self.record(run)?;
        self.environment.staged.discard(run, &request.writes, &consent.into()).await?;
        self.staged(run)
    }
}

async fn send_one(
    environment: &HostEnvironment,
    record: &motor::RunRecord,
    shown: &ShownWrite,
    again: Again,
    consent: ConsentRecord,
) -> Result<StagedWrite, Refusal> {
    let staged: &Arc<StagedWrites> = &environment.staged;
    let limits = &environment.config().limits;
    let limits = CallLimits {
        requests: 1,
        request_bytes: limits.request_bytes,
        response_bytes: limits.response_bytes,
        idempotency_key: None,
    };
    let attempt = staged.begin(&record.id, shown, again, consent).await?;
    let WholeWrite { record: of_write, body } = &attempt.whole;
    let write = HeldWrite { body: body.clone(), ..of_write.write.clone() };
    let outcome = match environment.access.for_sending(record, &write.sources).await {
        Ok(network) => outcome_of(network::deliver(&network, &write, limits).await),
        Err(refusal) => SendOutcome::NotSent(refusal.reason),
    };
    tracing::info!(run = %record.id, number = shown.number, outcome = outcome.name(), "a staged write was sent for the owner");
    let ended = attempt.end(outcome).await;
    ended.map_err(|refusal| {
        let reason = format!("what became of #{} could not be stored: {}", shown.number, refusal.reason);
        Refusal::new(RefusalCode::OutcomeUnknown, reason)
            .with_remedy(format!("`motor task staged {}` shows it when the disk works again", record.id))
    })
}

fn outcome_of(delivery: Delivery) -> SendOutcome {
    let Delivery { outcome, may_have_left, trace } = delivery;
    // The owner may be told the address that a guest is not.
    let told =
        |error: &GateError| trace.as_ref().and_then(|trace| trace.error.clone()).unwrap_or_else(|| error.to_string());
    match outcome {
        Ok(delivered) => {
            SendOutcome::Answered(response(delivered, trace.as_ref().map_or(0.0, |trace| trace.duration_ms)))
        }
        Err(error) if may_have_left => SendOutcome::Unknown(told(&error)),
        Err(error) => {
            let remedy = match &error {
                GateError::Blocked(blocked) if !blocked.remedy.is_empty() => format!("; {}", blocked.remedy),
                _ => String::new(),
            };
            SendOutcome::NotSent(format!("{}{remedy}", told(&error)))
        }
    }
}

fn response(delivered: Delivered, duration_ms: f64) -> StagedResponse {
    let Delivered { status, headers, mut body, body_bytes, broken } = delivered;
    if body.len() == MAX_KEPT_RESPONSE_BYTES {
        // The border may cut a character in two.
        let valid = std::str::from_utf8(&body).map_or_else(|error| error.valid_up_to(), str::len);
        if body.len() - valid < 4 {
            body.truncate(valid);
        }
    }
    let body = String::from_utf8(body).ok().filter(|text| !text.is_empty());
    StagedResponse { status, headers, body, body_bytes, broken, duration_ms }
}

impl SendOutcome {
    fn name(&self) -> &'static str {
        match self {
            Self::Answered(_) => "answered",
            Self::NotSent(_) => "not_sent",
            Self::Unknown(_) => "outcome_unknown",
        }
    }
}
