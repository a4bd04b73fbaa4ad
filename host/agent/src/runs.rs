//! Runs, for the surfaces: starting, reading, stopping and deleting them.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, ConsentRecord, Refusal, RefusalCode, RunId};
use energy::EnergyBook;
use motor::{CancelReply, ListFilter, Motor, RunRecord, RunRequest, RunTrace, Waiting, Watch};
use store::{Store, blocking};

use crate::api::tasks::TaskSummary;
use crate::api::{ActReply, ActRequest, Caller, MAX_LISTED_RUNS, TaskFilter};
use crate::draft::agreed;
use crate::environment::HostEnvironment;
use crate::plan::{Plan, plan};
use crate::receipt::ReceiptKey;
use crate::retention::{Pruner, Retention};
use crate::skill::{self, Purpose};
use crate::{directories, workspace};

/// The runs of a home.
pub struct Runs {
    pub(crate) environment: Arc<HostEnvironment>,
    pub(crate) energy: Arc<EnergyBook>,
    pub(crate) motor: Motor,
    pub(crate) pruner: Pruner,
    pub(crate) receipt_key: ReceiptKey,
    pub(crate) retention: Retention,
    pub(crate) store: Store,
}

impl Runs {
    /// Accepts a task: the run is durable when this returns (SPEC RUN-1, DUR-4).
    ///
    /// # Errors
    /// If any part of the request is wrong or missing; nothing is left behind then, and no energy is charged.
    pub async fn act(&self, request: ActRequest, by: Caller) -> Result<ActReply, Refusal> {
        self.start(request, Purpose::Task, by).await
    }

    pub(crate) async fn start(&self, request: ActRequest, purpose: Purpose, by: Caller) -> Result<ActReply, Refusal> {
        self.start_with(request, purpose, by, Origin::default()).await
    }

    /// Starts a run of a task whose text may repeat content of these sources: it begins tainted by them (SPEC TAINT-1).
    pub(crate) async fn delegate(
        &self,
        request: ActRequest,
        by: Caller,
        sources: Vec<String>,
    ) -> Result<ActReply, Refusal> {
        self.start_with(request, Purpose::Task, by, Origin { sources, ..Origin::default() }).await
    }

    /// Starts the run of a plan that the owner agreed to.
    pub(crate) async fn start_agreed(&self, request: ActRequest, consent: ConsentRecord) -> Result<ActReply, Refusal> {
        self.start_with(request, Purpose::Task, Caller::Owner, Origin { consent: Some(consent), ..Origin::default() })
            .await
    }

