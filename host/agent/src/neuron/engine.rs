//! The isolated engine, components of neurons, and the energy of agents, as neurons see them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, ContentHash, Refusal, RefusalCode};
use energy::{Activity, EnergyBook};
use neurons::{FaultCode, NeuronHost, NeuronInput, TickCode, TickEnd, TickProgram, TickReport};
use parking_lot::Mutex;
use runtime::code::MAX_RESULT_BYTES;
use runtime::{
    CodeErrorCode, Component, ComponentOrigin, Language, Limit, LimitExceeded, Limits, LoadError, NeuronComponent,
    Outcome, Program, SignalText, guard,
};
use store::Batch;
use tokio_util::sync::CancellationToken;
use toolbox::{CompileTurn, SandboxPool};

/// Fuel for a millionth of a full level of energy: a small program costs about 40 of them.
const FUEL_PER_MICRO: u64 = 1_000;
/// The time of a tick, for an engine on a busy machine; the fuel ends a loop long before.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Components that stay loaded, more than neurons may run. It does not matter which: their code is in the engine's cache.
const MAX_LOADED: usize = 8;

/// Executes ticks, each in a fresh instance without imports.
pub(super) struct EngineHost {
    sandboxes: Arc<SandboxPool>,
    energy: Arc<EnergyBook>,
    closing: CancellationToken,
    /// Components by the hash of their bytes.
    loaded: Mutex<HashMap<ContentHash, NeuronComponent>>,
}

impl EngineHost {
    pub fn new(sandboxes: Arc<SandboxPool>, energy: Arc<EnergyBook>, closing: CancellationToken) -> Self {
        Self { sandboxes, energy, closing, loaded: Mutex::default() }
    }

    /// Loads a component that becomes a neuron; none of it is executed.
    ///
    /// # Errors
    /// `invalid_component` if it is not a neuron, imports anything, or cannot be loaded.
    pub async fn check(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let unusable = |error: LoadError| Refusal::new(RefusalCode::InvalidComponent, error.to_string());
        self.component(ContentHash::of(bytes), bytes).await.map(drop).map_err(unusable)
    }

    async fn component(&self, hash: ContentHash, bytes: &[u8]) -> Result<NeuronComponent, LoadError> {
        let known = self.loaded.lock().get(&hash).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let runtime = self.sandboxes.runtime();
        // Before it is compiled, which takes longer.
        let inspection = runtime.inspect(bytes, ComponentOrigin::Untrusted).await?;
        NeuronComponent::check(&inspection)?;
        let component = Component::load(runtime, bytes, ComponentOrigin::Untrusted).await?;
        let linked = NeuronComponent::link(runtime, &component)?;
        let mut loaded = self.loaded.lock();
        if loaded.len() >= MAX_LOADED {
            loaded.clear();
        }
        loaded.insert(hash, linked.clone());
        Ok(linked)
    }

    async fn tick_component(
        &self,
        (hash, bytes): (ContentHash, &[u8]),
        signal: NeuronInput,
        energy_micros: u64,
    ) -> Result<TickReport, Refusal> {
        let component = match self.component(hash, bytes).await {
            Ok(component) => component,
            Err(error) => return unloaded(&error),
        };
        let cancel = self.closing.child_token();
        let report = component.tick(signal_text(&signal), &tick_limits(energy_micros), &cancel).await;
        let spent = spent(report.usage.fuel, energy_micros);
        Ok(TickReport { end: end(report.outcome)?, energy_micros: spent })
    }
}

/// The end of a tick whose component cannot be loaded. A worker that is too slow fails the tick: as a failure of the host, it would be
/// repeated, and hold up all neurons.
fn unloaded(error: &LoadError) -> Result<TickReport, Refusal> {
    let code = match error {
        LoadError::NoCompileWorker | LoadError::Worker { .. } => {
            return Err(Refusal::new(RefusalCode::InvalidComponent, error.to_string()));
        }
        LoadError::WorkerTimeout { .. } => FaultCode::TimedOut,
        _ => FaultCode::InvalidComponent,
    };
    Ok(TickReport { end: TickEnd::Failed(code, error.to_string()), energy_micros: 0 })
}

/// The end of a component's tick.
fn end(outcome: Outcome<Vec<SignalText>, String>) -> Result<TickEnd, Refusal> {
    Ok(match outcome {
        Outcome::Returned(signals) => {
            TickEnd::Emitted(signals.into_iter().map(|SignalText { kind, data }| (kind, data)).collect())
        }
        Outcome::Refused(reason) => TickEnd::Failed(FaultCode::Threw, reason),
        Outcome::Trapped(trap) => TickEnd::Failed(FaultCode::Threw, format!("it trapped: {}", trap.message)),
        Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes | Limit::HostcallBytes, .. }) => TickEnd::TooLarge,
        Outcome::Exceeded(exceeded) => {
            let code = match exceeded.limit {
                Limit::DeadlineMs => FaultCode::TimedOut,
                _ => FaultCode::OverBudget,
            };
            TickEnd::Failed(code, exceeded.to_string())
        }
        Outcome::Cancelled => return Err(closing()),
        Outcome::HostFault(message) => {
            // It may name a path of the host.
            tracing::warn!(reason = %message, "the host could not run a neuron");
            return Err(Refusal::new(RefusalCode::Failed, "the host could not run a neuron; its log has the reason"));
        }
    })
}

