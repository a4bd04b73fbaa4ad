//! One step of the loop: ask the model, judge its reply, make its calls.
//!
//! Nothing here decides where a run continues; the history does. A call's intent is durable before the call is made.

use std::time::Duration;

use llm::{ChatReply, ChatRequest, Delta, Message, Model, ModelError, ReasoningFilter, ToolSpec};

use base::{ContentHash, ErrorCode};
use grants::RunConsent;
use serde_json::Value;

use crate::budget::{BudgetExhausted, CreditBudget};
use crate::call::{CallOutcome, Execution, admit, outcome_unknown};
use crate::ceiling::{CeilingKind, reached};
use crate::compact;
use crate::config::{HEARING, MAX_SIDE_BY_SIDE};
use crate::consent::ConsentDecision;
use crate::conversation::{OpenCall, PendingVerdict};
use crate::drive::{Driver, LoopExit};
use crate::event::{RunEvent, TellReason};
use crate::failure::RunError;
use crate::guard::GuardVerdict;
use crate::host_tools::{ASK_USER, REQUEST_APPROVAL, SAVE_CREDENTIAL};
use crate::journal::{Journal, JournalError};
use crate::live::LiveEvent;
use crate::prompt::{self, Prompt};
use crate::reply::{Judgement, NormalReply, judge, normalise};
use crate::toolbox::{ToolDefinition, ToolReply, ToolResult, Toolbox};
use crate::wait::{Approval, action_hash};