    async fn start_with(
        &self,
        request: ActRequest,
        purpose: Purpose,
        by: Caller,
        Origin { consent, sources }: Origin,
    ) -> Result<ActReply, Refusal> {
        let environment = &*self.environment;
        if request.task.trim().is_empty() {
            let refusal = Refusal::new(RefusalCode::InvalidRequest, "the task is empty");
            return Err(refusal.with_remedy("say in plain language what is to be done"));
        }
        // A repeated command: the answer is its run, even if files, energy or keys have changed since.
        if let Some(key) = &request.key
            && let Some(run) = self.motor.started_by(&request.agent, key)?
        {
            return Ok(self.accepted(&run, Vec::new()));
        }
        // Missing parts are found before the run exists and before a token is spent.
        let Plan { tools, skill, grant, money, mut warnings, .. } =
            plan(&request, purpose, by, environment, &self.energy).await?.ready()?;
        let grant = agreed(&request, &tools, grant, consent, &environment.config().motor)?;
        let settled = grant.agreement.is_some();
        // After the plan: a credential's value in the text does not grant the credential.
        let (task, named) = environment.access.clean(request.task.clone()).await?;
        warnings.extend(named.into_iter().map(|name| {
            format!("the task held the value of the credential `{name}`: `<credential:{name}>` was put there, which is what a run uses")
        }));
        let id = self.motor.new_run_id();
        let directory = environment.home.workspace(&id);
        let (max_iterations, may_ask) = (purpose.iterations(&request), !request.unattended);
        let (files, limits, place) = (request.files.clone(), environment.config().limits, directory.clone());
        let (used, on) = (grant.skill.clone(), grant.directories.clone());
        let label = used.as_ref().map(skill::label);
        let versions = environment.skills.versions().clone();
        let given = blocking(move || {
            // The run's inputs are kept by content, so that a restart serves the same bytes.
            let skill = skill.map(|taken| taken.snapshot);
            if let Some(snapshot) = &skill {
                versions.keep(snapshot)?;
            }
            let given = workspace::prepare(&place, skill.as_ref(), &files, &limits)?;
            directories::create(&place, &on).inspect_err(|_| workspace::discard(&place))?;
            Ok(given)
        })
        .await?;
        let paths: Vec<_> = request.files.iter().map(|file| file.path.as_path()).collect();
        let inputs = used.as_ref().and_then(|skill| skill.inputs.as_ref());
        let web_sources = environment.origins.of(&task, inputs, &paths, &given);
        let mut web_sources = web_sources.inspect_err(|_| workspace::discard(&directory))?;
        web_sources.extend(sources);
        web_sources.sort();
        web_sources.dedup();
        let (agent, key) = (request.agent.clone(), request.key.clone());
        if let Some(skill) = used.as_ref().filter(|_| purpose == Purpose::Review) {
            skill::advise(environment.skills.trust(), skill, &id, None, environment.clock.now()).await?;
        }
        let started = self.motor.start(
            id.clone(),
            RunRequest {
                agent: request.agent,
                task,
                tools,
                max_iterations,
                timeout: request.timeout_ms.map(Duration::from_millis),
                grant,
                key: request.key,
                approval_required: request.approval_required,
                may_ask,
                detached: request.detached,
                settled,
                skill: label,
                web_sources,
                by_model: by == Caller::Model,
                money,
            },
        );
        let run = started.await.map_err(|refusal| self.busy(&agent, by, refusal)).inspect_err(|refusal| {
            // After a failed write the run may or may not be on disk: if it is, it needs its files.
            if !matches!(refusal.code, RefusalCode::StorageFailed | RefusalCode::OutcomeUnknown) {
                workspace::discard(&directory);
            }
        });
        let run = run.map_err(|refusal| unknown_act(refusal, key.as_deref()))?;
        if run.id != id {
            // The same key named an earlier run, which is the answer.
            workspace::discard(&directory);
        }
        if let Some(skill) = used {
            // For people only: failing to note the use does not make the run unaccepted.
            let noted = environment.skills.trust().used(&skill.name, &skill.place, environment.clock.now()).await;
            if let Err(error) = noted {
                tracing::warn!(%error, "when a skill was last used is not noted");
            }
        }
        Ok(self.accepted(&run, warnings))
    }

    /// Lists runs, newest first, at most [`MAX_LISTED_RUNS`].
    ///
    /// # Errors
    /// If the store fails.
    pub fn list(&self, filter: TaskFilter) -> Result<Vec<TaskSummary>, Refusal> {
        let TaskFilter { status, agent, before, limit } = filter;
        let filter = ListFilter { status, agent, before, limit: limit.min(MAX_LISTED_RUNS) };
        Ok(self.motor.list(filter)?.into_iter().map(TaskSummary::from).collect())
    }

