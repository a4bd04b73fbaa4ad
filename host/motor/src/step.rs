//! One step of the loop: ask the model, judge its reply, make its calls.
//!
//! Nothing here decides where a run continues; the history does. A call's intent is durable before the call is made.

use std::time::Duration;

use llm::{ChatReply, ChatRequest, Delta, Model, ModelError, ReasoningFilter, ToolSpec};

use base::ErrorCode;

use crate::budget::CreditBudget;
use crate::call::{CallOutcome, Execution, admit, outcome_unknown};
use crate::compact;
use crate::config::HEARING;
use crate::consent::ConsentDecision;
use crate::conversation::{NextStep, OpenCall, PendingVerdict};
use crate::drive::{Driver, LoopExit};
use crate::event::RunEvent;
use crate::failure::{FailureCategory, RunError};
use crate::guard::GuardVerdict;
use crate::host_tools::{ASK_USER, REQUEST_APPROVAL};
use crate::journal::{Journal, JournalError};
use crate::live::LiveEvent;
use crate::prompt::{self, Prompt};
use crate::reply::{Judgement, NormalReply, judge, normalise};
use crate::toolbox::{ToolDefinition, ToolReply, ToolResult, Toolbox};
use crate::wait::action_hash;

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
            let message = format!("the run reached the iteration cap of {max}");
            return Ok(Some(LoopExit::Failing(RunError::new(FailureCategory::BudgetExhausted, message))));
        }
        if step > 1 {
            let heard = tokio::time::timeout(HEARING, self.environment.stepped(&journal.state().trace));
            match self.unless_interrupted(journal, heard).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::warn!(run = %self.run, step, "the environment was too slow to hear of a step"),
                Err(interrupt) => return self.stop(journal, interrupt).await.map(Some),
            }
        }
        let left = journal.state().record.budget.as_ref().map(CreditBudget::share_left);
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let briefing = toolbox.briefing();
        let record = &journal.state().record;
        let recovery = prompt::recovery(record.attempt, record.failure.as_ref(), record.guidance.as_deref());
        let prompt = Prompt {
            tools: &names,
            briefing: briefing.as_deref(),
            may_ask: record.may_ask,
            settled: record.settled,
            recovery: recovery.as_deref(),
            budget: left.as_deref(),
            max_iterations: max,
            step: iteration,
        };
        let request = ChatRequest {
            system: prompt.render(),
            messages: journal.messages(self.config.context_bytes),
            tools: specs.to_vec(),
            // Through all attempts, so that each turn of a recording stands for one step of the run.
            turn: usize::try_from(step.saturating_sub(1)).ok(),
            ..ChatRequest::default()
        };
        let bytes = request_bytes(&request);
        // The possible cost of a reply is checked before the request. A driver does one thing at a time, so no other call
        // can spend the budget in between.
        if let Some(budget) = &record.budget
            && let Err(exhausted) = budget.affords(self.config.budget.request(bytes))
        {
            let error = RunError::new(FailureCategory::BudgetExhausted, exhausted.to_string());
            return Ok(Some(LoopExit::Failing(error)));
        }
        let last = record.earlier_iterations + max;
        self.live.publish_hint(LiveEvent::StepStarted { at: self.books.clock.now(), step, max: last });
        let began = self.books.clock.monotonic();
        let mut filter = ReasoningFilter::default();
        let mut hints = |delta| filter.pass(delta).into_iter().for_each(|delta| self.hint(delta));
        let replied = self.unless_interrupted(journal, model.chat(&request, &mut hints)).await;
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
        tracing::warn!(run = %self.run, model = %error.model, kind = ?error.kind, "the model gave no reply");
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
            Judgement::Answer(text) => Ok(Some(LoopExit::Answered(text))),
            Judgement::Fail(error) => Ok(Some(LoopExit::Failing(error))),
            Judgement::Tell(reason, text) => {
                let step = conversation.step();
                journal.stage(RunEvent::Told { step, reason, text })?;
                Ok(None)
            }
        }
    }

    /// Refuses a call, or makes its intent durable and executes it.
    pub(crate) async fn call(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        call: OpenCall,
    ) -> Result<Option<LoopExit>, JournalError> {
        let refused = |result| CallOutcome {
            reply: Some(ToolReply::of(result)),
            notes: Vec::new(),
            retried: false,
            interrupt: None,
        };
        let (definition, arguments) = match admit(tools, &call) {
            Ok(admitted) => admitted,
            Err(result) => return self.returned(journal, &call, refused(result), false).await,
        };
        let asked = match call.call.name.as_str() {
            ASK_USER => Some(self.ask_user(journal, &call, &arguments).await?),
            REQUEST_APPROVAL => Some(self.request_approval(journal, toolbox, &call, &arguments).await?),
            _ => None,
        };
        match asked {
            Some(Ok(exit)) => return Ok(Some(exit)),
            Some(Err(result)) => return self.returned(journal, &call, refused(result), false).await,
            None => {}
        }
        let (approval, grant) = match self.leave(journal, toolbox, tools, &call, definition, &arguments).await {
            ConsentDecision::Go { approval, grant } => (approval, grant),
            ConsentDecision::Refused(result) => return self.returned(journal, &call, refused(result), false).await,
            ConsentDecision::Interrupted(interrupt) => return self.stop(journal, interrupt).await.map(Some),
            ConsentDecision::Ask(approval) => {
                journal.park(RunEvent::ApprovalAsked { approval }).await?;
                return Ok(Some(LoopExit::Parked));
            }
        };
        // A call that may be repeated may be tried twice.
        let tries = if definition.effects.repeatable() { 2 } else { 1 };
        let most = definition.most.map_or(0, |most| self.config.budget.spent(&most).saturating_mul(tries));
        let reserved = match journal.state().record.budget.as_ref().map(|budget| budget.affords(most)) {
            None => 0,
            Some(Ok(reserved)) => reserved,
            Some(Err(exhausted)) => {
                let result = ToolResult::failure(ErrorCode::LimitExceeded, exhausted.to_string());
                return self.returned(journal, &call, refused(result), false).await;
            }
        };
        let action = action_hash(&self.run, &call.call.name, &arguments);
        journal.stage(RunEvent::ToolIntended {
            step: call.step,
            call_id: call.call.id.clone(),
            tool: call.call.name.clone(),
            arguments,
            idempotency_key: journal.state().ledger.key(&self.run, action),
            effects: definition.effects,
            component: definition.component,
            approval,
            grant,
            reserved,
            began: Some(call.began.unwrap_or_else(|| self.books.clock.now())),
        })?;
        journal.commit().await?;
        let NextStep::InFlight(call) = journal.state().conversation.next() else { return Ok(None) };
        self.execute(journal, toolbox, tools, call, false).await
    }

    /// Executes a call whose intent is durable.
    pub(crate) async fn execute(
        &self,
        journal: &mut Journal,
        toolbox: &dyn Toolbox,
        tools: &[&ToolDefinition],
        call: OpenCall,
        recovered: bool,
    ) -> Result<Option<LoopExit>, JournalError> {
        let definition = tools.iter().find(|tool| tool.spec.name == call.call.name);
        let (Some(definition), Some(intent)) = (definition, &call.intent) else {
            // The tool went away while the host was stopped.
            let refused = admit(tools, &call).err().unwrap_or_else(outcome_unknown);
            let reply = Some(ToolReply::of(refused));
            let executed = CallOutcome { reply, notes: Vec::new(), retried: false, interrupt: None };
            return self.returned(journal, &call, executed, recovered).await;
        };
        let consents = journal.state().ledger.consents();
        let execution = Execution {
            run: &self.run,
            call: &call,
            intent,
            consents: &consents,
            toolbox,
            timeout: definition.timeout,
            time_left: journal.time_left(),
            clock: self.books.clock.as_ref(),
            live: &self.live,
            cancel: &self.cancel,
            closing: &self.closing,
        };
        let executed = execution.run().await;
        self.returned(journal, &call, executed, recovered).await
    }

    /// Stages a result and follows the loop guard's verdict on it.
    pub(crate) async fn returned(
        &self,
        journal: &mut Journal,
        call: &OpenCall,
        executed: CallOutcome,
        recovered: bool,
    ) -> Result<Option<LoopExit>, JournalError> {
        let CallOutcome { reply, notes, retried, interrupt } = executed;
        let mut verdict = GuardVerdict::Continue;
        if let Some(ToolReply { mut result, usage, requests, asks }) = reply {
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
            verdict = journal.stage(RunEvent::ToolReturned {
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
            if let Some(mut approval) = asked {
                // Includes the sources that the call itself has read.
                approval.sources.clone_from(&journal.state().record.web_sources);
                journal.park(RunEvent::ApprovalAsked { approval }).await?;
                return Ok(Some(LoopExit::Parked));
            }
        }
        if let Some(interrupt) = interrupt {
            return self.stop(journal, interrupt).await.map(Some);
        }
        match verdict {
            GuardVerdict::Continue => Ok(None),
            GuardVerdict::Nudge(reason, text) => {
                journal.stage(RunEvent::Told { step: call.step, reason, text })?;
                Ok(None)
            }
            GuardVerdict::Stop(error) => Ok(Some(LoopExit::Failing(error))),
        }
    }
}

/// Bytes of a request, as far as they cost something.
fn request_bytes(request: &ChatRequest) -> usize {
    let messages: usize = request.messages.iter().map(compact::size).sum();
    let tools: usize =
        request.tools.iter().map(|tool| tool.description.len() + tool.parameters.to_string().len()).sum();
    request.system.len() + messages + tools
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
