//! Reflectors: components that build the prompt of a reflection and read its reply (SPEC CX-3).
//!
//! Pure: the linker has `motor:host/log` and nothing else, and a component that imports anything besides is refused by name
//! before it runs. Each call has a fresh instance, under the limits of any other call, and runs in the background.

use std::sync::Arc;

use bindings::guiding_reflector::GuidingReflectorPre;
use bindings::guiding_reflector::exports::motor::host::guidance;
use bindings::log;
use bindings::reflector::ReflectorPre;
use bindings::reflector::exports::motor::host::reflection as wit;
use capabilities::NoteSink;
use capabilities::log::HasLog;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::Linker;

use crate::background;
use crate::call;
use crate::engine::Runtime;
use crate::inspect::{Capability, Import, Inspection, Kind};
use crate::limits::Limits;
use crate::load::Component;
use crate::load_error::{LoadError, told};
use crate::outcome::{CallReport, CallUsage, Outcome};
use crate::state::{self, CallInputs, CallState};
use crate::{Limit, LimitExceeded};

/// The only import of a reflector, in any version that this host speaks.
const LOG: &str = "motor:host/log@";
/// The export of a reflector that also reads guidance. One of an earlier version has none.
const GUIDANCE: &str = "motor:host/guidance@";

/// A reflector, linked and ready. Cheap to clone.
#[derive(Clone)]
pub struct ReflectorComponent {
    runtime: Runtime,
    component: Component,
    pre: Arc<ReflectorPre<CallState>>,
    /// The same component, if it exports `motor:host/guidance`.
    guiding: Option<Arc<GuidingReflectorPre<CallState>>>,
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

/// Further proposals that a reflector read: untrusted text and numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuidanceProposals {
    /// Promises with a time.
    pub commitments: Vec<CommitmentProposal>,
    /// The keys of commitments that ended, each with whether it was kept.
    pub closings: Vec<(String, bool)>,
    /// Advice to the main loop.
    pub directives: Vec<DirectiveProposal>,
    /// How the agent drifts from its soul.
    pub drift: Vec<String>,
}

/// A promise with a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitmentProposal {
    /// The key that names it.
    pub key: String,
    /// The promise as text.
    pub text: String,
    /// Whether the peer promised; otherwise the agent did.
    pub by_peer: bool,
    /// The id that the reflector names.
    pub peer: String,
    /// Minutes from the time of the facts.
    pub due_in_minutes: i64,
}

