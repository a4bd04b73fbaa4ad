//! When a driver has to ask before it goes on, and its question (SPEC ASK-1, APPR-1, APPR-2, TAINT-1).
//!
//! Asking is parking: the question, the status and the signal are one commit, and the driver ends. Consents
//! are looked up in the ledger, by the hash of exactly the request that was refused, or of the call that is about to be made.
//! A call that was refused requests is held: the owner is asked about them, and after a consent the host makes it again.

use base::{ContentHash, ErrorCode};
use grants::RunConsent;
use serde_json::Value;

use crate::call::{Interrupt, admit};
use crate::command::{refusal, refused_by_owner};
use crate::config::MAX_HOLDS;
use crate::conversation::OpenCall;
use crate::drive::{Driver, LoopExit};
use crate::event::RunEvent;
use crate::host_tools::{ASK_USER, ApprovalRequest, Ask, REQUEST_APPROVAL};
use crate::journal::{Journal, JournalError};
use crate::ledger::ConsentState;
use crate::toolbox::{CallReview, ConsentNeeded, PlannedCall, ToolDefinition, ToolResult, Toolbox};
use crate::wait::{Approval, ApprovalItem, Question, Scope, action_hash, waiting_id};

/// Whether a call may be made now.
pub(crate) enum ConsentDecision {
    /// It may be made. With the consent it uses, if it needs one, and the consent's power for the environment.
    Go { approval: Option<String>, grant: Option<RunConsent> },
    /// It may not; the model gets this in place of an execution.
    Refused(ToolResult),
    /// The run has to ask first.
    Ask(Approval),
    /// Something ended the run meanwhile.
    Interrupted(Interrupt),
}

impl Driver {
    /// Parks the run with a question of the model.
    pub(crate) async fn ask_user(
        &self,
        journal: &mut Journal,
        call: &OpenCall,
        arguments: &Value,
    ) -> Result<Result<LoopExit, ToolResult>, JournalError> {
        let ask = match Ask::read(arguments) {
            Ok(ask) => ask,
            Err(result) => return Ok(Err(result)),
        };
        let now = self.books.clock.now();
        let record = &journal.state().record;
        let question = Question {
            id: waiting_id("ask", &self.run, record.next_sequence),
            step: call.step,
            call_id: call.call.id.clone(),
            question: ask.question,
            choices: ask.choices,
            asked_at: now,
            expires_at: now.after(self.config.input_timeout(record)),
            sources: record.web_sources.clone(),
            ceiling: None,
        };
        journal.park(RunEvent::Asked { question }).await?;
        Ok(Ok(LoopExit::Parked))
    }

    /// Parks the run with the model's request for consent.
    pub(crate) async fn request_approval(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        call: &OpenCall,
        arguments: &Value,
    ) -> Result<Result<LoopExit, ToolResult>, JournalError> {
        let mut request = match ApprovalRequest::read(arguments) {
            Ok(request) => request,
            Err(result) => return Ok(Err(result)),
        };
        // The owner is shown the domains that would be granted, not the model's spelling.
        request.domains = match toolbox.domains(&request.domains) {
            Ok(domains) => domains,
            Err(reason) => return Ok(Err(ToolResult::failure(ErrorCode::InvalidArgs, reason))),
        };
        let action = action_hash(&self.run, REQUEST_APPROVAL, arguments);
        if let ConsentState::Denied(why) = journal.state().ledger.standing(action, None) {
            return Ok(Err(refused_by_owner(why.as_deref())));
        }
        let grant = request.grant();
        let choices = if grant.is_none() { vec![Scope::Once] } else { vec![Scope::Run, Scope::Session, Scope::Always] };
        let reason = request.reason.clone().unwrap_or_else(|| "the model asks before it acts".to_owned());
        let item = item(call, arguments, request.summary(), action);
        let approval = self.approval(journal, vec![item], reason, None, grant, choices);
        journal.park(RunEvent::ApprovalAsked { approval }).await?;
        Ok(Ok(LoopExit::Parked))
    }

    /// The question to the owner about a call that was refused requests: those that are not decided yet. `None`
    /// if there is nothing to ask, or the run may not ask.
    pub(crate) fn asked_of(
        &self,
        journal: &Journal,
        call: &OpenCall,
        asks: Vec<ConsentNeeded>,
        sent: Vec<String>,
    ) -> Option<Approval> {
        let state = journal.state();
        if !state.record.may_ask || state.record.settled || call.holds >= MAX_HOLDS {
            return None;
        }
        let is_open = |ask: &ConsentNeeded| {
            // A consent that was given and did not help is not for the owner to give again in the same call.
            !matches!(state.ledger.standing(ask.action, ask.class.as_deref()), ConsentState::Denied(_))
        };
        let asks: Vec<_> = asks.into_iter().filter(is_open).collect();
        let reason = asks.first()?.reason.clone();
        let choices = scopes(asks.iter().all(|ask| ask.class.is_some()), false);
        let (arguments, class) = (call.arguments(), asks.first().and_then(|ask| ask.class.clone()));
        let class = class.filter(|class| asks.iter().all(|ask| ask.class.as_ref() == Some(class)));
        let items = asks.into_iter().map(|ask| ApprovalItem {
            class: ask.class,
            grant: ask.grant,
            request: ask.request,
            ..item(call, &arguments, ask.summary, ask.action)
        });
        let items = items.collect();
        Some(Approval { repeat: true, sent, ..self.approval(journal, items, reason, class, None, choices) })
    }

    /// The owner's earlier decisions about requests that a call was refused, in words.
    pub(crate) fn denied_before(&self, journal: &Journal, asks: &[ConsentNeeded]) -> String {
        let ledger = &journal.state().ledger;
        let denied = asks.iter().filter_map(|ask| match ledger.standing(ask.action, ask.class.as_deref()) {
            ConsentState::Denied(why) => Some(refusal(&ask.summary, why.as_deref())),
            _ => None,
        });
        denied.map(|line| format!("\n{line}")).collect()
    }

