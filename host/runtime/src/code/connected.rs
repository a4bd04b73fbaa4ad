//! Programs with surroundings: the domains and the files that their run was granted (SPEC CODE-6, CODE-7).
//!
//! The engine is linked and run like a tool: same store, same gate, same limits. An interface that it does not import
//! does not exist; one that it imports and that was not granted is empty: no directory, no domain.

use std::sync::Arc;

use bindings::code::{CodePre, exports::motor::host::interpreter as wit};
use capabilities::workspace::{Access, Workspace};
use network::RunNetwork;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;

use super::{CodeReport, CodeSandbox, Engine, Language, linked, settle};
use crate::call;
use crate::engine::Runtime;
use crate::inspect::Capability;
use crate::limits::Limits;
use crate::link;
use crate::load::Component;
use crate::load_error::{LoadError, told};
use crate::outcome::{CallUsage, Outcome};
use crate::state::{self, CallInputs, CallState};

/// The resources that a program can reach. The default is nothing.
#[derive(Clone, Default)]
pub struct CodeAccess {
    /// The run's network access; if `None`, every request is refused.
    pub network: Option<RunNetwork>,
    /// The run whose secrets are removed from the program's output, if `network` is `None`.
    pub scrubbed_by: Option<RunNetwork>,
    /// The files behind `/workspace`; if `None`, there are no files.
    pub workspace: Option<Workspace>,
    /// Access to the workspace: no more than that of the tools granted to the run. Default: read only.
    pub access: Access,
    /// The same for every repetition of this execution.
    pub idempotency_key: Option<String>,
}

impl CodeAccess {
    /// The grants that the program is told about.
    pub(super) fn grants(&self) -> wit::Grants {
        let mut grants = wit::Grants::empty();
        // Without a domain the program gets no `fetch` at all (SPEC CODE-7).
        if self.network.as_ref().is_some_and(|network| !network.policy().domains.is_empty()) {
            grants |= wit::Grants::NETWORK;
        }
        if self.workspace.is_some() {
            grants |= wit::Grants::FILES;
        }
        grants
    }
}

impl CodeSandbox {
    /// Links an engine that reaches its surroundings through the interfaces it imports.
    ///
    /// # Errors
    /// If the component is not such an engine, or imports an interface that is never granted.
    pub fn link_connected(runtime: &Runtime, component: &Component) -> Result<Self, LoadError> {
        let mut capabilities = component.inspection().capabilities();
        // Interfaces of `wasi:http` and `wasi:filesystem` hand out streams without importing them by name.
        capabilities.insert(Capability::Streams);
        let refused = |error: wasmtime::Error| LoadError::NotLinked { message: told(&error.root_cause().to_string()) };
        let mut linker = link::linker(component.compiled.engine(), &capabilities).map_err(refused)?;
        link::refuse_unused(&mut linker, component).map_err(refused)?;
        let engine = Engine::Connected(Arc::new(linked(component, &linker)?));
        Ok(Self { runtime: runtime.clone(), component: component.clone(), engine, language: Language::default() })
    }

    pub(super) async fn connected(
        &self,
        pre: Arc<CodePre<CallState>>,
        request: wit::Program,
        surroundings: CodeAccess,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> CodeReport {
        let fault = |message| settle(Outcome::HostFault(message), CallUsage::default());
        let workspace = state::open_workspace(surroundings.workspace.as_ref(), surroundings.access, limits);
        let workspace = match workspace {
            Ok(workspace) => workspace,
            // The message may name a host path, and a model reads the report.
            Err(_) => return fault("the workspace cannot be opened".to_owned()),
        };
        let given = CallInputs {
            workspace,
            network: surroundings.network,
            idempotency_key: surroundings.idempotency_key,
            ..CallInputs::nothing(limits)
        };
        self.attached(&pre, request, given, self.runtime.places(), limits, cancel).await
    }

    /// Runs a program with these inputs, at one of these places.
    pub(super) async fn attached(
        &self,
        pre: &Arc<CodePre<CallState>>,
        request: wit::Program,
        given: CallInputs,
        places: &Arc<Semaphore>,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> CodeReport {
        let has_files = given.workspace.is_open();
        let state = CallState::new(limits, given);
        let mut store = match state::store(self.component.compiled.engine(), state, limits) {
            Ok(store) => store,
            Err(error) => return settle(Outcome::HostFault(error.to_string()), CallUsage::default()),
        };
        let pre = pre.clone();
        let work = async move |store: &mut Store<CallState>| {
            let instance = pre.instantiate_async(&mut *store).await?;
            instance.motor_host_interpreter().call_execute(&mut *store, &request).await
        };
        if has_files {
            let ended = call::run_apart(&self.runtime, places, store, limits, cancel, work, settled).await;
            return ended.unwrap_or_else(|outcome| settle(outcome, CallUsage::default()));
        }
        let (outcome, usage) = call::run(&self.runtime, &mut store, limits, cancel, work).await;
        settled(store, outcome, usage).await
    }
}

async fn settled(
    store: Store<CallState>,
    outcome: Outcome<wit::Report, std::convert::Infallible>,
    usage: CallUsage,
) -> CodeReport {
    let ended = state::end(store, usage).await;
    let (requests, last_refusal) = (ended.requests, ended.last_refusal);
    CodeReport { requests, last_refusal, ..settle(outcome, ended.usage) }
}