impl Driver {
    /// Asks the model for one step, and stages its reply.
    pub(crate) async fn ask(
        &self,
        journal: &mut Journal,
        model: &dyn Model,
        toolbox: &dyn Toolbox,
        specs: &[ToolSpec],
        step: u32,
    ) -> Result<Option<LoopExit>, JournalError> {
        let record = &journal.state().record;
        let max = record.max_iterations;
        let iteration = step.saturating_sub(record.earlier_iterations);
        if iteration > max {
            if let Some(answer) = journal.state().answer_despite_refusals() {
                return Ok(Some(LoopExit::Answered(answer)));
            }
            let error = reached(CeilingKind::Calls, record);
            return self.at_ceiling(journal, CeilingKind::Calls, 0, error).await.map(Some);
        }
        if step > 1 {
            let heard = tokio::time::timeout(HEARING, self.environment.stepped(&journal.state().trace));
            match self.unless_interrupted(journal, heard).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::warn!(run = %self.run, step, "the environment was too slow to hear of a step"),
                Err(interrupt) => return self.stop(journal, interrupt).await.map(Some),
            }
        }
        let left = journal.state().record.budget.as_ref().and_then(CreditBudget::share_left);
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let briefing = toolbox.briefing();
        let record = &journal.state().record;
        let recovery = prompt::recovery(record);
        let prompt = Prompt {
            tools: &names,
            briefing: briefing.as_deref(),
            may_ask: record.may_ask,
            settled: record.settled,
            recovery: recovery.as_deref(),
            max_iterations: max,
        };
        let messages = journal.messages(self.config.context_bytes);
        // A reply that the model goes on with has to come last.
        let goes_on = matches!(messages.last(), Some(Message::Assistant { .. }));
        let request = ChatRequest {
            system: prompt.render(),
            messages,
            tools: specs.to_vec(),
            note: prompt::note(max, iteration, left.as_deref()).filter(|_| !goes_on),
            // Through all attempts, so that each turn of a recording stands for one step of the run.
            turn: usize::try_from(step.saturating_sub(1)).ok(),
            ..ChatRequest::default()
        };
        let bytes = request_bytes(&request);
        // The possible cost of a reply is checked before the request. A driver does one thing at a time, so no other call
        // can spend the budget in between.
        let last = record.earlier_iterations + max;
        if let Some(exit) = self.at_budget(journal, self.config.budget.request(bytes)).await? {
            return Ok(Some(exit));
        }
        if let Some(exit) = self.at_cap(journal, model, bytes).await? {
            return Ok(Some(exit));
        }
        self.live.publish_hint(LiveEvent::StepStarted { at: self.books.clock.now(), step, max: last });
        let began = self.books.clock.monotonic();
        let mut filter = ReasoningFilter::default();
        let mut hints = |delta| filter.pass(delta).into_iter().for_each(|delta| self.hint(delta));
        let asking = self.within(journal.time_left(), model.chat(&request, &mut hints));
        let replied = self.hearing(journal, true, asking).await?;
        filter.finish().into_iter().for_each(|delta| self.hint(delta));
        match replied {
            Ok(Ok(reply)) => {
                let took = self.books.clock.monotonic().saturating_sub(began);
                let credits = self.cost_of(journal, &reply, bytes);
                stage_reply(journal, reply, step, specs, took, credits)?;
                Ok(None)
            }
            Ok(Err(error)) => Ok(Some(self.model_failed(&error))),
            Err(interrupt) => self.stop(journal, interrupt).await.map(Some),
        }
    }

    fn cost_of(&self, journal: &Journal, reply: &ChatReply, request_bytes: usize) -> u64 {
        let bytes = compact::size(&reply.clone().into()) + reply.reasoning.as_deref().map_or(0, str::len);
        let counts = journal.state().record.budget.is_some();
        if counts { self.config.budget.reply(&reply.usage, request_bytes, bytes) } else { 0 }
    }

    fn hint(&self, delta: Delta) {
        let at = self.books.clock.now();
        self.live.publish_hint(match delta {
            Delta::Text(text) => LiveEvent::TextDelta { at, text },
            Delta::Reasoning(text) => LiveEvent::ReasoningDelta { at, text },
            Delta::Restart { reason, wait } => {
                LiveEvent::ModelRetry { at, reason, wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX) }
            }
        });
    }

    fn model_failed(&self, error: &ModelError) -> LoopExit {
        tracing::info!(run = %self.run, model = %error.model, kind = ?error.kind, "the model gave no reply");
        LoopExit::Failing(RunError::model(error))
    }

    /// Takes a reply without calls as the answer, tells the model why it is not one, or gives up.
    pub(crate) fn judged(
        &self,
        journal: &mut Journal,
        reply: &PendingVerdict,
        specs: &[ToolSpec],
    ) -> Result<Option<LoopExit>, JournalError> {
        let conversation = &journal.state().conversation;
        match judge(reply, specs, conversation) {
            Judgement::Answer(_) if conversation.has_unheard() && journal.state().record.has_steps_left() => {
                let step = conversation.step();
                let text =
                    "your owner said this while you wrote that: take it into account, and answer again".to_owned();
                journal.stage(RunEvent::Told { step, reason: TellReason::Heard, text })?;
                Ok(None)
            }
            Judgement::Answer(text) => Ok(Some(LoopExit::Answered(text))),
            Judgement::Fail(error) => Ok(Some(LoopExit::Failing(error))),
            Judgement::Tell(reason, text) => {
                let step = conversation.step();
                journal.stage(RunEvent::Told { step, reason, text })?;
                Ok(None)
            }
        }
    }

    /// Refuses a call, or makes its intent durable and executes it, side by side with those behind it that only read.
    pub(crate) async fn call(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        call: OpenCall,
    ) -> Result<Option<LoopExit>, JournalError> {
        let (definition, arguments) = match admit(tools, &call) {
            Ok(admitted) => admitted,
            Err(result) => return self.refused(journal, call, result).await,
        };
        let asked = match call.call.name.as_str() {
            ASK_USER => Some(self.ask_user(journal, &call, &arguments).await?),
            REQUEST_APPROVAL => Some(self.request_approval(journal, toolbox, &call, &arguments).await?),
            _ => None,
        };
        match asked {
            Some(Ok(exit)) => return Ok(Some(exit)),
            Some(Err(result)) => return self.refused(journal, call, result).await,
            None => {}
        }
        let (approval, grant) = match self.leave(journal, toolbox, tools, &call, definition, &arguments).await {
            ConsentDecision::Go { approval, grant } => (approval, grant),
            ConsentDecision::Refused(result) => return self.refused(journal, call, result).await,
            ConsentDecision::Interrupted(interrupt) => return self.stop(journal, interrupt).await.map(Some),
            ConsentDecision::Ask(approval) => {
                journal.park(RunEvent::ApprovalAsked { approval }).await?;
                return Ok(Some(LoopExit::Parked));
            }
        };
        let reserved = match self.reserved(journal, definition) {
            Ok(reserved) => reserved,
            Err(exhausted) => {
                let result = ToolResult::failure(ErrorCode::LimitExceeded, exhausted.to_string());
                return self.refused(journal, call, result).await;
            }
        };
        let alone = approval.is_some() || grant.is_some() || !may_be_beside(journal, toolbox, &call, &arguments);
        let action = action_hash(&self.run, &call.call.name, &arguments);
        let component = toolbox.component(definition, &arguments);
        self.intend(journal, &call, AdmittedCall { definition, component, arguments, approval, grant, reserved })?;
        if !alone {
            self.intend_beside(journal, toolbox, tools, action).await?;
        }
        journal.commit().await?;
        self.execute(journal, toolbox, tools, false).await
    }

    /// Stages the intents of the calls behind one that only reads, as far as they only read too and need no
    /// consent. The same call twice is made one after the other: its output has one name.
    async fn intend_beside(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        first: ContentHash,
    ) -> Result<(), JournalError> {
        let open = journal.state().conversation.open_calls();
        let behind: Vec<_> = open.skip(1).take(MAX_SIDE_BY_SIDE - 1).cloned().collect();
        let mut actions = vec![first];
        for call in behind {
            let Ok((definition, arguments)) = admit(tools, &call) else { break };
            let action = action_hash(&self.run, &call.call.name, &arguments);
            if actions.contains(&action) || !may_be_beside(journal, toolbox, &call, &arguments) {
                break;
            }
            let ConsentDecision::Go { approval: None, grant: None } =
                self.leave(journal, toolbox, tools, &call, definition, &arguments).await
            else {
                break;
            };
            let Ok(reserved) = self.reserved(journal, definition) else { break };
            actions.push(action);
            let component = toolbox.component(definition, &arguments);
            let (approval, grant) = (None, None);
            self.intend(journal, &call, AdmittedCall { definition, component, arguments, approval, grant, reserved })?;
        }
        Ok(())
    }

    /// The credits to reserve for a call.
    fn reserved(&self, journal: &Journal, definition: &ToolDefinition) -> Result<u64, BudgetExhausted> {
        // A call that may be repeated may be tried twice.
        let tries = if definition.effects.repeatable() { 2 } else { 1 };
        let most = definition.most.map_or(0, |most| self.config.budget.spent(&most).saturating_mul(tries));
        journal.state().record.budget.as_ref().map_or(Ok(0), |budget| budget.affords(most))
    }

    fn intend(&self, journal: &mut Journal, call: &OpenCall, admitted: AdmittedCall<'_>) -> Result<(), JournalError> {
        let AdmittedCall { definition, component, arguments, approval, grant, reserved } = admitted;
        let action = action_hash(&self.run, &call.call.name, &arguments);
        journal.stage(RunEvent::ToolIntended {
            step: call.step,
            call_id: call.call.id.clone(),
            tool: call.call.name.clone(),
            arguments,
            idempotency_key: journal.state().ledger.key(&self.run, action),
            effects: definition.effects,
            component,
            approval,
            grant,
            reserved,
            began: Some(call.began.unwrap_or_else(|| self.books.clock.now())),
        })?;
        Ok(())
    }

    /// Executes the calls whose intents are durable, side by side.
    pub(crate) async fn execute(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        recovered: bool,
    ) -> Result<Option<LoopExit>, JournalError> {
        let calls = journal.state().conversation.in_flight();
        let consents = journal.state().ledger.consents();
        let time_left = journal.time_left();
        let executions = calls.iter().map(async |call| {
            let definition = tools.iter().find(|tool| tool.spec.name == call.call.name);
            let (Some(definition), Some(intent)) = (definition, &call.intent) else {
                // The tool went away while the host was stopped.
                return CallOutcome::of(admit(tools, call).err().unwrap_or_else(outcome_unknown));
            };
            let execution = Execution {
                run: &self.run,
                call,
                intent,
                consents: &consents,
                toolbox,
                timeout: definition.timeout,
                time_left,
                clock: self.books.clock.as_ref(),
                live: &self.live,
                cancel: &self.cancel,
                closing: &self.closing,
            };
            execution.run().await
        });
        let outcomes = self.hearing(journal, false, futures_util::future::join_all(executions)).await?;
        // Before the result is durable: if the host stops in between, the call is made again, and this with it.
        if calls.iter().any(|call| call.call.name == SAVE_CREDENTIAL) {
            self.environment.withdraw(&self.run).await;
            journal.rewrite(&|value| toolbox.clean(value)).await?;
        }
        self.returned(journal, calls.into_iter().zip(outcomes).collect(), recovered).await
    }

    /// Gives a call a result without executing it.
    async fn refused(
        &self,
        journal: &mut Journal,
        call: OpenCall,
        result: ToolResult,
    ) -> Result<Option<LoopExit>, JournalError> {
        self.returned(journal, vec![(call, CallOutcome::of(result))], false).await
    }

    /// Stages results, in the order of the calls, and follows the loop guard's verdict on them.
    pub(crate) async fn returned(
        &self,
        journal: &mut Journal,
        outcomes: Vec<(OpenCall, CallOutcome)>,
        recovered: bool,
    ) -> Result<Option<LoopExit>, JournalError> {
        let interrupt = outcomes.iter().find_map(|(_, outcome)| outcome.interrupt);
        let (mut asked, mut failure) = (None, None);
        for (call, outcome) in outcomes {
            let (verdict, approval) = self.stage_result(journal, &call, outcome, recovered)?;
            // Another call that is held is made again, and asks then.
            asked = asked.or(approval);
            match verdict {
                GuardVerdict::Continue => {}
                GuardVerdict::Nudge(reason, text) => {
                    journal.stage(RunEvent::Told { step: call.step, reason, text })?;
                }
                GuardVerdict::Stop(error) => failure = Some(error),
            }
        }
        if let Some(interrupt) = interrupt {
            return self.stop(journal, interrupt).await.map(Some);
        }
        if let Some(mut approval) = asked {
            // Includes the sources that the calls themselves have read.
            approval.sources.clone_from(&journal.state().record.web_sources);
            journal.park(RunEvent::ApprovalAsked { approval }).await?;
            return Ok(Some(LoopExit::Parked));
        }
        Ok(failure.map(LoopExit::Failing))
    }

    /// Stages the result of a call. Returns the guard's verdict, and the question about requests that it was refused.
    fn stage_result(
        &self,
        journal: &mut Journal,
        call: &OpenCall,
        outcome: CallOutcome,
        recovered: bool,
    ) -> Result<(GuardVerdict, Option<Approval>), JournalError> {
        let CallOutcome { reply, notes, retried, interrupt } = outcome;
        let Some(ToolReply { mut result, usage, requests, asks }) = reply else {
            return Ok((GuardVerdict::Continue, None));
        };
        let sent = requests.iter().filter(|request| request.consented || request.is_done_write());
        let sent = sent.map(|request| format!("{} {}", request.method, request.url)).collect();
        let mut refused: Vec<_> = asks.iter().map(|ask| ask.summary.clone()).collect();
        if asks.is_empty() {
            // Of a run that may not ask.
            let wanting = requests.iter().filter(|request| request.wants_consent());
            refused.extend(wanting.map(|request| format!("{} {}", request.method, request.url)));
        }
        result.output.push_str(&self.denied_before(journal, &asks));
        let asked = if interrupt.is_none() { self.asked_of(journal, call, asks, sent) } else { None };
        if call.intent.is_none() && result.error_code == Some(ErrorCode::PermissionDenied) {
            refused.push(format!("a call of `{}`", call.call.name));
        }
        // A stopped call does not report its spending; one that the host never made spent nothing.
        let unknown = usage.is_none() && call.intent.as_ref().is_some_and(|intent| intent.reserved > 0);
        let credits = (!unknown).then(|| usage.map_or(0, |usage| self.config.budget.spent(&usage)));
        let verdict = journal.stage(RunEvent::ToolReturned {
            step: call.step,
            call_id: call.call.id.clone(),
            tool: call.call.name.clone(),
            result,
            usage,
            requests,
            notes,
            retried,
            recovered,
            credits,
            refused,
            held: asked.is_some(),
        })?;
        Ok((verdict, asked))
    }
}

