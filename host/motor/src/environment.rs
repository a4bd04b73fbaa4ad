//! The port through which the host gives a run its tools and its model.

use std::sync::Arc;

use base::{Refusal, RunId};
use llm::Model;
use tokio::sync::watch;

use crate::artifact::Artifact;
use crate::live::Preparing;
use crate::record::RunRecord;
use crate::skill::InstalledSkill;
use crate::toolbox::Toolbox;
use crate::trace::RunTrace;

/// The port to the world of a run, made by the host from the run's record at its start and after every restart.
#[async_trait::async_trait]
pub trait Environment: Send + Sync {
    /// The tools of the run. The trace has the user's words: the task, the answers, the guidance of attempts.
    ///
    /// # Errors
    /// Why the run cannot have them; the run fails with this reason.
    async fn toolbox(&self, run: &RunRecord, trace: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal>;

    /// Progress of [`Environment::toolbox`] for the run's watchers, if it takes long.
    fn preparing(&self) -> watch::Receiver<Option<Preparing>> {
        watch::channel(None).1
    }

    /// The model of the run.
    ///
    /// # Errors
    /// Why the run cannot have it; the run fails with this reason.
    async fn model(&self, run: &RunRecord) -> Result<Arc<dyn Model>, Refusal>;

    /// Hears of a run that is over, after that is durable. Errors are the environment's own to handle. Does
    /// not hear of a run that failed because its history cannot be read: there is no trace then.
    ///
    /// Must not block its thread, and is dropped after a second, as is [`Environment::stepped`]: work given to another
    /// thread then goes on, and may end after work that begins later.
    async fn finished(&self, trace: &RunTrace);

    /// Puts the files that the run produced where they stay, and lists them (SPEC RUN-12). Called before the run ends, and
    /// again if the host stopped before: the second time replaces the first.
    ///
    /// # Errors
    /// Why they cannot be put there. The run ends all the same, and they stay in its workspace.
    async fn artifacts(&self, _run: &RunRecord) -> Result<Vec<Artifact>, Refusal> {
        Ok(Vec::new())
    }

    /// Takes over the skills that a run which answered left in its workspace, and says which (SPEC SKILL-10). Called
    /// after its artifacts are in their place and before the run ends, and again if the host stopped before: the
    /// second time gives the same answer.
    ///
    /// # Errors
    /// Why none can be taken over. The run ends all the same.
    async fn skills(&self, _run: &RunRecord, _answer: &str) -> Result<Vec<InstalledSkill>, Refusal> {
        Ok(Vec::new())
    }

    /// Hears of a step that is durable, before the next one begins. Dropped at once when the run is cancelled. Also hears
    /// of a run that has begun to wait.
    async fn stepped(&self, _trace: &RunTrace) {}

    /// Removes its copies of the run's history, in which a secret may stand that the run has just learnt. Called before that
    /// secret is taken out of the stored history, and again if the host stopped before; the next step is heard as usual.
    async fn withdraw(&self, _run: &RunId) {}
}
