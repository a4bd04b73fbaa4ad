//! The isolated engine and the energy of agents, as neurons see them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Refusal, RefusalCode};
use energy::{Activity, EnergyBook};
use neurons::{FaultCode, NeuronHost, TickEnd, TickProgram, TickReport};
use runtime::{CodeErrorCode, Language, Limits, Program, guard};
use store::Batch;
use tokio_util::sync::CancellationToken;
use toolbox::{CompileTurn, SandboxPool};

/// Fuel for a millionth of a full level of energy: a small program costs about 40 of them.
const FUEL_PER_MICRO: u64 = 1_000;
/// The time of a tick, for an engine on a busy machine; the fuel ends a loop long before.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Executes ticks, each in a fresh sandbox without imports.
pub(super) struct EngineHost {
    pub sandboxes: Arc<SandboxPool>,
    pub energy: Arc<EnergyBook>,
    pub closing: CancellationToken,
}

fn limits(energy_micros: u64) -> Limits {
    Limits {
        fuel: energy_micros.saturating_mul(FUEL_PER_MICRO),
        memory_bytes: 16 << 20,
        hostcall_bytes: 1 << 20,
        ..Limits::default()
    }
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
        let TickProgram { source, energy_micros, seed, now } = program;
        let sandbox = self.sandboxes.code(Language::JavaScript, false, CompileTurn::ONLY).await?;
        // The guard judged the code once; here a signal that quotes code is part of the text.
        let program = Program { source, timeout: TIMEOUT, guard: false, seed, now_ms: now.as_millis() };
        let report = sandbox.execute(&program, &limits(energy_micros), &self.closing.child_token()).await;
        let end = match report.outcome {
            Ok(value) if value.truncated => TickEnd::TooLarge,
            Ok(value) => TickEnd::Returned(value.json),
            Err(error) => {
                let code = match error.code {
                    CodeErrorCode::Cancelled => {
                        return Err(Refusal::new(RefusalCode::TryLater, "the host is shutting down"));
                    }
                    CodeErrorCode::Timeout => FaultCode::TimedOut,
                    CodeErrorCode::Limit => FaultCode::OverBudget,
                    CodeErrorCode::Blocked => FaultCode::Blocked,
                    CodeErrorCode::Error => FaultCode::Threw,
                };
                TickEnd::Failed(code, error.to_string())
            }
        };
        // A program that exceeded its fuel has spent all of it.
        let spent = report.usage.fuel.div_ceil(FUEL_PER_MICRO).min(energy_micros);
        Ok(TickReport { end, energy_micros: spent })
    }

    fn check_energy(&self, agent: &AgentName, energy_micros: u64) -> Result<(), Refusal> {
        self.energy.check(agent, Activity::Ticks { micros: micros(energy_micros) })
    }

    async fn drain(&self, batch: &mut Batch, agent: &AgentName, energy_micros: u64) -> Result<(), Refusal> {
        self.energy.stage_drain(batch, agent, Activity::Ticks { micros: micros(energy_micros) }).await?;
        Ok(())
    }
}
