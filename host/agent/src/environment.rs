//! The world a run works in: its toolbox, its model, and its trace file. It is made from the run's
//! stored grant, so the same world is rebuilt after a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Clock, CredentialName, Refusal, RunId};
use grants::{Admission, Grant, SkillGrant};
use llm::Model;
use motor::{Artifact, Environment, InstalledSkill, Preparing, RunRecord, RunStatus, RunTrace, SpendBook, Toolbox};
use parking_lot::RwLock;
use skills::Library;
use tokio::sync::watch;

use crate::access::NetworkAccess;
use crate::config::Config;
use crate::directories;
use crate::keeper::SaveScope;
use crate::models::ModelAccess;
use crate::origins::Origins;
use crate::reflection::Reflections;
use crate::skill::{advise, briefing, combine, limits, tools_of};
use crate::staged::StagedWrites;
use crate::trace_file::TraceWriter;
use crate::{Env, Home, artifacts, models};
use store::blocking;
use toolbox::SandboxPool;
use toolbox::{RunToolbox, SAVE_CREDENTIAL, SavedCredentials, SkillTool, ToolboxParts};

/// A skill, prepared for a run.
struct InUse {
    own: BTreeMap<String, SkillTool>,
    briefing: String,
}

/// Builds the environments of runs.
pub(crate) struct HostEnvironment {
    pub home: Home,
    pub config: Arc<RwLock<Arc<Config>>>,
    pub env: Env,
    pub clock: Arc<dyn Clock>,
    pub sandboxes: Arc<SandboxPool>,
    pub access: NetworkAccess,
    pub staged: Arc<StagedWrites>,
    pub spend: SpendBook,
    pub skills: Library,
    pub origins: Origins,
    pub traces: TraceWriter,
    pub reflections: Reflections,
    /// One landing at a time, and none while a layer is opened: an interrupted one is ended then.
    pub landing: tokio::sync::Mutex<()>,
}

impl HostEnvironment {
    /// Checks that the model named in the grant can be connected to. Changes nothing: the run may still be refused.
    ///
    /// # Errors
    /// If there is no such model, or its requirements are missing.
    pub async fn check(&self, grant: &Grant) -> Result<(), Refusal> {
        let (access, model, record) = (self.model_access(), grant.model.clone(), grant.record.clone());
        blocking(move || {
            access.connect(model.as_deref(), None, None)?;
            record.as_deref().map_or(Ok(()), models::check_recording)
        })
        .await
    }

    /// The access to models, by the settings in force.
    pub fn model_access(&self) -> ModelAccess {
        let config = self.config();
        let (prices, config) = (config.price_table(), config.models.clone());
        ModelAccess { config, prices, env: self.env.clone(), vault: self.access.vault.clone(), saving: None }
    }

    /// The credentials that a run may save: those its approved skill declares, if it was granted the tool.
    fn saving(&self, run: &RunRecord) -> Option<SaveScope> {
        let skill = run.grant.credentials_of()?.to_owned();
        let policy = run.grant.skill.as_ref()?.policy.as_ref()?;
        let is_granted = |tools: &[String]| tools.iter().any(|tool| tool == SAVE_CREDENTIAL);
        (is_granted(&run.tools) && is_granted(&policy.tools)).then(|| SaveScope {
            vault: self.access.vault.clone(),
            run: run.id.clone(),
            skill,
            names: policy.required_credentials.clone(),
            domains: policy.domains.clone(),
        })
    }

    /// The settings in force. They may be others for the next run.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// The model named in the grant, or the configured one.
    pub fn model_name(&self, grant: &Grant) -> Option<String> {
        let configured = || self.config().models.roles().resolve(llm::Role::Motor).ok().map(ToString::to_string);
        grant.model.clone().or_else(configured)
    }

    /// A run's skill or one of its tools, from the kept bytes. Its trust is checked each time.
    async fn skill(&self, skill: &SkillGrant, run: &base::RunId) -> Result<InUse, Refusal> {
        skill.check_trust(run, self.skills.trust())?;
        let (versions, hash) = (self.skills.versions().clone(), skill.hash);
        let snapshot = blocking(move || Ok(versions.load(hash)?)).await?;
        let mut manifest = snapshot.manifest(&skill.place.entry).map_err(skills::SkillError::from)?;
        if let Ok(Some(record)) = self.skills.trust().get(&skill.name, &skill.place, skill.hash)
            && let Some(described) = record.described
        {
            manifest.body = described.body;
        }
        let own = match skill.admission {
            Admission::Approved => tools_of(&self.sandboxes, &snapshot).await?,
            Admission::Explicit | Admission::Review => BTreeMap::new(),
        };
        Ok(InUse { own, briefing: briefing(skill, &manifest) })
    }
}

