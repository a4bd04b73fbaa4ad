//! Questions of runs that are put to an MCP client (SPEC ASK-1, MCP-1).
//!
//! An answer of such a client is worth as much as the task text that the same client wrote, so it is taken only for runs
//! that a model requested and whose powers no person has widened since. The owner answers everything else.

use base::{Refusal, RefusalCode, RunId};
use consent::ElicitedQuestion;
use motor::{CommandReply, Question, RunRecord, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Host;
use crate::task::RespondRequest;

/// A question that the asking client may answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    /// The question, with its choices.
    pub question: Question,
    /// Proof that the host put this question to this client. It goes back with the answer.
    pub ticket: String,
    /// The first 200 characters of the run's task.
    pub task: String,
}

/// The answer of a client that was asked.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ElicitedAnswer {
    /// The ticket that came with the question.
    pub ticket: String,
    /// Text of the answer.
    pub answer: String,
}

impl Host {
    /// The question that the run waits with, for `client`.
    ///
    /// # Errors
    /// `illegal_state` if the run waits with no question, `consent_needed` if only the owner may answer it.
    pub fn elicitation(&self, run: &RunId, client: &str) -> Result<Elicitation, Refusal> {
        let record = self.runs.record(run)?;
        let question = elicitable(&record)?.clone();
        let ticket = self.consent.elicit(ElicitedQuestion { run, question: &question.id, client })?;
        Ok(Elicitation { question, ticket, task: record.task })
    }

    /// Answers the question that `client` was asked. Durable when this returns.
    ///
    /// # Errors
    /// As for [`Host::elicitation`], or if the run waits with another question by now.
    pub async fn answer_elicited(
        &self,
        run: &RunId,
        answer: ElicitedAnswer,
        client: &str,
    ) -> Result<CommandReply, Refusal> {
        let question = elicitable(&self.runs.record(run)?)?.id.clone();
        let authority = self.consent.elicited(ElicitedQuestion { run, question: &question, client }, &answer.ticket)?;
        // It names the question, so an answer that comes at the same time leaves none for this one.
        let request = RespondRequest { answer: answer.answer, question: Some(question), key: None };
        self.runs.respond(run, request, authority).await
    }
}

fn elicitable(record: &RunRecord) -> Result<&Question, Refusal> {
    let Some(Waiting::Input(question)) = &record.waiting else {
        let reason = format!("run `{}` waits with no question", record.id);
        return Err(Refusal::new(RefusalCode::IllegalState, reason));
    };
    let of_owner = if question.ceiling.is_some() {
        Some("the question is whether it may go on beyond a ceiling")
    } else {
        (!record.by_model || !record.consents.is_empty()).then_some("its powers are not those that a model asked for")
    };
    if let Some(why) = of_owner {
        let reason = format!("only the owner answers run `{}`: {why}", record.id);
        let remedy = format!("the owner answers with `motor task respond {}`", record.id);
        return Err(Refusal::new(RefusalCode::ConsentNeeded, reason).with_remedy(remedy));
    }
    Ok(question)
}