fn closing() -> Refusal {
    Refusal::new(RefusalCode::TryLater, "the host is shutting down")
}

/// Energy for this fuel. A program that exceeded its fuel has spent all of it.
fn spent(fuel: u64, energy_micros: u64) -> u64 {
    fuel.div_ceil(FUEL_PER_MICRO).min(energy_micros)
}

/// A signal as a component reads it.
pub(crate) fn signal_text(signal: &NeuronInput) -> SignalText {
    SignalText { kind: signal.kind.as_str().to_owned(), data: signal.data.to_string() }
}

/// The limits of a tick that may spend this energy.
pub(crate) fn tick_limits(energy_micros: u64) -> Limits {
    Limits {
        fuel: energy_micros.saturating_mul(FUEL_PER_MICRO),
        memory_bytes: 16 << 20,
        hostcall_bytes: 1 << 20,
        // The same as for a result of code.
        output_bytes: u64::from(MAX_RESULT_BYTES),
        ..Limits::default()
    }
    .with_deadline(TIMEOUT)
}

fn micros(energy_micros: u64) -> u32 {
    u32::try_from(energy_micros).unwrap_or(u32::MAX)
}

#[async_trait]
impl NeuronHost for EngineHost {
    fn blocked(&self, source: &str) -> Option<&'static str> {
        guard::blocked(Language::JavaScript, source)
    }

    async fn execute(&self, program: TickProgram) -> Result<TickReport, Refusal> {
        let TickProgram { code, energy_micros, seed, now } = program;
        let source = match code {
            TickCode::Script(source) => source,
            TickCode::Component { hash, bytes, signal } => {
                return self.tick_component((hash, &bytes), signal, energy_micros).await;
            }
        };
        let sandbox = self.sandboxes.code(Language::JavaScript, false, CompileTurn::ONLY).await?;
        // The guard judged the code once; here a signal that quotes code is part of the text.
        let program = Program { source, timeout: TIMEOUT, guard: false, seed, now_ms: now.as_millis() };
        let report = sandbox.execute(&program, &tick_limits(energy_micros), &self.closing.child_token()).await;
        let end = match report.outcome {
            Ok(value) if value.truncated => TickEnd::TooLarge,
            Ok(value) => TickEnd::Returned(value.json),
            Err(error) => {
                let code = match error.code {
                    CodeErrorCode::Cancelled => return Err(closing()),
                    CodeErrorCode::Timeout => FaultCode::TimedOut,
                    CodeErrorCode::Limit => FaultCode::OverBudget,
                    CodeErrorCode::Blocked => FaultCode::Blocked,
                    CodeErrorCode::Error => FaultCode::Threw,
                };
                TickEnd::Failed(code, error.to_string())
            }
        };
        Ok(TickReport { end, energy_micros: spent(report.usage.fuel, energy_micros) })
    }

    fn check_energy(&self, agent: &AgentName, energy_micros: u64) -> Result<(), Refusal> {
        self.energy.check(agent, Activity::Ticks { micros: micros(energy_micros) })
    }

    async fn drain(&self, batch: &mut Batch, agent: &AgentName, energy_micros: u64) -> Result<(), Refusal> {
        self.energy.stage_drain(batch, agent, Activity::Ticks { micros: micros(energy_micros) }).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use runtime::Trap;

    use super::*;

    #[test]
    fn a_failure_of_a_component_is_its_fault_and_a_failure_of_the_host_is_not() {
        let code = |outcome| match end(outcome) {
            Ok(TickEnd::Failed(code, _)) => Ok(code.as_str()),
            Ok(TickEnd::TooLarge) => Ok("too large"),
            Ok(TickEnd::Emitted(_) | TickEnd::Returned(_)) => Ok("signals"),
            Err(refusal) => Err(refusal.code),
        };
        let exceeded = |limit| Outcome::Exceeded(LimitExceeded { limit, value: 1 });
        for (outcome, expected) in [
            (Outcome::Returned(Vec::new()), Ok("signals")),
            (Outcome::Refused("no".to_owned()), Ok("threw")),
            (Outcome::Trapped(Trap { message: "unreachable".to_owned(), is_panic: true }), Ok("threw")),
            (exceeded(Limit::Fuel), Ok("over_budget")),
            (exceeded(Limit::MemoryBytes), Ok("over_budget")),
            (exceeded(Limit::DeadlineMs), Ok("timed_out")),
            (exceeded(Limit::OutputBytes), Ok("too large")),
            (exceeded(Limit::HostcallBytes), Ok("too large")),
            (Outcome::Cancelled, Err(RefusalCode::TryLater)),
            (Outcome::HostFault("/home".to_owned()), Err(RefusalCode::Failed)),
        ] {
            let shown = format!("{outcome:?}");
            assert_eq!(code(outcome), expected, "{shown}");
        }
        let code = |error: LoadError| match unloaded(&error) {
            Ok(TickReport { end: TickEnd::Failed(code, _), energy_micros: 0 }) => Some(code),
            Ok(_) | Err(_) => None,
        };
        assert_eq!(code(LoadError::NoCompileWorker), None);
        assert_eq!(code(LoadError::WorkerTimeout { seconds: 1 }), Some(FaultCode::TimedOut));
        assert_eq!(code(LoadError::Empty), Some(FaultCode::InvalidComponent));
    }
}
