//! The choices of a plan: tools with their effects, credentials by name, approved skills. No values.

use std::collections::BTreeMap;

use base::Refusal;
use base::text::Foreign;
use serde::Serialize;
use skills::SkillStatus;
use toolbox::{CodeGrants, define, effects_in_words};
use vault::CredentialInfo;

use super::bounds::Bounds;
use super::seconds;
use crate::api::ActRequest;
use crate::environment::HostEnvironment;

/// Characters of a tool's or skill's description that a model is shown.
const MAX_DESCRIPTION: usize = 200;
/// Credentials and skills that a model is shown, each.
const MAX_OFFERED: usize = 100;

/// The choices of a draft.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) tools: Vec<OfferedTool>,
    /// Those that any run may be granted: a skill's own are granted with the skill.
    pub(super) credentials: Vec<CredentialInfo>,
    pub(super) skills: Vec<OfferedSkill>,
    pub(super) max_iterations: u32,
    pub(super) timeout_seconds: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct OfferedTool {
    pub(super) name: String,
    pub(super) effects: String,
    pub(super) description: String,
}

/// An approved skill that a plan can use.
#[derive(Debug, Serialize)]
pub(super) struct OfferedSkill {
    pub(super) name: String,
    pub(super) description: String,
}

impl Offer {
    /// The choices for a request.
    ///
    /// # Errors
    /// If a component cannot be used, or the store fails.
    pub(super) async fn of(
        request: &ActRequest,
        bounds: &Bounds,
        environment: &HostEnvironment,
    ) -> Result<Self, Refusal> {
        let config = environment.config();
        let around = CodeGrants::planned(&bounds.tools, true);
        let own = BTreeMap::new();
        let defined =
            define(&environment.sandboxes, &config.tools, &config.limits, around, &bounds.tools, &own).await?;
        let tools = defined.into_iter().map(|tool| OfferedTool {
            effects: effects_in_words(tool.effects),
            description: Foreign(&tool.spec.description).line(MAX_DESCRIPTION),
            name: tool.spec.name,
        });
        let mut credentials = environment.access.credentials().await?;
        credentials.retain(|info| info.skill.is_none() && !info.unreadable);
        if !bounds.credentials.is_empty() {
            credentials.retain(|info| bounds.credentials.contains(&info.name));
        }
        // A skill brings powers of its own, which the bounds of the user could not hold.
        let may_choose_skill = request.skill.is_none() && !bounds.is_bounded;
        let listed = if may_choose_skill { environment.skills.list().await? } else { Vec::new() };
        let skills = listed.into_iter().filter(|skill| skill.status == SkillStatus::Approved).filter_map(|skill| {
            let description = Foreign(&skill.description).line(MAX_DESCRIPTION);
            Some(OfferedSkill { name: skill.name?, description })
        });
        Ok(Self {
            tools: tools.collect(),
            credentials,
            skills: skills.take(MAX_OFFERED).collect(),
            max_iterations: bounds.max_iterations,
            timeout_seconds: seconds(bounds.timeout),
        })
    }

    /// The choices as JSON for a model.
    pub(super) fn as_json(&self) -> serde_json::Value {
        let credential = |info: &CredentialInfo| serde_json::json!({ "name": info.name, "sentTo": info.domains });
        serde_json::json!({
            "tools": self.tools,
            "credentials": self.credentials.iter().take(MAX_OFFERED).map(credential).collect::<Vec<_>>(),
            "skills": self.skills,
            "maxIterations": self.max_iterations,
            "timeoutSeconds": self.timeout_seconds,
        })
    }
}