    /// Checks whether a call may be made: its effects, whether they need consent, and whether there is one.
    pub(crate) async fn leave(
        &self,
        journal: &Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        call: &OpenCall,
        definition: &ToolDefinition,
        arguments: &Value,
    ) -> ConsentDecision {
        let action = action_hash(&self.run, &call.call.name, arguments);
        let state = journal.state();
        if let Some(done) = state.ledger.done_before(action) {
            let (attempt, step) = (done.attempt + 1, done.step);
            return ConsentDecision::Refused(ToolResult::success(format!(
                "skipped: attempt {attempt} of this run has done exactly this in step {step}, and doing it again would do \
                 it twice; its result was: {}",
                done.output
            )));
        }
        if let Some(held) = &call.held {
            // The owner was asked about the call before it was made, and about its requests since.
            return ConsentDecision::Go { approval: None, grant: held.grant.clone() };
        }
        let review = match self.review(journal, toolbox, definition, arguments).await {
            Ok(review) => review,
            Err(interrupt) => return ConsentDecision::Interrupted(interrupt),
        };
        let Some(reason) = needs(&review, state.record.approval_required) else {
            return ConsentDecision::Go { approval: None, grant: None };
        };
        match state.ledger.standing(action, review.class.as_deref()) {
            ConsentState::Granted(approval, grant) => ConsentDecision::Go { approval: Some(approval), grant },
            ConsentState::Denied(why) => ConsentDecision::Refused(refused_by_owner(why.as_deref())),
            ConsentState::Unasked if !state.record.may_ask => ConsentDecision::Refused(ToolResult::failure(
                ErrorCode::PermissionDenied,
                format!("{reason}, and this run may not ask the owner; do without it"),
            )),
            ConsentState::Unasked => {
                let mut items = vec![item(call, arguments, review.summary.clone(), action)];
                if review.low_risk {
                    items.extend(self.alike(journal, toolbox, tools, call, &review).await);
                }
                let choices = scopes(review.class.is_some(), true);
                ConsentDecision::Ask(self.approval(journal, items, reason, review.class, review.grant, choices))
            }
        }
    }

    /// The other calls of the same reply that do the same kind of harmless thing: one question is enough for all.
    async fn alike(
        &self,
        journal: &Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        first: &OpenCall,
        of: &CallReview,
    ) -> Vec<ApprovalItem> {
        let others: Vec<OpenCall> =
            journal.state().conversation.open_calls().filter(|open| open.call.id != first.call.id).cloned().collect();
        let mut items = Vec::new();
        for open in others {
            let Ok((definition, arguments)) = admit(tools, &open) else { continue };
            let Ok(review) = self.review(journal, toolbox, definition, &arguments).await else { break };
            if review.low_risk && review.class.is_some() && review.class == of.class {
                let action = action_hash(&self.run, &open.call.name, &arguments);
                items.push(item(&open, &arguments, review.summary, action));
            }
        }
        items
    }

    async fn review(
        &self,
        journal: &Journal,
        toolbox: &dyn Toolbox,
        definition: &ToolDefinition,
        arguments: &Value,
    ) -> Result<CallReview, Interrupt> {
        let planned =
            PlannedCall { run: &self.run, name: &definition.spec.name, arguments, effects: definition.effects };
        self.unless_interrupted(journal, toolbox.review(planned)).await
    }

    fn approval(
        &self,
        journal: &Journal,
        items: Vec<ApprovalItem>,
        reason: String,
        class: Option<String>,
        grant: Option<RunConsent>,
        choices: Vec<Scope>,
    ) -> Approval {
        let now = self.books.clock.now();
        let record = &journal.state().record;
        Approval {
            id: waiting_id("apr", &self.run, record.next_sequence),
            step: journal.state().conversation.step(),
            items,
            reason,
            class,
            grant,
            choices,
            asked_at: now,
            expires_at: now.after(self.config.approval_timeout(record)),
            sources: record.web_sources.clone(),
            repeat: false,
            sent: Vec::new(),
        }
    }
}

/// Why a call needs consent; none: it needs none.
fn needs(review: &CallReview, approval_required: bool) -> Option<String> {
    if !approval_required || review.covered {
        return None;
    }
    match (review.irreversible, review.outward) {
        (true, true) => Some("it reaches outside, and what it does may not be undone".to_owned()),
        (true, false) => Some("what it does cannot be undone".to_owned()),
        (false, true) => Some("it reaches outside".to_owned()),
        (false, false) => None,
    }
}

/// For how long a consent can be given. A consent for longer than a run is given by the owner's own command if it opens network
/// access: a card shows one request and not all that would pass.
fn scopes(has_class: bool, may_last: bool) -> Vec<Scope> {
    match (has_class, may_last) {
        (true, true) => vec![Scope::Once, Scope::Run, Scope::Session, Scope::Always],
        (true, false) => vec![Scope::Once, Scope::Run],
        (false, _) => vec![Scope::Once],
    }
}

fn item(call: &OpenCall, arguments: &Value, summary: String, action_hash: ContentHash) -> ApprovalItem {
    ApprovalItem {
        call_id: call.call.id.clone(),
        tool: call.call.name.clone(),
        summary,
        arguments: arguments.clone(),
        action_hash,
        class: None,
        grant: None,
        request: None,
    }
}

/// Whether a call is one of the loop's own tools: no other tool may have the name.
#[must_use]
pub fn is_host_tool(name: &str) -> bool {
    [ASK_USER, REQUEST_APPROVAL].contains(&name)
}
