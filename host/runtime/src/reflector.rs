//! Reflectors: components that build the prompt of a reflection and read its reply (SPEC CX-3).
//!
//! Pure: the linker has `motor:host/log` and nothing else, and a component that imports anything besides is refused by name
//! before it runs. Each call has a fresh instance, under the limits of any other call.

use std::sync::Arc;

use bindings::log;
use bindings::reflector::ReflectorPre;
use bindings::reflector::exports::motor::host::reflection as wit;
use capabilities::NoteSink;
use capabilities::log::HasLog;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::Linker;

use crate::call;
use crate::engine::Runtime;
use crate::inspect::{Inspection, Kind};
use crate::limits::Limits;
use crate::load::Component;
use crate::load_error::{LoadError, told};
use crate::outcome::{CallReport, Outcome};
use crate::state::{self, CallInputs, CallState};
use crate::{Limit, LimitExceeded};

/// The only import of a reflector, in any version that this host speaks.
const LOG: &str = "motor:host/log@";

/// A reflector, linked and ready. Cheap to clone.
#[derive(Clone)]
pub struct ReflectorComponent {
    runtime: Runtime,
    component: Component,
    pre: Arc<ReflectorPre<CallState>>,
}

/// A prompt that a reflector built: untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReflectionPrompt {
    /// The role and the form of the reply.
    pub system: String,
    /// The facts of the cycle, as JSON.
    pub user: String,
}

/// Proposals that a reflector read: untrusted text and numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReflectionProposals {
    /// Judgements of peers that are proposed.
    pub assessments: Vec<AssessmentProposal>,
    /// Beliefs to form, keep or revise.
    pub beliefs: Vec<BeliefProposal>,
    /// One paragraph about the cycle.
    pub summary: String,
}

/// A judgement of a peer.
#[derive(Debug, Clone, PartialEq)]
pub struct AssessmentProposal {
    /// The id that the reflector names.
    pub peer: String,
    /// Any number, also infinite or none.
    pub trust: f64,
    /// The reasons for it.
    pub rationale: String,
}

/// A belief that is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeliefProposal {
    /// The key that names it.
    pub key: String,
    /// The value for the prompt.
    pub value: String,
    /// The reasons for it.
    pub rationale: String,
    /// The peer that it is about, if it is about one.
    pub peer: Option<String>,
}

/// The resources of one call of a reflector.
pub struct ReflectorCall {
    /// The limits of the call. `output_bytes` bounds the texts of the result together.
    pub limits: Limits,
    /// Sink for its log lines.
    pub notes: NoteSink,
    /// Ends the call early when cancelled.
    pub cancel: CancellationToken,
}

impl ReflectorComponent {
    /// Checks that a component can be a reflector, by its imports and exports alone.
    ///
    /// # Errors
    /// If it does not export `motor:host/reflection`, or imports anything but `motor:host/log`.
    pub fn check(inspection: &Inspection) -> Result<(), LoadError> {
        if inspection.kind != Kind::Reflector {
            return Err(LoadError::MissingExport { wanted: "motor:host/reflection".into() });
        }
        match inspection.imports.iter().find(|import| !import.name.starts_with(LOG)) {
            Some(import) => Err(LoadError::ForbiddenImport {
                import: told(&import.name),
                why: "a reflector imports nothing but `motor:host/log`; build it without WASI".into(),
            }),
            None => Ok(()),
        }
    }

    /// Links a loaded component.
    ///
    /// # Errors
    /// As [`ReflectorComponent::check`], and if its functions have other types than those of the world.
    pub fn link(runtime: &Runtime, component: &Component) -> Result<Self, LoadError> {
        Self::check(component.inspection())?;
        let not_linked =
            |error: wasmtime::Error| LoadError::NotLinked { message: told(&error.root_cause().to_string()) };
        let mut linker = Linker::new(component.compiled.engine());
        log::add_to_linker::<CallState, HasLog>(&mut linker, CallState::log).map_err(not_linked)?;
        let pre = linker.instantiate_pre(&component.compiled).and_then(ReflectorPre::new).map_err(not_linked)?;
        Ok(Self { runtime: runtime.clone(), component: component.clone(), pre: Arc::new(pre) })
    }

