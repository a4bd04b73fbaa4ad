//! `motor new`, `build`, `test`, `dev` and `pack`: tools, skills, reflectors and neurons of one's own (SPEC HOST-9). None of them needs
//! a home or a host, and each prints the next command.

mod dev;
mod test;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent::components::{ComponentReport, Workbench};
use authoring::{Kind, Language, Project, ToolLine};
use base::{Refusal, RefusalCode};
use clap::Args;
use neurons::{OutputKind, Scenario};
use schemars::JsonSchema;
use serde::Serialize;
use skills::SkillName;

use super::Done;
use super::context::{Context, usage};
use super::inspect::{at, tools, workbench};
use crate::exit::CommandExit;
use crate::output::text;
use crate::words::review::shell;

pub(super) use dev::{DevArgs, dev};
pub(super) use test::{CaseReport, TestArgs, test};

/// Arguments of `motor new`.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// `tool`: one component that runs are granted by name; `skill`: instructions with a component; `reflector`: prompts and
    /// replies of the cortex; `neuron`: a reaction to signals
    kind: Kind,
    /// Its name: lower case, digits and single hyphens
    name: String,
    /// Language: `rust`, `js`, `ts`, `c`, or `python` but for a neuron
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
    /// Directory of the project, which must not exist yet [default: NAME]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Arguments of commands about a project.
#[derive(Debug, Args)]
pub(super) struct ProjectArgs {
    /// Directory of the project
    #[arg(default_value = ".")]
    project: PathBuf,
}

/// Arguments of `motor wit`.
#[derive(Debug, Args)]
pub(super) struct WitArgs {
    /// Write the package in its binary form to this file, instead of its text
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// The interfaces of components as JSON: their text, or the file with their binary form.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interfaces<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a Path>,
}

/// A created project, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created<'a> {
    directory: &'a Path,
    kind: Kind,
    language: Language,
}

/// A packed project, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Packed<'a> {
    path: &'a Path,
    hash: base::ContentHash,
    files: &'a [String],
}

pub(super) async fn new(arguments: NewArgs, context: &Context) -> Done {
    let NewArgs { kind, name, lang, dir } = arguments;
    let name = SkillName::parse(&name).map_err(|error| usage(error.reason, "choose a name such as `weather`"))?;
    let directory = dir.unwrap_or_else(|| PathBuf::from(name.as_str()));
    let shown = directory.display().to_string();
    let project = blocking(move || authoring::create(&directory, kind, lang, &name)).await?;
    let created = Created { directory: &project.directory, kind, language: lang };
    context.answer(&created, || format!("created `{shown}`\n"))?;
    next(context, &format!("motor build {shown}"));
    Ok(CommandExit::Ok)
}

pub(super) async fn build(arguments: ProjectArgs, context: &Context) -> Done {
    let project = Project::open(&arguments.project)?;
    let bench = workbench(context)?;
    let report = tokio::select! {
        biased;
        // Listened for before the toolchain starts: it is not in this process's group, so a signal alone does not reach it.
        _ = context.wishes.next() => return Ok(CommandExit::Interrupted),
        report = built(&project, context, &bench) => report?,
    };
    context.answer(&report, || summary(&project, &report, context.output.columns))?;
    next(context, &format!("motor test {}", arguments.project.display()));
    drop_in(&project, context)?;
    Ok(CommandExit::Ok)
}

/// Prints the commands that bring a component into the home. A skill comes there packed.
fn drop_in(project: &Project, context: &Context) -> Result<(), Refusal> {
    let (name, component) = (project.name(), project.component());
    let shown = |path: &Path| shell(&path.display().to_string());
    match project.manifest.kind {
        Kind::Skill => {}
        Kind::Tool => {
            // A build needs no home.
            let Ok(place) = context.place() else { return Ok(()) };
            let (tools, policy) = (shown(&place.home.tools()), component.with_extension("json"));
            let policy = if policy.is_file() { format!(" {}", shown(&policy)) } else { String::new() };
            next(context, &format!("mkdir -p {tools} && cp {}{policy} {tools}", shown(&component)));
            next(context, &format!("motor skill review {name}"));
        }
        Kind::Reflector => {
            let reflectors = shown(&context.place()?.home.reflectors());
            next(context, &format!("mkdir -p {reflectors} && cp {} {reflectors}", shown(&component)));
            next(context, &format!("motor cortex reflector approve {name}"));
            next(context, &format!("motor config set cortex.reflector {name}"));
        }
        Kind::Neuron => {
            let (inputs, outputs) = kinds(project);
            let (component, scenarios) = (component.display(), project.scenarios());
            let options =
                format!("--purpose … --inputs {inputs} --outputs {outputs} --scenarios {}", scenarios.display());
            next(context, &format!("motor neuron propose {name} {component} {options}"));
        }
    }
    Ok(())
}

