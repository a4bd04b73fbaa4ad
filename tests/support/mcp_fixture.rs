//! The tools, prompts and resources that the conformance suite of the Model Context Protocol calls by name.
//!
//! They are data (`tests/fixtures/mcp/server.json`) behind rmcp's handler trait, so that the suite exercises the product's
//! own transport and sessions, which serve any handler. Nothing here knows a run.
#![expect(deprecated, reason = "the suite still covers logging, sampling and roots")]

mod behaviour;
mod data;
mod rounds;
mod served;
mod texts;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CompletionInfo,
    GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestStateCodec, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use behaviour::Call;
use data::{Change, Data};
use rounds::Step;
pub use served::Served;

/// Changes that a subscriber may be behind.
const MAX_CHANGES: usize = 64;

/// The fixture server. Clones share tasks and subscribers.
#[derive(Clone)]
pub struct McpFixture {
    data: Arc<Data>,
    tasks: TaskManager,
    codec: Arc<RequestStateCodec>,
    changes: broadcast::Sender<Change>,
}

impl Default for McpFixture {
    fn default() -> Self {
        Self::new()
    }
}

impl McpFixture {
    /// A server without tasks.
    ///
    /// # Panics
    /// If the fixture's file cannot be read.
    #[must_use]
    pub fn new() -> Self {
        let codec =
            RequestStateCodec::try_new(b"a key that only this fixture knows".to_vec()).expect("a key long enough");
        Self {
            data: Arc::new(Data::read()),
            tasks: TaskManager::new(),
            codec: Arc::new(codec),
            changes: broadcast::channel(MAX_CHANGES).0,
        }
    }
}

fn unknown(what: &str, name: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no {what} `{name}`"), None)
}

impl ServerHandler for McpFixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(self.data.capabilities.clone())
            .with_server_info(Implementation::new("motor-conformance-fixture", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.data.tools.iter().map(|known| known.tool.clone());
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.data.tool(name).map(|known| known.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let known = self.data.tool(&request.name).ok_or_else(|| unknown("tool", &request.name))?;
        let scope = Value::Object(request.arguments.unwrap_or_default());
        let client = context.client_capabilities().unwrap_or_default();
        let step =
            known.input.advance(&self.codec, &request.name, request.input_responses, request.request_state, &client)?;
        let scope = match step {
            Step::Ask(asked) => return Ok(asked.into()),
            Step::Done(answers) => texts::merge(scope, answers),
        };
        Call { known: known.clone(), scope, context, changes: self.changes.clone() }.run(&self.tasks, &client).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = self.data.prompts.iter().map(|known| known.prompt.clone());
        Ok(ListPromptsResult::with_all_items(prompts.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let known = self.data.prompts.iter().find(|known| known.prompt.name == request.name);
        let known = known.ok_or_else(|| unknown("prompt", &request.name))?;
        let client = context.client_capabilities().unwrap_or_default();
        let step =
            known.input.advance(&self.codec, &request.name, request.input_responses, request.request_state, &client)?;
        let answers = match step {
            Step::Ask(asked) => return Ok(asked.into()),
            Step::Done(answers) => answers,
        };
        let scope = texts::merge(Value::Object(request.arguments.unwrap_or_default()), answers);
        texts::result(&known.returns, &scope).map(GetPromptResponse::Complete)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self.data.resources.iter().map(|known| known.resource.clone());
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = self.data.templates.iter().map(|known| known.template.clone());
        Ok(ListResourceTemplatesResult::with_all_items(templates.collect()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some((contents, scope)) = self.data.contents(&request.uri) else {
            return Err(ErrorData::invalid_params("there is no such resource", Some(json!({ "uri": request.uri }))));
        };
        let contents = texts::filled(contents, &scope)?;
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let fits = self.data.completions.iter().filter(|word| word.starts_with(&request.argument.value));
        let completion = CompletionInfo::with_all_values(fits.cloned().collect());
        completion.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.data.contents(&request.uri).map(drop).ok_or_else(|| unknown("resource", &request.uri))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.data.contents(&request.uri).map(drop).ok_or_else(|| unknown("resource", &request.uri))
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                change = changes.recv() => change,
                () = subscription.cancelled() => return Ok(()),
            };
            let accepted = subscription.accepted();
            let sent = match change {
                Ok(Change::Tools) if accepted.tools_list_changed == Some(true) => {
                    subscription.sink().notify_tool_list_changed().await
                }
                Ok(Change::Prompts) if accepted.prompts_list_changed == Some(true) => {
                    subscription.sink().notify_prompt_list_changed().await
                }
                Ok(_) | Err(RecvError::Lagged(_)) => Ok(()),
                Err(RecvError::Closed) => return Ok(()),
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        self.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }
}