/// A call that may be made.
struct AdmittedCall<'a> {
    definition: &'a ToolDefinition,
    component: Option<ContentHash>,
    arguments: Value,
    /// The consent that the call uses up.
    approval: Option<String>,
    grant: Option<RunConsent>,
    reserved: u64,
}

/// Whether a call may be made beside others: it only reads, and there is no consent for one request that two calls could
/// both use.
fn may_be_beside(journal: &Journal, toolbox: &dyn Toolbox, call: &OpenCall, arguments: &Value) -> bool {
    call.held.is_none() && journal.state().ledger.has_no_lease() && toolbox.only_reads(&call.call.name, arguments)
}

/// Bytes of a request, as far as they cost something.
fn request_bytes(request: &ChatRequest) -> usize {
    let messages: usize = request.messages.iter().map(compact::size).sum();
    let tools: usize =
        request.tools.iter().map(|tool| tool.description.len() + tool.shown().parameters.to_string().len()).sum();
    request.system.len() + messages + tools + request.note.as_ref().map_or(0, String::len)
}

/// Puts the reply in order and stages it.
fn stage_reply(
    journal: &mut Journal,
    mut reply: ChatReply,
    step: u32,
    specs: &[ToolSpec],
    took: Duration,
    credits: u64,
) -> Result<(), JournalError> {
    let NormalReply { recovered_call, dropped_calls } =
        normalise(&mut reply, step, specs, &journal.state().conversation);
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    journal.stage(RunEvent::ModelReplied { step, reply, duration_ms, recovered_call, dropped_calls, credits })?;
    Ok(())
}
