//! One step of the loop: ask the model, judge what it says, make its calls.
//!
//! Nothing here decides where a run goes on; that is the history's. A call's intent is durable before the call is made.

use std::time::Duration;

use llm::{ChatReply, ChatRequest, Delta, Model, ModelError, ToolSpec};

use crate::call::{Executed, Execution, admit, outcome_unknown};
use crate::config::HEARING;
use crate::conversation::{Next, OpenCall};
use crate::drive::{Driver, Exit};
use crate::event::{RunEvent, TellReason};
use crate::failure::{FailureCategory, RunError};
use crate::guard::Verdict;
use crate::journal::{Ending, Journal, JournalError};
use crate::live::LiveEvent;
use crate::prompt::Prompt;
use crate::reply::{Judgement, judge, normalise};
use crate::status::RunStatus;
use crate::toolbox::{ToolDefinition, ToolReply, Toolbox};

impl Driver {
    /// Asks the model for one step, and stages its reply.
    pub(crate) async fn ask(
        &self,
        journal: &mut Journal,
        model: &dyn Model,
        toolbox: &dyn Toolbox,
        specs: &[ToolSpec],
        step: u32,
    ) -> Result<Option<Exit>, JournalError> {
        let max = journal.state().record.max_iterations;
        if step > max {
            let message = format!("the run reached the iteration cap of {max}");
            return self.fail(journal, RunError::new(FailureCategory::BudgetExhausted, message)).await.map(Some);
        }
        if step > 1 {
            let heard = tokio::time::timeout(HEARING, self.environment.stepped(&journal.state().trace));
            match self.unless_interrupted(journal, heard).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => tracing::warn!(run = %self.run, step, "the environment was too slow to hear of a step"),
                Err(interrupt) => return self.stop(journal, interrupt).await.map(Some),
            }
        }
        let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let briefing = toolbox.briefing();
        let request = ChatRequest {
            system: Prompt { tools: &names, briefing: briefing.as_deref(), max_iterations: max, step }.render(),
            messages: journal.state().conversation.messages().to_vec(),
            tools: specs.to_vec(),
            ..ChatRequest::default()
        };
        self.live.publish_hint(LiveEvent::StepStarted { at: self.books.clock.now(), step, max });
        let began = self.books.clock.monotonic();
        let mut hints = |delta| self.hint(delta);
        match self.unless_interrupted(journal, model.chat(&request, &mut hints)).await {
            Ok(Ok(reply)) => {
                let took = self.books.clock.monotonic().saturating_sub(began);
                replied(journal, reply, step, specs, took)?;
                Ok(None)
            }
            Ok(Err(error)) => self.model_failed(journal, &error).await.map(Some),
            Err(interrupt) => self.stop(journal, interrupt).await.map(Some),
        }
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

    async fn model_failed(&self, journal: &mut Journal, error: &ModelError) -> Result<Exit, JournalError> {
        tracing::warn!(run = %self.run, model = %error.model, kind = ?error.kind, "the model gave no reply");
        self.fail(journal, RunError::model(error)).await
    }

    /// Takes a reply without calls for the answer, or tells the model once what was wrong with it.
    pub(crate) async fn judged(
        &self,
        journal: &mut Journal,
        text: &str,
        specs: &[ToolSpec],
    ) -> Result<Option<Exit>, JournalError> {
        match judge(text, specs) {
            Judgement::Answer => {
                let answer =
                    Ending { status: RunStatus::Completed, summary: Some(text.trim().to_owned()), error: None };
                journal.finish(answer).await?;
                Ok(Some(Exit::Finished))
            }
            Judgement::Useless(_, why) if journal.state().conversation.corrections() > 0 => {
                let error = RunError::new(
                    FailureCategory::ModelFailure,
                    format!("the model's reply could not be used, twice in a row: {why}"),
                );
                self.fail(journal, error).await.map(Some)
            }
            Judgement::Useless(reason, text) => {
                let step = journal.state().conversation.step();
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
    ) -> Result<Option<Exit>, JournalError> {
        let (definition, arguments) = match admit(tools, &call) {
            Ok(admitted) => admitted,
            Err(result) => {
                let reply = Some(ToolReply::of(result));
                let refused = Executed { reply, notes: Vec::new(), retried: false, interrupt: None };
                return self.returned(journal, &call, refused, false).await;
            }
        };
        journal.stage(RunEvent::ToolIntended {
            step: call.step,
            call_id: call.call.id.clone(),
            tool: call.call.name.clone(),
            arguments,
            idempotency_key: format!("{}-{}-{}", self.run, call.step, call.index),
            effects: definition.effects,
            component: definition.component,
        })?;
        journal.commit().await?;
        let Next::InFlight(call) = journal.state().conversation.next() else { return Ok(None) };
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
    ) -> Result<Option<Exit>, JournalError> {
        let definition = tools.iter().find(|tool| tool.spec.name == call.call.name);
        let (Some(definition), Some(intent)) = (definition, &call.intent) else {
            // The tool went away while the host was stopped.
            let refused = admit(tools, &call).err().unwrap_or_else(outcome_unknown);
            let reply = Some(ToolReply::of(refused));
            let executed = Executed { reply, notes: Vec::new(), retried: false, interrupt: None };
            return self.returned(journal, &call, executed, recovered).await;
        };
        let execution = Execution {
            run: &self.run,
            call: &call,
            intent,
            toolbox,
            timeout: definition.timeout,
            time_left: journal.state().record.time_left(self.books.clock.now()),
            clock: self.books.clock.as_ref(),
            live: &self.live,
            cancel: &self.cancel,
            closing: &self.closing,
        };
        let executed = execution.run().await;
        self.returned(journal, &call, executed, recovered).await
    }

    /// Stages a result and does what the loop guard says about it.
    pub(crate) async fn returned(
        &self,
        journal: &mut Journal,
        call: &OpenCall,
        executed: Executed,
        recovered: bool,
    ) -> Result<Option<Exit>, JournalError> {
        let Executed { reply, notes, retried, interrupt } = executed;
        let mut verdict = Verdict::Continue;
        if let Some(ToolReply { result, usage, requests }) = reply {
            let (call_id, tool) = (call.call.id.clone(), call.call.name.clone());
            let step = call.step;
            verdict = journal.stage(RunEvent::ToolReturned {
                step,
                call_id,
                tool,
                result,
                usage,
                requests,
                notes,
                retried,
                recovered,
            })?;
        }
        if let Some(interrupt) = interrupt {
            return self.stop(journal, interrupt).await.map(Some);
        }
        match verdict {
            Verdict::Continue => Ok(None),
            Verdict::Nudge(text) => {
                let reason = TellReason::Repetition;
                journal.stage(RunEvent::Told { step: call.step, reason, text })?;
                Ok(None)
            }
            Verdict::Stop(error) => self.fail(journal, error).await.map(Some),
        }
    }
}

/// Puts the reply in order and stages it.
fn replied(
    journal: &mut Journal,
    mut reply: ChatReply,
    step: u32,
    specs: &[ToolSpec],
    took: Duration,
) -> Result<(), JournalError> {
    let recovered_call = normalise(&mut reply, step, specs, &journal.state().conversation);
    let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    journal.stage(RunEvent::ModelReplied { step, reply, duration_ms, recovered_call })?;
    Ok(())
}
