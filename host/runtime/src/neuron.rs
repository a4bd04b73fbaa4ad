//! Neurons as components: one signal in, signals out (SPEC NEU-1).
//!
//! Nothing is linked, and a component that imports anything is refused by name before it runs. Each tick has a fresh instance, under
//! the limits of any other call; its signals are untrusted text.

use bindings::neuron::NeuronPre;
use bindings::neuron::exports::motor::host::reaction as wit;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::Linker;

use crate::call;
use crate::engine::Runtime;
use crate::inspect::{Inspection, Kind};
use crate::limits::Limits;
use crate::load::Component;
use crate::load_error::{LoadError, told};
use crate::meter::Meter;
use crate::outcome::{CallReport, CallUsage, Outcome};
use crate::{Limit, LimitExceeded};

/// A component of a neuron, linked and ready. Cheap to clone.
#[derive(Clone)]
pub struct NeuronComponent {
    runtime: Runtime,
    component: Component,
    pre: NeuronPre<Meter>,
}

/// A signal as a component reads and returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalText {
    /// Kind of the signal; of a returned one any text.
    pub kind: String,
    /// Content of the signal, which should be JSON.
    pub data: String,
}

impl NeuronComponent {
    /// Checks that a component can be a neuron, by its imports and exports alone.
    ///
    /// # Errors
    /// If it does not export `motor:host/reaction`, or imports anything.
    pub fn check(inspection: &Inspection) -> Result<(), LoadError> {
        if inspection.kind != Kind::Neuron {
            return Err(LoadError::MissingExport { wanted: "motor:host/reaction".into() });
        }
        match inspection.imports.first() {
            Some(import) => Err(LoadError::ForbiddenImport {
                import: told(&import.name),
                why: "a neuron imports nothing; build it without WASI".into(),
            }),
            None => Ok(()),
        }
    }

    /// Links a loaded component. The linker is empty.
    ///
    /// # Errors
    /// As [`NeuronComponent::check`], and if its function has another type than that of the world.
    pub fn link(runtime: &Runtime, component: &Component) -> Result<Self, LoadError> {
        Self::check(component.inspection())?;
        let linker = Linker::new(component.compiled.engine());
        let pre = linker.instantiate_pre(&component.compiled).and_then(NeuronPre::new);
        let pre = pre.map_err(|error| LoadError::NotLinked { message: told(&error.root_cause().to_string()) })?;
        Ok(Self { runtime: runtime.clone(), component: component.clone(), pre })
    }

    /// The signals that it returns for one. The guest's own error is a refusal; `output_bytes` bounds the texts of the result
    /// together.
    pub async fn tick(
        &self,
        signal: SignalText,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> CallReport<Vec<SignalText>, String> {
        let mut store = Store::new(self.component.compiled.engine(), Meter::new(limits));
        store.limiter(|meter| meter);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
        let signal = wit::Signal { kind: signal.kind, data: signal.data };
        let (outcome, usage) = call::run(&self.runtime, &mut store, limits, cancel, async |store| {
            let instance = self.pre.instantiate_async(&mut *store).await?;
            instance.motor_host_reaction().call_tick(&mut *store, &signal).await
        })
        .await;
        let usage = CallUsage { peak_memory_bytes: store.data().memory_peak(), ..usage };
        CallReport::of(settle(outcome, limits.output_bytes), usage)
    }
}

/// The signals of a tick, unless their texts have more than `most` bytes.
fn settle(outcome: Outcome<Result<Vec<wit::Signal>, String>, String>, most: u64) -> Outcome<Vec<SignalText>, String> {
    match outcome {
        Outcome::Returned(Ok(signals)) => {
            let bytes: usize = signals.iter().map(|signal| signal.kind.len().saturating_add(signal.data.len())).sum();
            if u64::try_from(bytes).unwrap_or(u64::MAX) > most {
                return Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes, value: most });
            }
            let text = |wit::Signal { kind, data }| SignalText { kind, data };
            Outcome::Returned(signals.into_iter().map(text).collect())
        }
        Outcome::Returned(Err(reason)) | Outcome::Refused(reason) => Outcome::Refused(told(&reason)),
        Outcome::Exceeded(exceeded) => Outcome::Exceeded(exceeded),
        Outcome::Trapped(trap) => Outcome::Trapped(trap),
        Outcome::Cancelled => Outcome::Cancelled,
        Outcome::HostFault(message) => Outcome::HostFault(message),
    }
}
