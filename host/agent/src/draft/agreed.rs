//! The hash that the owner agrees to, and the check that a run has exactly the access behind it.
//!
//! The hash is over the task, the tools, the resolved grant and the budget. A skill that changed, a credential that the
//! task mentions, another limit in the configuration: each gives another hash, and the run is refused.

use std::path::PathBuf;
use std::time::Duration;

use base::{AgentName, ConsentRecord, ContentHash, Refusal, RefusalCode};
use grants::{Agreement, Grant};
use llm::MicroUsd;
use motor::MotorConfig;
use serde::Serialize;

use crate::api::ActRequest;

/// Changes when the meaning of a field does.
const VERSION: u32 = 1;

/// Everything that the owner agrees to. Serialised with its fields in this order.
#[derive(Serialize)]
struct Plan<'a> {
    version: u32,
    agent: &'a AgentName,
    task: &'a str,
    tools: &'a [String],
    grant: Grant,
    files: Vec<(&'a PathBuf, Option<&'a str>)>,
    max_iterations: u32,
    timeout_ms: u64,
    may_ask: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_usd: Option<MicroUsd>,
}

/// Stands for the hash of a plan that has none yet. No plan has it.
pub(crate) fn draft_hash() -> ContentHash {
    ContentHash::of(b"a plan without a hash")
}

/// The hash of the plan of a request, with its resolved tools and grant.
///
/// # Errors
/// If the budget is invalid.
pub(crate) fn hash(
    request: &ActRequest,
    tools: &[String],
    grant: &Grant,
    config: &MotorConfig,
) -> Result<ContentHash, Refusal> {
    let timeout = config.timeout(request.timeout_ms.map(Duration::from_millis))?;
    let plan = Plan {
        version: VERSION,
        agent: &request.agent,
        task: &request.task,
        tools,
        grant: Grant { agreement: None, ..grant.clone() },
        files: request.files.iter().map(|file| (&file.path, file.name.as_deref())).collect(),
        max_iterations: config.iterations(request.max_iterations)?,
        timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
        may_ask: !request.unattended,
        budget_usd: request.budget_usd,
    };
    let bytes = serde_json::to_vec(&plan).map_err(|error| {
        Refusal::new(RefusalCode::InvalidRequest, format!("the plan cannot be written as JSON: {error}"))
    })?;
    Ok(ContentHash::of(&bytes))
}

/// The grant with the agreement to it, if the request names a plan.
///
/// # Errors
/// `consent_needed` without a consent, `illegal_state` if the access is not that of the plan.
pub(crate) fn agreed(
    request: &ActRequest,
    tools: &[String],
    grant: Grant,
    consent: Option<ConsentRecord>,
    config: &MotorConfig,
) -> Result<Grant, Refusal> {
    let Some(plan) = &request.plan else { return Ok(grant) };
    let Some(consent) = consent else {
        let reason = "a run of a plan starts with the owner's consent to the plan";
        return Err(Refusal::new(RefusalCode::ConsentNeeded, reason)
            .with_remedy("`motor act --plan FILE` in a terminal shows the plan and asks"));
    };
    if hash(request, tools, &grant, config)? != plan.hash {
        let reason = "the run would have other access than the plan that was agreed to";
        return Err(Refusal::new(RefusalCode::IllegalState, reason).with_remedy(
            "a skill, a setting or the request has changed since: look at the plan again and agree to it",
        ));
    }
    let agreement = Agreement { plan: plan.hash, consent: Some(consent), drafting: plan.drafting.clone() };
    Ok(Grant { agreement: Some(agreement), ..grant })
}

#[cfg(test)]
mod tests {
    use base::{Door, Timestamp};

    use super::*;
    use crate::api::plans::AgreedPlan;

    fn request() -> ActRequest {
        ActRequest { task: "report it".to_owned(), max_iterations: Some(5), ..ActRequest::default() }
    }

    fn grant() -> Grant {
        Grant { writes: vec!["POST a.example.com/x".parse().unwrap()], ..Grant::default() }
    }

    fn hash_of(request: &ActRequest, tools: &[&str], grant: &Grant) -> ContentHash {
        let tools: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        hash(request, &tools, grant, &MotorConfig::default()).unwrap()
    }

    #[test]
    fn each_part_of_a_plan_changes_its_hash() {
        let first = hash_of(&request(), &["fetch"], &grant());
        assert_eq!(first, hash_of(&request(), &["fetch"], &grant()));
        // The key and the hash itself are no access.
        let keyed = ActRequest {
            key: Some("k".to_owned()),
            plan: Some(AgreedPlan { hash: first, drafting: None }),
            ..request()
        };
        assert_eq!(first, hash_of(&keyed, &["fetch"], &grant()));
        let other = |request: ActRequest| hash_of(&request, &["fetch"], &grant());
        let file = crate::api::FileInput { path: "/a".into(), name: None };
        let hashes = [
            first,
            hash_of(&request(), &["fetch", "bash"], &grant()),
            hash_of(&request(), &["fetch"], &Grant::default()),
            other(ActRequest { task: "report it twice".to_owned(), ..request() }),
            other(ActRequest { max_iterations: Some(6), ..request() }),
            other(ActRequest { timeout_ms: Some(7_000), ..request() }),
            other(ActRequest { unattended: true, ..request() }),
            other(ActRequest { budget_usd: MicroUsd::from_usd(0.5), ..request() }),
            other(ActRequest { files: vec![file], ..request() }),
            other(ActRequest { agent: AgentName::parse("other").unwrap(), ..request() }),
        ];
        let different: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len());
        assert!(!different.contains(&draft_hash()));
    }

    #[test]
    fn a_grant_is_agreed_to_with_a_consent_to_its_own_hash_only() {
        let config = MotorConfig::default();
        let hash = hash_of(&request(), &[], &grant());
        let consent = ConsentRecord { given_by: "owner".to_owned(), door: Door::Token, at: Timestamp::from_millis(1) };
        let with = |hash| ActRequest { plan: Some(AgreedPlan { hash, drafting: None }), ..request() };
        let of = |request, consent| agreed(&request, &[], grant(), consent, &config);
        let held = of(with(hash), Some(consent.clone())).unwrap();
        assert_eq!(held.agreement.unwrap().consent, Some(consent.clone()));
        assert_eq!(of(with(hash), None).unwrap_err().code, RefusalCode::ConsentNeeded);
        let stale = of(with(ContentHash::of(b"another plan")), Some(consent.clone())).unwrap_err();
        assert_eq!(stale.code, RefusalCode::IllegalState);
        assert_eq!(of(with(draft_hash()), Some(consent)).unwrap_err().code, RefusalCode::IllegalState);
        assert_eq!(of(request(), None).unwrap(), grant());
    }
}