/// The kinds that the scenarios of a neuron read and emit, separated by commas: those that it has to declare.
fn kinds(project: &Project) -> (String, String) {
    let text = std::fs::read(project.scenarios()).unwrap_or_default();
    // Invalid scenarios are refused, with the reason, when they are proposed.
    let scenarios: Vec<Scenario> = serde_json::from_slice(&text).unwrap_or_default();
    let join = |kinds: BTreeSet<&str>| match kinds.is_empty() {
        true => "…".to_owned(),
        false => kinds.into_iter().collect::<Vec<_>>().join(","),
    };
    let inputs = scenarios.iter().map(|scenario| scenario.signal.kind.as_str()).collect();
    let outputs = scenarios.iter().flat_map(|scenario| &scenario.emits).map(OutputKind::as_str).collect();
    (join(inputs), join(outputs))
}

pub(super) async fn pack(arguments: ProjectArgs, context: &Context) -> Done {
    let project = Project::open(&arguments.project)?;
    let bench = workbench(context)?;
    let lines = match project.component().is_file() {
        true => tool_lines(&at(&bench, context, bench.inspect_file(&project.component())).await?),
        // `pack` names the next command.
        false => Vec::new(),
    };
    let packed = blocking(move || authoring::pack(&project, &lines)).await?;
    let shown = Packed { path: &packed.path, hash: packed.hash, files: &packed.files };
    context
        .answer(&shown, || format!("{}\n{}\n  {}\n", packed.path.display(), packed.hash, packed.files.join("\n  ")))?;
    next(context, &format!("motor skill add {}", packed.path.display()));
    Ok(CommandExit::Ok)
}

pub(super) fn wit(arguments: &WitArgs, context: &Context) -> Done {
    let Some(path) = arguments.binary.as_deref() else {
        let text = authoring::interfaces();
        if context.output.is_json() {
            context.output.print_json(&Interfaces { text: Some(text), path: None })?;
        } else {
            context.output.print_trusted(&text)?;
        }
        return Ok(CommandExit::Ok);
    };
    std::fs::write(path, authoring::encoded_interfaces()?).map_err(|error| {
        Refusal::new(RefusalCode::StorageFailed, format!("cannot write `{}`: {error}", path.display()))
    })?;
    context.answer(&Interfaces { text: None, path: Some(path) }, || format!("wrote `{}`\n", path.display()))?;
    Ok(CommandExit::Ok)
}

/// Builds a project and inspects the component.
///
/// # Errors
/// If the toolchain is missing or fails, or the component is not usable; the remedy names the change.
async fn built(project: &Project, context: &Context, bench: &Workbench) -> Result<ComponentReport, Refusal> {
    let component = authoring::build(project).await?;
    let report = at(bench, context, bench.inspect_file(&component)).await?;
    let (checked, kind, remedy) = match project.manifest.kind {
        Kind::Tool | Kind::Skill => return with_tools(report),
        Kind::Reflector => (
            at(bench, context, bench.check_reflector(&component)).await,
            "reflector",
            "export the interface `reflection` of the world `reflector` in `wit/worlds.wit`, without WASI",
        ),
        Kind::Neuron => (
            at(bench, context, bench.check_neuron(&component)).await,
            "neuron",
            "export the interface `reaction` of the world `neuron` in `wit/worlds.wit`, without WASI and in at most 2 MiB",
        ),
    };
    checked.map_err(|refusal| {
        Refusal::new(refusal.code, format!("it is built, and it is no {kind}: {}", refusal.reason)).with_remedy(remedy)
    })?;
    Ok(report)
}

/// The report, if the component offers tools.
fn with_tools(report: ComponentReport) -> Result<ComponentReport, Refusal> {
    if let Some(error) = &report.tools_error {
        let reason = format!("it is built, and its tools cannot be listed: {error}");
        return Err(Refusal::new(RefusalCode::InvalidComponent, reason).with_remedy("mend what `list` returns"));
    }
    if report.tools.is_empty() {
        let why =
            report.unmapped.first().map_or("it exports none".to_owned(), |one| format!("`{}` {}", one.export, one.why));
        let reason = format!("it is built, and it offers no tools: {why}");
        let remedy = "export the interface `tools` of the world `tool` in `wit/worlds.wit`";
        return Err(Refusal::new(RefusalCode::InvalidComponent, reason).with_remedy(remedy));
    }
    Ok(report)
}

fn summary(project: &Project, report: &ComponentReport, columns: usize) -> String {
    let can = if report.capabilities.is_empty() { "nothing".to_owned() } else { report.capabilities.join(", ") };
    let component = project.component();
    let head = format!("{}\n{}, can use: {can}\n", component.display(), text::bytes(report.size_bytes));
    head + &tools(&report.tools, columns)
}

fn tool_lines(report: &ComponentReport) -> Vec<ToolLine> {
    let line =
        |tool: &runtime::ToolDescription| ToolLine { name: tool.name.clone(), description: tool.description.clone() };
    report.tools.iter().map(line).collect()
}

/// Prints the command that comes next, for people.
fn next(context: &Context, command: &str) {
    if !context.output.is_json() {
        context.output.say(&format!("next: {command}"));
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
    let ended = |error| Refusal::new(RefusalCode::Failed, format!("the work broke off: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(ended)?
}