#[async_trait::async_trait]
impl Environment for HostEnvironment {
    async fn toolbox(&self, run: &RunRecord, trace: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        run.grant.check()?;
        let grant = &run.grant;
        let skill = match &grant.skill {
            Some(skill) => Some(self.skill(skill, &run.id).await?),
            None => None,
        };
        self.home.check_workspace(&run.id)?;
        let (directory, of_layer) = (self.home.run(&run.id), run.grant.clone());
        let (layer, landed) = {
            let _turn = self.landing.lock().await;
            blocking(move || directories::open(&directory, &of_layer)).await?
        };
        let network = self.access.open(run, &self.staged).await?;
        words_of_user(trace, run.task_is_tainted).for_each(|words| network.given().user(words));
        let limits = limits(&self.config().limits, grant)?;
        let (mut own, skill) = skill.map(|InUse { own, briefing }| (own, Some(briefing))).unwrap_or_default();
        for tool in &grant.tools {
            combine(&mut own, self.skill(tool, &run.id).await?.own, &tool.name)?;
        }
        let parts = ToolboxParts {
            own,
            skill,
            saved: self.saving(run).map(saved),
            sandboxes: self.sandboxes.clone(),
            limits,
            code: self.config().code.clone(),
            rules: run.rules,
            tools: self.config().tools.clone(),
            guard: grant.guard.unwrap_or(self.config().code.guard),
            seed: grant.seed,
            workspace: self.home.workspace(&run.id),
            layer,
            landed,
            network,
            allowed: self.access.allowed(&run.agent)?,
            commands: grant.commands.clone(),
        };
        Ok(Arc::new(RunToolbox::new(parts, &run.tools).await?))
    }

    fn preparing(&self) -> watch::Receiver<Option<Preparing>> {
        self.sandboxes.preparations().subscribe()
    }

    async fn model(&self, run: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        run.grant.check()?;
        let grant = run.grant.clone();
        let mut access = ModelAccess { saving: Some(self.saving(run)), ..self.model_access() };
        // A run is billed by the prices that it started with.
        access.prices.extend(&run.money.prices);
        let scrubber = Some(self.access.scrubber(&run.id).await?);
        // Reads a recording and writes a new one: file work, which may block.
        blocking(move || access.connect(grant.model.as_deref(), grant.record.as_deref(), scrubber)).await
    }

    async fn artifacts(&self, run: &RunRecord) -> Result<Vec<Artifact>, Refusal> {
        // Files that are not kept stay in the workspace, from where they can be copied.
        self.origins.note_files(run).await?;
        let scrubber = self.access.scrubber(&run.id).await?;
        let on = &run.grant.directories;
        let artifacts = artifacts::collect(&self.home, &run.id, scrubber, &self.config().limits, on).await?;
        self.origins.note_copies(run, &artifacts).await?;
        Ok(artifacts)
    }

    async fn skills(&self, run: &RunRecord, answer: &str) -> Result<Vec<InstalledSkill>, Refusal> {
        self.origins.note_answer(run, answer).await?;
        match &run.grant.skill {
            Some(skill) if run.grant.is_review() => {
                advise(self.skills.trust(), skill, &run.id, Some(answer), self.clock.now()).await?;
                Ok(Vec::new())
            }
            skill => self.take_over(run, skill.as_ref()).await,
        }
    }

    async fn stepped(&self, trace: &RunTrace) {
        self.traces.write(trace);
    }

    async fn withdraw(&self, run: &RunId) {
        self.traces.remove_and_wait(run).await;
    }

    async fn finished(&self, trace: &RunTrace) {
        self.reflections.observe_run(trace);
        // A failed run may be retried: the owner's decisions for it still apply then.
        // So do they when its staged writes are sent.
        let may_go_on = trace.staged > 0 || trace.failure.as_ref().is_some_and(|failure| failure.retryable);
        self.access.close(&trace.run_id, may_go_on).await;
        if trace.status == RunStatus::Cancelled
            && let Err(refusal) = self.origins.note_ended(&trace.run_id).await
        {
            tracing::warn!(run = %trace.run_id, reason = %refusal, "copies of the run's files will not be known as such");
        }
        self.traces.write_and_wait(trace).await;
    }
}

/// The values that the tool confirms: those that the run itself saved.
fn saved(scope: SaveScope) -> SavedCredentials {
    let (names, domains) = (scope.names.clone(), scope.domains.clone());
    let find = Arc::new(move |name: &CredentialName| scope.vault.saved_by(&scope.run, name, &scope.skill));
    SavedCredentials { names, domains, find }
}

/// The words of a run's user: the task, the answers to its questions, the guidance of its attempts. An answer offered
/// by the run after it had read from the web is not the user's; neither is a task that a model wrote after that.
fn words_of_user(trace: &RunTrace, task_is_tainted: bool) -> impl Iterator<Item = &str> {
    let answers = trace.questions.iter().filter_map(|asked| {
        let offered = |answer: &&String| !asked.question.sources.is_empty() && asked.question.choices.contains(*answer);
        asked.answer.as_ref().filter(|answer| !offered(answer))
    });
    let guidance = trace.attempts.iter().filter_map(|attempt| attempt.guidance.as_ref());
    let task = Some(&trace.task).filter(|_| !task_is_tainted);
    task.into_iter().chain(answers).chain(guidance).map(String::as_str)
}
