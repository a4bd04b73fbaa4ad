//! Plans of runs: one consent for a task in place of many questions (SPEC LAND-6).
//!
//! A model drafts the access of a run from the words of its task and from the names of tools, credentials and skills. The draft is data:
//! it is read by the parsers of `grants`, entries that no owner asked for are dropped with words, and nothing here makes
//! it wider. It confers nothing. The owner agrees to the hash of the whole plan, and the run starts only if its access
//! still has this hash.

mod agreed;
mod ask;
mod bounds;
mod least;
mod narrow;
mod offer;
mod schema;
mod worst;

use std::time::Duration;

use base::{Refusal, RefusalCode};
use consent::Consent;
use energy::Activity;
use llm::Usage;
use store::Batch;

use crate::Runs;
use crate::api::plans::{AgreedPlan, TaskPlan};
use crate::api::{ActReply, ActRequest, Caller};
use crate::plan::plan;
use crate::skill::Purpose;
use crate::spending::models_of;
use bounds::Bounds;
use narrow::{Narrowed, Notes, narrow};
use offer::Offer;

pub(crate) use agreed::{agreed, draft_hash};
pub use least::{LeastGrant, least};

impl Runs {
    /// Lets a model draft the access for a task. The grants of `request` are bounds, except that an empty list is none.
    /// Costs the energy of one call of a model, and starts nothing.
    ///
    /// # Errors
    /// If the request is invalid, no model is configured, or it drafts nothing that can be read.
    pub async fn draft(&self, mut request: ActRequest, by: Caller) -> Result<TaskPlan, Refusal> {
        let environment = &*self.environment;
        if request.task.trim().is_empty() {
            let refusal = Refusal::new(RefusalCode::InvalidRequest, "the task is empty");
            return Err(refusal.with_remedy("say in plain language what is to be done"));
        }
        check_kind(&request)?;
        let bounds = Bounds::of(&request, &environment.config().motor)?;
        let mut notes = Notes::default();
        match self.energy.check(&request.agent, Activity::Llm) {
            Ok(()) => {}
            Err(refusal) if by == Caller::Owner && refusal.code == RefusalCode::EnergyTooLow => {
                notes.add(format!("{}; going on because the owner asks", refusal.reason));
            }
            Err(refusal) => return Err(refusal),
        }
        let (task, named) = environment.access.clean(request.task.clone()).await?;
        for name in named {
            notes.add(format!(
                "the task held the value of the credential `{name}`: `<credential:{name}>` was put there"
            ));
        }
        request.task = task;
        let offer = Offer::of(&request, &bounds, environment).await?;
        let (access, named) = (environment.model_access(), request.model.clone());
        let model = store::blocking(move || {
            let scrubber = access.vault.scrubber()?;
            access.connect(named.as_deref(), None, Some(scrubber))
        })
        .await?;
        environment.check_call(&request.agent, &models_of(&environment.config(), request.model.as_deref()))?;
        let mut batch = Batch::new();
        self.energy.stage_drain(&mut batch, &request.agent, Activity::Llm).await?;
        self.store.commit(batch).await?;
        let asked = ask::ask(&*model, &offer, &request).await?;
        let drafting = asked.drafting;
        let usage = Usage {
            input_tokens: drafting.input_tokens,
            output_tokens: drafting.output_tokens,
            cost_usd: drafting.cost_usd,
            ..Usage::default()
        };
        let (mut batch, source) = (Batch::new(), format!("plan-{}", self.motor.new_run_id()));
        environment.spend.add(&mut batch, &request.agent, &source, environment.clock.now(), &usage)?;
        self.store.commit(batch).await?;
        tracing::info!(
            model = drafting.model,
            requests = drafting.requests,
            input_tokens = drafting.input_tokens,
            output_tokens = drafting.output_tokens,
            "a plan was drafted"
        );
        let Narrowed { request, reason, skill_of_model } = narrow(asked.draft, &offer, &bounds, request, &mut notes);
        let mut checked = self.planned(request.clone(), by).await;
        if let (Err(refusal), true) = (&checked, skill_of_model) {
            // Such as a skill that needs inputs, which only the owner gives.
            notes.add(format!("the skill of the draft was dropped: {}", refusal.reason));
            checked = self.planned(ActRequest { skill: None, ..request }, by).await;
        }
        let mut planned = checked?;
        if let Some(agreed) = &mut planned.request.plan {
            agreed.drafting = Some(drafting);
        }
        Ok(TaskPlan { notes: notes.listed(), reason, ..planned })
    }

    /// Checks a plan that the owner wrote or changed, and shows the powers of its run. Starts nothing.
    ///
    /// # Errors
    /// If the request is invalid; the reason quotes the invalid entry.
    pub async fn check_plan(&self, request: ActRequest, by: Caller) -> Result<TaskPlan, Refusal> {
        check_kind(&request)?;
        self.planned(request, by).await
    }

    /// Starts the run of a plan, held to exactly its access.
    ///
    /// # Errors
    /// `illegal_state` if the access is no longer that of the plan, and the errors of [`Runs::act`].
    pub async fn act_on_plan(&self, request: ActRequest, consent: Consent) -> Result<ActReply, Refusal> {
        check_kind(&request)?;
        self.start_agreed(request, consent.into()).await
    }

    async fn planned(&self, request: ActRequest, by: Caller) -> Result<TaskPlan, Refusal> {
        let drafting = request.plan.as_ref().and_then(|plan| plan.drafting.clone());
        // The hash does not depend on the one that the request names.
        let mut request = ActRequest { plan: Some(AgreedPlan { hash: draft_hash(), drafting }), ..request };
        let found = plan(&request, Purpose::Task, by, &self.environment, &self.energy).await?;
        let hash = agreed::hash(&request, &found.tools, &found.grant, &self.environment.config().motor)?;
        if let Some(agreed) = &mut request.plan {
            agreed.hash = hash;
        }
        let explanation = self.explain(&request, by).await?;
        let at_worst = worst::at_worst(&explanation);
        Ok(TaskPlan { request, explanation, at_worst, notes: Vec::new(), reason: None })
    }
}

/// A plan is one consent, given before the run: it cannot ask before each action, and a recording has no place in it.
fn check_kind(request: &ActRequest) -> Result<(), Refusal> {
    let wrong = |reason: &str, remedy: &str| Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy));
    if request.approval_required {
        return wrong(
            "a plan is agreed to once, and `approvalRequired` asks before each action",
            "leave one of them out",
        );
    }
    if request.record.is_some() {
        return wrong("a run of a plan is not recorded", "leave `record` out, or start the run with `motor act`");
    }
    Ok(())
}

/// A span in whole seconds, at least one.
fn seconds(span: Duration) -> u64 {
    span.as_secs().max(1)
}
