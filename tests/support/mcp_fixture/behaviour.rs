//! The calls of fixture tools.

use std::time::Duration;

use futures_util::future::try_join_all;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, ClientCapabilities, ContentBlock, CreateTaskResult, InputRequest, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::{Value, json};
use tokio::sync::broadcast;

use super::data::{Change, KnownTool};
use super::texts;

/// The pause between two messages.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest that a tool computes, in seconds.
const MAX_SECONDS: f64 = 60.0;

/// One call, with all of its input.
pub(super) struct Call {
    pub known: KnownTool,
    /// Arguments and answers by name.
    pub scope: Value,
    pub context: RequestContext<RoleServer>,
    pub changes: broadcast::Sender<Change>,
}

impl Call {
    /// Runs the tool, as a task if it can be one and the client can.
    pub(super) async fn run(
        self,
        tasks: &TaskManager,
        client: &ClientCapabilities,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(needs) = self.known.needs.as_ref().filter(|needs| !declares(client, needs)) {
            return Err(ErrorData::missing_required_client_capability(needs.clone()));
        }
        match &self.known.task {
            Some(_) if client.supports_tasks() => {
                let task = tasks.spawn(TaskOptions::new(), move |task| Box::pin(self.run_as_task(task)));
                Ok(CreateTaskResult::new(task).into())
            }
            Some(task) if task.required => {
                let needed = ClientCapabilities::builder().enable_tasks().build();
                Err(ErrorData::missing_required_client_capability(needed))
            }
            _ => {
                tokio::time::sleep(self.time()).await;
                self.result().await.map(CallToolResponse::Complete)
            }
        }
    }

    fn time(&self) -> Duration {
        let seconds = self.scope["seconds"].as_f64().unwrap_or_default();
        Duration::from_secs_f64(seconds.clamp(0.0, MAX_SECONDS))
    }

    async fn run_as_task(mut self, task: TaskContext) -> Result<CallToolResult, TaskExit> {
        let behaviour = self.known.task.clone().unwrap_or_default();
        let asked = behaviour.inputs.into_iter().map(|(key, request)| {
            let task = task.clone();
            async move { task.request_input(key.clone(), request).await.map(|answer| (key, answer)) }
        });
        let answers = try_join_all(asked).await?.into_iter().collect();
        self.scope = texts::merge(std::mem::take(&mut self.scope), answers);
        tokio::select! {
            () = tokio::time::sleep(self.time()) => {}
            () = task.cancelled() => return Err(TaskExit::Cancelled),
        }
        match behaviour.breaks {
            Some(message) => Err(TaskExit::Error(ErrorData::internal_error(message, None))),
            None => Ok(self.result().await?),
        }
    }

    async fn result(mut self) -> Result<CallToolResult, ErrorData> {
        self.log().await;
        self.report().await;
        if let Some(change) = self.known.changes {
            // Without a subscriber no one hears it.
            self.changes.send(change).ok();
        }
        if let Some(asked) = &self.known.asks {
            match self.ask(texts::filled(asked, &self.scope)?).await {
                Ok(answer) => self.scope["answer"] = answer,
                Err(error) => return Ok(CallToolResult::error(vec![ContentBlock::text(error)])),
            }
        }
        texts::result(&self.known.returns, &self.scope)
    }

    /// Logs to clients of the 2025 versions, and to those that ask for it in the request.
    async fn log(&self) {
        let stateless = self.context.meta.protocol_version().is_some();
        if stateless && self.context.meta.log_level().is_none() {
            return;
        }
        for message in &self.known.logs {
            let notice = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(message));
            self.context.peer.notify_logging_message(notice).await.ok();
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn report(&self) {
        let token = self.context.meta.get_progress_token();
        for percent in &self.known.progress {
            if let Some(token) = &token {
                let notice = ProgressNotificationParam::new(token.clone(), f64::from(*percent)).with_total(100.0);
                self.context.peer.notify_progress(notice).await.ok();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask(&self, request: InputRequest) -> Result<Value, String> {
        let peer = &self.context.peer;
        let answer = match request {
            InputRequest::Elicitation(request) => {
                peer.create_elicitation(request.params).await.map(|answer| json!(answer))
            }
            InputRequest::CreateMessage(request) => {
                peer.create_message(request.params).await.map(|answer| json!(answer))
            }
            _ => return Err("no tool asks this".to_owned()),
        };
        answer.map_err(|error| error.to_string())
    }
}

/// Whether a client declares all that is needed.
fn declares(client: &ClientCapabilities, needs: &ClientCapabilities) -> bool {
    let (client, needs) = (json!(client), json!(needs));
    needs.as_object().is_none_or(|needs| needs.keys().all(|name| client.get(name).is_some()))
}