    /// The full trace of one run.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn trace(&self, id: &RunId) -> Result<RunTrace, Refusal> {
        self.motor.status(id)
    }

    /// The last 16 KiB of a run's log.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn log(&self, id: &RunId) -> Result<String, Refusal> {
        self.motor.log(id)
    }

    /// Stops a run; the cancelled state is durable when this returns.
    ///
    /// # Errors
    /// If the run does not exist, or is over.
    pub async fn cancel(&self, id: &RunId) -> Result<CancelReply, Refusal> {
        self.motor.cancel(id).await
    }

    /// Deletes a run that is over: its record and history, then its workspace, artifacts and trace. Its signals are
    /// deleted once every consumer has received them.
    ///
    /// # Errors
    /// If the run does not exist, it is not over, or the store fails.
    pub async fn delete(&self, id: &RunId) -> Result<(), Refusal> {
        self.pruner.delete(id).await?;
        self.retention.again();
        Ok(())
    }

    /// A run's events from its first, then as they happen.
    ///
    /// # Errors
    /// If the run does not exist.
    pub fn watch(&self, id: &RunId) -> Result<Watch, Refusal> {
        self.motor.watch(id)
    }

    /// Waits until a run is over or waits for a person.
    ///
    /// # Errors
    /// If the run does not exist, or the host shuts down.
    pub async fn wait(&self, id: &RunId) -> Result<TaskSummary, Refusal> {
        self.motor.wait_for_people(id).await.map(TaskSummary::from)
    }

    /// The state and totals of a run now.
    ///
    /// # Errors
    /// If the run does not exist, or the store fails.
    pub fn summary(&self, id: &RunId) -> Result<TaskSummary, Refusal> {
        self.record(id).map(TaskSummary::from)
    }

    /// The agent that a run belongs to.
    ///
    /// # Errors
    /// If the run does not exist, or the store fails.
    pub fn agent(&self, id: &RunId) -> Result<AgentName, Refusal> {
        Ok(self.record(id)?.agent)
    }

    /// The owner's error for a busy agent: its run, the reason it waits, and the commands to continue.
    pub(crate) fn busy(&self, agent: &AgentName, by: Caller, refusal: Refusal) -> Refusal {
        if refusal.code != RefusalCode::Busy || by != Caller::Owner {
            return refusal;
        }
        let Ok(unfinished) = self.motor.unfinished(agent) else { return refusal };
        // One that waits for the owner is in the owner's hands.
        let first = unfinished.iter().find(|(run, _)| run.waiting.is_some()).or(unfinished.first());
        let Some((RunRecord { id, waiting, .. }, is_driven)) = first else { return refusal };
        let (state, command) = match waiting {
            Some(Waiting::Input(_)) => ("waits for your answer", format!("`motor task respond {id}` answers it")),
            Some(Waiting::Approval(_)) => ("waits for your consent", format!("`motor task approve {id}` decides")),
            None if *is_driven => ("is under way", format!("`motor task status {id}` shows it")),
            None => ("was interrupted", format!("`motor act --resume {id}` goes on with it")),
        };
        let reason = format!("Motor Cortex is busy (run_id: {id}): that run of agent `{agent}` {state}");
        let remedy = format!("{command}, `motor task cancel {id}` gives it up, `--agent NAME` works beside it");
        Refusal::new(RefusalCode::Busy, reason).with_remedy(remedy)
    }

    fn accepted(&self, run: &RunRecord, warnings: Vec<String>) -> ActReply {
        ActReply {
            workspace: self.environment.home.workspace(&run.id),
            run_id: run.id.clone(),
            status: run.status,
            warnings,
        }
    }
}

/// The circumstances of a start, beside the request.
#[derive(Default)]
struct Origin {
    /// The owner's agreement to a plan.
    consent: Option<ConsentRecord>,
    /// Sources of web content that the task may repeat.
    sources: Vec<String>,
}

/// The error for an act whose commit failed, with the key for repeating it.
fn unknown_act(refusal: Refusal, key: Option<&str>) -> Refusal {
    if refusal.code != RefusalCode::OutcomeUnknown {
        return refusal;
    }
    let reason = format!("it is not known whether the run was accepted: {}", refusal.reason);
    let refusal = Refusal { reason, ..refusal };
    match key {
        Some(key) => refusal.with_key(key),
        None => refusal,
    }
}
