//! One call of an approved skill's tool outside runs (SPEC MCP-1), with the powers of the skill's policy and no others.
//!
//! There is no run that could ask its owner: a request that needs the owner's consent is refused. A call is made once: it
//! is never repeated by the host.

use base::{ErrorCode, Refusal, RefusalCode};
use energy::Activity;
use grants::{Grant, patterns, shapes};
use llm::check_arguments;
use motor::ToolReply;
use network::{RunNetwork, Taint};
use runtime::inspect::Capability;
use serde_json::Value;
use skills::{Policy, SkillStatus, Taken};
use store::Batch;
use toolbox::{DirectCall, DirectReply, SkillTool};

use super::offers::DeclaredTool;
use super::used::lowered;
use super::{Skills, names, tools_of};
use crate::access::RunConsents;
use crate::api::Caller;
use crate::api::offers::{CallSkillTool, SkillToolReply};

/// A tool that may be called now.
struct CallableTool {
    taken: Taken,
    policy: Policy,
    tool: SkillTool,
    declared: DeclaredTool,
}

impl Skills {
    /// Calls a tool of an approved skill. Its bytes are read and judged now; the call uses exactly these bytes. A failure
    /// of the tool is part of the reply.
    ///
    /// # Errors
    /// `unknown_tool`; `skill_untrusted` if the skill is not approved, or its files changed; `invalid_request` if the
    /// arguments do not match the schema; `credentials_needed`; `energy_too_low`.
    pub async fn call(&self, request: CallSkillTool, by: Caller) -> Result<SkillToolReply, Refusal> {
        let CallSkillTool { name, arguments, agent } = request;
        let agent = agent.unwrap_or_default();
        let CallableTool { taken, policy, tool, declared } = self.callable(&name).await?;
        let skill = &taken.manifest.name;
        let arguments = check_arguments(&declared.input_schema, arguments).map_err(|reason| {
            Refusal::new(RefusalCode::InvalidRequest, format!("the arguments of `{name}` are refused: {reason}"))
                .with_remedy("call it again with arguments that match its input schema")
        })?;
        let capabilities = tool.toolset.component.component().inspection().capabilities();
        let has = |capability| capabilities.contains(&capability);
        let activity = if has(Capability::Network) { Activity::NetworkOneshot } else { Activity::Oneshot };
        let mut warnings = self.check_energy(&agent, activity, by)?;
        let limits = lowered(&self.environment.config().limits, &policy.limits)?;
        let network = if has(Capability::Network) || has(Capability::Credentials) {
            Some(self.network(&taken, policy, &agent).await?)
        } else {
            None
        };
        let directory = if has(Capability::Workspace) { Some(workspace().await?) } else { None };
        let energy = &self.runs.energy;
        let mut batch = Batch::new();
        energy.stage_drain(&mut batch, &agent, activity).await?;
        self.runs.store.commit(batch).await?;
        let key = format!("call-{:016x}", self.random.next_u64());
        let workspace = directory.as_ref().map(|directory| directory.path().to_owned().into());
        let call = DirectCall { arguments: &arguments, key: &key, network, workspace, limits };
        let DirectReply { reply, withheld } = tool.call(call).await;
        tracing::info!(%skill, hash = %taken.snapshot.hash.short(), tool = name, %agent, ok = reply.result.ok, "called a tool of a skill");
        self.note_use(&taken).await;
        warnings.extend(withheld.into_iter().map(|credential| {
            format!(
                "the tool gave back the value of the credential `{credential}`, which was replaced by its placeholder"
            )
        }));
        Ok(reply_of(reply, &declared, skill.as_str(), warnings))
    }