    /// The component of the reflector.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// The prompt for the facts of a cycle, as JSON text.
    pub async fn compose(&self, facts: &str, call: ReflectorCall) -> CallReport<ReflectionPrompt, String> {
        let most = call.limits.output_bytes;
        let composed = self.run(call, async |store| {
            let instance = self.pre.instantiate_async(&mut *store).await?;
            instance.motor_host_reflection().call_compose(&mut *store, facts).await
        });
        composed
            .await
            .map(|outcome| settle(outcome, most, |wit::Prompt { system, user }| ReflectionPrompt { system, user }))
    }

    /// The proposals in a reply of the model.
    pub async fn interpret(&self, reply: &str, call: ReflectorCall) -> CallReport<ReflectionProposals, String> {
        let most = call.limits.output_bytes;
        let read = self.run(call, async |store| {
            let instance = self.pre.instantiate_async(&mut *store).await?;
            instance.motor_host_reflection().call_interpret(&mut *store, reply).await
        });
        read.await.map(|outcome| settle(outcome, most, ReflectionProposals::from))
    }

    async fn run<T>(
        &self,
        call: ReflectorCall,
        work: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<T>,
    ) -> CallReport<T, String> {
        let ReflectorCall { limits, notes, cancel } = call;
        let given = CallInputs { notes, ..CallInputs::nothing(&limits) };
        let made = state::store(self.component.compiled.engine(), CallState::new(&limits, given), &limits);
        let mut store = match made {
            Ok(store) => store,
            Err(error) => return CallReport::host_fault(error.to_string()),
        };
        let (outcome, usage) = call::run(&self.runtime, &mut store, &limits, &cancel, work).await;
        let ended = state::end(store, usage).await;
        CallReport::of(outcome, ended.usage)
    }
}

/// The value of a call, unless its texts have more than `most` bytes. The guest's own error is a refusal.
fn settle<T, U: Texts>(
    outcome: Outcome<Result<T, String>, String>,
    most: u64,
    value: impl FnOnce(T) -> U,
) -> Outcome<U, String> {
    match outcome.map(|answer| answer.map(value)) {
        Outcome::Returned(Ok(value)) if value.bytes() > most => {
            Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes, value: most })
        }
        Outcome::Returned(Ok(value)) => Outcome::Returned(value),
        Outcome::Returned(Err(reason)) | Outcome::Refused(reason) => Outcome::Refused(told(&reason)),
        Outcome::Exceeded(exceeded) => Outcome::Exceeded(exceeded),
        Outcome::Trapped(trap) => Outcome::Trapped(trap),
        Outcome::Cancelled => Outcome::Cancelled,
        Outcome::HostFault(message) => Outcome::HostFault(message),
    }
}

/// A value with texts of a guest.
trait Texts {
    /// The bytes of its texts together.
    fn bytes(&self) -> u64;
}

impl Texts for ReflectionPrompt {
    fn bytes(&self) -> u64 {
        sum([self.system.len(), self.user.len()])
    }
}

impl Texts for ReflectionProposals {
    fn bytes(&self) -> u64 {
        let assessment = |proposal: &AssessmentProposal| [proposal.peer.len(), proposal.rationale.len()];
        let belief = |BeliefProposal { key, value, rationale, peer }: &BeliefProposal| {
            [key.len(), value.len(), rationale.len(), peer.as_ref().map_or(0, String::len)]
        };
        let assessments = self.assessments.iter().flat_map(assessment);
        sum(assessments.chain(self.beliefs.iter().flat_map(belief)).chain([self.summary.len()]))
    }
}

fn sum(lengths: impl IntoIterator<Item = usize>) -> u64 {
    lengths.into_iter().fold(0, |sum, length| sum.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)))
}

impl From<wit::Proposals> for ReflectionProposals {
    fn from(wit::Proposals { assessments, beliefs, summary }: wit::Proposals) -> Self {
        let assessment = |wit::Assessment { peer, trust, rationale }| AssessmentProposal { peer, trust, rationale };
        let belief = |wit::Belief { key, value, rationale, peer }| BeliefProposal { key, value, rationale, peer };
        Self {
            assessments: assessments.into_iter().map(assessment).collect(),
            beliefs: beliefs.into_iter().map(belief).collect(),
            summary,
        }
    }
}
