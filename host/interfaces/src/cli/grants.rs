//! The grants of a run on the command line: the same flags for `act`, which starts it, and `explain`, which does not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::ActRequest;
use base::Refusal;
use clap::Args;
use llm::MicroUsd;

use super::context::Context;
use super::input;
use crate::duration;

/// The flags that grant a run access.
#[derive(Debug, Args)]
pub(super) struct GrantArgs {
    /// Tools the run is granted: exactly these. `code`, `fetch`, `bash`, `filesystem`, or single file tools
    #[arg(long, value_delimiter = ',', value_name = "TOOLS")]
    tools: Vec<String>,
    /// Domains it may reach: `example.com`, `*.example.com` or `*`, with `:PORT` if it is not 80 or 443
    #[arg(long, value_delimiter = ',', value_name = "DOMAINS")]
    domains: Vec<String>,
    /// Requests it may send also after it has read from the web: `'POST example.com/path'`, or `example.com` for everything
    #[arg(long, value_delimiter = ',', value_name = "SHAPES")]
    writes: Vec<String>,
    /// Credentials it may use. Those that the task has placeholders of are granted anyway
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    credentials: Vec<String>,
    /// Commands that `bash` is narrowed to [default: all it has]
    #[arg(long, value_delimiter = ',', value_name = "COMMANDS")]
    commands: Option<Vec<String>>,
    /// A skill to work by, once it is approved: its name, or its place as `motor skill list` shows it
    #[arg(long, value_name = "SKILL")]
    skill: Option<String>,
    /// Inputs of the skill, one by one: JSON if the value is JSON, otherwise text
    #[arg(long = "input", value_name = "NAME=VALUE", requires = "skill", value_parser = input::setting)]
    input: Vec<(String, String)>,
    /// Inputs of the skill, as a JSON object
    #[arg(long, value_name = "JSON", requires = "skill")]
    inputs: Option<String>,
    /// A directory to work on, `DIR:ro` to only read it. Changes are kept aside: `motor diff` shows them, `motor land`
    /// applies them. Grants `bash` and the file tools unless `--tools` does
    #[arg(long = "on", value_name = "DIR")]
    directories: Vec<String>,
    /// A path in such a directory that the run may see although it is ignored or looks like a secret
    #[arg(long, value_name = "PATH", requires = "directories")]
    show: Vec<PathBuf>,
    /// A file to copy into the workspace, under another name if wanted
    #[arg(long = "file", value_name = "[NAME=]PATH")]
    files: Vec<String>,
    /// Hold its writes to the network instead of sending them. `motor task send` sends them later, each once
    #[arg(long)]
    stage: bool,
    /// Model calls it may take [default: 20]
    #[arg(long, value_name = "N")]
    max_iterations: Option<u32>,
    /// Time it may take, such as `90s` or `10m` [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// US dollars it may spend on models, such as `0.50` [default: `budget.usd`]
    #[arg(long, value_name = "USD", value_parser = input::usd)]
    budget_usd: Option<MicroUsd>,
    /// Model to use instead of the configured one
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// Turn off the code tool's static guard. The sandbox is the boundary, with it or without
    #[arg(long)]
    no_guard: bool,
}

impl GrantArgs {
    /// The request for a run with this task.
    pub(super) fn request(self, task: String, context: &Context) -> Result<ActRequest, Refusal> {
        let files = self.files.iter().map(|text| input::file(text, &|path: &Path| path.exists()));
        let directories = input::directories(&self.directories, &self.show)?;
        let inputs = input::of_skill(self.inputs.as_deref(), self.input)?;
        Ok(ActRequest {
            task,
            skill: self.skill,
            inputs,
            tools: self.tools,
            domains: self.domains,
            writes: self.writes,
            credentials: self.credentials,
            commands: self.commands,
            agent: context.agent(),
            files: files.collect::<Result<_, _>>()?,
            directories,
            stage: self.stage,
            max_iterations: self.max_iterations,
            timeout_ms: self.timeout.map(duration::millis),
            budget_usd: self.budget_usd,
            model: self.model,
            guard: self.no_guard.then_some(false),
            ..ActRequest::default()
        })
    }
}

impl GrantArgs {
    /// Checks that no flag was given.
    ///
    /// # Errors
    /// If one was: a plan has all grants in its file.
    pub(super) fn check_none(self, context: &Context) -> Result<(), Refusal> {
        let none = ActRequest { agent: context.agent(), ..ActRequest::default() };
        let (given, none) = (serde_json::to_value(self.request(String::new(), context)?), serde_json::to_value(none));
        if given.ok() == none.ok() {
            return Ok(());
        }
        Err(super::context::usage("`--plan` takes no flags that grant something", "edit the file of the plan"))
    }
}

/// A path made absolute, so that it does not depend on the host's working directory.
pub(super) fn absolute(path: Option<PathBuf>) -> Result<Option<PathBuf>, Refusal> {
    let absolute = path.map(std::path::absolute).transpose();
    absolute.map_err(|_| super::context::usage("`--record` is not a path", "write `--record FILE`"))
}
