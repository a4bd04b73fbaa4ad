//! The `code` tool of a run: alone, or with the run's granted access (SPEC CODE-6, CODE-7).

use base::ContentHash;
use motor::{ToolInvocation, ToolReply};
use network::RunNetwork;
use runtime::{Access, CodeAccess, Language, Program};
use serde_json::Value;

use crate::run::tell_withheld;
use crate::{CompileTurn, RunToolbox, catalogue, reply};

/// A program's access to network and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeGrants {
    /// Whether it has `fetch`: the run has domains.
    pub network: bool,
    /// Access to files, if the run has tools for them, with the same rights as those tools.
    pub files: Option<Access>,
}

impl CodeGrants {
    /// A run's grants, for a program.
    pub(crate) fn of(granted: &[String], network: &RunNetwork) -> Self {
        Self::planned(granted, !network.policy().domains.is_empty())
    }

    /// The planned access of a run's programs.
    #[must_use]
    pub fn planned(granted: &[String], network: bool) -> Self {
        let access = if catalogue::writes_files(granted) { Access::ReadWrite } else { Access::ReadOnly };
        Self { network, files: catalogue::sees_files(granted).then_some(access) }
    }

    /// Whether it has any access at all.
    pub(crate) fn is_connected(self) -> bool {
        self.network || self.files.is_some()
    }
}

impl RunToolbox {
    pub(crate) async fn run_code(&self, call: &ToolInvocation<'_>) -> ToolReply {
        let parts = &self.parts;
        let language = language(call.arguments);
        let sandbox = match parts.sandboxes.code(language, self.around.is_connected(), CompileTurn::ONLY).await {
            Ok(sandbox) => sandbox,
            Err(refusal) => return reply::host_failed(refusal.reason),
        };
        let source = call.arguments.get("code").and_then(Value::as_str).unwrap_or_default();
        let asked = call.arguments.get("timeout_ms").and_then(Value::as_u64);
        let seeded = parts.seeded(call);
        let program = Program {
            source: source.to_owned(),
            timeout: parts.rules.code_timeout(asked.unwrap_or(parts.code.timeout_ms)),
            guard: parts.guard,
            // A call repeated after a consent computes the same.
            seed: seeded.map_or_else(|| seed_of(call.idempotency_key), |seeded| seeded.seed),
            now_ms: seeded.map_or(call.began.as_millis(), |seeded| seeded.now_ms),
        };
        let way = self.way_out(call);
        let surroundings = CodeAccess {
            // As the tool was described to the loop, even if the owner has allowed more since.
            network: self.around.network.then(|| way.clone()),
            scrubbed_by: Some(parts.network.clone()),
            workspace: self.around.files.map(|_| parts.files(call)),
            access: self.around.files.unwrap_or_default(),
            idempotency_key: Some(call.idempotency_key.to_owned()),
        };
        let mut report = sandbox.execute_in(&program, surroundings, &parts.limits, call.cancel).await;
        tell_withheld(call, std::mem::take(&mut report.withheld));
        reply::of_code(report, way.asked(), call.run)
    }
}

/// The language that a call names. The schema of the tool admits no unknown one.
pub(crate) fn language(arguments: &Value) -> Language {
    arguments.get("language").and_then(Value::as_str).and_then(Language::named).unwrap_or_default()
}

/// A seed that differs between any two calls, and is the same for a repeated call.
pub(crate) fn seed_of(key: &str) -> u64 {
    let hash = ContentHash::of(key.as_bytes());
    u64::from_str_radix(hash.hex().get(..16).unwrap_or_default(), 16).unwrap_or_default()
}