/// Advice that is proposed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectiveProposal {
    /// The key that names it.
    pub key: String,
    /// The advice for the prompt.
    pub text: String,
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
        let is_log = |import: &Import| import.name.starts_with(LOG) && import.capability != Capability::Unused;
        match inspection.imports.iter().find(|import| !is_log(import)) {
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
        let not_linked = |error: wasmtime::Error| component.inspection().not_linked(&error);
        let mut linker = Linker::new(component.compiled.engine());
        log::add_to_linker::<CallState, HasLog>(&mut linker, CallState::log).map_err(not_linked)?;
        let linked = linker.instantiate_pre(&component.compiled).map_err(not_linked)?;
        let guides = component.inspection().exports.iter().any(|export| export.name.starts_with(GUIDANCE));
        let guiding = guides.then(|| GuidingReflectorPre::new(linked.clone())).transpose().map_err(not_linked)?;
        let (pre, guiding) = (Arc::new(ReflectorPre::new(linked).map_err(not_linked)?), guiding.map(Arc::new));
        Ok(Self { runtime: runtime.clone(), component: component.clone(), pre, guiding })
    }

    /// The component of the reflector.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// The prompt for the facts of a cycle, as JSON text.
    pub async fn compose(&self, facts: &str, call: ReflectorCall) -> CallReport<ReflectionPrompt, String> {
        let (pre, facts) = (self.pre.clone(), facts.to_owned());
        let composed = self.run(call, async move |store| {
            let instance = pre.instantiate_async(&mut *store).await?;
            instance.motor_host_reflection().call_compose(&mut *store, &facts).await
        });
        composed.await
    }

    /// The proposals in a reply of the model.
    pub async fn interpret(&self, reply: &str, call: ReflectorCall) -> CallReport<ReflectionProposals, String> {
        let (pre, reply) = (self.pre.clone(), reply.to_owned());
        let read = self.run(call, async move |store| {
            let instance = pre.instantiate_async(&mut *store).await?;
            instance.motor_host_reflection().call_interpret(&mut *store, &reply).await
        });
        read.await
    }

    /// The guidance in a reply of the model. `None` if the reflector reads none, as those of earlier versions.
    pub async fn guide(&self, reply: &str, call: ReflectorCall) -> Option<CallReport<GuidanceProposals, String>> {
        let (guiding, reply) = (self.guiding.clone()?, reply.to_owned());
        let read = self.run(call, async move |store| {
            let instance = guiding.instantiate_async(&mut *store).await?;
            instance.motor_host_guidance().call_guide(&mut *store, &reply).await
        });
        Some(read.await)
    }

    async fn run<T, U: From<T> + Texts + Send + 'static>(
        &self,
        call: ReflectorCall,
        work: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<Result<T, String>> + Send + 'static,
    ) -> CallReport<U, String> {
        let ReflectorCall { limits, notes, cancel } = call;
        let given = CallInputs { notes, ..CallInputs::nothing(&limits) };
        let made = state::store(self.component.compiled.engine(), CallState::new(&limits, given), &limits);
        let mut store = match made {
            Ok(store) => store,
            Err(error) => return CallReport::host_fault(error.to_string()),
        };
        // Before the thread: calls that wait take none.
        let place = match call::place(self.runtime.background(), &limits, &cancel).await {
            Ok(place) => place,
            Err(outcome) => return CallReport::of(outcome, CallUsage::default()),
        };
        let (runtime, ends) = (self.runtime.clone(), cancel.child_token());
        // A caller that goes away ends the guest.
        let _ends = ends.clone().drop_guard();
        let called = background::run(async move || {
            let (outcome, usage) = call::guest(&runtime, &mut store, &limits, &ends, work).await;
            let ended = state::end(store, usage).await;
            drop(place);
            CallReport::of(settle(outcome, limits.output_bytes), ended.usage)
        });
        match cancel.run_until_cancelled(called).await {
            Some(called) => called.unwrap_or_else(CallReport::host_fault),
            None => CallReport::of(Outcome::Cancelled, CallUsage::default()),
        }
    }
}

/// The value of a call, unless its texts have more than `most` bytes. The guest's own error is a refusal.
fn settle<T, U: From<T> + Texts>(outcome: Outcome<Result<T, String>, String>, most: u64) -> Outcome<U, String> {
    match outcome.map(|answer| answer.map(U::from)) {
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

impl Texts for GuidanceProposals {
    fn bytes(&self) -> u64 {
        let commitment = |proposal: &CommitmentProposal| [proposal.key.len(), proposal.text.len(), proposal.peer.len()];
        let directive = |DirectiveProposal { key, text, peer }: &DirectiveProposal| {
            [key.len(), text.len(), peer.as_ref().map_or(0, String::len)]
        };
        let keys = self.closings.iter().map(|(key, _)| key.len());
        let texts = self.commitments.iter().flat_map(commitment).chain(self.directives.iter().flat_map(directive));
        sum(texts.chain(keys).chain(self.drift.iter().map(String::len)))
    }
}

fn sum(lengths: impl IntoIterator<Item = usize>) -> u64 {
    lengths.into_iter().fold(0, |sum, length| sum.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)))
}

impl From<wit::Prompt> for ReflectionPrompt {
    fn from(wit::Prompt { system, user }: wit::Prompt) -> Self {
        Self { system, user }
    }
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

impl From<guidance::Proposals> for GuidanceProposals {
    fn from(guidance::Proposals { commitments, closings, directives, drift }: guidance::Proposals) -> Self {
        let commitment = |guidance::Commitment { key, text, by, peer, due_in_minutes }| CommitmentProposal {
            key,
            text,
            by_peer: matches!(by, guidance::Promiser::Peer),
            peer,
            due_in_minutes,
        };
        let directive = |guidance::Directive { key, text, peer }| DirectiveProposal { key, text, peer };
        Self {
            commitments: commitments.into_iter().map(commitment).collect(),
            closings: closings.into_iter().map(|guidance::Closing { key, kept }| (key, kept)).collect(),
            directives: directives.into_iter().map(directive).collect(),
            drift,
        }
    }
}