    /// The tool of this name, if its skill is approved as it lies there now.
    async fn callable(&self, name: &str) -> Result<CallableTool, Refusal> {
        let unknown = || {
            Refusal::new(RefusalCode::UnknownTool, "no approved skill has a tool of this name")
                .with_remedy("list the tools of approved skills")
        };
        let approved = self.approved().await?;
        let mut found = None;
        for skill in approved {
            let is_plain = names::skill_of(name).is_some();
            if is_plain && names::skill_of(name).as_ref() != Some(&skill.name) {
                continue;
            }
            let declared = self.declared(&skill).await?;
            if declared.iter().any(|tool| names::offered(&skill.name, &tool.name) == name) {
                found = Some(skill);
                break;
            }
        }
        let Some(found) = found else { return Err(self.untrusted(name).await?.unwrap_or_else(unknown)) };
        let taken = self.environment.skills.take_at(&found.place).await?;
        let standing = &taken.standing;
        let policy = standing.record.as_ref().and_then(|record| record.policy.clone());
        let (SkillStatus::Approved, Some(policy)) = (standing.status, policy) else {
            return Err(refused(taken.manifest.name.as_str(), standing.status, &standing.reason));
        };
        if !policy.dependencies.is_empty() {
            let reason = "the skill needs packages, which this host cannot fetch";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        let tools = tools_of(&self.environment.sandboxes, &taken.snapshot).await?;
        let named = tools.into_iter().find(|(own, _)| names::offered(&taken.manifest.name, own) == name);
        let (own, tool) = named.ok_or_else(unknown)?;
        let declared = DeclaredTool::of(&own, &tool).ok_or_else(unknown)?;
        Ok(CallableTool { taken, policy, tool, declared })
    }

    /// Why the skill that a name would belong to is not trusted; `None` if there is no such skill, or it is trusted.
    async fn untrusted(&self, name: &str) -> Result<Option<Refusal>, Refusal> {
        let Some(skill) = names::skill_of(name) else { return Ok(None) };
        let listed = self.environment.skills.list().await?;
        let mut named = listed.into_iter().filter(|listed| listed.name.as_deref() == Some(skill.as_str())).peekable();
        if named.peek().is_none() {
            return Ok(None);
        }
        let places: Vec<_> = named.collect();
        if places.iter().filter(|place| place.status == SkillStatus::Approved).count() > 1 {
            let reason = format!("several approved skills have the name `{skill}`, so none of them offers its tools");
            return Ok(Some(
                Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("the owner renames one of them"),
            ));
        }
        let untrusted = places.iter().find(|place| place.status != SkillStatus::Approved);
        let is_approved = places.iter().any(|place| place.status == SkillStatus::Approved);
        Ok(untrusted.filter(|_| !is_approved).map(|place| refused(skill.as_str(), place.status, &place.reason)))
    }

    fn check_energy(&self, agent: &base::AgentName, activity: Activity, by: Caller) -> Result<Vec<String>, Refusal> {
        match self.runs.energy.check(agent, activity) {
            Ok(()) => Ok(Vec::new()),
            // Energy refuses a model and warns the owner (SPEC EN-3).
            Err(refusal) if by == Caller::Owner && refusal.code == RefusalCode::EnergyTooLow => {
                Ok(vec![format!("{}; going on because the owner asks", refusal.reason)])
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// The network access of one call: that of a run by the skill which has read nothing yet.
    async fn network(&self, taken: &Taken, policy: Policy, agent: &base::AgentName) -> Result<RunNetwork, Refusal> {
        let access = &self.environment.access;
        let mut grant = Grant::default();
        grant.extend(patterns(&policy.domains)?, shapes(&policy.writes)?);
        // As if it could ask: without that a request that an owner would be asked about might pass.
        let consents = RunConsents::new(false, true);
        let policy_of_run = access.policy(agent, None, &grant.domains, &grant.writes, &consents)?;
        let secrets = access.secrets(&policy.required_credentials, Some(taken.manifest.name.as_str())).await?;
        Ok(access.gate.run(policy_of_run, std::sync::Arc::new(secrets), Taint::default()))
    }

    /// For people only: failing to note the use does not undo the call.
    async fn note_use(&self, taken: &Taken) {
        let (environment, name) = (&self.environment, &taken.manifest.name);
        if let Err(error) = environment.skills.trust().used(name, &taken.place, environment.clock.now()).await {
            tracing::warn!(%error, "when a skill was last used is not noted");
        }
    }
}

fn refused(skill: &str, status: SkillStatus, reason: &str) -> Refusal {
    Refusal::new(RefusalCode::SkillUntrusted, format!("the skill `{skill}` is {status}: {reason}"))
        .with_remedy(format!("the owner reviews it: `motor skill review {skill}`, then `motor skill approve {skill}`"))
}

/// A fresh, empty directory, removed with the value.
async fn workspace() -> Result<tempfile::TempDir, Refusal> {
    store::blocking(|| {
        tempfile::Builder::new().prefix("motor-call-").tempdir().map_err(|error| {
            Refusal::new(RefusalCode::StorageFailed, format!("no temporary directory for the call: {error}"))
        })
    })
    .await
}

fn reply_of(reply: ToolReply, declared: &DeclaredTool, skill: &str, warnings: Vec<String>) -> SkillToolReply {
    let needs_owner = !reply.asks.is_empty() || reply.result.error_code == Some(ErrorCode::NetworkBlocked);
    let usage = reply.usage.unwrap_or_default();
    let mut told = SkillToolReply {
        ok: reply.result.ok,
        output: reply.result.output,
        structured: None,
        error_code: reply.result.error_code,
        remedy: None,
        provenance: reply.result.provenance,
        requests: reply.requests,
        duration_ms: reply.result.duration_ms,
        fuel: usage.fuel,
        peak_memory_bytes: usage.peak_memory_bytes,
        warnings,
    };
    if needs_owner {
        told.remedy = Some(format!(
            "call `core_act` with `skill: {skill}`: a run can ask its owner, and a call of a tool alone cannot"
        ));
    }
    let Some(schema) = declared.output_schema.as_ref().filter(|_| told.ok) else { return told };
    match serde_json::from_str::<Value>(&told.output) {
        // A value that matches comes back as it is.
        Ok(value) if value.is_object() && check_arguments(schema, value.clone()).as_ref() == Ok(&value) => {
            told.structured = Some(value);
        }
        _ => {
            told.ok = false;
            told.error_code = Some(ErrorCode::ExecutionError);
            told.output = "the tool ran, and its output does not match the output schema that it declares".to_owned();
            told.remedy = Some(format!("the owner looks at the skill `{skill}`: a tool keeps its own promises"));
        }
    }
    told
}
