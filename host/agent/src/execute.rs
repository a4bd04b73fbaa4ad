//! One program in the sandbox, outside runs (SPEC CODE-5, CODE-6).

use std::sync::Arc;

use base::{Provenance, Random, Refusal, RefusalCode};
use energy::{Activity, EnergyBook};
use network::Rule;
use runtime::{CodeAccess, CodeErrorCode, Program};
use store::{Batch, Store};
use tokio_util::sync::CancellationToken;
use toolbox::CompileTurn;

use crate::api::{Caller, ExecuteReply, ExecuteRequest, Tier};
use crate::environment::HostEnvironment;

/// Executes programs that belong to no run. Cheap to clone.
#[derive(Clone)]
pub struct Programs {
    pub(crate) environment: Arc<HostEnvironment>,
    pub(crate) energy: Arc<EnergyBook>,
    pub(crate) store: Store,
    pub(crate) random: Arc<Random>,
}

impl Programs {
    /// Runs a program in the sandbox (SPEC CODE-5). Failures of the program are part of the reply.
    ///
    /// # Errors
    /// If the host itself fails: the sandbox does not load, or the store fails.
    pub async fn execute(&self, request: ExecuteRequest, by: Caller) -> Result<ExecuteReply, Refusal> {
        let environment = &*self.environment;
        let activity = match request.tier {
            Tier::Isolated => Activity::Oneshot,
            Tier::Network => Activity::NetworkOneshot,
        };
        let warnings = match self.energy.check(&request.agent, activity) {
            Ok(()) => Vec::new(),
            // Energy refuses a model and warns the owner (SPEC EN-3).
            Err(refusal) if by == Caller::Owner && refusal.code == RefusalCode::EnergyTooLow => {
                vec![format!("{}; going on because the owner asks", refusal.reason)]
            }
            Err(refusal) => return Ok(denied(&refusal)),
        };
        let access = &environment.access;
        let (sandbox, surroundings) = match request.tier {
            Tier::Isolated => {
                (environment.sandboxes.code(request.language, false, CompileTurn::ONLY).await?, CodeAccess::default())
            }
            Tier::Network => {
                let network = Some(access.for_program(&request.agent).await?);
                (
                    environment.sandboxes.code(request.language, true, CompileTurn::ONLY).await?,
                    CodeAccess { network, ..CodeAccess::default() },
                )
            }
        };
        let mut batch = Batch::new();
        self.energy.stage_drain(&mut batch, &request.agent, activity).await?;
        self.store.commit(batch).await?;
        let timeout = match request.tier {
            Tier::Isolated => environment.config().code.timeout(request.timeout_ms),
            Tier::Network => environment.config().code.network_timeout(request.timeout_ms),
        };
        let program = Program {
            source: request.code,
            timeout,
            guard: request.guard.unwrap_or(environment.config().code.guard),
            seed: request.seed.unwrap_or_else(|| self.random.next_u64()),
            now_ms: environment.clock.now().as_millis(),
        };
        tracing::debug!(purpose = request.purpose, tier = ?request.tier, "executing a program");
        let cancel = CancellationToken::new();
        let report = sandbox.execute_in(&program, surroundings, &environment.config().limits, &cancel).await;
        let usage = report.usage;
        let from_web = report.requests.iter().any(|request| request.status.is_some());
        let mut reply = ExecuteReply {
            ok: report.outcome.is_ok(),
            output: String::new(),
            error_code: None,
            line: None,
            column: None,
            truncated: false,
            provenance: if from_web { Provenance::Web } else { Provenance::Internal },
            requests: report.requests,
            console: report.console,
            console_truncated: report.console_truncated,
            duration_ms: usage.duration.as_secs_f64() * 1_000.0,
            fuel: usage.fuel,
            peak_memory_bytes: usage.peak_memory_bytes,
            warnings,
        };
        if report.last_refusal.is_some_and(|blocked| blocked.rule == Rule::DomainNotAllowed) {
            let configured = "what programs outside runs may reach is listed in `network.code_domains`";
            reply.warnings.push(configured.to_owned());
        }
        reply.warnings.extend(report.withheld.into_iter().map(|name| {
            format!("the program gave back the value of the credential `{name}`, which was replaced by its placeholder")
        }));
        match report.outcome {
            Ok(value) => {
                reply.output = value.json;
                reply.truncated = value.truncated;
            }
            Err(error) => {
                reply.output = error.to_string();
                reply.error_code = Some(code_name(error.code).to_owned());
                reply.line = error.line;
                reply.column = error.column;
            }
        }
        Ok(reply)
    }
}

fn code_name(code: CodeErrorCode) -> &'static str {
    match code {
        CodeErrorCode::Timeout => "EXECUTION_TIMEOUT",
        CodeErrorCode::Error => "EXECUTION_ERROR",
        CodeErrorCode::Blocked => "EXECUTION_BLOCKED",
        CodeErrorCode::Limit => "EXECUTION_LIMIT",
        CodeErrorCode::Cancelled => "EXECUTION_CANCELLED",
    }
}

fn denied(refusal: &Refusal) -> ExecuteReply {
    ExecuteReply {
        ok: false,
        output: format!("EXECUTION_DENIED: {}", refusal.reason),
        error_code: Some("EXECUTION_DENIED".to_owned()),
        line: None,
        column: None,
        truncated: false,
        provenance: Provenance::Internal,
        requests: Vec::new(),
        console: String::new(),
        console_truncated: false,
        duration_ms: 0.0,
        fuel: 0,
        peak_memory_bytes: 0,
        warnings: Vec::new(),
    }
}
