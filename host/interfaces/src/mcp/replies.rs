//! Replies of the tools: the parts of the API's answers that a client's model needs.

use agent::TaskSummary;
use motor::{RunStatus, Waiting};
use schemars::JsonSchema;
use serde::Serialize;

/// The state of a run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunReply {
    /// Id of the run.
    pub run_id: String,
    /// `created`, `running`, `awaiting_input`, `awaiting_approval`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// Whether the run has ended.
    pub is_over: bool,
    /// The first 200 characters of the task.
    pub task: String,
    /// The answer of a completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Why a run failed or was cancelled, with the remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The question that only the owner can answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<OwnerQuestion>,
    /// Files that the run produced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactReply>,
    /// Sources of the untrusted content that the run has read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub web_sources: Vec<String>,
    /// Model calls begun so far.
    pub steps: u32,
    /// Cost in US dollars, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Warnings about the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The next step for the caller.
    pub next: String,
}

/// A question of a run to its owner.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnerQuestion {
    /// The kind: `answer` or `approval`.
    pub kind: &'static str,
    /// Id of the question or of the request for approval.
    pub id: String,
    /// The question, or the reason for the request.
    pub question: String,
    /// Answers that the run offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The page where the owner answers, if the host serves one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
}

/// A file that a run produced.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactReply {
    /// Path below the run's artifacts.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
}

impl RunReply {
    /// The reply for a run in this state.
    #[must_use]
    pub fn new(summary: TaskSummary) -> Self {
        let id = &summary.run_id;
        let waits_for = summary.waiting.as_ref().map(OwnerQuestion::of);
        let is_over = matches!(summary.status, RunStatus::Completed | RunStatus::Failed | RunStatus::Cancelled);
        let next = match (&summary.waiting, summary.status) {
            (Some(Waiting::Input(_)), _) => format!("the owner answers with `motor task respond {id} ANSWER`"),
            (Some(Waiting::Approval(_)), _) => format!("the owner decides with `motor task approve {id}`"),
            (None, RunStatus::Completed) => "read `answer`".to_owned(),
            (None, RunStatus::Failed) => "call `core_task` with `action: retry`, or give another task".to_owned(),
            (None, RunStatus::Cancelled) => "nothing: the run was stopped".to_owned(),
            (None, _) => "call `core_task` with `action: wait`".to_owned(),
        };
        let error = summary.error.map(|error| match error.remedy {
            Some(remedy) => format!("{}; {remedy}", error.message),
            None => error.message,
        });
        Self {
            run_id: id.to_string(),
            status: summary.status.to_string(),
            is_over,
            task: summary.task,
            answer: summary.summary.filter(|_| summary.status == RunStatus::Completed),
            error,
            waits_for,
            artifacts: summary
                .artifacts
                .into_iter()
                .map(|artifact| ArtifactReply { path: artifact.path, bytes: artifact.bytes })
                .collect(),
            web_sources: summary.web_sources,
            steps: summary.iterations,
            cost_usd: summary.cost_usd,
            warnings: Vec::new(),
            next,
        }
    }

    /// Adds the page on which the owner answers, if the run waits for an answer.
    pub fn with_page(&mut self, address: &str) {
        if let Some(question) = &mut self.waits_for {
            let page = format!("{address}/runs/{}", self.run_id);
            self.next = format!("{}, or at {page}", self.next);
            question.page = Some(page);
        }
    }
}

impl OwnerQuestion {
    fn of(waiting: &Waiting) -> Self {
        let id = waiting.id().to_owned();
        match waiting {
            Waiting::Input(question) => {
                let (question, choices) = (question.question.clone(), question.choices.clone());
                Self { kind: "answer", id, question, choices, page: None }
            }
            Waiting::Approval(approval) => {
                Self { kind: "approval", id, question: approval.reason.clone(), choices: Vec::new(), page: None }
            }
        }
    }
}

/// The reply of `core_task`.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskReply {
    /// The run, unless runs were listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReply>,
    /// The newest runs, for `list`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<Vec<RunReply>>,
    /// The file, for `artifact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<ArtifactContent>,
    /// The last 16 KiB of the log, for `log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// A file with its text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ArtifactContent {
    /// Path below the run's artifacts.
    pub path: String,
    /// The whole text of the file.
    pub text: String,
}

/// The reply of `core_execute`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgramReply {
    /// Whether the program returned a value.
    pub ok: bool,
    /// The value as JSON text, or the error's code and sentence.
    pub output: String,
    /// The console output of the program.
    pub console: String,
    /// Line of an error, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether the value was cut at 32 KiB.
    pub truncated: bool,
    /// Whether the program read anything from the web.
    pub read_web: bool,
}

/// The reply of `core_skill`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillsReply {
    /// The skills of the home, by place.
    pub skills: Vec<SkillEntry>,
}

/// A skill of the home.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SkillEntry {
    /// The name for `core_act`, as `skill`.
    pub name: String,
    /// The skill's own description.
    pub description: String,
    /// `approved` skills can be used; others wait for the owner's review.
    pub status: String,
}

/// The reply of `core_credential`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsReply {
    /// Credentials that runs can be granted.
    pub credentials: Vec<CredentialEntry>,
    /// How the owner adds another.
    pub to_add: String,
}

/// A credential, without its value.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CredentialEntry {
    /// The name for `core_act`, in `credentials`.
    pub name: String,
    /// Domains that it may be sent to.
    pub domains: Vec<String>,
}
