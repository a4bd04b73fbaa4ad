//! One call of a skill's tool outside runs: it has no owner to ask, so a request that needs consent is refused.

use std::sync::Arc;

use base::CredentialName;
use motor::ToolReply;
use network::{CallConsents, RunNetwork};
use runtime::{Limits, ToolCall, Workspace};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{SkillTool, catalogue, reply};

/// The grants and limits of one call outside runs.
pub struct DirectCall<'a> {
    /// Arguments that match the tool's schema.
    pub arguments: &'a Value,
    /// Identifies the call, for servers that recognise a repeated request.
    pub key: &'a str,
    /// Network access and credentials of this call; `None`: neither.
    pub network: Option<RunNetwork>,
    /// The files behind `/workspace`; `None`: no files.
    pub workspace: Option<Workspace>,
    /// The limits of the call.
    pub limits: Limits,
}

/// The result of a call outside runs.
pub struct DirectReply {
    /// The result, with the requests that need the owner's consent in `asks`. They were not sent.
    pub reply: ToolReply,
    /// Credentials whose values the tool gave back; its output has their placeholders instead.
    pub withheld: Vec<CredentialName>,
}

impl SkillTool {
    /// Calls the tool in a fresh instance.
    pub async fn call(&self, call: DirectCall<'_>) -> DirectReply {
        let arguments = call.arguments.to_string();
        let network = call.network.map(|network| network.with_consents(CallConsents::default()));
        let name = self.tool.name.as_str();
        let mut finished = self
            .toolset
            .component
            .call(ToolCall {
                name,
                arguments: &arguments,
                run_id: "",
                step: 0,
                idempotency_key: call.key,
                workspace: call.workspace,
                network: network.clone(),
                scripts: None,
                environment: Vec::new(),
                seeded: None,
                limits: call.limits.with_deadline(catalogue::default_timeout(&call.limits)),
                notes: Arc::new(|note| tracing::debug!(?note, "a tool outside runs says something")),
                cancel: CancellationToken::new(),
            })
            .await;
        let withheld = std::mem::take(&mut finished.withheld);
        let asked = network.map(|network| network.asked()).unwrap_or_default();
        DirectReply { reply: reply::of_tool(finished, asked, None), withheld }
    }
}
